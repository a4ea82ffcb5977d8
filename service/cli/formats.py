"""Log files that options name: their format, their time zone and their malformed lines."""

from dataclasses import replace
from datetime import tzinfo
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rich.markup import escape

from simulator.cli.results import LISTED
from terminal.console import CommandError, ExitCode, err
from terminal.options import OnError
from terminal.words import counted

if TYPE_CHECKING:
    from service.adapters.history_files import HistoryFile
    from simulator.traces.completions import RecordedLog

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
            f"{path} is compressed with {packer}: unpack it first; plain files, gzip and xz are "
            "read.",
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
