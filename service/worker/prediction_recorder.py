"""Recording predictions, and asking every other method what it would have answered."""

import asyncio
from collections import deque
from collections.abc import Callable

from msgspec import Struct

from predictors.jobs import Prediction, Submission
from predictors.registry import AUTO
from service.store import RecordedPrediction
from service.worker.live_state import FAILED, ClusterState

DELAY_SECONDS = 0.01
"""How long predictions gather: asking about many at once takes half the time for each."""

RECORDS_PER_TURN = 4
"""Predictions that are recorded at a time, so that requests pass in between."""

SHARE_PER_TURN = 8
"""One in so many of those that wait, where that is more: so they never gather faster than they are
recorded, however many requests pass in between."""


class AnsweredPrediction(Struct, frozen=True, kw_only=True):
    """A prediction as it was answered, and the state that it came from."""

    state: ClusterState
    submission: Submission
    prediction: Prediction
    prediction_id: str


class PredictionRecorder:
    """Records what was answered, some milliseconds after the answer.

    For a share of the submissions every other method is asked in shadow: its estimate is
    recorded beside the answer and scored with it when the job ends. The methods must not learn
    between an answer and its record, or their estimates could not be compared: whoever is about
    to teach them, or to store a completion, calls ``flush`` first.

    Args:
        record: takes what is to be stored and returns at once.
        share: of submissions, evenly spaced, that the other methods are asked about.
    """

    def __init__(
        self,
        *,
        record: Callable[[RecordedPrediction], None],
        share: float,
        clock: Callable[[], float],
    ) -> None:
        self._loop: asyncio.AbstractEventLoop
        self._record = record
        self._share = share
        self._clock = clock
        self._due = 0.0
        self._waiting: deque[AnsweredPrediction] = deque()
        self._is_scheduled = False

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Work on this event loop; asking for the running one is a system call."""
        self._loop = loop

    def later(self, answered: AnsweredPrediction) -> None:
        """Record it soon."""
        self._waiting.append(answered)
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_later(DELAY_SECONDS, self._some)

    def flush(self) -> None:
        """Record all that waits now."""
        while self._waiting:
            self._take()

    def _some(self) -> None:
        waiting = len(self._waiting)
        for _ in range(min(waiting, max(RECORDS_PER_TURN, waiting // SHARE_PER_TURN))):
            self._take()
        self._is_scheduled = bool(self._waiting)
        if self._is_scheduled:
            self._loop.call_soon(self._some)

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

    def _estimates(self, answered: AnsweredPrediction) -> dict[str, float]:
        """What every method that is asked says, in seconds."""
        answer, chosen = answered.prediction, answered.state.chosen
        estimates = {answer.method: answer.predicted_walltime}
        if answer.method == chosen:
            estimates[AUTO] = answer.predicted_walltime
        self._due += self._share
        if self._due < 1.0:
            return estimates
        self._due -= 1.0
        for method in answered.state.predictors:
            if method == answer.method:
                continue
            estimate = answered.state.ask(method, answered.submission, phase="shadow")
            if estimate.basis is not FAILED:  # else the request would be scored as the method's
                estimates[method] = estimate.predicted_walltime
        if chosen in estimates:
            estimates[AUTO] = estimates[chosen]
        return estimates
