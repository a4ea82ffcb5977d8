"""Scores of the methods: running sums of how far predictions were from the runtimes.

There are three views of them: over all jobs (table ``scores``), by the day on which jobs ended and
by kind of job (table ``daily_scores``, which the page draws over time), and over the last jobs
(from the scored predictions themselves).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from math import inf
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import astuple
from sqlalchemy import ColumnElement, Connection, Row, bindparam, delete, func, literal, select

from predictors.jobs import Completion, Submission
from service.store.batches import BatchStatement
from service.store.database import Database
from service.store.matching import Match, OpenPrediction
from service.store.rows import bounds_of, seconds_of
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
    """The scores of one method on the jobs that it was asked about and that ended.

    Attributes:
        method: its name.
        label: the part of the jobs: a day since 1970, or a queue, group or class of processors.
        jobs: how many were scored.
        mean_absolute_error: seconds.
        underestimation_rate: share of jobs that ran longer than predicted.
        accuracy: mean of min(p, r) / max(p, r) over predictions p and runtimes r (Tang et al.
            2013, Eq 3).
        intervals: how many intervals were given.
        coverage: share of intervals that held the runtime; None if there were none.
        asked_coverage: mean of the coverages that were asked of them.
    """

    method: str
    label: int | str = "all"
    jobs: int
    mean_absolute_error: float
    underestimation_rate: float
    accuracy: float
    intervals: int
    coverage: float | None
    asked_coverage: float | None


class Promise(Struct, frozen=True, kw_only=True):
    """A share that was asked of a method, and the share observed.

    Attributes:
        jobs: how many it was asked about.
        asked: mean of the shares of jobs that were asked for.
        got: the share of jobs that came.
    """

    jobs: int
    asked: float
    got: float


class RecentScore(Struct, frozen=True, kw_only=True):
    """The scores of one method on a cluster's last scored jobs.

    Attributes:
        method: its name.
        jobs: how many of them it was asked about.
        underestimation_rate: share of them that ran longer than predicted.
        intervals: of the jobs that it gave an interval for, how many it was to hold and held.
        rates: of the jobs for which a rate of underestimates was asked, how many came.
    """

    method: str
    jobs: int
    underestimation_rate: float
    intervals: Promise | None
    rates: Promise | None


class JobKind(Struct, frozen=True, order=True):
    """The jobs of one row of daily scores, of any method."""

    cluster: str
    day: int
    queue: str
    group: str
    size: str


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

    def add_interval(self, lower: float, upper: float, asked: float, runtime: float) -> None:
        """Compare one interval, which was to hold the share ``asked`` of jobs, with the truth."""
        self.intervals += 1
        self.covered += lower <= runtime <= upper
        self.asked_coverage += asked


_SUMS = {
    "jobs": "int8",
    "absolute_error": "float8",
    "underestimated": "int8",
    "accuracy": "float8",
    "intervals": "int8",
    "covered": "int8",
    "asked_coverage": "float8",
}
_DAILY_KEY = {
    "cluster": "text",
    "day": "int8",
    "method": "text",
    "queue": "text",
    "group_name": "text",
    "size": "text",
}


def _adding(table: str, key: Mapping[str, str]) -> BatchStatement:
    """Return a statement that adds sums to the rows of a table, by their primary key."""
    names = ", ".join((*key, *_SUMS))
    added = ", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in _SUMS)
    return BatchStatement(
        {**key, **_SUMS},
        f"INSERT INTO {table} ({names}) {{incoming}} SELECT {names} FROM incoming WHERE true "  # noqa: S608 - of constants
        f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {added}",
    )


_ADD = _adding("scores", {"cluster": "text", "method": "text"})
_ADD_DAILY = _adding("daily_scores", _DAILY_KEY)
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
        """Return the scores over the last scored jobs of a cluster, by method.

        The last are those that ended last: of the jobs that were submitted last, only the short
        ones have ended.
        """
        with self._database.reading() as connection:
            return _recent_scores(connection.execute(_LAST, {"cluster": cluster}))

    def daily(self, cluster: str, side: Side, *, days: int) -> list[MethodScore]:
        """Return the scores over the jobs of the last ``days`` days, by one of their properties.

        Args:
            cluster: of the jobs.
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
    sums: dict[tuple[JobKind, str], Sums] = defaultdict(Sums)
    for match, run in matches:
        closed.append((match.prediction.prediction_id, "scored", run.runtime, run.end_time))
        closed.extend((other, "superseded", None, None) for other in match.superseded)
        _compare(match.prediction, run, sums)
    _CLOSE.execute(connection, closed)
    totals = _totals(sums)
    # In one order everywhere, or two workers could wait for each other's rows.
    _ADD.execute(connection, [(*key, *totals[key]) for key in sorted(totals)])
    _ADD_DAILY.execute(
        connection,
        [
            (kind.cluster, kind.day, method, kind.queue, kind.group, kind.size,
             *astuple(sums[kind, method]))
            for kind, method in sorted(sums)
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


def _compare(
    prediction: OpenPrediction, run: Completion, sums: dict[tuple[JobKind, str], Sums]
) -> None:
    kind = kind_of(run.submission, run.end_time)
    for method, seconds in seconds_of(prediction.estimates).items():
        sums[kind, method].add(seconds, run.runtime)
    within = min(run.runtime, prediction.requested_walltime)
    for method, (lower, upper) in bounds_of(prediction.bounds).items():
        asked = prediction.coverage or 0.0
        sums[kind, method].add_interval(lower, upper, asked, within)


def _totals(sums: Mapping[tuple[JobKind, str], Sums]) -> dict[tuple[str, str], list[float]]:
    """Return the sums by cluster and method alone, in the order of their fields."""
    totals: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0] * len(_SUMS))
    for (kind, method), each in sums.items():
        total = totals[kind.cluster, method]
        for place, value in enumerate(astuple(each)):
            total[place] += value
    return totals


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
        asked_coverage=row.asked_coverage / intervals if intervals else None,
    )


class _Kept(Struct):
    """Counts for one calibration check: jobs, sum of nominal shares, successes."""

    jobs: int = 0
    asked: float = 0.0
    came: int = 0

    def add(self, asked: float, came: bool) -> None:  # noqa: FBT001 - it is what is counted
        """Count one job."""
        self.jobs += 1
        self.asked += asked
        self.came += came

    def promise(self) -> Promise | None:
        """Return the shares; None without jobs."""
        if not self.jobs:
            return None
        return Promise(jobs=self.jobs, asked=self.asked / self.jobs, got=self.came / self.jobs)


class _Recent(Struct):
    """Counts over the last jobs of one method."""

    jobs: int = 0
    underestimated: int = 0
    intervals: _Kept = field(default_factory=_Kept)
    rates: _Kept = field(default_factory=_Kept)


def _recent_scores(rows: Iterable[Any]) -> list[RecentScore]:
    """Add up scored predictions by method.

    A run counts up to its request where it is compared with what was asked for, as in the ranks
    that intervals come from.
    """
    recent: dict[str, _Recent] = defaultdict(_Recent)
    for row in rows:
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
