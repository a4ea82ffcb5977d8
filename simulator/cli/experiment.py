"""``walltimed experiment NAME``: one command for each study, all with the same options."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from simulator.cli.options import Processes, Wide
from simulator.cli.results import print_tables
from simulator.cli.study_table import EXPERIMENTS, Experiment, option
from terminal.console import CommandError, ExitCode, err, print_json, progress_bar, sentence
from terminal.options import AsJson, Limit

if TYPE_CHECKING:
    from simulator.studies.study import ExhibitInput, Study

ALL = "all"

EXHIBIT_OPTIONS = {
    "output": option(
        Path | None, "--output", metavar="DIR", help="Where figures and tables are written."
    ),
    "figure": option(
        list[str],
        default=(),
        metavar="N",
        help="Make this figure of the paper as PNG and CSV, or all.",
    ),
    "table": option(
        list[str],
        default=(),
        metavar="N",
        help="Make this table of the paper as PNG and CSV, or all.",
    ),
}
"""Options of the studies that make figures and tables of their paper again."""

COMMON = {
    "limit": (Limit, None),
    "processes": (Processes, None),
    "wide": (Wide, False),
    "as_json": (AsJson, False),
}
"""Options of every study: annotation and default by parameter."""


@dataclass(frozen=True, kw_only=True)
class Common:
    """The options of every study, as they are given."""

    limit: int | None
    processes: int | None
    wide: bool
    as_json: bool


class WantedExhibits(NamedTuple):
    """Figures and tables of a paper that are wanted, by number, and the directory for them."""

    figures: Sequence[str] = ()
    tables: Sequence[str] = ()
    output: Path | None = None


def command_of(experiment: Experiment, study: "Study | None" = None) -> Callable[..., None]:
    """Return the command that runs a study, with the study's own options and the common options.

    Args:
        experiment: help text, arguments and options.
        study: the study itself; by default the one of that name in the package.
    """

    def command(**given: Any) -> None:
        taken = given.pop("given", ())
        paths = [taken] if isinstance(taken, Path) else list(taken)
        common = Common(**{name: given.pop(name) for name in COMMON})
        names = ("figure", "table", "output") if experiment.has_exhibits else ()
        wanted = WantedExhibits(*(given.pop(name) for name in names))
        if any(wanted):
            make_exhibits(experiment.name, paths, wanted, given, common)
        else:
            run(experiment.name, study or _study(experiment.name), paths, given, common)

    command.__name__ = experiment.name.replace("-", "_")
    command.__doc__ = inspect.cleandoc(experiment.explanation)
    argument = [] if experiment.takes is None else [("given", experiment.takes)]
    of_exhibits = EXHIBIT_OPTIONS if experiment.has_exhibits else {}
    options = {**experiment.options, **of_exhibits, **COMMON}
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            *(_parameter(name, takes, inspect.Parameter.empty) for name, takes in argument),
            *(_parameter(name, *option) for name, option in options.items()),
        ]
    )
    return command


def run_script(experiment: Experiment, study: "Study") -> None:
    """Run a study that is not in the package, as a command of its own."""
    try:
        typer.run(command_of(experiment, study))
    except CommandError as error:
        err.print(sentence(error), soft_wrap=True, markup=False)
        raise SystemExit(error.code) from error


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
    )


def _study(name: str) -> "Study":
    from simulator.studies import STUDIES

    return STUDIES[name]


def run(
    name: str,
    study: "Study",
    paths: Sequence[Path],
    options: dict[str, Any],
    common: Common,
) -> None:
    """Run every part of a study, and print the tables."""
    from simulator.scheduling.processes import several_processes
    from simulator.studies.study import (
        StudyError,
        Takes,
        play_all,
        require_jobs,
        require_machines,
    )

    _refuse_missing(study, paths)
    try:
        if study.simulates:
            require_machines(paths)
        parts = study.runs(paths, common.limit, **options)
        if study.takes is Takes.TRACES and len(paths) > 1:
            require_jobs(study, paths)
        with (
            several_processes(common.processes) as executor,
            progress_bar("parts", quiet=common.as_json) as progress,
        ):
            task = progress.add_task(name, total=len(parts))
            played = []
            for each in play_all(study, parts, executor):
                played.append(each)
                progress.advance(task)
    except StudyError as error:
        raise CommandError(str(error), ExitCode.USAGE) from error
    text = _first_jobs(study, common.limit) + study.report(played)
    if common.as_json:
        records = study.records(played)
        found = records if isinstance(records, dict) else {"records": records}
        print_json({"study": name, **found})
    else:
        print_tables(f"{study.title}\n\n{text}", wide=common.wide)


def _first_jobs(study: "Study", limit: int | None) -> str:
    """Say that only the first jobs were played; empty where it was everything."""
    from simulator.studies.study import Takes

    if limit is None or study.takes is Takes.NOTHING:
        return ""
    return f"Of each log (and year), the first {limit:,} jobs.\n\n"


def make_exhibits(
    name: str,
    paths: Sequence[Path],
    wanted: WantedExhibits,
    options: dict[str, Any],
    common: Common,
) -> None:
    """Make figures and tables of a study's paper, as PNG and CSV in the output or here."""
    from simulator.scheduling.processes import several_processes
    from simulator.studies import STUDIES
    from simulator.studies.study import ExhibitInput

    study = STUDIES[name]
    names = wanted_of(study, wanted.figures, wanted.tables)
    if not names:
        raise CommandError(
            "--output is for --figure and --table: name one, or all.", ExitCode.USAGE
        )
    if common.as_json:
        raise CommandError("A figure is written as CSV, not as JSON.", ExitCode.USAGE)
    with several_processes(common.processes) as executor:
        sources = ExhibitInput(paths=paths, limit=common.limit, executor=executor, options=options)
        write_exhibits(name, study, names, sources, wanted.output or Path(), wide=common.wide)


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


def wanted_of(study: "Study", figures: Sequence[str], tables: Sequence[str]) -> list[str]:
    """Return the names of the requested exhibits, in the order of the study.

    Raises:
        CommandError: the study cannot make one of them; the message lists those it can.
    """
    requested = {
        *(f"figure {number}" for number in figures if number != ALL),
        *(f"table {number}" for number in tables if number != ALL),
        *(name for name in study.exhibits if ALL in figures and name.startswith("figure ")),
        *(name for name in study.exhibits if ALL in tables and name.startswith("table ")),
    }
    if unknown := requested - set(study.exhibits):
        raise CommandError(
            f"{', '.join(sorted(unknown)).capitalize()} cannot be made; there are "
            f"{', '.join(study.exhibits)}. docs/papers.md says why of each other one.",
            ExitCode.USAGE,
        )
    return [name for name in study.exhibits if name in requested]


def write_exhibits(
    name: str,
    study: "Study",
    wanted: Sequence[str],
    sources: "ExhibitInput",
    directory: Path,
    *,
    wide: bool,
) -> None:
    """Print exhibits, and write each as PNG and CSV.

    Raises:
        typer.Exit: one could not be made, for want of its log; the code tells whether others were.
    """
    from simulator.reports.pictures import write_exhibit
    from simulator.studies.study import StudyError

    directory.mkdir(parents=True, exist_ok=True)
    with progress_bar("exhibits", quiet=False) as progress:
        task = progress.add_task(name, total=len(wanted))
        made = 0
        for each in wanted:
            try:
                made_again = study.exhibits[each](sources)
                first = _first_jobs(study, sources.limit).replace("\n\n", "\n")
                exhibit = replace(made_again, remark=made_again.remark + first)
            except (StudyError, FileNotFoundError) as error:
                err.print(sentence(error), soft_wrap=True, markup=False)
                continue
            path = directory / f"{name}-{each.replace(' ', '-')}.png"
            write_exhibit(exhibit, path)
            print_tables(exhibit.text(), wide=wide, end="\n")
            err.print(f"The picture is {path}, its numbers are beside it.", markup=False)
            progress.advance(task)
            made += 1
    if made < len(wanted):
        raise typer.Exit(ExitCode.PARTIAL if made else ExitCode.USAGE)


experiment = typer.Typer(
    name="experiment",
    no_args_is_help=True,
    help="Run a study of a paper or one of our own.",
    epilog="Beside the studies: walltimed verify checks a schedule. The options of each: --help.",
)

for each in EXPERIMENTS:
    experiment.command(each.name)(command_of(each))
