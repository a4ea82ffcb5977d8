"""``python -m papers PAPER``: one command for each study, all with the same options."""

import csv
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from papers.check import check
from papers.studies import STUDIES
from papers.study import Inputs, Study, StudyError, Table, Takes, option
from simulator.cli.options import Distributed, Processes, Wide
from simulator.cli.results import print_tables
from simulator.reports.pictures import draw
from terminal.console import CommandError, ExitCode, err, print_json, sentence
from terminal.files import text_writer
from terminal.options import AsJson, Limit
from terminal.progress import progress_bar

ALL = "all"

ARGUMENTS = {
    Takes.DIRECTORY: Annotated[
        Path,
        typer.Argument(
            metavar="DIRECTORY", help="Directory of the logs, with the archive's file names."
        ),
    ],
    Takes.TRACES: Annotated[
        list[Path], typer.Argument(metavar="TRACE...", help="SWF files, also gzip or xz.")
    ],
}

COMMON = {
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
    "output": option(
        Path | None, "--output", metavar="DIR", help="Where figures and tables are written."
    ),
    "runs": option(
        bool, "--runs", default=False, help="Write the tables of runs behind them, too, as CSV."
    ),
    "limit": (Limit, None),
    "processes": (Processes, None),
    "distributed": (Distributed, None),
    "wide": (Wide, False),
    "as_json": (AsJson, False),
}
"""Options of every study: annotation and default by parameter."""


@dataclass(frozen=True, kw_only=True)
class Common:
    """The options of every study, as they are given."""

    figure: Sequence[str]
    table: Sequence[str]
    output: Path | None
    runs: bool
    limit: int | None
    processes: int | None
    distributed: str | None
    wide: bool
    as_json: bool

    @property
    def directory(self) -> Path | None:
        """The directory for files; None where exhibits are printed only."""
        return self.output or (Path() if self.figure or self.table or self.runs else None)


def command_of(study: Study) -> Callable[..., None]:
    """Return the command that runs a study, with the study's own options and the common options."""

    def command(**given: Any) -> None:
        taken = given.pop("given", ())
        paths = [taken] if isinstance(taken, Path) else list(taken)
        common = Common(**{name: given.pop(name) for name in COMMON})
        run(study, paths, given, common)

    command.__name__ = study.name.replace("-", "_")
    command.__doc__ = inspect.cleandoc(study.explanation)
    argument = [("given", ARGUMENTS[study.takes])] if study.takes in ARGUMENTS else []
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            *(_parameter(name, takes, inspect.Parameter.empty) for name, takes in argument),
            *(_parameter(name, *each) for name, each in {**study.options, **COMMON}.items()),
        ]
    )
    return command


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
    )


def run(study: Study, paths: Sequence[Path], options: dict[str, Any], common: Common) -> None:
    """Make the requested exhibits of a study, or all of them; or print their tables of runs.

    Raises:
        CommandError: an exhibit does not exist, or a log.
    """
    names = wanted_of(study, common.figure, common.table)
    _refuse_missing(study, paths)
    inputs = Inputs(
        paths=paths,
        limit=common.limit,
        options=options,
        processes=common.processes,
        distributed=common.distributed,
    )
    if common.as_json:
        tables = tables_of(study, names).items()
        records = {name: [asdict(each) for each in table(inputs)] for name, table in tables}
        print_json({"study": study.name, "tables": records})
        return
    make_exhibits(study, names, inputs, common)
    if common.runs:
        write_runs(study, names, inputs, common.directory or Path())


def tables_of(study: Study, names: Sequence[str]) -> dict[str, Table]:
    """Return the tables of runs that exhibits are made of, by name."""
    return {
        table.__name__.replace("_", "-"): table
        for name in names
        for table in study.exhibits[name].tables()
    }


def _refuse_missing(study: Study, paths: Sequence[Path]) -> None:
    """Refuse missing files before any work.

    Raises:
        CommandError: a trace, or a log of the directory, does not exist.
    """
    missing = [log for log in study.logs if not (paths[0] / log).exists()]
    if missing:
        raise CommandError(f"{paths[0]} lacks {', '.join(missing)}.", ExitCode.USAGE)
    for path in paths:
        if not path.exists():
            raise CommandError(f"There is no file {path}.", ExitCode.USAGE)


def wanted_of(study: Study, figures: Sequence[str], tables: Sequence[str]) -> list[str]:
    """Return the names of the requested exhibits, in the order of the study; by default all.

    Raises:
        CommandError: the study cannot make one of them; the message lists those it can.
    """
    if not figures and not tables:
        return list(study.exhibits)
    requested = {
        *(f"figure {number}" for number in figures if number != ALL),
        *(f"table {number}" for number in tables if number != ALL),
        *(name for name in study.exhibits if ALL in figures and name.startswith("figure ")),
        *(name for name in study.exhibits if ALL in tables and name.startswith("table ")),
    }
    if unknown := requested - set(study.exhibits):
        raise CommandError(
            f"{', '.join(sorted(unknown)).capitalize()} cannot be made; there are "
            f"{', '.join(study.exhibits)}. papers/README.md says why of each other one.",
            ExitCode.USAGE,
        )
    return [name for name in study.exhibits if name in requested]


def make_exhibits(study: Study, names: Sequence[str], inputs: Inputs, common: Common) -> None:
    """Print exhibits; with a directory, write each as PNG and CSV.

    Raises:
        typer.Exit: one could not be made, for want of its log; the code tells whether others were.
    """
    with progress_bar("exhibits", quiet=False) as progress:
        task = progress.add_task(study.name, total=len(names))
        made = 0
        for name in names:
            try:
                _make(study, name, inputs, common)
            except (StudyError, FileNotFoundError) as error:
                err.print(sentence(error), soft_wrap=True, markup=False)
                continue
            progress.advance(task)
            made += 1
    if made < len(names):
        raise typer.Exit(ExitCode.PARTIAL if made else ExitCode.USAGE)


def _make(study: Study, name: str, inputs: Inputs, common: Common) -> None:
    """Print one exhibit, and write it."""
    exhibit = study.exhibits[name].make(f"{study.name} {name}", inputs)
    if inputs.limit is not None and study.takes is not Takes.NOTHING:
        first = f"Of each log (and year), the first {inputs.limit:,} jobs.\n"
        exhibit = replace(exhibit, remark=exhibit.remark + first)
    directory = common.directory
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
        picture = directory / f"{study.name}-{name.replace(' ', '-')}.png"
        draw(exhibit, picture)
        exhibit.write_csv(picture.with_suffix(".csv"))
    print_tables(exhibit.text(), wide=common.wide, end="\n")
    if directory is not None:
        err.print(f"The picture is {picture}, its numbers are beside it.", markup=False)


def write_runs(study: Study, names: Sequence[str], inputs: Inputs, directory: Path) -> None:
    """Write the tables of runs that exhibits are made of, as CSV."""
    for name, table in tables_of(study, names).items():
        records = table(inputs)
        if not records:
            continue
        path = directory / f"{study.name}-runs-{name}.csv"
        with text_writer(path, encoding="utf-8") as file:
            rows = csv.DictWriter(file, [each.name for each in fields(records[0])])
            rows.writeheader()
            rows.writerows(map(asdict, records))
        err.print(f"The runs are {path}.", markup=False)


app = typer.Typer(
    name="papers",
    no_args_is_help=True,
    add_completion=False,
    help="Make the figures and tables of the five papers again (papers/README.md).",
)

for each in STUDIES.values():
    app.command(each.name)(command_of(each))
app.command("check")(check)


def main() -> None:
    """Run a command; an expected failure is one sentence and an exit code."""
    try:
        app(prog_name="python -m papers")
    except CommandError as error:
        err.print(sentence(error), soft_wrap=True, markup=False)
        sys.exit(error.code)
    except (OSError, ValueError) as error:
        code = ExitCode.USAGE if isinstance(error, OSError) else getattr(error, "exit_code", None)
        if code is None:
            raise
        err.print(sentence(error), soft_wrap=True, markup=False)
        sys.exit(code)
