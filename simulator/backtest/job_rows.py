"""Table of a backtest: a row for each job of the log and source of estimates."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import numpy as np

from simulator.backtest.plays import PlayedJobs
from simulator.backtest.verdict import Backtest
from simulator.replay.predictions_file import ANSWER_TYPES, answer_columns
from simulator.replay.trace_replay import Answers
from simulator.traces.completions import RecordedLog
from simulator.traces.job_columns import JOB_TYPES, log_tables
from terminal.data_table import DataTable, Values

TYPES: Mapping[str, type] = MappingProxyType(
    {
        **JOB_TYPES,
        "estimates": str,
        "policy": str,
        "estimate": int,
        **dict.fromkeys(("simulated_start", "simulated_end", "simulated_wait"), float),
        **ANSWER_TYPES,
    }
)
"""Columns of a job in a play, and their types."""


def job_tables(tested: Backtest, log: RecordedLog) -> Iterator[DataTable]:
    """Yield the jobs of the log itself under each source of estimates, in parts.

    Times are Unix seconds. Jobs that were left out are unknown.

    Args:
        tested: whose plays hold every job.
        log: the jobs of its site, with the names that their numbers stand for.
    """
    for name, plays in tested.plays.items():
        played = plays[0].played
        assert played is not None  # noqa: S101 - the caller asked for them
        for place, jobs in log_tables(log):
            columns = _simulated(played, place, log)
            count = len(jobs)
            rules = [tested.site.rules_of(name).policy] * count
            sources: dict[str, Values] = {"estimates": [name] * count, "policy": rules}
            yield DataTable(TYPES, {**jobs.data, **sources, **columns})


def _simulated(played: PlayedJobs, place: slice, log: RecordedLog) -> dict[str, Values]:
    start = played.start[place] + log.trace.unix_start
    estimate = played.estimate[place].tolist()
    return {
        "estimate": [each or None for each in estimate],
        "simulated_start": start,
        "simulated_end": played.end[place] + log.trace.unix_start,
        "simulated_wait": played.start[place] - np.floor(log.trace.submit[place]),
        **answer_columns(played.answers or Answers.of(len(played.start)), place),
    }
