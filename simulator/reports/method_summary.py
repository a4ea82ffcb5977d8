"""The summary of a replay, one line for each method."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predictors.measures import PredictionMeasures, measure
from simulator.replay.trace_replay import Replay
from simulator.reports.tables import Column, seconds_columns, table_of


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodSummary:
    """The measures of one method's predictions, and how fast it answered.

    Attributes:
        predictions_per_second: predictions per second of the time that requests took.
        p50_seconds: median time of a request; a batch is one request.
        p99_seconds: 99th percentile of the time of a request.
    """

    method: str
    measures: PredictionMeasures
    predictions_per_second: float
    p50_seconds: float
    p99_seconds: float

    def as_dict(self) -> dict[str, Any]:
        """The summary as a flat JSON object."""
        measures = self.measures.as_dict()
        return {
            "method": self.method,
            "coverage": measures.pop("interval_coverage"),
            **measures,
            "predictions_per_second": self.predictions_per_second,
            "p50_seconds": self.p50_seconds,
            "p99_seconds": self.p99_seconds,
        }


def summarise(played: Replay) -> list[MethodSummary]:
    """Measure every method of a replay.

    Raises:
        NoJobsError: the log is empty.
    """
    requested, actual = played.requested, played.actual
    return [
        MethodSummary(
            method=method,
            measures=measure(
                answers.predicted, requested, actual, lower=answers.lower, upper=answers.upper
            ),
            predictions_per_second=answers.predictions_per_second,
            p50_seconds=answers.latency(50),
            p99_seconds=answers.latency(99),
        )
        for method, answers in played.answers.items()
    ]


CLASSES: Mapping[str, tuple[str, str]] = {
    "NA": ("not_adjusted", "predictions that are the request"),
    "OE": ("overestimated", "below the request and not below the runtime"),
    "UE": ("underestimated", "below the runtime by up to 30 minutes"),
    "BE": ("badly_underestimated", "below the runtime by more"),
}
"""Tang et al.'s classes of predictions: field of ``PredictionMeasures``, and its meaning."""


def _share_of(field: str) -> Callable[[MethodSummary], str]:
    return lambda each: f"{getattr(each.measures, field):.2%}"


COLUMNS: Sequence[Column[MethodSummary]] = (
    Column("method", lambda each: each.method, wraps=True),
    Column("jobs", lambda each: f"{each.measures.jobs:,}", view="wide"),
    *seconds_columns(
        "error",
        lambda each: each.measures.mean_absolute_error,
        "mean of |predicted - actual|",
        digits=1,
    ),
    Column(
        "median",
        lambda each: f"{each.measures.median_absolute_error:,.1f}",
        "median error, in seconds",
        "wide",
    ),
    Column(
        "accuracy",
        lambda each: f"{each.measures.accuracy:.3f}",
        "mean of the smaller of predicted and actual over the larger: 1 is perfect, 0.5 means off "
        "by a factor of two",
        "wide",
    ),
    Column(
        "underestimated",
        lambda each: f"{each.measures.underestimation_rate:.2%}",
        "jobs that ran longer than predicted",
    ),
    Column(
        "unused",
        lambda each: f"{each.measures.unused_ratio:.2f}",
        "hours reserved and not used for each hour that jobs ran",
    ),
    *(
        Column(name, _share_of(field), meaning, "wide")
        for name, (field, meaning) in CLASSES.items()
    ),
    Column(
        "in range",
        lambda each: _covered(each.measures.interval_coverage),
        "jobs that ended within their 90% interval",
    ),
    Column(
        "pred/s",
        lambda each: f"{each.predictions_per_second:,.0f}",
        "predictions per second on this machine",
    ),
    Column("p50 ms", lambda each: f"{1000 * each.p50_seconds:.3f}", view="wide"),
    Column(
        "p99 ms",
        lambda each: f"{1000 * each.p99_seconds:.3f}",
        "percentile of the time of one prediction request, as p50",
        "wide",
    ),
)


def _covered(coverage: float | None) -> str:
    return "" if coverage is None else f"{coverage:.2%}"


def summary_table(summaries: Sequence[MethodSummary], *, wide: bool = True) -> str:
    """The table of all methods with its legend; see ``table_of``."""
    return table_of(COLUMNS, summaries, wide=wide)


def user_numbers(played: Replay) -> tuple[NDArray[np.int64], int]:
    """The number (from 0) of the user of every job, and the number of users."""
    users = [run.submission.user or "" for run in played.runs]
    names, numbers = np.unique(users, return_inverse=True)
    return numbers.astype(np.int64), len(names)
