"""``walltimed export``: writes what the store holds as CSV or SWF."""

import csv
import os
import time
from contextlib import closing, contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from service.cli.options import DatabaseUrl, load_settings, ready
from terminal.console import STANDARD_OUTPUT, CommandError, ExitCode, cell, err
from terminal.options import ConfigFile, period_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from predictors.jobs import Completion

FOREVER = 1e11
"""Unix seconds after every run."""

COLUMNS = (
    *("cluster", "job_id", "user", "group", "project", "queue", "application"),
    *("requested_walltime", "requested_processors", "requested_memory"),
    *("submit_time", "start_time", "end_time", "runtime", "status", "interactive"),
)

_OF_THE_RUN = frozenset({"start_time", "end_time", "runtime"})


class Form(StrEnum):
    """A kind of file."""

    CSV = "csv"
    SWF = "swf"


def export(
    *,
    format_: Annotated[
        Form | None,
        typer.Option(
            "--format",
            "-f",
            help="csv or swf; default: as the file's name ends, else csv.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File, compressed if it ends in .gz or .xz; default: standard output.",
        ),
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Only this cluster's runs; SWF needs one.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Only runs that ended in a period such as 30d, 12h or 2w.")
    ] = None,
    database_url: DatabaseUrl = None,
    file: ConfigFile = None,
) -> None:
    """Write the runs that the store holds, for a spreadsheet, XDMoD or a paper.

    Runs come in the order of their submission, with the names that the store has: pseudonyms
    stay. In CSV a name that a spreadsheet would compute, such as =1+1, has an apostrophe before
    it.

    For example:

        walltimed export -o runs.csv
        walltimed export --cluster hill -o hill.swf.gz
        walltimed export --since 90d -o quarter.csv.gz
    """
    form = format_ or form_by_name(output)
    settings = load_settings(database_url=database_url, config=file)
    begin = 0.0 if since is None else time.time() - period_of(since)
    with ready(settings) as store:
        name = one_cluster(store.past_runs.clusters(), cluster) if form is Form.SWF else cluster
        with closing(store.past_runs.exported(name, begin, FOREVER)) as runs:
            number = write(runs, form, output)
    err.print(f"{number:,} runs", style="dim")


def write(runs: "Iterator[Completion]", form: Form, output: Path | None) -> int:
    """Write the runs to standard output, or to a file that is there as a whole or not at all.

    Returns:
        The number of runs.
    """
    from terminal.files import text_writer

    with for_the_owner():
        if form is Form.SWF:
            return write_log(list(runs), output)
        with text_writer(output or STANDARD_OUTPUT, encoding="utf-8") as out:
            return write_csv(runs, out)


@contextmanager
def for_the_owner() -> "Iterator[None]":
    """Let new files be readable by their owner alone meanwhile: they hold names and runs."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def form_by_name(output: Path | None) -> Form:
    """Return the format by the end of a file's name, such as ``runs.swf.gz``; CSV by default."""
    endings = [] if output is None else [each.lower().strip(".") for each in output.suffixes]
    return next((form for form in Form if form in endings[-2:]), Form.CSV)


def one_cluster(clusters: list[str], name: str | None) -> str:
    """Return the cluster to export as SWF.

    Raises:
        CommandError: none was named, and there is not exactly one.
    """
    if name is not None:
        return name
    if not clusters:
        raise CommandError("The history is empty.", ExitCode.USAGE)
    if len(clusters) != 1:
        raise CommandError(
            f"SWF holds one cluster: name one of {', '.join(clusters)} by --cluster.",
            ExitCode.USAGE,
        )
    return clusters[0]


def write_log(runs: "list[Completion]", output: Path | None) -> int:
    """Write SWF of one cluster, and return the number of runs."""
    from simulator.traces.completions import trace_of
    from simulator.traces.swf import write_swf

    trace = trace_of(runs).trace
    comments = (
        "; Version: 2.2",
        *(f"; Computer: {run.submission.cluster}".encode().decode("latin-1") for run in runs[:1]),
        f"; UnixStartTime: {trace.unix_start}",
        "; TimeZoneString: UTC",
        "; Note: exported by walltimed; users, groups, names and queues are numbers",
    )
    # The writer's latin-1 turns the name back into UTF-8.
    write_swf(replace(trace, comments=comments), output or STANDARD_OUTPUT)
    return len(runs)


def write_csv(runs: "Iterator[Completion]", out: IO[str]) -> int:
    """Write CSV, in which unknown values are empty, and return the number of runs."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    number = 0
    for number, run in enumerate(runs, start=1):  # noqa: B007 - the last one is returned
        writer.writerow(map(cell, row_of(run)))
    return number


def row_of(run: "Completion") -> tuple[object, ...]:
    """Return a run as a row; unknown values are None."""
    return tuple(_value(run, name) for name in COLUMNS)


def _value(run: "Completion", name: str) -> object:
    if name == "status":
        return run.status.value
    if name == "interactive":
        return 1 if run.interactive else None
    return getattr(run if name in _OF_THE_RUN else run.submission, name)
