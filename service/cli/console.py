"""The common parts of all commands: output for people and machines, exit codes, errors."""

import sys
from enum import IntEnum
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

out = Console(highlight=False)
"""Results, on standard output."""

err = Console(stderr=True, highlight=False)
"""Progress, warnings and errors, on standard error."""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]

Limit = Annotated[int | None, typer.Option(min=1, help="Only the first jobs after cleaning.")]

Wide = Annotated[
    bool, typer.Option("--wide", help="All columns, in seconds; default: what fits 80 columns.")
]


class ExitCode(IntEnum):
    """The meaning of every command's exit code."""

    OK = 0
    FAILED = 1
    USAGE = 2
    PARTIAL = 3
    UNAVAILABLE = 4
    INTERRUPTED = 130


class CommandError(Exception):
    """A failure that one sentence explains; any code below a command may raise it."""

    def __init__(self, message: str, code: ExitCode = ExitCode.FAILED) -> None:
        """Fail with ``message`` on standard error and ``code`` as the exit code."""
        super().__init__(message)
        self.code = code


def print_tables(text: str, *, wide: bool = False, end: str = "") -> None:
    """Print text with tables, in 80 columns or as wide as it is; everybody prints tables here."""
    from simulator.reports.tables import fitted

    out.print(text if wide else fitted(text), soft_wrap=True, markup=False, end=end)


SCHEMA = 1
"""Version of the JSON that commands print; docs/schemas has one file for each command."""


def print_json(value: Any) -> None:
    """Write an object as indented JSON with the version of its schema, never coloured."""
    document = {"schema": SCHEMA, **msgspec.to_builtins(value)}
    text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
    sys.stdout.write(text + "\n")


def cell(value: Any) -> Any:
    """A value in CSV that no spreadsheet takes for a formula: users choose names of their jobs."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return value


class RateColumn(ProgressColumn):
    """Steps per second, such as ``12,345 lines/s``."""

    def __init__(self, unit: str) -> None:
        """Name what is counted, in the plural."""
        super().__init__()
        self.unit = unit

    def render(self, task: Task) -> Text:
        """The speed of the last moments, or of the whole task once it has ended."""
        speed = task.finished_speed or task.speed
        return Text(f"{speed:,.0f} {self.unit}/s" if speed else "")


def progress_bar(unit: str, *, quiet: bool = False) -> Progress:
    """A progress bar on standard error that counts ``unit`` and vanishes when it is done."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f}"),
        RateColumn(unit),
        TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=quiet or not err.is_terminal,
    )
