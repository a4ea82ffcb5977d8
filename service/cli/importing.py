"""``walltimed import``: loads the history of years from files of known formats into the store."""

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import typer
from msgspec import Struct, field
from rich.markup import escape

from service.cli.log_files import read_history, refuse_malformed
from service.cli.options import (
    DatabaseUrl,
    check_cluster,
    load_settings,
    names_of,
    ready,
    storable,
)
from simulator.cli.logs import LogFile
from simulator.cli.results import LISTED
from terminal.console import CommandError, ExitCode, out, print_json
from terminal.options import AsJson, Columns, ConfigFile, Format, OnError, Quiet, TimeZone
from terminal.progress import progress_bar
from terminal.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from service.adapters.history_files import HistoryFile
    from service.store import ReportedCompletion, Store

ACCEPTED, READABLE = "accepted", "readable"
"""Words for the runs of a file: they are stored, or, in a dry run, only read."""


class FileCounts(Struct):
    """The counts of one file; ``left_out`` counts jobs that cannot be learned from.

    ``doubts`` counts runs whose fields contradict each other.
    """

    file: str
    accepted: int = 0
    duplicates: int = 0
    rejected: list[dict[str, str | int]] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)
    doubts: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    lines_per_second: float = 0.0

    @classmethod
    def of(cls, name: str, history: "HistoryFile") -> Self:
        """Return the counts of a file of which no run is stored yet."""
        return cls(
            file=name,
            rejected=[{"line": each.line, "reason": each.reason} for each in history.rejected],
            left_out={rule: jobs for rule, jobs in history.left_out.items() if jobs},
            doubts=dict(history.doubts),
        )

    @property
    def is_empty(self) -> bool:
        """Whether the file has no job that can be learned from."""
        return not (self.accepted or self.duplicates)


def import_(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Plain, gzip, xz or bzip2; - is stdin.")
    ],
    *,
    format_: Format = None,
    columns: Columns = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Cluster of all jobs; by default the one that a record names, else `default`."
        ),
    ] = None,
    time_zone: TimeZone = "UTC",
    on_error: Annotated[
        OnError, typer.Option(help="Malformed lines: refuse everything, or skip them.")
    ] = OnError.REFUSE,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read and check the files; store nothing.")
    ] = False,
    database_url: DatabaseUrl = None,
    file: ConfigFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Load finished jobs from log files. A running service may go on meanwhile.

    A run that the store knows already counts as a duplicate. So the same command continues an
    interrupted import. Running services learn the new runs as they follow the log. The exit code
    is 3 if a file has no job or a malformed line.

    For example:

        walltimed import SDSC-SP2-1998-4.2-cln.swf.gz
        walltimed import --cluster seth --on-error skip hpc2n.swf.gz --json
        walltimed import --time-zone Europe/Berlin sacct.txt --dry-run
        walltimed import t.csv --columns id=1,user=2,submit=3,start=4,end=5,limit=6:h
    """
    if cluster is not None:
        check_cluster(cluster)
    log = LogFile(
        path="",
        format=format_,
        columns=columns or (),
        cluster=cluster,
        time_zone=time_zone,
        quiet=quiet,
    )
    histories = {name: read_history(replace(log, path=name)) for name in dict.fromkeys(files)}
    if on_error is OnError.REFUSE and not dry_run:
        refuse_malformed(histories)
    settings = load_settings(database_url=database_url, config=file)
    if dry_run:
        counts = [FileCounts.of(name, history) for name, history in histories.items()]
        for report in counts:
            report.accepted = histories[report.file].count
        finish(counts, as_json, READABLE)
        return
    names = names_of(settings)
    with ready(settings) as store:
        treat = storable(store, settings, names)
        counts = [
            store_history(store, name, history, treat, quiet=quiet)
            for name, history in histories.items()
        ]
    finish(counts, as_json, ACCEPTED)


def finish(reports: "Sequence[FileCounts]", as_json: bool, word: str) -> None:  # noqa: FBT001
    """Print the counts of every file.

    Raises:
        Exit: with code 3 if a file has malformed lines, or no job at all.
    """
    if as_json:
        print_json({"files": reports})
    else:
        for report in reports:
            show(report, word)
    if any(report.rejected or report.is_empty for report in reports):
        raise typer.Exit(ExitCode.PARTIAL)


def store_history(
    store: "Store",
    name: str,
    history: "HistoryFile",
    treat: "Callable[[ReportedCompletion], ReportedCompletion]",
    *,
    quiet: bool,
) -> FileCounts:
    """Store one file's runs, batch by durable batch, as ``treat`` returns them."""
    from service.store import StoreError

    report = FileCounts.of(name, history)
    began = time.perf_counter()
    with progress_bar("lines", quiet=quiet) as progress:
        task = progress.add_task(escape(Path(name).name), total=history.count)
        try:
            for ingested in store.store_reports(map(treat, history.reports)):
                report.accepted += ingested.accepted
                report.duplicates += ingested.duplicates
                progress.update(task, completed=report.accepted + report.duplicates)
        except StoreError as error:
            raise CommandError(
                f"{error} {report.accepted:,} runs of {name} are stored; the same command goes on "
                "from there.",
                ExitCode.UNAVAILABLE,
            ) from error
    report.seconds = time.perf_counter() - began
    report.lines_per_second = history.count / report.seconds
    return report


def show(report: FileCounts, word: str) -> None:
    """Print one line for the stored runs, and one for each kind of job that was not stored."""
    speed = f"; {report.lines_per_second:,.0f} lines/s" if report.lines_per_second else ""
    duplicates = f"{report.duplicates:,} duplicates, " if word == ACCEPTED else ""
    out.print(
        f"[bold]{escape(report.file)}[/bold]: {report.accepted:,} {word}, {duplicates}"
        f"{counted(len(report.rejected), 'malformed line')}{speed}",
        soft_wrap=True,
    )
    if report.is_empty:
        out.print("  the file has no job that can be learned from", soft_wrap=True)
    for rule, jobs in report.left_out.items():
        out.print(f"  left out: {jobs:,} {rule}")
    for doubt, runs in report.doubts.items():
        out.print(f"  in doubt: {runs:,} {doubt}", soft_wrap=True)
    for line in report.rejected[:LISTED]:
        out.print(escape(f"  line {line['line']}: {line['reason']}"), soft_wrap=True)
    if len(report.rejected) > LISTED:
        out.print(f"  and {len(report.rejected) - LISTED:,} more lines; --json lists them all")
