"""The summary of a replay, one line for each method."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predictors.measures import PredictionMeasures, measure
from simulator.replay.percentile_schemes import Scheme, Swept
from simulator.replay.trace_replay import Replay
from simulator.reports.tables import text_table
from simulator.reports.words import duration

HEADS = (
    *("method", "jobs", "MAE s", "median s", "accuracy", "under", "NA", "OE", "UE", "BE"),
    *("pred/s", "p50 ms", "p99 ms"),
)

NARROW_HEADS = ("method", "mean error", "median", "accuracy", "under", "pred/s")
"""What fits 80 columns; ``HEADS`` are all."""

NARROW_LEGEND = """\
mean error, median: of |predicted - actual|. accuracy: 1 is perfect, 0.5 means
off by a factor of two. under: jobs that ran longer than predicted. All columns:
--wide.
"""

LEGEND = """\
MAE, median: mean and median absolute error in seconds. accuracy: mean of the smaller of
predicted and actual over the larger. under: jobs that ran longer than predicted. NA: prediction
is the request; OE: below the request and not below the runtime; UE, BE: below the runtime by up
to, by more than 30 minutes. p50, p99: percentiles of the time of one prediction request.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodSummary:
    """The measures of one method's predictions, and how fast it answered.

    Attributes:
        method: label of the method.
        measures: measures of the method's predictions.
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

    def row(self) -> list[str]:
        """The method's line of the table."""
        measures = self.measures
        return [
            self.method,
            f"{measures.jobs:,}",
            f"{measures.mean_absolute_error:,.1f}",
            f"{measures.median_absolute_error:,.1f}",
            f"{measures.accuracy:.3f}",
            f"{measures.underestimation_rate:.2%}",
            f"{measures.not_adjusted:.2%}",
            f"{measures.overestimated:.2%}",
            f"{measures.underestimated:.2%}",
            f"{measures.badly_underestimated:.2%}",
            f"{self.predictions_per_second:,.0f}",
            f"{1000 * self.p50_seconds:.3f}",
            f"{1000 * self.p99_seconds:.3f}",
        ]

    def narrow_row(self) -> list[str]:
        """The method's line of the table in 80 columns."""
        measures = self.measures
        return [
            self.method[:NARROW_NAME],
            duration(measures.mean_absolute_error),
            duration(measures.median_absolute_error),
            f"{measures.accuracy:.3f}",
            f"{measures.underestimation_rate:.1%}",
            f"{self.predictions_per_second:,.0f}",
        ]


NARROW_NAME = 28
"""Longest name of a method in 80 columns."""


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


def summary_table(summaries: Sequence[MethodSummary]) -> str:
    """The table, with a column for interval coverage where a method gave intervals."""
    heads, rows = [*HEADS], [summary.row() for summary in summaries]
    return _with_coverage(heads, rows, summaries, "{:.2%}", place=10)


def narrow_table(summaries: Sequence[MethodSummary]) -> str:
    """The table in 80 columns, with times as people say them."""
    heads, rows = [*NARROW_HEADS], [summary.narrow_row() for summary in summaries]
    return _with_coverage(heads, rows, summaries, "{:.1%}", place=5)


def _with_coverage(
    heads: list[str],
    rows: list[list[str]],
    summaries: Sequence[MethodSummary],
    form: str,
    *,
    place: int,
) -> str:
    coverages = [summary.measures.interval_coverage for summary in summaries]
    if any(coverage is not None for coverage in coverages):
        heads.insert(place, "covered")
        for row, coverage in zip(rows, coverages, strict=True):
            row.insert(place, "" if coverage is None else form.format(coverage))
    return text_table(heads, rows)


def sweep_table(swept: Swept) -> str:
    """A line for each scheme."""
    heads = (
        "key",
        "window d",
        "bound",
        "min jobs",
        "percentile",
        "accuracy",
        "median acc",
        "NA",
        "OE",
        "UE",
    )
    rows = [
        [
            *_of_scheme(scheme),
            f"{measures.accuracy:.3f}",
            f"{measures.median_accuracy:.3f}",
            f"{measures.not_adjusted:.2%}",
            f"{measures.overestimated:.2%}",
            f"{measures.underestimated:.2%}",
            f"{measures.badly_underestimated:.2%}",
        ]
        for scheme, measures in swept.items()
    ]
    return text_table((*heads, "BE"), rows)


def narrow_sweep_table(swept: Swept) -> str:
    """A line for each scheme in 80 columns."""
    heads = ("key", "days", "bound", "min", "perc", "accuracy", "NA", "OE", "UE", "BE")
    rows = [
        [
            *_of_scheme(scheme),
            f"{measures.accuracy:.3f}",
            f"{measures.not_adjusted:.0%}",
            f"{measures.overestimated:.0%}",
            f"{measures.underestimated:.0%}",
            f"{measures.badly_underestimated:.0%}",
        ]
        for scheme, measures in swept.items()
    ]
    return f"{text_table(heads, rows)}\n{NARROW_SWEEP_LEGEND}"


def _of_scheme(scheme: Scheme) -> list[str]:
    """The parameters of a scheme, as both tables tell them."""
    return [
        scheme.key,
        "all" if scheme.window_days is None else f"{scheme.window_days:g}",
        f"{scheme.lower_bound:g}" if scheme.lower_bound else "none",
        str(scheme.min_jobs),
        f"{scheme.percentile:g}",
    ]


NARROW_SWEEP_LEGEND = """\
days: window; min: fewest similar jobs; perc: percentile; accuracy: 1 is perfect.
NA: prediction is the request; OE: below it and not below the runtime; UE, BE: below
the runtime by up to, by more than 30 minutes. All columns: --wide.
"""


def user_numbers(played: Replay) -> tuple[NDArray[np.int64], int]:
    """The number (from 0) of the user of every job, and the number of users."""
    users = [run.submission.user or "" for run in played.runs]
    names, numbers = np.unique(users, return_inverse=True)
    return numbers.astype(np.int64), len(names)
