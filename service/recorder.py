"""Recording predictions, and asking every other method what it would have answered."""

import asyncio
from collections import deque
from collections.abc import Callable

import structlog
from msgspec import Struct

from predictors.jobs import Prediction, Submission
from service.live import ClusterState
from service.metrics import Metrics
from service.store import RecordedPrediction

log = structlog.get_logger()

SLICE = 16
"""Predictions that are recorded at a time, so that requests pass in between."""


class Answered(Struct, frozen=True, kw_only=True):
    """A prediction as it was answered, and the state that it came from."""

    state: ClusterState
    submission: Submission
    prediction: Prediction
    prediction_id: str


class Recorder:
    """Records what was answered, once the answer is on its way.

    For a share of the submissions every other method is asked in shadow: its estimate is
    recorded beside the answer and scored with it when the job ends.

    Args:
        record: takes what is to be stored and returns at once.
        share: of submissions, evenly spaced, that the other methods are asked about.
    """

    def __init__(
        self,
        *,
        record: Callable[[RecordedPrediction], None],
        share: float,
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        self._record = record
        self._share = share
        self._metrics = metrics
        self._clock = clock
        self._due = 0.0
        self._waiting: deque[Answered] = deque()

    def later(self, answered: Answered) -> None:
        """Record it as soon as the event loop is done with what it is doing."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._some)
        self._waiting.append(answered)

    def flush(self) -> None:
        """Record all now. A completion that follows must find its prediction recorded."""
        while self._waiting:
            self._take()

    def _some(self) -> None:
        for _ in range(min(SLICE, len(self._waiting))):
            self._take()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._some)

    def _take(self) -> None:
        answered = self._waiting.popleft()
        prediction = answered.prediction
        self._record(
            RecordedPrediction(
                prediction_id=answered.prediction_id,
                submission=answered.submission,
                method=prediction.method,
                predicted_walltime=prediction.predicted_walltime,
                estimates=self._estimates(answered),
                interval=prediction.interval,
                recorded_at=self._clock(),
            )
        )

    def _estimates(self, answered: Answered) -> dict[str, float]:
        """What every method that is asked says, in seconds."""
        answer = answered.prediction
        estimates = {answer.method: answer.predicted_walltime}
        self._due += self._share
        if self._due < 1.0:
            return estimates
        self._due -= 1.0
        for method, predictor in answered.state.predictors.items():
            if method == answer.method:
                continue
            try:
                estimates[method] = predictor.predict(answered.submission).predicted_walltime
            except Exception:
                self._metrics.failed(method, "shadow")
                log.exception("a method failed in shadow", method=method)
        return estimates
