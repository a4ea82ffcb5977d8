"""Scores of the methods: sums of the errors of their predictions.

There are three kinds: over all jobs (table ``scores``), by the day on which jobs ended and by kind
of job (table ``daily_scores``, which a page draws over time), and over the last jobs (from the
scored predictions themselves).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from math import inf
from operator import add
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import astuple
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    bindparam,
    delete,
    func,
    literal,
    select,
)

from predictors.jobs import Completion, Submission
from service.store.database import Database
from service.store.matching import Match
from service.store.rows import BatchStatement, adding, decode_bounds, decode_estimates
from service.store.tables import SCORED, daily_scores, predictions, scores

DAY_SECONDS = 86400.0

RECENT = 1_000
"""Number of a cluster's last scored jobs that recent scores are over."""

SIZES = ((1, "1"), (8, "2-8"), (32, "9-32"), (128, "33-128"), (512, "129-512"))
"""Classes of processors by their largest number."""

LARGEST = "513 or more"

Side = Literal["all", "day", "queue", "group", "size"]
"""Properties of jobs by which daily scores are grouped."""

_SIDES: Mapping[Side, ColumnElement[Any]] = {
    "all": literal("all"),
    "day": daily_scores.c.day,
    "queue": daily_scores.c.queue,
    "group": daily_scores.c.group_name,
    "size": daily_scores.c.size,
}


class MethodScore(Struct, frozen=True, kw_only=True):
    """The scores of one method on ended jobs that it predicted.

    Attributes:
        label: the part of the jobs: a day since 1970, or a queue, group or class of processors.
        underestimation_rate: share of jobs that ran longer than predicted.
        accuracy: mean of min(p, r) / max(p, r) over predictions p and runtimes r (Tang et al.
            2013, Eq 3).
        coverage: share of intervals that held the runtime; None if there were none.
        nominal_coverage: mean of their nominal coverages.
    """

    method: str
    label: int | str = "all"
    jobs: int
    mean_absolute_error: float
    underestimation_rate: float
    accuracy: float
    intervals: int
    coverage: float | None
    nominal_coverage: float | None


class ObservedShare(Struct, frozen=True, kw_only=True):
    """A nominal share of jobs, and the share observed.

    Attributes:
        nominal: mean of the shares that callers requested.
        observed: share of the jobs for which the statement held.
    """

    jobs: int
    nominal: float
    observed: float


class RecentScore(Struct, frozen=True, kw_only=True):
    """The scores of one method on a cluster's last scored jobs.

    Attributes:
        jobs: number of jobs that the method predicted.
        underestimation_rate: share of them that ran longer than predicted.
        intervals: shares of runtimes within the method's intervals.
        rates: shares of underestimates, of jobs for which a rate was requested.
    """

    method: str
    jobs: int
    underestimation_rate: float
    intervals: ObservedShare | None
    rates: ObservedShare | None


class JobKind(Struct, frozen=True, order=True):
    """The jobs of one row of daily scores, of any method."""

    cluster: str
    day: int
    queue: str
    group: str
    size: str


MethodScores = tuple[MethodScore, RecentScore | None]
"""Scores of one method: over all scored jobs, and over the last ones."""


class Sums(Struct):
    """Sums over the scored jobs of one kind and method; its fields are columns of both tables."""

    jobs: int = 0
    absolute_error: float = 0.0
    underestimated: int = 0
    accuracy: float = 0.0
    intervals: int = 0
    covered: int = 0
    asked_coverage: float = 0.0

    def add(self, predicted: float, runtime: float) -> None:
        """Compare one prediction with the truth, both in seconds."""
        self.jobs += 1
        self.absolute_error += abs(predicted - runtime)
        self.underestimated += predicted < runtime
        self.accuracy += max(0.0, min(predicted, runtime)) / max(predicted, runtime)

    def add_interval(self, nominal: float, *, is_covered: bool) -> None:
        """Count one interval that was to hold the share ``nominal`` of runtimes."""
        self.intervals += 1
        self.covered += is_covered
        self.asked_coverage += nominal

    def observed_coverage(self) -> ObservedShare | None:
        """Return the nominal and the observed coverage; None without intervals."""
        if not self.intervals:
            return None
        return ObservedShare(
            jobs=self.intervals,
            nominal=self.asked_coverage / self.intervals,
            observed=self.covered / self.intervals,
        )


_ByMethod = defaultdict[str, Sums]
_SUMS = Sums.__struct_fields__


_ADD = adding(scores)
_ADD_DAILY = adding(daily_scores)
_CLOSE = BatchStatement(
    {"prediction_id": "text", "outcome": "text", "runtime": "float8", "ended_at": "float8"},
    """{incoming} UPDATE predictions SET outcome = incoming.outcome, runtime = incoming.runtime,
        ended_at = incoming.ended_at
    FROM incoming WHERE predictions.prediction_id = incoming.prediction_id""",
)
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


class Scores:
    """The scores of all clusters. The methods block, as those of the store do."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of_methods(self, cluster: str) -> list[MethodScore]:
        """Return the scores over all jobs of a cluster, by method."""
        wanted = select(scores).where(scores.c.cluster == cluster).order_by(scores.c.method)
        with self._database.reading() as connection:
            return [_score(row) for row in connection.execute(wanted)]

    def recent(self, cluster: str) -> list[RecentScore]:
        """Return the scores over the scored jobs of a cluster that ended last, by method.

        The order is that of ends: of jobs submitted last, only the short ones have ended.
        """
        with self._database.reading() as connection:
            return _recent_scores(connection.execute(_LAST, {"cluster": cluster}))

    def daily(self, cluster: str, side: Side, *, days: int) -> list[MethodScore]:
        """Return the scores over the jobs of the last ``days`` days, by a property of jobs.

        Args:
            side: the property; its values are the labels.
            days: counted back from the newest day that has scores.
        """
        day, of_cluster = daily_scores.c.day, daily_scores.c.cluster == cluster
        newest = select(func.max(day)).where(of_cluster)
        totals = [func.sum(daily_scores.c[name]).label(name) for name in _SUMS]
        with self._database.reading() as connection:
            last = connection.execute(newest).scalar()
            if last is None:
                return []
            wanted = (
                select(_SIDES[side].label("label"), daily_scores.c.method, *totals)
                .where(of_cluster, day > last - days)
                .group_by("label", daily_scores.c.method)
                .order_by("label", daily_scores.c.method)
            )
            return [_score(row, row.label) for row in connection.execute(wanted)]

    def drop_daily(self, before: float) -> int:
        """Delete the scores of days that had ended by then; return the number of rows."""
        if before == -inf:
            return 0
        old = delete(daily_scores).where(daily_scores.c.day < int(before // DAY_SECONDS))
        with self._database.writing() as connection:
            return connection.execute(old).rowcount


def score(connection: Connection, matches: Iterable[tuple[Match, Completion]]) -> None:
    """Close the predictions of jobs that ended with these runs, and add up their scores."""
    closed: list[tuple[str, str, float | None, float | None]] = []
    sums: dict[JobKind, _ByMethod] = {}
    for match, run in matches:
        closed.append((match.prediction.prediction_id, "scored", run.runtime, run.end_time))
        closed.extend((other, "superseded", None, None) for other in match.superseded)
        kind = kind_of(run.submission, run.end_time)
        _compare(match.prediction, run.runtime, sums.setdefault(kind, defaultdict(Sums)))
    _CLOSE.execute(connection, closed)
    # In one order everywhere, or two workers could wait for each other's rows.
    daily = sorted((kind, method) for kind, by_method in sums.items() for method in by_method)
    _ADD.execute(connection, _totals(sums))
    _ADD_DAILY.execute(
        connection,
        [
            (kind.cluster, kind.day, method, kind.queue, kind.group, kind.size,
             *astuple(sums[kind][method]))
            for kind, method in daily
        ],
    )  # fmt: skip


def kind_of(job: Submission, end_time: float) -> JobKind:
    """Return the kind of a job that ended at ``end_time``; unknown properties are empty texts."""
    return JobKind(
        job.cluster,
        int(end_time // DAY_SECONDS),
        job.queue or "",
        job.group or "",
        size_of(job.requested_processors),
    )


def size_of(processors: int | None) -> str:
    """Return the class of a number of processors; empty if the number is unknown."""
    if processors is None:
        return ""
    return next((name for most, name in SIZES if processors <= most), LARGEST)


def _compare(prediction: Any, runtime: float, sums: _ByMethod) -> None:
    """Add a prediction to the sums of its methods.

    A runtime is cut to the request before the comparison with an interval, as in the recalibration
    of intervals.

    Args:
        prediction: an open prediction, or a row of a scored one.
        sums: sums by method, which are changed.
    """
    for method, seconds in decode_estimates(prediction.estimates).items():
        sums[method].add(seconds, runtime)
    within = min(runtime, prediction.requested_walltime)
    for method, (lower, upper) in decode_bounds(prediction.bounds).items():
        sums[method].add_interval(prediction.coverage or 0.0, is_covered=lower <= within <= upper)


def _totals(sums: Mapping[JobKind, _ByMethod]) -> list[tuple[Any, ...]]:
    """Return rows of sums by cluster and method alone, in their order."""
    totals: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0] * len(_SUMS))
    for kind, by_method in sums.items():
        for method, each in by_method.items():
            total = totals[kind.cluster, method]
            total[:] = map(add, total, astuple(each))
    return [(*key, *totals[key]) for key in sorted(totals)]


def _score(row: Row[Any], label: int | str = "all") -> MethodScore:
    """Return the means of a row of sums; sums of counts are decimals on PostgreSQL."""
    jobs, intervals = int(row.jobs), int(row.intervals)
    return MethodScore(
        method=row.method,
        label=label,
        jobs=jobs,
        mean_absolute_error=row.absolute_error / jobs,
        underestimation_rate=int(row.underestimated) / jobs,
        accuracy=row.accuracy / jobs,
        intervals=intervals,
        coverage=int(row.covered) / intervals if intervals else None,
        nominal_coverage=row.asked_coverage / intervals if intervals else None,
    )


def _recent_scores(rows: Iterable[Row[Any]]) -> list[RecentScore]:
    """Return the scores over scored predictions, by method."""
    recent, rates = _ByMethod(Sums), _ByMethod(Sums)
    for row in rows:
        _compare(row, row.runtime, recent)
        if row.underestimation_rate is not None:
            is_short = row.predicted_walltime < min(row.runtime, row.requested_walltime)
            rates[row.method].add_interval(row.underestimation_rate, is_covered=is_short)
    return [
        RecentScore(
            method=method,
            jobs=sums.jobs,
            underestimation_rate=sums.underestimated / sums.jobs,
            intervals=sums.observed_coverage(),
            rates=rates[method].observed_coverage(),
        )
        for method, sums in sorted(recent.items())
    ]
