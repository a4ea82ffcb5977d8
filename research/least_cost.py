"""Compares the errors of least-cost with published methods of equal underestimation rates.

    .venv/bin/python research/least_cost.py SDSC-SP2-1998-4.2-cln.swf.gz
    .venv/bin/python research/least_cost.py --auto --limit 20000 SDSC-SP2-1998-4.2-cln.swf.gz

With ``--auto`` auto takes the place of least-cost, with what rounds learn on the log.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from choice import played_by_auto
from played_logs import LogPart, Traces, log_parts, play_logs, run_script

from predictors.jobs import Completion
from predictors.measures import Seconds, mean_absolute_error, underestimation_rate
from predictors.methods.knn import Knn
from predictors.methods.last_two import LastTwo
from predictors.methods.least_cost import LeastCost
from predictors.methods.max_usage import MaxUsage
from predictors.methods.percentile import Percentile
from predictors.registry import AUTO
from simulator.cli.options import Distributed, Processes
from simulator.replay.trace_replay import InProcess, replay
from simulator.reports.tables import text_table
from terminal.console import out
from terminal.options import Limit

if TYPE_CHECKING:
    from predictors.base import Predictor

PRICES = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0)
PERCENTILES = (50, 70, 85, 95, 100)
BETAS = (0.0, 0.02, 0.1, 0.3)
"""Of knn: how much of the request is added to the mean of the neighbours."""

EVERY = 2_000
"""Ended runs between two forests of auto, as in a service."""

DEFAULT = 1.0
"""The price that is shown by itself."""


@dataclass(frozen=True, slots=True)
class Point:
    """One setting of a method.

    Attributes:
        setting: the parameter and its value, such as ``beta=0.1``.
        underestimation_rate: share of the jobs that ran longer than predicted.
        error: mean absolute error in seconds.
    """

    setting: str
    underestimation_rate: float
    error: float


@dataclass(frozen=True, slots=True)
class Curve:
    """A method at several settings, in the order of their underestimation rates."""

    name: str
    points: Sequence[Point]

    def error_at(self, share: float) -> float:
        """Mean absolute error in seconds where ``share`` of the jobs is underestimated.

        The error is interpolated between two points. If every point underestimates less than
        ``share``, the answer is the error of the last point. If every point underestimates more,
        the answer is NaN.
        """
        shares = [point.underestimation_rate for point in self.points]
        if share < shares[0]:
            return float("nan")
        return float(np.interp(share, shares, [point.error for point in self.points]))


def point_of(setting: str, predicted: Seconds, actual: Seconds) -> Point:
    """Compute rate and error of one setting's predictions."""
    return Point(
        setting,
        underestimation_rate=underestimation_rate(predicted, actual),
        error=mean_absolute_error(predicted, actual),
    )


def curve_of(name: str, points: Sequence[Point]) -> Curve:
    """Return the curve through points in any order."""
    return Curve(name, sorted(points, key=lambda point: (point.underestimation_rate, point.error)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceComparison:
    """Results of one log.

    Attributes:
        jobs: how many there are, the first ones included.
        published: methods of the papers, at one or more settings each.
        curve: our method at every price.
    """

    jobs: int
    published: Sequence[Point]
    curve: Curve

    @property
    def default(self) -> Point:
        """Our method at its default price."""
        return next(point for point in self.curve.points if point.setting == _setting(DEFAULT))

    def ratio(self, other: Point) -> float:
        """Its error over another's, where it underestimates as often.

        NaN where it never does, and over a method that never errs.
        """
        if other.error == 0:
            return float("nan")
        return self.curve.error_at(other.underestimation_rate) / other.error


def compare(runs: Sequence[Completion], *, auto: bool = False) -> PriceComparison:
    """Play a log to all methods.

    Args:
        runs: the log.
        auto: whether auto is compared with the published methods, instead of least-cost.
    """
    players = published_methods()
    published = ["requested", *players]
    if not auto:
        players |= {_setting(price): LeastCost(price=price) for price in PRICES}
    played = replay(runs, InProcess(players))
    actual = np.array([run.runtime for run in runs])
    predicted = {"requested": played.requested}
    predicted |= {name: answers.predicted for name, answers in played.answers.items()}
    if auto:
        by_price = played_by_auto(runs, PRICES, EVERY).auto
        predicted |= {_setting(price): each for price, each in zip(PRICES, by_price.T, strict=True)}
    points = {name: point_of(name, seconds, actual) for name, seconds in predicted.items()}
    return PriceComparison(
        jobs=len(runs),
        published=[points[name] for name in published],
        curve=curve_of(
            AUTO if auto else LeastCost.name, [points[_setting(price)] for price in PRICES]
        ),
    )


def published_methods() -> "dict[str, Predictor]":
    """The methods of the papers, at one or more settings each."""
    players: dict[str, Predictor] = {"last-two": LastTwo(), "max-usage": MaxUsage()}
    for percent in PERCENTILES:
        players[f"percentile={percent}"] = Percentile(
            key="user", percentile=percent, lower_bound=0.0, min_jobs=1
        )
    for beta in BETAS:
        players[f"knn, beta={beta:g}"] = Knn(beta=beta)
    return players


def _setting(price: float) -> str:
    return f"price={price:g}"


def _or_none(value: float, style: str) -> str:
    return "-" if np.isnan(value) else format(value, style)


def log_tables(found: PriceComparison) -> str:
    """The comparison as tables of text."""
    lines = [
        (
            other.setting,
            f"{other.underestimation_rate:.1%}",
            f"{other.error:,.0f}",
            _or_none(found.curve.error_at(other.underestimation_rate), ",.0f"),
            _or_none(found.ratio(other), ".2f"),
        )
        for other in found.published
    ]
    ours = [
        (point.setting, f"{point.underestimation_rate:.1%}", f"{point.error:,.0f}")
        for point in found.curve.points
    ]
    ours_name = found.curve.name
    heads = ("published method", "underestimated", "error", f"{ours_name} there", "ratio")
    return "\n".join(
        [
            f"{found.jobs:,} jobs; mean absolute errors in seconds",
            text_table(heads, lines),
            text_table((ours_name, "underestimated", "error"), ours),
        ]
    )


def play(part: LogPart) -> PriceComparison:
    """Compare the methods on a log."""
    return compare(part.runs(), auto=part.options)


def main(
    traces: Traces,
    *,
    auto: Annotated[
        bool, typer.Option("--auto", help="Compare auto in the place of least-cost.")
    ] = False,
    limit: Limit = None,
    processes: Processes = None,
    distributed: Distributed = None,
) -> None:
    """Compare least-cost with the methods of the papers at equal underestimation rates.

    The price of an underestimate moves least-cost along its trade-off. Percentiles are those of the
    user's usages within 30 days, without a lower bound. knn is not tuned. All jobs count, also
    those of new users.

    For example: python research/least_cost.py SDSC-SP2-1998-4.2-cln.swf.gz
    """
    parts = log_parts(traces, limit, auto)
    for part, found in play_logs(play, parts, processes=processes, distributed=distributed):
        out.print(f"{part.trace}\n{log_tables(found)}", markup=False, soft_wrap=True)


if __name__ == "__main__":
    run_script(main)
