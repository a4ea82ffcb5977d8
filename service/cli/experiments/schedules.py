"""``walltimed experiment klusacek | tang | xu-schedules | rocchetti``: scheduling studies."""

from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

import typer

from service.cli.console import CommandError, ExitCode, err, out, progress_bar

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
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first so many jobs of each log.")]


def klusacek(
    logs: Logs,
    *,
    output: Output = None,
    processes: Processes = None,
    dask: Dask = None,
    limit: Limit = None,
) -> None:
    """Three estimates under conservative backfilling; how early nodes are known, and the price.

    Klusáček & Soysal 2020, Figs. 5 to 7, 9 and 11 to 14, on CTC-SP2, SDSC-SP2, CERIT-SC.

    For example:

        walltimed experiment klusacek traces --output results/klusacek
    """
    run("klusacek", logs, output=output, processes=processes, dask=dask, limit=limit)


def tang(
    logs: Logs,
    *,
    output: Output = None,
    processes: Processes = None,
    dask: Dask = None,
    limit: Limit = None,
) -> None:
    """Adjusted requests under WFP and FCFS, for all jobs or not for running ones.

    Tang et al. 2013, Figs. 14 to 17, on ANL-Intrepid and ALCF-Theta.

    For example:

        walltimed experiment tang traces --output results/tang
    """
    run("tang", logs, output=output, processes=processes, dask=dask, limit=limit)


def xu_schedules(
    logs: Logs,
    *,
    output: Output = None,
    processes: Processes = None,
    dask: Dask = None,
    limit: Limit = None,
) -> None:
    """EASY and EASY-SJBF with requested and with predicted times.

    Xu et al. 2019, Tables 5 and 6, on SDSC-DS and HPC2N.

    For example:

        walltimed experiment xu-schedules traces --output results/xu
    """
    run("xu-schedules", logs, output=output, processes=processes, dask=dask, limit=limit)


def rocchetti(
    logs: Logs,
    *,
    output: Output = None,
    processes: Processes = None,
    dask: Dask = None,
    limit: Limit = None,
) -> None:
    """Priorities by the accuracy of requests: the six scenarios, on CEA-Curie.

    Rocchetti et al. 2017, Tables 3 to 6.

    For example:

        walltimed experiment rocchetti traces --dask tcp://head:8786
    """
    run("rocchetti", logs, output=output, processes=processes, dask=dask, limit=limit)


def run(
    name: str,
    logs: Path,
    *,
    output: Path | None,
    processes: int | None,
    dask: str | None,
    limit: int | None,
) -> None:
    """Play every simulation of a study, print its tables, write them with pictures."""
    from simulator.studies import STUDIES
    from simulator.studies.runs import Results, play_all

    study = STUDIES[name]
    missing = [log for log in study.logs if not (logs / log).exists()]
    if missing:
        raise CommandError(f"{logs} lacks {', '.join(missing)}.", ExitCode.USAGE)
    runs = study.runs(logs.resolve(), limit)
    with executor_of(processes, dask) as executor, progress_bar("simulations") as progress:
        task = progress.add_task(name, total=len(runs))
        finished = []
        for each in play_all(runs, executor):
            finished.append(each)
            progress.advance(task)
    text = f"{study.title}\n\n{study.report(Results(finished))}"
    out.print(text, soft_wrap=True, end="", markup=False)
    if output:
        from simulator.studies.writing import write_study

        write_study(output, f"walltimed experiment {name}", text, Results(finished))
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
