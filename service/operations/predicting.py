"""Answering how long jobs will run."""

import asyncio
import secrets
from collections.abc import Callable
from itertools import count

from predictors.correction import next_estimate
from predictors.jobs import Prediction
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
    check_length,
    method_of,
)
from service.errors import InvalidFieldError
from service.metrics import Metrics
from service.pseudonyms import Pseudonyms
from service.settings import Settings
from service.worker.log_follower import LogFollower
from service.worker.prediction_recorder import AnsweredPrediction, PredictionRecorder

PREDICTIONS_PER_TURN = 16
"""Predictions of a batch that are made at a time, so that other requests pass in between."""


class Predicting:
    """Predicts from memory; nothing here waits for the store."""

    def __init__(  # noqa: PLR0913 - each is a part of the worker, named where it is handed over
        self,
        settings: Settings,
        *,
        follower: LogFollower,
        recorder: PredictionRecorder,
        pseudonyms: Pseudonyms,
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._follower = follower
        self._recorder = recorder
        self._hide = pseudonyms.submission
        self._metrics = metrics
        self._clock = clock
        self._prefix = secrets.token_hex(8)
        self._serial = count(1)

    def predict(self, body: PredictionRequest) -> PredictionAnswer:
        """Predict one job.

        Raises:
            InvalidFieldError: there is no method of that name.
        """
        return self._answer(body, method_of(body, self._settings.method), self._clock())

    async def predict_batch(self, body: PredictionBatch) -> PredictionsAnswer:
        """Predict several jobs, in order.

        Raises:
            InvalidFieldError: there is no method of that name, or there are too many jobs.
        """
        method = method_of(body, self._settings.method)
        check_length(body.submissions, "submissions", self._settings.max_batch)
        now = self._clock()
        answers: list[PredictionAnswer] = []
        for start in range(0, len(body.submissions), PREDICTIONS_PER_TURN):
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
        submission = self._hide(body.submission.submission(self._clock()))
        survivors = self._follower.state_of(submission.cluster).survivors
        return survivors.next_estimate(predicted, submission, elapsed)

    def _answer(self, body: SubmissionBody, method: str, now: float) -> PredictionAnswer:
        submission = self._hide(body.submission(now))
        state = self._follower.state_of(submission.cluster)
        prediction = state.ask(method, submission)
        self._metrics.predicted(prediction.method)
        prediction_id = f"{self._prefix}-{next(self._serial):x}"
        if self._settings.record_predictions:
            self._recorder.later(
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


def _interval(prediction: Prediction) -> IntervalAnswer | None:
    interval = prediction.interval
    if interval is None:
        return None
    return IntervalAnswer(lower=interval.lower, upper=interval.upper, coverage=interval.coverage)
