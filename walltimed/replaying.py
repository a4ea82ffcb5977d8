"""Replays: every method predicts each submission of a log and learns from each completion."""

from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike

from simulator.cli.replay import PlayedLog, play, played_log
from simulator.replay.predictions_file import prediction_tables
from simulator.replay.trace_replay import Replay as PlayedReplay
from simulator.reports.method_summary import MethodSummary, summarise, summary_table
from terminal.data_table import DataTable
from walltimed.logs import Log, log_of
from walltimed.methods import MakeMethod, Methods, specs_of
from walltimed.tabular import Tabular, check_counts


@dataclass(frozen=True, slots=True, repr=False)
class Replay(Tabular):
    """Predictions of a log: a row for each job and method.

    Attributes:
        log: the jobs that were played, and the reasons why others were left out.
        played: the answers.
    """

    log: PlayedLog
    played: PlayedReplay

    def __len__(self) -> int:
        return len(self.log.runs) * len(self.methods)

    def __repr__(self) -> str:
        return f"<walltimed.Replay of {self.log.name}>\n{self}"

    def __str__(self) -> str:
        return summary_table(summarise(self.played), wide=False)

    @property
    def methods(self) -> list[str]:
        """The labels of the methods."""
        return [*self.played.answers]

    @property
    def measures(self) -> dict[str, MethodSummary]:
        """The measures of each method's predictions, by label."""
        return {each.method: each for each in summarise(self.played)}

    def summary(self) -> DataTable:
        """Return the measures as a table, a row for each method."""
        return DataTable.of_records([each.as_dict() for each in summarise(self.played)])

    def tables(self) -> Iterator[DataTable]:
        """Yield the rows in parts."""
        return prediction_tables(self.log.recorded, self.played.answers)


def replay(
    log: Log | str | PathLike[str],
    methods: str | MakeMethod | Methods = "auto",
    *,
    limit: int | None = None,
    levels: bool = True,
    processes: int | None = None,
    progress: bool = False,
) -> Replay:
    """Play a log in simulated time to methods in this process.

    Each method predicts each submission and learns from each completion at its time; at equal times
    completions come first.

    Args:
        log: a log, or the name of its file.
        methods: names such as ``auto`` or ``max-usage:window=10``, and classes with ``predict`` and
            ``observe``; a mapping gives them labels.
        limit: number of jobs; None takes all.
        levels: whether intervals at 50, 80 and 95%, and predictions that 5, 10 and 20% of the jobs
            outlive, are asked for, too; that takes four times as long.
        processes: of this machine; None: one per core where it is worth it.
        progress: whether a bar is shown on standard error.

    Raises:
        ValueError: a method or a parameter is not known, or no job of the log can be played.
        TypeError: an object is no method.
    """
    check_counts(limit=limit, processes=processes)
    source = log_of(log)
    played = played_log(source.recorded, source.name, limit)
    found = play(
        played,
        specs_of(methods),
        url=None,
        token=None,
        in_process=True,
        processes=processes,
        with_levels=levels,
        quiet=not progress,
    )
    return Replay(played, found)
