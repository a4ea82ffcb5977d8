"""The updater's questions to the service."""

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec import Struct

from predictors.jobs import Submission
from service.slurm_updater.planning import Estimate
from service.slurm_updater.squeue import QueuedJob
from terminal.client import Client, RemoteError, fields_of

BATCH = 500
"""Jobs in one request; the service answers others in between."""

_REFUSED = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)


class NonsenseError(Exception):
    """Raised when the answer is not one of the service."""


class _Prediction(Struct):
    predicted_walltime: float
    prediction_id: str


class _Predictions(Struct):
    predictions: list[_Prediction]


class _Priority(Struct):
    job_id: str
    priority: float


class _Priorities(Struct):
    priorities: list[_Priority]


class ServiceQueries:
    """The service's predictions and priorities of jobs; refused jobs are left out.

    Every call raises what ``Client.call`` does, but for such refusals, and NonsenseError.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def predictions(self, jobs: Sequence[QueuedJob]) -> dict[str, Estimate]:
        """Return predictions of the runtimes of jobs, by job id."""
        return dict(self._in_batches(jobs, self._predict))

    def priorities(self, jobs: Sequence[QueuedJob], now: float) -> dict[str, float]:
        """Return priorities by the accuracy of users and the wait, by job id."""
        return dict(self._in_batches(jobs, lambda some: self._rank(some, now)))

    def _predict(self, jobs: Sequence[QueuedJob]) -> list[tuple[str, Estimate]]:
        question = {"submissions": [_as_of_now(job.submission) for job in jobs]}
        answer = self._client.call("POST", "/v1/predictions/batch", question)
        predictions = _decoded(answer, _Predictions).predictions
        if len(predictions) != len(jobs):
            raise NonsenseError("The service answered another number of predictions.")
        return [
            (job.job_id, _estimate(job, each)) for job, each in zip(jobs, predictions, strict=True)
        ]

    def _rank(self, jobs: Sequence[QueuedJob], now: float) -> list[tuple[str, float]]:
        question = {
            "now": now,
            "cluster": jobs[0].submission.cluster,
            "jobs": [
                {
                    name: value
                    for name, value in fields_of(job.submission).items()
                    if name in ("job_id", "user", "requested_walltime", "submit_time")
                }
                for job in jobs
            ],
        }
        answer = self._client.call("POST", "/v1/priorities", question)
        return [(each.job_id, each.priority) for each in _decoded(answer, _Priorities).priorities]

    def _in_batches(
        self, jobs: Sequence[QueuedJob], ask: Callable[[Sequence[QueuedJob]], list[Any]]
    ) -> list[Any]:
        answers = []
        for first in range(0, len(jobs), BATCH):
            answers += self._without_refused(jobs[first : first + BATCH], ask)
        return answers

    def _without_refused(
        self, jobs: Sequence[QueuedJob], ask: Callable[[Sequence[QueuedJob]], list[Any]]
    ) -> list[Any]:
        """Return the answers about all jobs that the service does not refuse, by bisection."""
        try:
            return ask(jobs)
        except RemoteError as error:
            if error.status not in _REFUSED:
                raise
        if len(jobs) == 1:
            return []
        middle = len(jobs) // 2
        return [
            *self._without_refused(jobs[:middle], ask),
            *self._without_refused(jobs[middle:], ask),
        ]


def _as_of_now(submission: Submission) -> dict[str, Any]:
    """Return the fields without submit time, so that runs that ended since then count."""
    return {name: each for name, each in fields_of(submission).items() if name != "submit_time"}


def _estimate(job: QueuedJob, answer: _Prediction) -> Estimate:
    if not 0 < answer.predicted_walltime <= job.submission.requested_walltime:
        raise NonsenseError("The service predicts what cannot be.")
    return Estimate(predicted=answer.predicted_walltime, prediction_id=answer.prediction_id)


def _decoded(answer: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(answer, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise NonsenseError(f"This is no answer of the service: {error}") from error
