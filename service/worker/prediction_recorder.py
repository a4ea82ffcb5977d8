"""Records predictions, with those of all other methods for the same job."""

import asyncio
from collections import deque
from collections.abc import Callable, Collection

from msgspec import Struct

from predictors.base import Question
from predictors.jobs import Prediction, Submission
from predictors.registry import METHODS
from service.store import RecordedPrediction
from service.worker.live_state import FAILED, ClusterState

DELAY_SECONDS = 0.01
"""Seconds for which predictions gather: a batch takes half the time per prediction."""

RECORDS_PER_TURN = 4
"""Predictions recorded in a turn of the event loop, so that requests pass in between."""

BURST_SECONDS = 2.0
"""Seconds of the rate that may have shadow predictions at once: those of one submission take half
the time of its answer, and a burst is when answers must not be late."""

SHARE_PER_TURN = 8
"""One in this number of waiting predictions is recorded in a turn, if that is more.

So predictions never gather faster than they are recorded."""


class AnsweredPrediction(Struct, frozen=True, kw_only=True):
    """An answered prediction, its question, and the state that it came from.

    Attributes:
        method: the method that was asked; of ``auto`` the prediction names another.
    """

    method: str
    state: ClusterState
    submission: Submission
    question: Question
    prediction: Prediction
    prediction_id: str


class PredictionRecorder:
    """Records answered predictions, some milliseconds after the answer.

    For submissions up to a rate all other methods make shadow predictions: their estimates, and
    their intervals of the same coverage, are recorded beside the answer and scored with it when the
    job ends. Methods must not observe a completion between an answer and its record, or their
    estimates could not be compared: ``flush`` is called before an observation and before a
    completion is stored.

    Args:
        record: takes a prediction to be stored and returns at once.
        rate: largest number of submissions per second with shadow predictions.
        methods: methods that make shadow predictions; all if empty.

    Attributes:
        erasure: number of the last erasure that came before all future answers.
    """

    def __init__(
        self,
        *,
        record: Callable[[RecordedPrediction], None],
        rate: float,
        methods: Collection[str] = (),
        clock: Callable[[], float],
    ) -> None:
        self._loop: asyncio.AbstractEventLoop
        self._record = record
        self._clock = clock
        self._methods = methods
        self._rate = rate
        self._most = self._allowed = max(1.0, rate * BURST_SECONDS) if rate else 0.0
        self._counted_at = 0.0
        self._waiting: deque[AnsweredPrediction] = deque()
        self._is_scheduled = False
        self.erasure = 0

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Work on this event loop; looking up the running one is a system call."""
        self._loop = loop

    def later(self, answered: AnsweredPrediction) -> None:
        """Queue an answered prediction to be recorded."""
        self._waiting.append(answered)
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_later(DELAY_SECONDS, self._some)

    def flush(self) -> None:
        """Record all waiting predictions now."""
        while self._waiting:
            self._take()

    def note_erasure(self, erasure: int) -> None:
        """Record all waiting predictions now; later answers come after this erasure."""
        self.flush()
        self.erasure = erasure

    def _some(self) -> None:
        waiting = len(self._waiting)
        for _ in range(min(waiting, max(RECORDS_PER_TURN, waiting // SHARE_PER_TURN))):
            self._take()
        self._is_scheduled = bool(self._waiting)
        if self._is_scheduled:
            self._loop.call_soon(self._some)

    def _take(self) -> None:
        answered = self._waiting.popleft()
        prediction, question = answered.prediction, answered.question
        predictions = {answered.method: prediction} | self._shadows(answered)
        self._record(
            RecordedPrediction(
                prediction_id=answered.prediction_id,
                submission=answered.submission,
                method=answered.method,
                predicted_walltime=prediction.predicted_walltime,
                estimates={method: each.predicted_walltime for method, each in predictions.items()},
                median=prediction.median,
                interval=prediction.interval,
                bounds={
                    method: (each.interval.lower, each.interval.upper)
                    for method, each in predictions.items()
                    if each.interval is not None
                },
                coverage=question.coverage,
                underestimation_rate=question.underestimation_rate,
                basis=prediction.basis,
                recorded_at=self._clock(),
                erasure=self.erasure,
            )
        )

    def _shadows(self, answered: AnsweredPrediction) -> dict[str, Prediction]:
        """Return the predictions of the other methods, unless these are asked too often."""
        if not self._is_allowed():
            return {}
        question = Question(coverage=answered.question.coverage)
        state, submission = answered.state, answered.submission
        predictions = {
            method: state.ask(method, submission, question, phase="shadow")
            for method in METHODS
            if method != answered.method and self._is_wanted(method)
        }
        # The request in place of a failed method would be scored as the method's.
        return {method: each for method, each in predictions.items() if each.basis is not FAILED}

    def _is_wanted(self, method: str) -> bool:
        return not self._methods or method in self._methods

    def _is_allowed(self) -> bool:
        """Return whether one more submission may have shadow predictions: a token bucket."""
        now = self._loop.time()
        filled = self._allowed + (now - self._counted_at) * self._rate
        self._allowed = min(filled, self._most)
        self._counted_at = now
        if self._allowed < 1.0:
            return False
        self._allowed -= 1.0
        return True
