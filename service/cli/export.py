"""``walltimed export``: writes what the store holds as a table or SWF."""

import os
import time
from contextlib import closing, contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.options import DatabaseUrl, load_settings, ready
from terminal.console import STANDARD_OUTPUT, CommandError, ExitCode, err, need
from terminal.options import ConfigFile, period_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from predictors.jobs import Completion
    from service.store.past_runs import EndedRun

FOREVER = 1e11
"""Unix seconds after every run."""


class Form(StrEnum):
    """A kind of file."""

    CSV = "csv"
    SWF = "swf"
    PARQUET = "parquet"
    ARROW = "arrow"


def export(
    *,
    format_: Annotated[
        Form | None,
        typer.Option(
            "--format",
            "-f",
            help="csv, swf, parquet or arrow; default: as the file's name ends, else csv.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File; csv and swf are compressed if it ends in .gz or .xz; default: standard "
            "output.",
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
    """Write the runs that the store holds, for a spreadsheet, a study or `import`.

    Runs come in the order of their submission, with the names that the store has: pseudonyms
    stay. Tables also hold the prediction that a run was scored by. In CSV a name that a spreadsheet
    would compute, such as =1+1, has an apostrophe before it.

    For example:

        walltimed export -o runs.csv
        walltimed export --cluster hill -o hill.swf.gz
        walltimed export --since 90d -o quarter.parquet
    """
    form = format_ or form_by_name(output)
    check_form(form, output)
    settings = load_settings(database_url=database_url, config=file)
    begin = 0.0 if since is None else time.time() - period_of(since)
    with ready(settings) as store:
        name = one_cluster(store.past_runs.clusters(), cluster) if form is Form.SWF else cluster
        with closing(store.ended_jobs.exported(name, begin, FOREVER)) as runs:
            number = write(runs, form, output)
    err.print(f"{number:,} runs", style="dim")


def check_form(form: Form, output: Path | None) -> None:
    """Refuse a form that cannot be written.

    Raises:
        CommandError: pyarrow is missing, or a binary form would go to standard output.
    """
    if form in {Form.CSV, Form.SWF}:
        return
    need("pyarrow")
    if output is None or str(output) == STANDARD_OUTPUT:
        raise CommandError(f"{form.value} needs a file: --output FILE.", ExitCode.USAGE)


def write(runs: "Iterator[EndedRun]", form: Form, output: Path | None) -> int:
    """Write the runs to standard output, or to a file that is there as a whole or not at all.

    Returns:
        The number of runs.
    """
    from service.cli.export_tables import tables_of
    from terminal.data_table import write_table

    with for_the_owner():
        if form is Form.SWF:
            return write_log([each.run for each in runs], output)
        return write_table(tables_of(runs), output or STANDARD_OUTPUT, form=f".{form.value}")


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
