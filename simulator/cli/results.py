"""The end of every command that plays a log: a report, the result itself, and the exit code."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import typer

from simulator.traces.trace import Reject
from terminal.console import ExitCode, err, out, print_json


def print_tables(text: str, *, wide: bool = False, end: str = "") -> None:
    """Print text with tables; sentences are wrapped in 80 columns, or as wide as they are."""
    from simulator.reports.tables import wrapped

    out.print(text if wide else wrapped(text), soft_wrap=True, markup=False, end=end)


LISTED = 5
"""Number of rejected lines that are printed; ``--json`` prints all of them."""


def numbers_of(rejected: Sequence[Reject]) -> str:
    """Return the count of malformed lines and the numbers of the first."""
    lines = ", ".join(str(each.line) for each in rejected[:LISTED])
    more = " and more; --json lists them all" if len(rejected) > LISTED else ""
    return f"{len(rejected):,}: {lines}{more}"


class PlayResult(Protocol):
    """The result of playing a log."""

    @property
    def rejected(self) -> Sequence[Reject]:
        """The malformed lines of the log."""

    def show(self, *, wide: bool) -> None:
        """Print the facts and the tables; ``wide`` has all columns, in seconds."""

    def as_data(self) -> dict[str, Any]:
        """Return the result as a JSON object."""

    def write(self, directory: Path) -> None:
        """Write the page with its pictures and data."""


def conclude(
    result: PlayResult, *, report: Path | None, wide: bool, as_json: bool, is_piped: bool
) -> None:
    """Write the report and print the result, unless a file of the command goes to standard output.

    Raises:
        typer.Exit: the log has malformed lines.
    """
    if report:
        result.write(report)
        tell_report(report)
    if as_json:
        print_json(result.as_data())
    elif not is_piped:
        result.show(wide=wide)
    if result.rejected:
        raise typer.Exit(ExitCode.PARTIAL)


def tell_report(directory: Path) -> None:
    """Say where the page of a report is."""
    err.print(f"The report is {directory / 'index.html'}.", soft_wrap=True, markup=False)
