"""Options that several commands share, and the values that they take."""

import re
from collections.abc import Callable
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import typer


def _names(package: str, file: str, value: str = "") -> list[str]:
    """Return the names in a table, read as text: importing it would load the compiler."""
    text = files(package).joinpath(file).read_text("utf-8")
    return re.findall(rf'^    "([a-z-]+)": {value}', text, re.MULTILINE)


METHODS = (*_names("predictors", "registry.py"), "auto")
POLICIES = tuple(_names("simulator", "engine/policies/__init__.py", "Policy"))
TWINS = ("slurm", "pbs")
ORDERS = ("fcfs", "sjf", "wfp", "psp", "psp-aging", "sjf-aging")
EVENTS = ("batch", "sequential")
COMPRESSIONS = ("start-order", "keep", "replan")
PINNED = ("nodes", "start")
CORRECTIONS = ("double", "request", "tsafrir")
ADJUSTMENTS = ("regular", "selective", "order", "order-and-time-min")
OVERRUNS = ("kill", "keep", "swap")
ESTIMATES = ("exact", "requested", "service", *(name for name in METHODS if name != "requested"))
FORMATS = ("swf", "sacct", "pbs")
SCOPES = ("predict", "ingest", "read", "self", "admin")

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


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]

Limit = Annotated[int | None, typer.Option(min=1, help="Only the first jobs after cleaning.")]

Wide = Annotated[
    bool, typer.Option("--wide", help="All columns, in seconds; default: what fits 80 columns.")
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

TraceFile = Annotated[
    str, typer.Argument(metavar="TRACE", help="SWF; plain, gzip, xz; - is stdin.")
]

MalformedLines = Annotated[
    OnError, typer.Option("--on-error", help="Malformed lines: refuse the file, or skip them.")
]

TimeZone = Annotated[
    str, typer.Option(help="Time zone of times without one, such as Europe/Berlin.")
]

ReportDirectory = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Write a page with tables and pictures.")
]

MachineSize = Annotated[
    int | None, typer.Option(min=1, help="Size of the machine; default: from the header.")
]

SlurmConfig = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        exists=True,
        file_okay=False,
        help="slurm: what scontrol show config, partition, node, reservation print.",
    ),
]

PbsConfig = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        exists=True,
        file_okay=False,
        help="pbs: sched_config, what qmgr -c 'print server' and pbsnodes -av print.",
    ),
]

CoresPerNode = Annotated[
    int | None, typer.Option(min=1, help="Jobs take whole nodes with this many cores.")
]

Processes = Annotated[int | None, typer.Option(min=1, help="Processes; default: one per core.")]

ServiceUrl = Annotated[
    str | None, typer.Option(help="URL of a running service; default: a private one.")
]

ServiceToken = Annotated[
    str | None,
    typer.Option(envvar="WALLTIMED_TOKEN", help="Token (predict, ingest) for --url."),
]

Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        "-m",
        help="Method, such as percentile:percentile=90; may be repeated.",
        autocompletion=one_of(METHODS),
    ),
]
