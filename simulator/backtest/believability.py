"""Compares simulated waits with those in the log: the quality of the simulation as a model."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, log

import numpy as np

from simulator.backtest.plays import QUANTILES, Play, Values, by_month
from simulator.backtest.site import BacktestSite
from terminal.words import duration

SLACK = 300.0
"""Tolerance in seconds within which waits count as equal."""

GOOD, ROUGH = 1.5, 2.0
"""Factors by which means and 90th percentiles may miss for a good and for a rough model.

Beyond the second one a verdict is an indication only.
"""


class Quality(StrEnum):
    """Quality of the simulation as a model of the machine."""

    GOOD = "good"
    ROUGH = "rough"
    POOR = "poor"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Believability:
    """Waits of the same jobs in the log and simulated by today's requests; seconds.

    Attributes:
        logged_share: share of the jobs whose wait is in the log.
        logged: quantiles of the log's waits, at ``QUANTILES``.
        logged_mean: their mean.
        simulated: quantiles of the simulated waits.
        simulated_mean: their mean.
        logged_by_month: mean waits of the log; NaN where a month has none.
    """

    logged_share: float
    logged: Values
    logged_mean: float
    simulated: Values
    simulated_mean: float
    months: Sequence[str]
    logged_by_month: Values
    simulated_by_month: Values

    @property
    def quality(self) -> Quality:
        """Quality by the worse of mean and 90th percentile."""
        if self.logged_share < 0.5:
            return Quality.UNKNOWN
        factor = max(
            _factor(self.simulated_mean, self.logged_mean),
            _factor(_p90(self.simulated), _p90(self.logged)),
        )
        if factor <= GOOD:
            return Quality.GOOD
        return Quality.ROUGH if factor <= ROUGH else Quality.POOR

    @property
    def factor(self) -> float:
        """Factor between the mean waits, beyond ``SLACK``; at least 1."""
        return _factor(self.simulated_mean, self.logged_mean)

    @property
    def near_months(self) -> tuple[int, int]:
        """Number of months whose mean waits differ by at most ``ROUGH``, and number of months."""
        months = np.array([self.logged_by_month, self.simulated_by_month]).T
        known = months[np.isfinite(months).all(axis=1)].tolist()
        near = [_factor(one, other) <= ROUGH for one, other in known]
        return sum(near), len(near)

    def headline(self) -> str:
        """Return a short sentence on the waits of today, simulated and in the log."""
        if self.quality is Quality.UNKNOWN:
            return "The log does not say how long jobs waited, so the model cannot be checked."
        near, months = self.near_months
        by_month = f", in {near} of {months} months within a factor of {ROUGH:g}" if months else ""
        return (
            f"{self._nearness()}: in the log jobs wait {duration(self.logged_mean)} on average, "
            f"simulated {duration(self.simulated_mean)}{by_month}."
        )

    def _nearness(self) -> str:
        """Return the factor between simulated waits and the log's, as the quality bounds it."""
        if self.quality is Quality.POOR:
            return f"The simulated waits of today miss the log's by more than a factor of {ROUGH:g}"
        bound = GOOD if self.quality is Quality.GOOD else ROUGH
        return (
            f"The simulated waits of today are within a factor of {bound:g}, or some minutes, of "
            "the log's"
        )

    def sentence(self) -> str:
        """Return a sentence on the quality, with the figures."""
        if self.quality is Quality.UNKNOWN:
            return (
                "The log does not say how long jobs waited, so nobody can check here how well the "
                "simulation fits this machine."
            )
        return f"{self._nearness()}. {self.comparison()}"

    def comparison(self) -> str:
        """Return the waits of both, and the usual reason of a difference."""
        return (
            f"In the log jobs waited {duration(self.logged_mean)} on average and 9 of 10 at most "
            f"{duration(_p90(self.logged))}; simulated by today's requests they wait "
            f"{duration(self.simulated_mean)} and {duration(_p90(self.simulated))}."
            f"{self._why()}"
        )

    def _why(self) -> str:
        """Return the usual reason of a difference; empty for a good model."""
        if self.quality is Quality.GOOD:
            return ""
        if self.logged_mean > self.simulated_mean:
            return (
                " Jobs really waited for something that the model does not know, such as "
                "partitions (see --partitions), reservations, limits of users, down times or "
                "dependencies."
            )
        return (
            " The real scheduler did better than the model, for example by priorities "
            "(see --order), more processors (see --processors) or nodes that jobs share."
        )


def compare(site: BacktestSite, today: Sequence[Play]) -> Believability:
    """Compare waits in the log with simulated ones of the same jobs, over the plays of today."""
    workloads = [workload for workload in site.workloads() if len(workload)]
    waits = np.concatenate([workload.trace.wait for workload in workloads])
    is_logged = waits >= 0
    # A converter that knows no waits writes zeros.
    if not waits.any():
        is_logged[:] = False
    months = next((each for each in site.groupings if each.kind == "months"), None)
    logged = waits[is_logged]
    return Believability(
        logged_share=float(is_logged.mean()),
        logged=np.quantile(logged, QUANTILES) if len(logged) else np.zeros_like(QUANTILES),
        logged_mean=float(logged.mean()) if len(logged) else 0.0,
        simulated=np.mean([play.where_logged.quantiles for play in today], axis=0),
        simulated_mean=float(np.mean([play.where_logged.mean for play in today])),
        months=months.names if months else (),
        logged_by_month=by_month(site, workloads, waits, is_logged),
        simulated_by_month=np.mean([play.where_logged.by_month for play in today], axis=0),
    )


def _p90(quantiles: Values) -> float:
    return float(np.interp(0.9, QUANTILES, quantiles))


def _factor(one: float, other: float) -> float:
    """Return the factor between two durations, beyond ``SLACK``; at least 1."""
    return exp(abs(log((one + SLACK) / (other + SLACK))))
