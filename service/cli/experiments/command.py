"""The one command behind every ``walltimed experiment``."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.cli.console import (
    AsJson,
    CommandError,
    ExitCode,
    Limit,
    Wide,
    err,
    print_json,
    print_tables,
    progress_bar,
)
from service.cli.experiments import exhibits
from service.cli.experiments.table import Experiment
from service.cli.outputs import check_directory

if TYPE_CHECKING:
    from simulator.studies.study import Study

COMMON = {
    "output": (
        Annotated[
            Path | None,
            typer.Option(
                "--output", "--pictures", metavar="DIR", help="Write tables and pictures to DIR."
            ),
        ],
        None,
    ),
    "limit": (Limit, None),
    "processes": (
        Annotated[int | None, typer.Option(min=1, help="Processes; by default one per core.")],
        None,
    ),
    "dask": (
        Annotated[
            str | None,
            typer.Option(metavar="ADDRESS", help="Run on the workers of this Dask scheduler."),
        ],
        None,
    ),
    "wide": (Wide, False),
    "as_json": (AsJson, False),
}
"""Options of every study: annotation and default by parameter."""


def command_of(experiment: Experiment) -> Callable[..., None]:
    """The command that runs a study, with the study's own options and the common options."""

    def command(**given: Any) -> None:
        taken = given.pop("given", ())
        paths = [taken] if isinstance(taken, Path) else list(taken)
        common = {name: given.pop(name) for name in COMMON}
        figures, tables = given.pop("figure", ()), given.pop("table", ())
        if figures or tables:
            make_exhibits(experiment.name, paths, (figures, tables), given, **common)
        else:
            run(experiment.name, paths, given, **common)

    command.__name__ = experiment.name.replace("-", "_")
    command.__doc__ = inspect.cleandoc(experiment.explanation)
    argument = [] if experiment.takes is None else [("given", experiment.takes)]
    of_exhibits = exhibits.OPTIONS if experiment.has_exhibits else {}
    options = {**experiment.options, **of_exhibits, **COMMON}
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            *(_parameter(name, takes, inspect.Parameter.empty) for name, takes in argument),
            *(_parameter(name, *option) for name, option in options.items()),
        ]
    )
    return command


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
    )


def run(
    name: str,
    paths: Sequence[Path],
    options: dict[str, Any],
    *,
    output: Path | None,
    limit: int | None,
    processes: int | None,
    dask: str | None,
    wide: bool,
    as_json: bool,
) -> None:
    """Run every part of a study, print the tables, and write tables and pictures."""
    from simulator.studies import STUDIES
    from simulator.studies.study import (
        StudyError,
        Takes,
        play_all,
        require_jobs,
        require_machines,
    )

    study = STUDIES[name]
    _refuse_missing(study, paths)
    check_directory(output)
    try:
        if study.simulates:
            require_machines(paths)
        parts = study.runs([path.resolve() if dask else path for path in paths], limit, **options)
        if study.takes is Takes.TRACES and len(paths) > 1:
            require_jobs(study, paths)
        with (
            executor_of(processes, dask) as executor,
            progress_bar("parts", quiet=as_json) as progress,
        ):
            task = progress.add_task(name, total=len(parts))
            played = []
            for each in play_all(study, parts, executor):
                played.append(each)
                progress.advance(task)
    except StudyError as error:
        raise CommandError(str(error), ExitCode.USAGE) from error
    text = study.report(played)
    if as_json:
        records = study.records(played)
        found = records if isinstance(records, dict) else {"records": records}
        print_json({"study": name, **found})
    else:
        print_tables(f"{study.title}\n\n{text}", wide=wide)
    if output:
        study.write(output, f"walltimed experiment {name}", f"{study.title}\n\n{text}", played)
        err.print(f"The report is {output / 'index.html'}.", soft_wrap=True, markup=False)


def make_exhibits(
    name: str,
    paths: Sequence[Path],
    wanted: tuple[Sequence[str], Sequence[str]],
    options: dict[str, Any],
    *,
    output: Path | None,
    limit: int | None,
    processes: int | None,
    dask: str | None,
    wide: bool,
    as_json: bool,
) -> None:
    """Make figures and tables of a study's paper, as PNG and CSV in ``output`` or here."""
    from simulator.studies import STUDIES
    from simulator.studies.exhibits import Sources

    study = STUDIES[name]
    names = exhibits.wanted_of(study, *wanted)
    if as_json:
        raise CommandError("A figure is written as CSV, not as JSON.", ExitCode.USAGE)
    with executor_of(processes, dask) as executor:
        found = [path.resolve() if dask else path for path in paths]
        sources = Sources(paths=found, limit=limit, executor=executor, options=options)
        exhibits.make(name, study, names, sources, output or Path(), wide=wide)


def _refuse_missing(study: "Study", paths: Sequence[Path]) -> None:
    """Refuse missing files before any work.

    Raises:
        CommandError: a trace, or a log of the directory, does not exist.
    """
    if study.logs:
        missing = [log for log in study.logs if not (paths[0] / log).exists()]
        if missing:
            raise CommandError(f"{paths[0]} lacks {', '.join(missing)}.", ExitCode.USAGE)
    for path in paths:
        if not path.exists():
            raise CommandError(f"There is no file {path}.", ExitCode.USAGE)


@contextmanager
def executor_of(processes: int | None, dask: str | None) -> Iterator[Executor]:
    """Processes of this machine, or the workers of a Dask cluster."""
    if dask is None:
        from simulator.scheduling.processes import several_processes

        with several_processes(processes) as executor:
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
