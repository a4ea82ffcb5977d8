"""Domain types as database rows, and back."""

from collections.abc import Mapping
from typing import Any

import msgspec

from predictors.jobs import Completion, Status, Submission
from service.store.types import RecordedPrediction

# Column names and PostgreSQL's types, in the order of the rows.
SUBMISSION: Mapping[str, str] = {
    "cluster": "text",
    "job_id": "text",
    "user_name": "text",
    "group_name": "text",
    "project": "text",
    "queue": "text",
    "application": "text",
    "requested_walltime": "float8",
    "requested_processors": "int8",
    "requested_memory": "float8",
    "submit_time": "float8",
}
COMPLETION: Mapping[str, str] = {
    **SUBMISSION,
    "start_time": "float8",
    "end_time": "float8",
    "runtime": "float8",
    "status": "text",
}
PREDICTION: Mapping[str, str] = {
    **SUBMISSION,
    "prediction_id": "text",
    "recorded_at": "float8",
    "method": "text",
    "predicted_walltime": "float8",
    "estimates": "text",
    "lower_bound": "float8",
    "upper_bound": "float8",
    "bounds": "text",
    "coverage": "float8",
    "underestimation_rate": "float8",
}

_STATUSES = {status.value: status for status in Status}
_NAMES = {status: name for name, status in _STATUSES.items()}  # faster than their attribute


def submission_row(job: Submission) -> tuple[Any, ...]:
    """A submission as a row, in the column order SUBMISSION."""
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
    """A completion as a row, in the column order COMPLETION."""
    end = (run.start_time, run.end_time, run.runtime, _NAMES[run.status])
    return submission_row(run.submission) + end


def prediction_row(prediction: RecordedPrediction) -> tuple[Any, ...]:
    """A recorded prediction as a row, in the column order PREDICTION."""
    interval = prediction.interval
    return (
        *submission_row(prediction.submission),
        prediction.prediction_id,
        prediction.recorded_at,
        prediction.method,
        prediction.predicted_walltime,
        msgspec.json.encode(prediction.estimates).decode(),
        interval.lower if interval else None,
        interval.upper if interval else None,
        msgspec.json.encode(prediction.bounds).decode() if prediction.bounds else None,
        prediction.coverage if prediction.bounds else None,
        prediction.underestimation_rate,
    )


def seconds_of(estimates: str) -> dict[str, float]:
    """What each method predicted, from the column ``estimates``."""
    return msgspec.json.decode(estimates, type=dict[str, float])


def bounds_of(bounds: str | None) -> dict[str, tuple[float, float]]:
    """The ends of each method's interval, from the column ``bounds``."""
    return msgspec.json.decode(bounds or "{}", type=dict[str, tuple[float, float]])


def completion_of(row: tuple[Any, ...]) -> Completion:
    """A completion from a row in the order of COMPLETION; later columns are ignored."""
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
