"""Finds the recorded prediction of a completion's job."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from msgspec import Struct
from sqlalchemy import Connection

from predictors.facts import Facts
from predictors.jobs import Completion
from service.store.packed_facts import unpacked
from service.store.rows import BatchStatement, ReportedCompletion

TOLERANCE_SECONDS = 2.0
"""Seconds by which the clocks of a submit filter and of the resource manager may differ."""

SAME_JOB_SECONDS = 86400.0
"""Largest difference of the submit times of a prediction and a run that have one job id."""


class OpenPrediction(Struct, frozen=True, gc=False):
    """A recorded prediction; its fields are `_COLUMNS`."""

    prediction_id: str
    cluster: str
    job_id: str | None
    user: str | None
    application: str | None
    queue: str | None
    submit_time: float
    requested_walltime: float
    requested_memory: float | None
    method: str
    estimates: str
    bounds: str | None
    coverage: float | None
    facts: bytes | None


_Index = defaultdict[tuple[str | None, ...], list[OpenPrediction]]


class Match(Struct, frozen=True):
    """A completion's prediction, and the ids of the job's other predictions, which are closed."""

    prediction: OpenPrediction
    superseded: list[str]


# CROSS JOIN tells SQLite, which has no statistics, to start from the few incoming rows. On
# PostgreSQL the rows stay locked until the commit, so that no other worker scores them too.
_COLUMNS = """prediction_id, cluster, job_id, user_name, application, queue, submit_time,
        requested_walltime, requested_memory, method, estimates, bounds, coverage, facts"""
_FIND = f"""
    {{incoming}} SELECT {_COLUMNS}
    FROM predictions AS found
    WHERE outcome IS NULL AND prediction_id IN (
        SELECT p.prediction_id FROM incoming AS i CROSS JOIN predictions AS p
        WHERE p.prediction_id = i.prediction_id AND p.outcome IS NULL
        UNION
        SELECT p.prediction_id FROM incoming AS i CROSS JOIN predictions AS p
        WHERE p.cluster = i.cluster AND p.job_id = i.job_id AND p.outcome IS NULL
        UNION
        SELECT p.prediction_id FROM incoming AS i CROSS JOIN predictions AS p
        WHERE p.cluster = i.cluster AND p.user_name = i.user_name AND p.job_id IS NULL
            AND p.submit_time BETWEEN i.submit_time - {TOLERANCE_SECONDS}
                AND i.submit_time + {TOLERANCE_SECONDS}
            AND p.outcome IS NULL
    )
    ORDER BY recorded_at, prediction_id"""  # noqa: S608 - of constants alone
_SOUGHT = {
    "cluster": "text",
    "prediction_id": "text",
    "job_id": "text",
    "user_name": "text",
    "submit_time": "float8",
}
_FIND_ALONE = BatchStatement(_SOUGHT, _FIND)
_FIND_AND_KEEP = {
    "sqlite": _FIND_ALONE,
    "postgresql": BatchStatement(_SOUGHT, f"{_FIND} FOR UPDATE OF found"),
}
_NAMED = BatchStatement(
    {"named": "text"},
    f"{{incoming}} SELECT {_COLUMNS} FROM incoming JOIN predictions ON prediction_id = named",  # noqa: S608 - of constants alone
)
_OLDEST = "SELECT min(submit_time) FROM predictions WHERE outcome IS NULL"


def find_matches(
    connection: Connection, reported: Sequence[ReportedCompletion]
) -> list[Match | None]:
    """Return the recorded prediction of each completion's job, or None.

    A completion is matched by its prediction id, else by job id, else by user, application, queue
    and submit time; the oldest prediction first, and none twice. Resource managers use job ids
    again: predictions for jobs submitted after the run ended are not considered, nor those with the
    job id of another user's job, or of one submitted at another time.
    """
    statement = _FIND_AND_KEEP[connection.dialect.name]
    candidates = _candidates(connection, reported, statement)
    return [candidates.take(item) for item in reported]


def find_named(
    connection: Connection, reported: Sequence[ReportedCompletion]
) -> list[OpenPrediction | None]:
    """Return the prediction that each run names, of any job of its user.

    The tasks of an array, and the runs of a job that was requeued, name one prediction, which the
    first of them takes.
    """
    ids = {item.prediction_id for item in reported if item.prediction_id}
    rows = _NAMED.fetch(connection, [(each,) for each in sorted(ids)]) if ids else []
    found = {row[0]: OpenPrediction(*row) for row in rows}
    return [named_by(item, found) for item in reported]


def named_by(
    item: ReportedCompletion, predictions: Mapping[str, OpenPrediction]
) -> OpenPrediction | None:
    """Return the prediction that a run names, if it is of the run's cluster and user."""
    job, named = item.completion.submission, predictions.get(item.prediction_id or "")
    is_own = named is not None and (named.cluster, named.user) == (job.cluster, job.user)
    return named if is_own else None


def facts_at_submission(
    connection: Connection, jobs: Sequence[ReportedCompletion]
) -> list[Facts | None]:
    """Return the facts of the recorded prediction of each job that has not ended.

    Predictions are found as those of completions are, and stay open.

    Args:
        jobs: as if they had ended now.
    """
    candidates = _candidates(connection, jobs, _FIND_ALONE)
    return [candidates.facts_of(job) for job in jobs]


def _candidates(
    connection: Connection, reported: Sequence[ReportedCompletion], statement: BatchStatement
) -> "_Candidates":
    """Return the open predictions that may belong to runs."""
    oldest = connection.exec_driver_sql(_OLDEST).scalar()
    if oldest is None or all(_ended_before(oldest, item.completion) for item in reported):
        return _Candidates([])
    sought = [key for item in reported for key in _sought(item)]
    return _Candidates([OpenPrediction(*row) for row in statement.fetch(connection, sought)])


def _ended_before(submit_time: float, run: Completion) -> bool:
    return run.end_time + TOLERANCE_SECONDS < submit_time


def _is_same_job(prediction: OpenPrediction, run: Completion) -> bool:
    """Return whether user and submit time allow a prediction with a run's job id to be its own.

    A prediction at the start of a job has the start as its submit time.
    """
    job, submitted = run.submission, prediction.submit_time
    if None not in (prediction.user, job.user) and prediction.user != job.user:
        return False
    return any(
        abs(submitted - each) <= SAME_JOB_SECONDS for each in (job.submit_time, run.start_time)
    )


_Sought = tuple[str, str | None, str | None, str | None, float]


def _sought(item: ReportedCompletion) -> Iterator[_Sought]:
    job = item.completion.submission
    yield job.cluster, item.prediction_id, job.job_id, job.user, job.submit_time
    if item.replaced_id:
        yield job.cluster, item.replaced_id, None, None, job.submit_time


class _Candidates:
    """Open predictions, oldest first; each can be taken once."""

    def __init__(self, predictions: Sequence[OpenPrediction]) -> None:
        self._taken: set[str] = set()
        self._by_id = {prediction.prediction_id: prediction for prediction in predictions}
        self._by_job: _Index = defaultdict(list)
        self._by_submitter: _Index = defaultdict(list)
        for p in self._by_id.values():
            if p.job_id is None:
                self._by_submitter[p.cluster, p.user, p.application, p.queue].append(p)
            else:
                self._by_job[p.cluster, p.job_id].append(p)

    def take(self, item: ReportedCompletion) -> Match | None:
        """Remove and return the prediction of a run, with the job's other predictions."""
        run = item.completion
        fitting = (p for p in self._ranked(item) if not _ended_before(p.submit_time, run))
        chosen = next((p for p in fitting if p.prediction_id not in self._taken), None)
        if chosen is None:
            return None
        self._taken.add(chosen.prediction_id)
        superseded = [
            p.prediction_id
            for p in self._others(item, chosen)
            if p.prediction_id not in self._taken and not _ended_before(p.submit_time, run)
        ]
        self._taken.update(superseded)
        return Match(chosen, superseded)

    def facts_of(self, item: ReportedCompletion) -> Facts | None:
        """Return the facts of a run's prediction; the tasks of an array name the same one."""
        if (named := named_by(item, self._by_id)) is not None:
            return unpacked(named.facts)
        match = None if (item.prediction_id or "") in self._by_id else self.take(item)
        return unpacked(match.prediction.facts) if match else None

    def _others(self, item: ReportedCompletion, chosen: OpenPrediction) -> Iterator[OpenPrediction]:
        """Yield the job's other predictions: those by job id, and the one at submission.

        A second prediction, at the start, has the job's id; the first has none. The completion may
        name the first; if it names none, any prediction that fits the submission is taken.
        """
        job = item.completion.submission
        yield from self._with_job_id(item.completion)
        first = self._by_id.get(item.replaced_id or "")
        if first is not None and first.cluster == job.cluster:
            yield first
        elif item.prediction_id is None and chosen.job_id is not None:
            fitting = (p for p in self._at_submission(item) if p.prediction_id not in self._taken)
            yield from islice(fitting, 1)

    def _ranked(self, item: ReportedCompletion) -> Iterator[OpenPrediction]:
        """Yield the open predictions that may belong to a run, best evidence first.

        A run that names a prediction takes none by its submission: tasks of an array name one.
        """
        job = item.completion.submission
        named = self._by_id.get(item.prediction_id or "")
        if named is not None and named.cluster == job.cluster:
            yield named
        yield from self._with_job_id(item.completion)
        if item.prediction_id is None:
            yield from self._at_submission(item)

    def _with_job_id(self, run: Completion) -> Iterator[OpenPrediction]:
        """Yield the predictions with the job id of a run that may be the job's."""
        job = run.submission
        return (p for p in self._by_job[job.cluster, job.job_id] if _is_same_job(p, run))

    def _at_submission(self, item: ReportedCompletion) -> Iterator[OpenPrediction]:
        """Yield predictions without job id whose names and submit time fit."""
        job = item.completion.submission
        if job.user is None:
            return
        for p in self._by_submitter[job.cluster, job.user, job.application, job.queue]:
            if abs(p.submit_time - job.submit_time) <= TOLERANCE_SECONDS:
                yield p
