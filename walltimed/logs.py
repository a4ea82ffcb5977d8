"""Logs of finished jobs, of every format that ``walltimed import`` reads."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path

from service.cli.log_files import recorded_log
from simulator.cli.logs import LogFile
from simulator.traces.completions import RecordedLog
from simulator.traces.job_columns import log_tables
from terminal.data_table import DataTable
from terminal.options import OnError
from walltimed.tabular import Tabular


@dataclass(frozen=True, slots=True, repr=False)
class Log(Tabular):
    """Finished jobs in the order of the file, or of their submission where it is no SWF.

    Attributes:
        name: of the file.
        recorded: the jobs, with the names of users and queues.
    """

    name: str
    recorded: RecordedLog

    def __len__(self) -> int:
        return len(self.recorded.trace)

    def __repr__(self) -> str:
        return f"<walltimed.Log {self.name}: {len(self):,} jobs>"

    @property
    def left_out(self) -> Mapping[str, int]:
        """Number of records that are no jobs to learn from, by reason."""
        return self.recorded.left_out

    @property
    def processors(self) -> int | None:
        """Size of the machine, as the log says it."""
        return self.recorded.trace.max_processors

    def first(self, jobs: int) -> "Log":
        """Return the first jobs of the log."""
        trace = self.recorded.trace.select(slice(jobs))
        return replace(self, recorded=replace(self.recorded, trace=trace))

    def tables(self) -> Iterator[DataTable]:
        """Yield the jobs in parts."""
        for _, part in log_tables(self.recorded):
            yield part


def read_log(
    path: str | PathLike[str],
    *,
    format: str | None = None,  # noqa: A002 - as the command calls it
    columns: Sequence[str] = (),
    cluster: str | None = None,
    time_zone: str = "UTC",
    skip_malformed: bool = False,
) -> Log:
    """Read a log: SWF, sacct, an accounting log of PBS, or a table; compressed or not.

    Args:
        path: of the file.
        format: name of the format; None: seen from the content.
        columns: columns of any other table, such as ``user=USER`` (``walltimed import --help``).
        cluster: name of the cluster; None: as the records name it.
        time_zone: zone of times without one.
        skip_malformed: whether malformed lines are left out; else they refuse the file.

    Raises:
        Error: no log of a known format, or a malformed line; the message says which.
        OSError: the file cannot be read.
    """
    file = LogFile(
        path=fspath(path),
        format=format,
        columns=columns,
        cluster=cluster,
        time_zone=time_zone,
        on_error=OnError.SKIP if skip_malformed else OnError.REFUSE,
        quiet=True,
    )
    return Log(Path(file.path).name, recorded_log(file))


def log_of(source: "Log | str | PathLike[str]") -> Log:
    """Return a log, or read the file that is named."""
    return source if isinstance(source, Log) else read_log(source)
