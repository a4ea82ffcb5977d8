"""The log that a command plays: its file, and the size of its machine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from terminal.console import err
from terminal.options import OnError

if TYPE_CHECKING:
    from simulator.traces.completions import RecordedLog


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """A log as the options of a command name it.

    Attributes:
        path: of the file; ``-`` is standard input.
        format: name of the format; None: seen from the content.
        columns: columns of a table, as ``--columns`` takes them.
        cluster: cluster of all jobs; None: as the records name it.
        time_zone: zone of times without one.
        on_error: treatment of malformed lines.
        quiet: whether no progress is shown.
    """

    path: str
    format: str | None = None
    columns: Sequence[str] = ()
    cluster: str | None = None
    time_zone: str = "UTC"
    on_error: OnError = OnError.REFUSE
    quiet: bool = False


class Installation(Protocol):
    """The service of a site: its readers of logs and its settings; ``obj`` of the context."""

    def recorded_log(self, log: LogFile) -> "RecordedLog":
        """Read a log of any format as a trace, with the names that its numbers stand for."""

    def method_in_force(self, config: Path | None) -> tuple[str, Mapping[str, Any]]:
        """Return the method that the settings name, with its parameters."""


def with_size(log: "RecordedLog") -> "RecordedLog":
    """Return a log with the size of its machine, if its jobs' starts show one.

    The most processors in use at once count, which is said on standard error.
    """
    from simulator.traces.partitions import MOST_HELD, most_held

    trace = log.trace
    has_starts = log.format != "swf" or (trace.wait > 0).any()
    if trace.max_processors or not len(trace) or not has_starts:
        return log
    held = most_held(trace.select((trace.wait >= 0) & (trace.run > 0)))
    size = max(held, int(trace.processors.max(initial=0)))
    if size < 1:
        return log
    err.print(
        f"The log does not name the size of the machine: {size:,} processors count, {MOST_HELD}. "
        "--processors names another size.",
        soft_wrap=True,
    )
    header = {**trace.header, "MaxProcs": str(size), "MaxProcsNote": MOST_HELD}
    return replace(log, trace=replace(trace, header=header))
