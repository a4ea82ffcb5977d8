"""Records of the store, and conversion between domain types and database rows."""

from typing import Any

import msgspec
from msgspec import Struct

from predictors.jobs import Completion, Interval, Status, Submission
from service.store.batches import columns_of
from service.store.tables import completions, predictions

# Column names and PostgreSQL's types, in the order of the rows.
COMPLETION = columns_of(completions, but=("seq", "xid"))
PREDICTION = columns_of(predictions, but=("outcome", "runtime", "ended_at"))

_STATUSES = {status.value: status for status in Status}
_NAMES = {status: name for name, status in _STATUSES.items()}  # faster than their attribute


class ReportedCompletion(Struct, frozen=True, kw_only=True, gc=False):
    """A completion as it was reported.

    Attributes:
        completion: the run; its job id must be known.
        prediction_id: id of the job's prediction, passed through the resource manager.
        replaced_id: id of an earlier prediction, which a second one at the start replaced.
        eligible_time: Unix seconds from which the resource manager could start the job, after
            its begin time and dependencies; None if unknown. It is not stored.
        gpus: number of nodes, and of GPUs on each of them; None if unknown. Not stored, either.
    """

    completion: Completion
    prediction_id: str | None = None
    replaced_id: str | None = None
    eligible_time: float | None = None
    gpus: tuple[int, int] | None = None


class RecordedPrediction(Struct, frozen=True, kw_only=True, gc=False):
    """The predictions for one submission, stored until its job ends.

    Attributes:
        prediction_id: unique id.
        method: method that answered.
        predicted_walltime: its answer in seconds.
        estimates: answers in seconds, by method, with that of ``method``.
        median: of the answer in seconds, where the method gives a distribution.
        interval: of the answer, where the method gives one.
        bounds: ends of intervals in seconds, by method, with that of ``method``.
        coverage: nominal coverage of these intervals.
        underestimation_rate: nominal rate of underestimates; None for the method's own trade-off.
        erasure: number of the last erasure that certainly came before the answer; 0 for none.
    """

    prediction_id: str
    submission: Submission
    method: str
    predicted_walltime: float
    estimates: dict[str, float]
    median: float | None = None
    interval: Interval | None = None
    bounds: dict[str, tuple[float, float]] = {}
    coverage: float | None = None
    underestimation_rate: float | None = None
    recorded_at: float
    erasure: int = 0


class Ingested(Struct, frozen=True, kw_only=True):
    """Numbers of reported completions that are new, and that the store already has."""

    accepted: int
    duplicates: int

    def __add__(self, other: "Ingested") -> "Ingested":
        """Return the sums of both numbers."""
        return Ingested(
            accepted=self.accepted + other.accepted, duplicates=self.duplicates + other.duplicates
        )


def submission_row(job: Submission) -> tuple[Any, ...]:
    """Return a submission as a row, in the order of the columns."""
    return (
        job.cluster,
        job.job_id,
        job.user,
        job.group,
        job.project,
        job.queue,
        job.application,
        job.requested_walltime,
        job.requested_processors,
        job.requested_memory,
        job.submit_time,
    )


def completion_row(run: Completion) -> tuple[Any, ...]:
    """Return a completion as a row, in the column order COMPLETION."""
    end = (run.start_time, run.end_time, run.runtime, _NAMES[run.status])
    return submission_row(run.submission) + end


def prediction_row(prediction: RecordedPrediction) -> tuple[Any, ...]:
    """Return a recorded prediction as a row, in the column order PREDICTION."""
    interval = prediction.interval
    return (
        prediction.prediction_id,
        *submission_row(prediction.submission),
        prediction.recorded_at,
        prediction.method,
        prediction.predicted_walltime,
        msgspec.json.encode(prediction.estimates).decode(),
        prediction.median,
        interval.lower if interval else None,
        interval.upper if interval else None,
        msgspec.json.encode(prediction.bounds).decode() if prediction.bounds else None,
        prediction.coverage if prediction.bounds else None,
        prediction.underestimation_rate,
    )


def decode_estimates(estimates: str) -> dict[str, float]:
    """Return the estimates in seconds by method, from the column ``estimates``."""
    return msgspec.json.decode(estimates, type=dict[str, float])


def decode_bounds(bounds: str | None) -> dict[str, tuple[float, float]]:
    """Return the ends of intervals by method, from the column ``bounds``."""
    return msgspec.json.decode(bounds or "{}", type=dict[str, tuple[float, float]])


def completion_of(row: tuple[Any, ...]) -> Completion:
    """Return a completion from a row in the order COMPLETION; later columns are ignored."""
    return Completion(
        submission=Submission(
            cluster=row[0],
            job_id=row[1],
            user=row[2],
            group=row[3],
            project=row[4],
            queue=row[5],
            application=row[6],
            requested_walltime=row[7],
            requested_processors=row[8],
            requested_memory=row[9],
            submit_time=row[10],
        ),
        start_time=row[11],
        end_time=row[12],
        runtime=row[13],
        status=_STATUSES[row[14]],
    )
