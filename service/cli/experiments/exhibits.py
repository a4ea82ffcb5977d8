"""``walltimed experiment PAPER --figure N`` and ``--table N``: one exhibit as PNG and CSV."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.cli.console import CommandError, ExitCode, err, print_tables, progress_bar
from service.cli.failures import sentence

if TYPE_CHECKING:
    from simulator.studies.exhibits import Sources
    from simulator.studies.study import Study

ALL = "all"

OPTIONS: dict[str, tuple[Any, Any]] = {
    "figure": (
        Annotated[
            list[str],
            typer.Option(metavar="N", help="Make this figure of the paper as PNG and CSV, or all."),
        ],
        (),
    ),
    "table": (
        Annotated[
            list[str],
            typer.Option(metavar="N", help="Make this table of the paper as PNG and CSV, or all."),
        ],
        (),
    ),
}
"""Options of the studies that make figures and tables of their paper again."""


def wanted_of(study: "Study", figures: Sequence[str], tables: Sequence[str]) -> list[str]:
    """Names of the exhibits that are asked for, in the order of the study.

    Raises:
        CommandError: the study cannot make one of them; the message lists those it can.
    """
    asked = {
        *(f"figure {number}" for number in figures if number != ALL),
        *(f"table {number}" for number in tables if number != ALL),
        *(name for name in study.exhibits if ALL in figures and name.startswith("figure ")),
        *(name for name in study.exhibits if ALL in tables and name.startswith("table ")),
    }
    if unknown := asked - set(study.exhibits):
        raise CommandError(
            f"{', '.join(sorted(unknown)).capitalize()} cannot be made; there are "
            f"{', '.join(study.exhibits)}. docs/papers.md says why of each other one.",
            ExitCode.USAGE,
        )
    return [name for name in study.exhibits if name in asked]


def make(
    name: str,
    study: "Study",
    wanted: Sequence[str],
    sources: "Sources",
    directory: Path,
    *,
    wide: bool,
) -> None:
    """Print exhibits, and write each as PNG and CSV.

    Raises:
        typer.Exit: one could not be made, for want of its log; the code tells whether others were.
    """
    from simulator.reports.exhibit_pictures import draw
    from simulator.studies.study import StudyError

    directory.mkdir(parents=True, exist_ok=True)
    with progress_bar("exhibits", quiet=False) as progress:
        task = progress.add_task(name, total=len(wanted))
        made = 0
        for each in wanted:
            try:
                exhibit = study.exhibits[each](sources)
            except (StudyError, FileNotFoundError) as error:
                err.print(sentence(error), soft_wrap=True, markup=False)
                continue
            path = directory / f"{name}-{each.replace(' ', '-')}.png"
            draw(exhibit, path)
            exhibit.write_csv(path.with_suffix(".csv"))
            print_tables(exhibit.text(), wide=wide, end="\n")
            err.print(f"The picture is {path}, its numbers are beside it.", markup=False)
            progress.advance(task)
            made += 1
    if made < len(wanted):
        raise typer.Exit(ExitCode.PARTIAL if made else ExitCode.USAGE)
