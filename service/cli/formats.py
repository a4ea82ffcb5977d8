"""The file formats that ``walltimed import`` reads; each is a function and a line here."""

import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rich.markup import escape

from predictors.jobs import DEFAULT_CLUSTER
from simulator.cli.results import LISTED
from terminal.console import CommandError, ExitCode, err
from terminal.options import OnError
from terminal.words import counted

if TYPE_CHECKING:
    from service.adapters.runs import SkippedError
    from service.store import ReportedCompletion
    from simulator.traces.completions import RecordedLog
    from simulator.traces.trace import Reject


@dataclass(frozen=True, slots=True)
class HistoryFile:
    """The runs in a file, and the counts of lines that are none.

    Attributes:
        reports: the runs that can be learned from.
        count: number of these runs.
        rejected: lines that are not jobs, with reasons.
        left_out: number of jobs that cannot be learned from, by rule.
    """

    reports: "Iterable[ReportedCompletion]"
    count: int
    rejected: "Sequence[Reject]"
    left_out: Mapping[str, int]


def swf(path: str, cluster: str | None, _zone: tzinfo) -> HistoryFile:
    """The Standard Workload Format: plain, gzip or xz. Its times are Unix seconds."""
    from service.store import ReportedCompletion
    from simulator.traces.cleaning import REPLAY_RULES, clean
    from simulator.traces.completions import completions
    from simulator.traces.swf import read_swf

    trace = read_swf(path, on_error="skip")
    jobs, left_out = clean(trace, REPLAY_RULES)
    runs = completions(jobs, cluster=cluster or DEFAULT_CLUSTER)
    reports = (ReportedCompletion(completion=run) for run in runs)
    return HistoryFile(reports, len(jobs), trace.rejects, left_out)


def sacct(path: str, cluster: str | None, zone: tzinfo) -> HistoryFile:
    """Output of sacct: ``--parsable2`` with column names, the XDMoD export, or ``--json``."""
    from service.adapters.sacct_text import read_sacct
    from service.adapters.slurm_json import read_sacct_json
    from terminal.files import read_bytes

    content = read_bytes(path).removeprefix(BOM_UTF8)
    if content.lstrip().startswith(b"{"):
        return of_records(read_sacct_json(content, cluster=cluster))
    rows = (f"{line}\n" for line in content.decode("utf-8", "replace").split("\n"))
    return of_records(read_sacct(rows, zone=zone, cluster=cluster))


def pbs(path: str, cluster: str | None, zone: tzinfo) -> HistoryFile:
    """The accounting log of PBS or Torque."""
    from service.adapters.pbs import read_accounting
    from terminal.files import read_bytes

    lines = read_bytes(path).decode("utf-8", "replace").split("\n")
    return of_records(read_accounting(lines, zone=zone, cluster=cluster))


def of_records(outcomes: "Iterable[tuple[int, ReportedCompletion | SkippedError]]") -> HistoryFile:
    """Return the runs of an accounting file; malformed records count as rejected lines."""
    from service.adapters.runs import SkippedError
    from simulator.traces.trace import Reject

    reports: list[ReportedCompletion] = []
    rejected: list[Reject] = []
    left_out: Counter[str] = Counter()
    for line, outcome in outcomes:
        if not isinstance(outcome, SkippedError):
            reports.append(outcome)
        elif outcome.reason.is_damage:
            rejected.append(Reject(line, str(outcome)))
        else:
            left_out[str(outcome)] += 1
    return HistoryFile(reports, len(reports), rejected, left_out)


FORMATS: Mapping[str, Callable[[str, str | None, tzinfo], HistoryFile]] = {
    "swf": swf,
    "sacct": sacct,
    "pbs": pbs,
}


def read_history(path: str, format_: str, cluster: str | None, zone: tzinfo) -> HistoryFile:
    """Read a file of one of the formats.

    Args:
        path: the file.
        format_: its format.
        cluster: of all its jobs; None leaves that to the records, and to ``default`` those that
            name none.
        zone: of times without one.

    Raises:
        CommandError: it is a document that is cut short or none; the message names the file.
    """
    from service.adapters.runs import SkippedError

    try:
        return FORMATS[format_](path, cluster, zone)
    except SkippedError as error:
        raise CommandError(f"{path}: {error}.", ExitCode.USAGE) from error


BEGINNING = 1 << 16
"""Bytes of a file from which its format is seen."""

_PBS = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Za-z];")
_SACCT = re.compile(
    r"\d[^|]*(\|[^|]*){25}|(.*[|,;^\t\x1f])?job(id|idraw)([|,;^\t\x1f]|$)", re.IGNORECASE
)
_SWF = re.compile(r"\s*-?\d+(\s+-?[\d.]+){17}\s*$")


def format_of(path: str, format_: str | None) -> str:
    """Return ``format_``, or the format that the content of the file shows.

    Standard input can be read only once: without ``format_`` it is read as SWF.

    Raises:
        CommandError: there is no such format, or the content is of none.
    """
    from terminal.files import STANDARD_STREAM, read_beginning

    if format_ is not None:
        if format_ not in FORMATS:
            raise CommandError(
                f"There is no format {format_!r}; there are {', '.join(FORMATS)}.", ExitCode.USAGE
            )
        return format_
    if path == STANDARD_STREAM:
        return "swf"
    found = seen_format(read_beginning(path, BEGINNING))
    if found is None:
        raise CommandError(
            f"{path} is no log that walltimed knows: neither SWF, nor what sacct prints "
            "(--parsable2 or --json), nor an accounting log of PBS. If it is one of them, say "
            f"which: --format {' | '.join(FORMATS)}.",
            ExitCode.USAGE,
        )
    return found


def seen_format(beginning: bytes) -> str | None:
    """Return the format by the beginning of a file; an empty file is an SWF log without jobs."""
    if beginning.lstrip().startswith(b"{"):
        return "sacct"
    text = beginning.decode("utf-8-sig", "replace")
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or lines[0].lstrip().startswith(";"):
        return "swf"
    for name, pattern in (("pbs", _PBS), ("sacct", _SACCT), ("swf", _SWF)):
        if any(pattern.match(line) for line in lines[:20]):
            return name
    return None


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
    histories: dict[str, HistoryFile],
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
    """An accounting file as a trace, with the names that its numbers stand for.

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
