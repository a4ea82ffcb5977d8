"""``walltimed import``: loads the history of years from files of known formats into the store."""

import time
from dataclasses import replace
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer
from msgspec import Struct, field
from rich.markup import escape

from service.cli.options import (
    DatabaseUrl,
    check_cluster,
    load_settings,
    names_of,
    ready,
    storable,
)
from simulator.cli.results import LISTED
from terminal.console import CommandError, ExitCode, err, out, print_json, progress_bar
from terminal.options import AsJson, ConfigFile, Format, OnError, TimeZone
from terminal.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from service.adapters.history_files import HistoryFile
    from service.store import ReportedCompletion, Store
    from simulator.traces.completions import RecordedLog

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
    """
    if cluster is not None:
        check_cluster(cluster)
    zone = zone_named(time_zone)
    formats = {name: format_of(name, format_) for name in files}
    histories = {name: read_history(name, formats[name], cluster, zone) for name in files}
    if on_error is OnError.REFUSE:
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
            store_history(store, name, histories[name], treat, quiet=as_json) for name in files
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


BEGINNING = 1 << 16
"""Bytes of a file from which its format is seen."""


def read_history(path: str, format_: str, cluster: str | None, zone: tzinfo) -> "HistoryFile":
    """Read a file of one of the formats.

    Raises:
        CommandError: it is a document that is cut short or none; the message names the file.
    """
    from service.adapters.history_files import READERS
    from service.adapters.runs import SkippedError

    try:
        return READERS[format_](path, cluster, zone)
    except SkippedError as error:
        raise CommandError(f"{path}: {error}.", ExitCode.USAGE) from error


def format_of(path: str, format_: str | None) -> str:
    """Return ``format_``, or the format that the content of the file shows.

    Standard input can be read only once: without ``format_`` it is read as SWF.

    Raises:
        CommandError: there is no such format, or the content is of none.
    """
    from service.adapters.history_files import READERS, packer_of, seen_format
    from terminal.files import STANDARD_STREAM, read_beginning

    if format_ is not None:
        if format_ not in READERS:
            raise CommandError(
                f"There is no format {format_!r}; there are {', '.join(READERS)}.", ExitCode.USAGE
            )
        return format_
    if path == STANDARD_STREAM:
        return "swf"
    beginning = read_beginning(path, BEGINNING)
    found = seen_format(beginning)
    if found is None and (packer := packer_of(beginning)):
        raise CommandError(
            f"{path} is compressed with {packer}: unpack it first; plain files, gzip, xz and bzip2 "
            "are read.",
            ExitCode.USAGE,
        )
    if found is None:
        raise CommandError(
            f"{path} is no log that walltimed knows: neither SWF, nor what sacct prints "
            "(--parsable2 or --json), nor an accounting log of PBS. If it is one of them, say "
            f"which: --format {' | '.join(READERS)}.",
            ExitCode.USAGE,
        )
    return found


def zone_named(name: str) -> ZoneInfo:
    """Return the time zone called ``name``.

    Raises:
        CommandError: there is no such time zone.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:  # Europe is a directory
        raise CommandError(f"There is no time zone {name!r}.", ExitCode.USAGE) from error


def refuse_malformed(
    histories: "dict[str, HistoryFile]",
    consequence: str = "Nothing was stored",
    skipping: str = "imports the others",
) -> None:
    """Print the malformed lines, and fail if there are any.

    Raises:
        CommandError: a line is malformed; the message says what ``--on-error skip`` would do.
    """
    broken = {name: history for name, history in histories.items() if history.rejected}
    for name, history in broken.items():
        for reject in history.rejected[:LISTED]:
            err.print(escape(f"{name}, line {reject.line}: {reject.reason}"), soft_wrap=True)
    if broken:
        lines = sum(len(history.rejected) for history in broken.values())
        raise CommandError(
            f"{consequence}, because of {counted(lines, 'malformed line')}; --on-error skip "
            f"{skipping}.",
            ExitCode.USAGE,
        )


def recorded_log(
    file: str, format_: str | None, cluster: str | None, time_zone: str, on_error: OnError
) -> "RecordedLog":
    """Return an accounting file as a trace, with the names that its numbers stand for.

    Raises:
        CommandError: the format is unknown, lines are malformed, or the file mixes clusters.
    """
    from simulator.traces.completions import RecordedLog, submitted_at, trace_of
    from simulator.traces.swf import read_swf

    format_ = format_of(file, format_)
    if format_ == "swf":
        refuse = on_error is OnError.REFUSE
        return RecordedLog(read_swf(file, on_error="raise" if refuse else "skip"))
    history = read_history(file, format_, cluster, zone_named(time_zone))
    if on_error is OnError.REFUSE:
        refuse_malformed({file: history}, "No page was written", "leaves them out")
    reports = list(history.reports)
    runs = [report.completion for report in reports]
    clusters = sorted({run.submission.cluster for run in runs})
    if len(clusters) > 1:
        raise CommandError(
            f"{file} has jobs of the clusters {', '.join(clusters)}; each has its own scheduler "
            "and needs its own file.",
            ExitCode.USAGE,
        )
    eligible = [submitted_at(report.completion, report.eligible_time) for report in reports]
    recorded = trace_of(eligible, [report.gpus for report in reports])
    return replace(
        recorded, trace=replace(recorded.trace, rejects=tuple(history.rejected)),
        format=format_, left_out={rule: jobs for rule, jobs in history.left_out.items() if jobs},
    )  # fmt: skip
