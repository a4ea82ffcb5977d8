"""Logs of every format as commands read them: the format, the reader, and malformed lines."""

import os
import stat
import sys
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rich.markup import escape

from simulator.cli.logs import LogFile
from simulator.cli.results import LISTED
from terminal.console import CommandError, ExitCode, err
from terminal.files import STANDARD_STREAM, Packed, name_of
from terminal.options import OnError
from terminal.progress import progress_bar
from terminal.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import BinaryIO

    from service.adapters.history_files import HistoryFile, Source
    from simulator.traces.completions import RecordedLog

AHEAD = 1 << 20
"""Bytes of a file from which its format is seen; a block of bzip2 has nearly as many."""


def read_history(log: LogFile) -> "HistoryFile":
    """Read a file of one of the formats, with a progress bar.

    Raises:
        CommandError: it is a document that is cut short or none; the message names the file.
    """
    with opened(log) as (format_, source):
        return history_in(log, format_, source)


def history_in(log: LogFile, format_: str, source: "Source") -> "HistoryFile":
    """Read the open content of a file of a format.

    Raises:
        CommandError: as ``read_history``.
    """
    from service.adapters.history_files import READERS, read_csv
    from service.adapters.runs import SkippedError

    read: Callable[..., HistoryFile] = READERS[format_]
    if log.columns:
        read = partial(read_csv, columns=log.columns)
    try:
        return read(source, log.cluster, zone_named(log.time_zone))
    except SkippedError as error:
        raise CommandError(f"{log.path}: {error}.", ExitCode.USAGE) from error


@contextmanager
def opened(log: LogFile) -> "Iterator[tuple[str, Source]]":
    """Open a log, once: a pipe cannot be read again. Yield its format and its content.

    The bytes of a file are counted in a progress bar.
    """
    named = named_format(log)
    with _open(log.path) as file, progress_bar("bytes", quiet=log.quiet) as progress:
        packed = Packed(file, name_of(log.path), AHEAD)
        format_ = named or format_of(packed)
        source = cast("BinaryIO", packed)
        status = os.fstat(file.fileno()) if log.path != STANDARD_STREAM else None
        if status and stat.S_ISREG(status.st_mode):
            name = escape(Path(log.path).name)
            source = progress.wrap_file(source, total=status.st_size, description=name)
        yield format_, source


def _open(path: str) -> "AbstractContextManager[BinaryIO]":
    return nullcontext(sys.stdin.buffer) if path == STANDARD_STREAM else Path(path).open("rb")


def named_format(log: LogFile) -> str | None:
    """Return the format that the options name, if they do.

    Raises:
        CommandError: there is no such format.
    """
    from service.adapters.history_files import READERS

    format_ = log.format or ("csv" if log.columns else None)
    if log.columns and format_ != "csv":
        raise CommandError("--columns is for --format csv.", ExitCode.USAGE)
    if format_ is not None and format_ not in READERS:
        raise CommandError(
            f"There is no format {format_!r}; there are {', '.join(READERS)}.", ExitCode.USAGE
        )
    return format_


def format_of(packed: Packed) -> str:
    """Return the format that the content of a file shows.

    Raises:
        CommandError: it shows none.
    """
    from service.adapters.history_files import READERS, seen_format

    found = seen_format(packed.expanded_beginning())
    if found is None:
        raise CommandError(
            f"{packed.name} is no log that walltimed knows: neither SWF, nor what sacct prints "
            "(--parsable2 or --json), nor an accounting log of PBS, nor a CSV of walltimed export. "
            f"If it is one of them, say which: --format {' | '.join(READERS)}. Of any other table "
            "name the columns: --columns user=USER,start=START,... (walltimed import --help).",
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
    histories: "Mapping[str, HistoryFile]",
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


def recorded_log(log: LogFile) -> "RecordedLog":
    """Return a log as a trace, with the names that its numbers stand for.

    Raises:
        CommandError: the format is unknown, lines are malformed, or the file mixes clusters.
    """
    with opened(log) as (format_, source):
        if format_ == "swf":
            return recorded_swf(log, source)
        return recorded_runs(log, format_, history_in(log, format_, source))


def recorded_swf(log: LogFile, source: "Source") -> "RecordedLog":
    """Return an SWF log as it is: none of its lines is left out.

    Raises:
        CommandError: a line is malformed.
    """
    from simulator.traces.completions import RecordedLog
    from simulator.traces.swf import MalformedLineError, read_swf

    try:
        return RecordedLog(read_swf(source, on_error=log.on_error.of_reader))
    except MalformedLineError as error:
        raise CommandError(f"{name_of(log.path)}: {error}", ExitCode.USAGE) from error


def recorded_runs(log: LogFile, format_: str, history: "HistoryFile") -> "RecordedLog":
    """Return the runs of accounting records as a trace, in the order of their submission.

    Raises:
        CommandError: lines are malformed, or the file mixes clusters.
    """
    from simulator.traces.completions import RunColumns, submitted_at

    if log.on_error is OnError.REFUSE:
        refuse_malformed({log.path: history}, "Nothing was played", "leaves them out")
    columns, clusters = RunColumns(), set()
    for report in history.reports:
        clusters.add(report.completion.submission.cluster)
        columns.append(submitted_at(report.completion, report.eligible_time), report.gpus)
    if len(clusters) > 1:
        raise CommandError(
            f"{log.path} has jobs of the clusters {', '.join(sorted(clusters))}; each has its own "
            "scheduler and needs its own file.",
            ExitCode.USAGE,
        )
    recorded = columns.recorded()
    return replace(
        recorded,
        trace=replace(recorded.trace, rejects=tuple(history.rejected)),
        format=format_,
        left_out={rule: jobs for rule, jobs in history.left_out.items() if jobs},
    )
