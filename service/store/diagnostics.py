"""Counts in the history that show faults in the connection of a site."""

from collections import defaultdict
from collections.abc import Iterable

from msgspec import Struct
from sqlalchemy import Connection, Row, text

NEVER = 1e18
"""Unix seconds later than any event."""

FEWEST_MOVED = 3
"""Smallest number of predictions with a shift; fewer may be chance."""


class Shift(Struct, frozen=True, kw_only=True):
    """A difference of times by whole quarters of an hour, as between time zones.

    Attributes:
        seconds: from the first time to the second; negative if the second is earlier.
        jobs: number of jobs with this difference.
    """

    seconds: float
    jobs: int


class ClusterDiagnostics(Struct, frozen=True, kw_only=True):
    """Counts of one cluster over some days; times are Unix seconds.

    Attributes:
        scored: number of predictions with a run.
        overdue: open predictions, made after the last run ended, of jobs that must have ended
            unless they waited for more than an hour.
        last_run: end of the last run, without ends in the future; None without runs.
        ahead: number of runs with an end in the future.
        answerable: number of runs submitted after the first of the predictions.
        unasked: number of runs submitted after the last of the predictions.
        twice: runs that were stored twice, shifted by a time zone.
        moved: runs like those of open predictions, shifted by a time zone.
    """

    cluster: str
    predictions: int = 0
    scored: int = 0
    last_prediction: float | None = None
    overdue: int = 0
    last_run: float | None = None
    runs: int = 0
    ahead: int = 0
    answerable: int = 0
    unasked: int = 0
    twice: Shift | None = None
    moved: Shift | None = None


_CLUSTERS = text(
    "SELECT cluster FROM predictions WHERE recorded_at >= :since "
    "UNION SELECT cluster FROM completions"
)
_PREDICTED = text("""
    SELECT count(*) AS predictions, count(*) FILTER (WHERE outcome = 'scored') AS scored,
        min(recorded_at) AS first, max(recorded_at) AS last
    FROM predictions WHERE cluster = :cluster AND recorded_at >= :since""")
_LAST_RUN = text("""
    SELECT max(end_time) FROM completions
    WHERE cluster = :cluster AND end_time <= :now + 300""")
_OVERDUE = text("""
    SELECT count(*) FROM predictions
    WHERE cluster = :cluster AND outcome IS NULL AND recorded_at >= :since
        AND recorded_at > :last_run AND recorded_at + requested_walltime + 3600 < :now""")
_ENDED = text("""
    SELECT count(*) AS runs, count(*) FILTER (WHERE end_time > :now + 300) AS ahead,
        count(*) FILTER (WHERE submit_time >= :first) AS answerable,
        count(*) FILTER (WHERE submit_time > :last + 60) AS unasked
    FROM completions WHERE cluster = :cluster AND end_time >= :since""")
# No zone is further than 14 hours from Universal Time.
_TWICE = text("""
    SELECT first.job_id, second.start_time - first.start_time
    FROM completions AS second JOIN completions AS first
        ON first.cluster = second.cluster AND first.job_id = second.job_id
        AND first.seq < second.seq AND first.runtime = second.runtime
        AND abs(second.start_time - first.start_time) <= 50400
        AND abs(second.start_time - first.start_time - second.submit_time + first.submit_time) < 1
    WHERE second.cluster = :cluster AND second.end_time >= :since
    LIMIT 10000""")
_MOVED = text("""
    SELECT asked.prediction_id, run.submit_time - asked.submit_time
    FROM (
        SELECT prediction_id, user_name, application, requested_walltime, submit_time
        FROM predictions
        WHERE cluster = :cluster AND outcome IS NULL AND recorded_at >= :since
        ORDER BY recorded_at LIMIT 500
    ) AS asked JOIN completions AS run
        ON run.cluster = :cluster AND run.user_name = asked.user_name
        AND run.application = asked.application
        AND run.requested_walltime = asked.requested_walltime
        AND run.end_time >= asked.submit_time - 50400
        AND abs(run.submit_time - asked.submit_time) BETWEEN 898 AND 50402
    LIMIT 100000""")


def read(connection: Connection, since: float, now: float) -> list[ClusterDiagnostics]:
    """Return the counts from ``since`` to ``now``, by name of cluster."""
    names = connection.execute(_CLUSTERS, {"since": since}).scalars()
    return [_diagnostics_of(connection, name, since, now) for name in sorted(names)]


def _diagnostics_of(
    connection: Connection, cluster: str, since: float, now: float
) -> ClusterDiagnostics:
    """Return the counts of one cluster."""
    about = {"cluster": cluster, "since": since}
    until = {**about, "now": now}
    predicted = connection.execute(_PREDICTED, about).one()
    last_run = connection.execute(_LAST_RUN, {"cluster": cluster, "now": now}).scalar()
    overdue = connection.execute(_OVERDUE, {**until, "last_run": last_run or 0.0}).scalar_one()
    bounds = {"first": predicted.first or NEVER, "last": predicted.last or NEVER}
    ended = connection.execute(_ENDED, {**until, **bounds}).one()
    return ClusterDiagnostics(
        cluster=cluster,
        predictions=predicted.predictions,
        scored=predicted.scored,
        last_prediction=predicted.last,
        overdue=overdue,
        last_run=last_run,
        runs=ended.runs,
        ahead=ended.ahead,
        answerable=ended.answerable,
        unasked=ended.unasked,
        twice=_shift(connection.execute(_TWICE, about), fewest=1),
        moved=_shift(connection.execute(_MOVED, about), fewest=FEWEST_MOVED),
    )


def _shift(differences: Iterable[Row[str, float]], *, fewest: int) -> Shift | None:
    """Return the shift by a time zone that most differences show; None if there is no clear one.

    A job that is submitted every quarter of an hour shows all shifts.

    Args:
        differences: job id and seconds.
        fewest: smallest number of jobs of a shift.
    """
    jobs: defaultdict[float, set[str]] = defaultdict(set)
    for job, seconds in differences:
        zone = round(seconds / 900) * 900
        if zone and abs(seconds - zone) <= 2:
            jobs[zone].add(job)
    ranked = sorted(jobs, key=lambda zone: len(jobs[zone]), reverse=True)
    if not ranked or len(jobs[ranked[0]]) < fewest:
        return None
    if len(ranked) > 1 and len(jobs[ranked[0]]) < 2 * len(jobs[ranked[1]]):
        return None
    return Shift(seconds=ranked[0], jobs=len(jobs[ranked[0]]))
