"""Options of commands of the service and of the simulator, and the completion of their values."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from terminal.console import CommandError, ExitCode
from terminal.words import DAY

FORMATS = ("swf", "sacct", "pbs", "csv")

Completer = Callable[[str], list[str]]


def one_of(values: tuple[str, ...]) -> Completer:
    """Completes one of ``values``, or the last of a list with commas."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{value}" for value in values if value.startswith(last)]

    return complete


def choice(text: str, values: tuple[str, ...], *names: str) -> Any:
    """Return an option that takes one of ``values``, which its help lists."""
    return typer.Option(*names, help=f"{text}: {', '.join(values)}.", autocompletion=one_of(values))


class OnError(StrEnum):
    """The treatment of a file that has malformed lines."""

    REFUSE = "refuse"
    SKIP = "skip"

    @property
    def of_reader(self) -> Literal["raise", "skip"]:
        """The treatment in the words of ``read_swf``."""
        return "raise" if self is OnError.REFUSE else "skip"


Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]

Limit = Annotated[int | None, typer.Option(min=1, help="Only the first jobs after cleaning.")]

Ratio = Annotated[
    str | None,
    typer.Option(
        metavar="OFFSET,SHORTEST,LONGEST",
        help="Numbers of the order response-ratio, (wait + offset) / length, the length held "
        "between two bounds, in seconds; default: 14400,600,43200.",
    ),
]

ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="TOML file; default: WALLTIMED_CONFIG."),
]

Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        help=f"One of: {', '.join(FORMATS)}. Default: seen from the content.",
        autocompletion=one_of(FORMATS),
    ),
]

Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        metavar="FIELD=COLUMN[:FORM],...",
        help="Columns of any table, by name or number, with unit or date pattern: "
        "user=USER,submit=SUBMIT:%d.%m.%Y %H:%M,requested_walltime=LIMIT:min.",
    ),
]

TimeZone = Annotated[
    str, typer.Option(help="Time zone of times without one, such as Europe/Berlin.")
]


def period_of(written: str) -> float:
    """Return the seconds of a period such as ``30d``, ``12h`` or ``2w``.

    >>> period_of("12h"), period_of("2w")
    (43200.0, 1209600.0)

    Raises:
        CommandError: it is no period.
    """
    units = {"h": 3600.0, "d": DAY, "w": 7 * DAY}
    number, unit = written[:-1], written[-1:]
    if unit not in units or not number.isdecimal() or not int(number):
        message = f"{written!r} is no period such as 30d, 12h or 2w."
        raise CommandError(message, ExitCode.USAGE)
    return int(number) * units[unit]
