"""Options that several commands about traces share, and the values that they take."""

import re
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from terminal.options import OnError, one_of


def _names(package: str, file: str, value: str = "") -> list[str]:
    """Return the names in a table, read as text: importing it would load the compiler."""
    text = files(package).joinpath(file).read_text("utf-8")
    return re.findall(rf'^    "([a-z-]+)": {value}', text, re.MULTILINE)


METHODS = (*_names("predictors", "registry.py"), "auto")
POLICIES = tuple(_names("simulator", "engine/policies/__init__.py", "Policy"))
TWINS = ("slurm", "pbs")
ORDERS = ("fcfs", "sjf", "wfp", "psp", "psp-aging", "sjf-aging", "response-ratio")
EVENTS = ("batch", "sequential")
COMPRESSIONS = ("start-order", "keep", "replan")
PINNED = ("nodes", "start")
CORRECTIONS = ("double", "request", "tsafrir")
ADJUSTMENTS = ("regular", "selective", "order", "order-and-time-min", "aged-order")
OVERRUNS = ("kill", "keep", "swap")
ESTIMATES = ("exact", "requested", "service", *(name for name in METHODS if name != "requested"))

Wide = Annotated[
    bool, typer.Option("--wide", help="All columns, in seconds; default: what fits 80 columns.")
]

TraceFile = Annotated[
    str,
    typer.Argument(
        metavar="TRACE", help="SWF, sacct, PBS or a table; plain, gzip, xz, bzip2; - is stdin."
    ),
]

MalformedLines = Annotated[
    OnError, typer.Option("--on-error", help="Malformed lines: refuse the file, or skip them.")
]

ReportDirectory = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Write a page with tables and pictures.")
]

MachineSize = Annotated[
    int | None,
    typer.Option(min=1, help="Size of the machine; default: from the header, else by the log."),
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

Distributed = Annotated[
    str | None,
    typer.Option(
        metavar="dask:ADDRESS", help="Use the workers of this Dask scheduler (extra distributed)."
    ),
]

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
