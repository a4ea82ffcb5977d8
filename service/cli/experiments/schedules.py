"""``walltimed experiment klusacek | tang | xu-schedules | rocchetti``: scheduling studies."""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

import typer

from service.cli.console import AsJson, CommandError, ExitCode, err, out, print_json, progress_bar

Logs = Annotated[
    Path, typer.Argument(metavar="DIRECTORY", help="Where the logs are, by their archive's names.")
]
Output = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Write the tables and pictures there.")
]
Processes = Annotated[int | None, typer.Option(min=1, help="By default one per core.")]
Dask = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Of a Dask scheduler, to run on its workers.")
]
Limit = Annotated[
    int | None, typer.Option(min=1, help="Only the first jobs of each log, after cleaning.")
]


def experiment_of(name: str, explanation: str) -> Callable[..., None]:
    """The command that reruns a study; all of them have the same options."""

    def command(
        logs: Logs,
        *,
        output: Output = None,
        processes: Processes = None,
        dask: Dask = None,
        limit: Limit = None,
        as_json: AsJson = False,
    ) -> None:
        with executor_of(processes, dask) as executor:
            run(name, logs, executor, output=output, limit=limit, as_json=as_json)

    command.__name__ = name
    command.__doc__ = explanation
    return command


klusacek = experiment_of(
    "klusacek",
    """Three estimates under conservative backfilling; how early nodes are known, and the price.

    Klusáček & Soysal 2020, Figs. 5 to 7, 9 and 11 to 14, on CTC-SP2, SDSC-SP2, CERIT-SC.

    For example:

        walltimed experiment klusacek traces --output results/klusacek
    """,
)

tang = experiment_of(
    "tang",
    """Adjusted requests under WFP and FCFS, for all jobs or not for running ones.

    Tang et al. 2013, Figs. 14 to 17, on ANL-Intrepid and ALCF-Theta.

    For example:

        walltimed experiment tang traces --output results/tang
    """,
)

xu_schedules = experiment_of(
    "xu-schedules",
    """EASY and EASY-SJBF with requested and with predicted times.

    Xu et al. 2019, Tables 5 and 6, on SDSC-DS and HPC2N.

    For example:

        walltimed experiment xu-schedules traces --output results/xu
    """,
)

rocchetti = experiment_of(
    "rocchetti",
    """Priorities by the accuracy of requests: the six scenarios, on CEA-Curie.

    Rocchetti et al. 2017, Tables 3 to 6.

    For example:

        walltimed experiment rocchetti traces --dask tcp://head:8786
    """,
)


def run(
    name: str,
    logs: Path,
    executor: Executor,
    *,
    output: Path | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """Play every simulation of a study, print its tables, write them with pictures."""
    from simulator.studies import STUDIES
    from simulator.studies.simulations import Results, play_all

    study = STUDIES[name]
    missing = [log for log in study.logs if not (logs / log).exists()]
    if missing:
        raise CommandError(f"{logs} lacks {', '.join(missing)}.", ExitCode.USAGE)
    runs = study.runs(logs.resolve(), limit)
    with progress_bar("simulations", quiet=as_json) as progress:
        task = progress.add_task(name, total=len(runs))
        finished = []
        for each in play_all(runs, executor):
            finished.append(each)
            progress.advance(task)
    results = Results(finished)
    text = f"{study.title}\n\n{study.report(results)}"
    if as_json:
        print_json({"study": name, "title": study.title, "simulations": results.records()})
    else:
        out.print(text, soft_wrap=True, end="", markup=False)
    if output:
        from simulator.studies.study_page import write_study

        write_study(output, f"walltimed experiment {name}", text, results)
        err.print(f"The report is {output / 'index.html'}.", soft_wrap=True, markup=False)


@contextmanager
def executor_of(processes: int | None, dask: str | None) -> Iterator[Executor]:
    """Processes of this machine, or the workers of a Dask cluster."""
    if dask is None:
        # A fresh process each: a fork of one with compiled code and threads may hang.
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as executor:
            yield executor
        return
    try:
        from distributed import Client
    except ImportError:
        raise CommandError(
            "--dask needs the package distributed; install it beside walltimed.", ExitCode.USAGE
        ) from None
    with Client(dask) as client:
        yield client.get_executor()
