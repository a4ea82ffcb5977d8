"""Files of ended runs: a table of readers by format, for every command that reads a log."""

import re
import time
import zlib
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from itertools import takewhile
from typing import TYPE_CHECKING, BinaryIO

import msgspec
import numpy as np

from predictors.jobs import DEFAULT_CLUSTER
from service.adapters.csv_table import NEEDED, read_table
from service.adapters.pbs import read_accounting
from service.adapters.runs import OVERRUN_SECONDS, Doubt, SkippedError
from service.adapters.sacct_text import MOST_NOISE, read_sacct
from service.adapters.slurm_json import read_sacct_json
from simulator.traces.cleaning import REPLAY_RULES, clean
from simulator.traces.completions import completions
from simulator.traces.swf import read_swf
from simulator.traces.trace import Reject, check_rejects
from terminal.exit_codes import ExitCode
from terminal.files import expanded, lines_of, name_of, read_lines

if TYPE_CHECKING:
    from service.store import ReportedCompletion

    Outcomes = Iterable[tuple[int, ReportedCompletion | SkippedError]]


LONGEST_RECORD = 4 << 20
"""Most bytes of an accounting record. Those of PBS name every node of a job several times: a job on
ten thousand nodes has a megabyte."""

LARGEST_JSON = 256 << 20
"""Most bytes of JSON: 20,000 to 100,000 jobs of ``sacct --json``, in some 1 GB of memory."""

_PIECE = 1 << 20

Source = str | BinaryIO
"""A path, ``-`` for standard input, or an open binary file."""

BLOCK = 1000
"""Runs that are packed together."""

_EARLIEST = 315_532_800
"""Unix seconds of 1980, before which no log begins."""

NO_UNIX_START = "of January 1970 on: the log has no UnixStartTime, so no window holds them"
"""Doubt of an SWF log of which only a replay is meaningful."""


class LongDocumentError(ValueError):
    """A file of JSON is longer than any that is read as a whole."""

    exit_code = ExitCode.USAGE


@dataclass(frozen=True, slots=True)
class HistoryFile:
    """The runs in a file, and the counts of lines that are none.

    Attributes:
        reports: the runs that can be learned from.
        rejected: lines that are not jobs, with reasons.
        left_out: number of jobs that cannot be learned from, by rule.
        doubts: number of runs whose fields contradict each other, by contradiction.
    """

    reports: "Iterable[ReportedCompletion]"
    count: int
    rejected: Sequence[Reject]
    left_out: Mapping[str, int]
    doubts: Mapping[str, int] = field(default_factory=dict)


class PackedReports:
    """Runs in a tenth of their memory, iterated as often as needed: compressed in blocks."""

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._last: list[ReportedCompletion] = []

    def __len__(self) -> int:
        return BLOCK * len(self._blocks) + len(self._last)

    def append(self, report: "ReportedCompletion") -> None:
        """Add a run."""
        self._last.append(report)
        if len(self._last) == BLOCK:
            self._blocks.append(zlib.compress(msgspec.msgpack.encode(self._last)))
            self._last = []

    def __iter__(self) -> "Iterator[ReportedCompletion]":
        """Yield the runs in their order."""
        from service.store import ReportedCompletion  # noqa: PLC0415 - as in runs

        decoder = msgspec.msgpack.Decoder(list[ReportedCompletion])
        for block in self._blocks:
            yield from decoder.decode(zlib.decompress(block))
        yield from self._last


def read_swf_log(source: Source, cluster: str | None, _zone: tzinfo) -> HistoryFile:
    """Read the Standard Workload Format: plain, gzip, xz or bzip2. Its times are Unix seconds."""
    from service.store import ReportedCompletion  # noqa: PLC0415 - as in runs

    trace = read_swf(source, on_error="skip")
    jobs, left_out = clean(trace, REPLAY_RULES)
    runs = completions(jobs, cluster=cluster or DEFAULT_CLUSTER)
    reports = (ReportedCompletion(completion=run) for run in runs)
    future = int(np.count_nonzero(trace.unix_start + jobs.end > time.time() + OVERRUN_SECONDS))
    early = 0 if trace.unix_start else int(np.count_nonzero(jobs.submit < _EARLIEST))
    known = {NO_UNIX_START: early, str(Doubt.FUTURE): future}
    doubts = {doubt: runs for doubt, runs in known.items() if runs}
    return HistoryFile(reports, len(jobs), trace.rejects, left_out, doubts)


def read_sacct_output(source: Source, cluster: str | None, zone: tzinfo) -> HistoryFile:
    """Read sacct's output: ``--parsable2`` with column names, the XDMoD export, or ``--json``."""
    with expanded(source) as file:
        if _begins_with_json(_first_lines(file.peek())):
            content = _whole(file, name_of(source)).removeprefix(BOM_UTF8)
            return of_records(read_sacct_json(content, cluster=cluster))
        lines = lines_of(file, name_of(source), longest=LONGEST_RECORD)
        rows = (f"{line}\n" for line in texts(lines))
        return of_records(read_sacct(rows, zone=zone, cluster=cluster))


def _whole(file: BinaryIO, name: str) -> bytes:
    """Return the rest of a file of JSON.

    Raises:
        LongDocumentError: it is too long to be read as a whole.
    """
    content = bytearray()
    while piece := file.read(_PIECE):
        content += piece
        if len(content) > LARGEST_JSON:
            raise LongDocumentError(
                f"{name} is more than {LARGEST_JSON >> 20} MiB of JSON, which is read as a whole: "
                "give fewer days at a time, or what `sacct --parsable2` prints."
            )
    return bytes(content)


def read_pbs_log(source: Source, cluster: str | None, zone: tzinfo) -> HistoryFile:
    """Read the accounting log of PBS or Torque."""
    lines = texts(read_lines(source, longest=LONGEST_RECORD))
    return of_records(read_accounting(lines, zone=zone, cluster=cluster))


def read_csv(
    source: Source, cluster: str | None, zone: tzinfo, columns: Sequence[str] = ()
) -> HistoryFile:
    """Read the CSV that ``walltimed export`` writes, or a table with its columns named."""
    rows = (f"{line}\n" for line in texts(read_lines(source, longest=LONGEST_RECORD)))
    return of_records(read_table(rows, zone=zone, cluster=cluster, columns=columns))


def texts(lines: Iterable[bytes]) -> Iterator[str]:
    """Yield lines as text without their ends and without the mark of an editor under Windows."""
    for number, line in enumerate(lines):
        content = line if number else line.removeprefix(BOM_UTF8)
        yield content.removesuffix(b"\n").decode("utf-8", "replace")


def of_records(outcomes: "Outcomes") -> HistoryFile:
    """Return the runs of accounting records; malformed records count as rejected lines."""
    reports = PackedReports()
    rejected: list[Reject] = []
    left_out: Counter[str] = Counter()
    doubts: Counter[str] = Counter()
    for line, outcome in outcomes:
        if not isinstance(outcome, SkippedError):
            reports.append(outcome)
            doubts.update(outcome.doubts)
        elif outcome.reason.is_damage:
            rejected.append(Reject(line, str(outcome)))
            check_rejects(rejected)
        else:
            left_out[str(outcome)] += 1
    return HistoryFile(reports, len(reports), rejected, left_out, doubts)


READERS: Mapping[str, Callable[[Source, str | None, tzinfo], HistoryFile]] = {
    "swf": read_swf_log,
    "sacct": read_sacct_output,
    "pbs": read_pbs_log,
    "csv": read_csv,
}
"""Readers by format: functions of a source, the cluster of all jobs, and the zone of bare times.

Without a cluster a record's own counts, else ``default``. A reader raises `SkippedError` for a
document that is cut short. Each format has a sample in tests/support/history_samples.py."""


_PBS = re.compile(r"\s*\d+[/.-]\d\d[/.-]\d+[ T]\d\d:\d\d:\d\d(?:\.\d+)?;[A-Za-z];")
_SACCT = re.compile(
    r"\d[^|]*(\|[^|]*){24}|(-{3,} +){2}|(.*[^\w\r\n])?job(id|idraw) *([^\w\s=:]|::|[\t\x1f]|$)",
    re.IGNORECASE,
)
_JSON = re.compile(r"\s*(?:\{|\[\s*(?:\{|$))")
_SWF = re.compile(r"\s*-?\d+(\s+-?[\d.]+){2,}\s*$")


def seen_format(beginning: bytes) -> str | None:
    """Return the format by the beginning of a file; an empty file is an SWF log without jobs.

    For example, ``b"; Version: 2.2"`` gives ``swf``.
    """
    lines = _first_lines(beginning)
    if _begins_with_json(lines):
        return "sacct"
    if not lines or lines[0].lstrip().startswith(";"):
        return "swf"
    if set(NEEDED) <= set(lines[0].split(",")):
        return "csv"
    for name, pattern in (("pbs", _PBS), ("sacct", _SACCT), ("swf", _SWF)):
        if any(pattern.match(line) for line in lines):
            return name
    return None


def _first_lines(beginning: bytes) -> list[str]:
    """Return the first lines that are not blank."""
    lines = beginning.decode("utf-8-sig", "replace").splitlines()
    return [line for line in lines if line.strip()][:MOST_NOISE]


def _begins_with_json(lines: Sequence[str]) -> bool:
    """Return whether JSON comes first: text before it is none of a log."""
    before = [*takewhile(lambda line: not _JSON.match(line), lines)]
    is_log = any(pattern.match(line) for line in before for pattern in (_PBS, _SACCT))
    return len(before) < len(lines) and not is_log
