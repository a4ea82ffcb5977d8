"""Answering how long jobs will run."""

import asyncio
import secrets
from collections.abc import Sequence
from itertools import count

import structlog

from predictors.base import request_of
from predictors.correction import next_estimate
from predictors.jobs import Basis, Prediction, Submission
from predictors.registry import PREDICTORS
from service.contract.answers import (
    BasisAnswer,
    ExtensionAnswer,
    IntervalAnswer,
    PredictionAnswer,
    PredictionsAnswer,
)
from service.contract.bodies import (
    ExtensionRequest,
    PredictionBatch,
    PredictionRequest,
    SubmissionBody,
)
from service.errors import InvalidFieldError
from service.worker.live_state import ClusterState
from service.worker.prediction_recorder import AnsweredPrediction
from service.worker.worker import Worker

log = structlog.get_logger()

PREDICTIONS_PER_TURN = 16
"""Predictions of a batch that are made at a time, so that other requests pass in between."""

_FAILED = Basis(jobs=0, reason="failure")


class Predicting:
    """Predicts from memory; nothing here waits for the store."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._records = worker.settings.record_predictions
        self._default = worker.settings.method
        self._hide = worker.pseudonyms.submission
        self._prefix = secrets.token_hex(8)
        self._serial = count(1)

    def predict(self, body: PredictionRequest) -> PredictionAnswer:
        """Predict one job.

        Raises:
            InvalidFieldError: there is no method of that name.
        """
        method = self._method(body.method)
        self._worker.follower.look()
        return self._answer(body, method, self._worker.clock())

    async def predict_batch(self, body: PredictionBatch) -> PredictionsAnswer:
        """Predict several jobs, in order.

        Raises:
            InvalidFieldError: there is no method of that name, or there are too many jobs.
        """
        method = self._method(body.method)
        check_length(body.submissions, "submissions", self._worker.settings.max_batch)
        now = self._worker.clock()
        answers: list[PredictionAnswer] = []
        for start in range(0, len(body.submissions), PREDICTIONS_PER_TURN):
            self._worker.follower.look()
            jobs = body.submissions[start : start + PREDICTIONS_PER_TURN]
            answers += [self._answer(job, method, now) for job in jobs]
            await asyncio.sleep(0)
        return PredictionsAnswer(predictions=answers)

    def extend(self, body: ExtensionRequest) -> ExtensionAnswer:
        """The next estimate of a job that outlived its prediction.

        Raises:
            InvalidFieldError: the prediction was longer than the request, or the job asked for
                another walltime.
        """
        if body.predicted_walltime > body.requested_walltime:
            raise InvalidFieldError(
                "No prediction is longer than the request.", "predicted_walltime"
            )
        return ExtensionAnswer(predicted_walltime=self._extended(body))

    def _extended(self, body: ExtensionRequest) -> float:
        """By the runs of the job's user that lasted longer, or by doubling."""
        predicted, requested, elapsed = (
            body.predicted_walltime,
            body.requested_walltime,
            body.elapsed,
        )
        if body.submission is None:
            return next_estimate(predicted, requested, elapsed)
        if body.submission.requested_walltime != requested:
            raise InvalidFieldError(
                "It must be the same as requested_walltime.", "submission.requested_walltime"
            )
        self._worker.follower.look()
        submission = self._hide(body.submission.submission(self._worker.clock()))
        survivors = self._worker.live.of(submission.cluster).survivors
        return survivors.next_estimate(predicted, submission, elapsed)

    def _method(self, name: str | None) -> str:
        if name is None:
            return self._default
        if name not in PREDICTORS:
            methods = ", ".join(sorted(PREDICTORS))
            raise InvalidFieldError(f"There is no such method; there are {methods}.", "method")
        return name

    def _answer(self, body: SubmissionBody, method: str, now: float) -> PredictionAnswer:
        submission = self._hide(body.submission(now))
        state = self._worker.live.of(submission.cluster)
        prediction = self._ask(state, method, submission)
        self._worker.metrics.predicted(prediction.method)
        prediction_id = f"{self._prefix}-{next(self._serial):x}"
        if self._records:
            self._worker.recorder.later(
                AnsweredPrediction(
                    state=state,
                    submission=submission,
                    prediction=prediction,
                    prediction_id=prediction_id,
                )
            )
        return PredictionAnswer(
            predicted_walltime=prediction.predicted_walltime,
            requested_walltime=prediction.requested_walltime,
            method=prediction.method,
            basis=BasisAnswer(prediction.basis.jobs, prediction.basis.reason),
            interval=_interval(prediction),
            prediction_id=prediction_id,
            job_id=body.job_id,
            cluster=submission.cluster,
        )

    def _ask(self, state: ClusterState, method: str, submission: Submission) -> Prediction:
        """The method's answer; the request, as method ``requested``, if it fails.

        A submission must not suffer from a bug in a method.
        """
        try:
            return state.predictors[method].predict(submission)
        except Exception:
            self._worker.metrics.failed(method, "answer")
            log.exception("a method failed; the request was answered", method=method)
            return request_of(submission, method="requested", basis=_FAILED)


def check_length(items: Sequence[object], field: str, limit: int) -> None:
    """Refuse a list of more than ``limit``."""
    if len(items) > limit:
        raise InvalidFieldError(f"There must be at most {limit} in one request.", field)


def _interval(prediction: Prediction) -> IntervalAnswer | None:
    interval = prediction.interval
    if interval is None:
        return None
    return IntervalAnswer(lower=interval.lower, upper=interval.upper, coverage=interval.coverage)
