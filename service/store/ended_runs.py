"""Runs of one job that have ended, and what had been predicted for it."""

from msgspec import Struct
from sqlalchemy import Connection, func, select

from predictors.jobs import Completion, Interval
from service.store.database import Database
from service.store.rows import COMPLETION, completion_of
from service.store.tables import completions, predictions

_RUNS = select(*(completions.c[name] for name in COMPLETION))
_SAME_NAMES = ("user_name", "queue", "application")


class ScoredPrediction(Struct, frozen=True, kw_only=True):
    """The prediction that a run was scored by.

    Attributes:
        recorded_at: Unix seconds.
        method: that answered.
        predicted_walltime: seconds.
        median: seconds; None where the method gave none.
        interval: None where the method gave none.
    """

    recorded_at: float
    method: str
    predicted_walltime: float
    median: float | None
    interval: Interval | None


class EndedRun(Struct, frozen=True):
    """One run of a job.

    Attributes:
        run: as it was reported.
        prediction: None if none was recorded, or it has been deleted.
    """

    run: Completion
    prediction: ScoredPrediction | None


class EndedJobs:
    """The ended jobs of all clusters. The methods block, as those of the store do."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def runs_of(self, cluster: str, job_id: str, most: int = 10) -> list[EndedRun]:
        """Return the runs of a job, the newest first; several if it was requeued."""
        of_job = completions.c.cluster == cluster, completions.c.job_id == job_id
        wanted = _RUNS.where(*of_job).order_by(completions.c.start_time.desc()).limit(most)
        with self._database.reading() as connection:
            runs = [completion_of(tuple(row)) for row in connection.execute(wanted)]
            return [EndedRun(run, _prediction_of(connection, run)) for run in runs]

    def earlier_runs(self, run: Completion, most: int) -> list[Completion]:
        """Return the newest runs of the same user and job name that ended before a submission."""
        job, c = run.submission, completions.c
        if job.user is None:
            return []
        wanted = _RUNS.where(
            c.cluster == job.cluster,
            c.user_name == job.user,
            c.application.is_not_distinct_from(job.application),
            c.end_time < job.submit_time,
        )
        with self._database.reading() as connection:
            rows = connection.execute(wanted.order_by(c.end_time.desc()).limit(most))
            return [completion_of(tuple(row)) for row in rows]


def _prediction_of(connection: Connection, run: Completion) -> ScoredPrediction | None:
    """Return the prediction that was scored by a run: of several alike, the nearest in time."""
    c, job = predictions.c, run.submission
    names = dict(zip(_SAME_NAMES, (job.user, job.queue, job.application), strict=True))
    wanted = (
        select(predictions)
        .where(
            c.cluster == job.cluster,
            c.ended_at == run.end_time,
            c.outcome == "scored",
            c.runtime == run.runtime,
            func.coalesce(c.job_id, job.job_id) == job.job_id,
            *(c[name].is_not_distinct_from(value) for name, value in names.items()),
        )
        .order_by(func.abs(c.submit_time - job.submit_time))
        .limit(1)
    )
    row = connection.execute(wanted).one_or_none()
    if row is None:
        return None
    bounds = (row.lower_bound, row.upper_bound, row.coverage)
    return ScoredPrediction(
        recorded_at=row.recorded_at,
        method=row.method,
        predicted_walltime=row.predicted_walltime,
        median=row.median,
        interval=None
        if None in bounds
        else Interval(lower=row.lower_bound, upper=row.upper_bound, coverage=row.coverage),
    )
