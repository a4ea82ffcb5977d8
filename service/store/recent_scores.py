"""How each method did lately, and whether it kept what was asked of it."""

from collections import defaultdict

from msgspec import Struct, field
from sqlalchemy import Connection, bindparam, select

from service.store.rows import bounds_of, seconds_of
from service.store.tables import SCORED, predictions
from service.store.types import Promise, RecentScore

RECENT = 1_000
"""How many of a cluster's last scored jobs recent scores are over."""

_LAST = (
    select(
        predictions.c.method,
        predictions.c.predicted_walltime,
        predictions.c.estimates,
        predictions.c.bounds,
        predictions.c.coverage,
        predictions.c.underestimation_rate,
        predictions.c.requested_walltime,
        predictions.c.runtime,
    )
    .where(SCORED, predictions.c.cluster == bindparam("cluster"))
    .where(predictions.c.ended_at.is_not(None))
    .order_by(predictions.c.ended_at.desc(), predictions.c.prediction_id)
    .limit(RECENT)
)


class _Kept(Struct):
    """How often something was asked for, the sum of the shares, and how often it came."""

    jobs: int = 0
    asked: float = 0.0
    came: int = 0

    def add(self, asked: float, came: bool) -> None:  # noqa: FBT001 - it is what is counted
        """Count one job."""
        self.jobs += 1
        self.asked += asked
        self.came += came

    def promise(self) -> Promise | None:
        """The shares; None where nothing was asked."""
        if not self.jobs:
            return None
        return Promise(jobs=self.jobs, asked=self.asked / self.jobs, got=self.came / self.jobs)


class _Recent(Struct):
    """Over the jobs of one method."""

    jobs: int = 0
    underestimated: int = 0
    intervals: _Kept = field(default_factory=_Kept)
    rates: _Kept = field(default_factory=_Kept)


def read_recent_scores(connection: Connection, cluster: str) -> list[RecentScore]:
    """How each method did on those of a cluster's last scored jobs, by method.

    The last are those that ended last: of the jobs that were submitted last, only the short ones
    have ended. A run counts up to its request where it is compared with what was asked for, as in
    the ranks that intervals come from.
    """
    recent: dict[str, _Recent] = defaultdict(_Recent)
    for row in connection.execute(_LAST, {"cluster": cluster}):
        within = min(row.runtime, row.requested_walltime)
        for method, seconds in seconds_of(row.estimates).items():
            recent[method].jobs += 1
            recent[method].underestimated += seconds < row.runtime
        for method, (lower, upper) in bounds_of(row.bounds).items():
            recent[method].intervals.add(row.coverage, lower <= within <= upper)
        if row.underestimation_rate is not None:
            short = row.predicted_walltime < within
            recent[row.method].rates.add(row.underestimation_rate, short)
    return [
        RecentScore(
            method=method,
            jobs=found.jobs,
            underestimation_rate=found.underestimated / found.jobs,
            intervals=found.intervals.promise(),
            rates=found.rates.promise(),
        )
        for method, found in sorted(recent.items())
    ]
