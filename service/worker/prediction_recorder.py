"""Recording predictions, and asking every other method what it would have answered."""

import asyncio
from collections import deque
from collections.abc import Callable, Collection

from msgspec import Struct

from predictors.base import Question
from predictors.jobs import Prediction, Submission
from predictors.registry import AUTO
from service.store import RecordedPrediction
from service.worker.live_state import FAILED, ClusterState

DELAY_SECONDS = 0.01
"""How long predictions gather: asking about many at once takes half the time for each."""

RECORDS_PER_TURN = 4
"""Predictions that are recorded at a time, so that requests pass in between."""

ANY_RATE = 1e6
"""More submissions in a second than can be answered."""

BURST_SECONDS = 10.0
"""As many submissions as this time brings may have shadows at once."""

SHARE_PER_TURN = 8
"""Of the predictions that wait, one in this number is recorded in a turn, where that is more.

So they never gather faster than they are recorded, even if many requests pass in between."""


class AnsweredPrediction(Struct, frozen=True, kw_only=True):
    """A prediction as it was answered, what was asked, and the state that it came from."""

    state: ClusterState
    submission: Submission
    question: Question
    prediction: Prediction
    prediction_id: str


class PredictionRecorder:
    """Records what was answered, some milliseconds after the answer.

    For a share of the submissions every other method is asked in shadow: its estimate, and its
    interval of the same coverage, are recorded beside the answer and scored with it when the job
    ends. The methods must not learn
    between an answer and its record, or their estimates could not be compared: whoever is about
    to teach them, or to store a completion, calls ``flush`` first.

    Args:
        record: takes what is to be stored and returns at once.
        share: of submissions, evenly spaced, that the other methods are asked about.
        rate: most of these in a second, so that the others cost next to nothing under any load.
        methods: that are asked; all if it names none.

    Attributes:
        erasure: number of the last one that came before every answer that is still to come.
    """

    def __init__(
        self,
        *,
        record: Callable[[RecordedPrediction], None],
        share: float,
        rate: float = ANY_RATE,
        methods: Collection[str] = (),
        clock: Callable[[], float],
    ) -> None:
        self._loop: asyncio.AbstractEventLoop
        self._record = record
        self._share = share
        self._clock = clock
        self._methods = methods
        self._due = 0.0
        self._rate = rate
        self._allowed = self._rate * BURST_SECONDS
        self._counted_at = 0.0
        self._waiting: deque[AnsweredPrediction] = deque()
        self._is_scheduled = False
        self.erasure = 0

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Work on this event loop; asking for the running one is a system call."""
        self._loop = loop

    def later(self, answered: AnsweredPrediction) -> None:
        """Queue an answered prediction to be recorded."""
        self._waiting.append(answered)
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_later(DELAY_SECONDS, self._some)

    def flush(self) -> None:
        """Record all that waits now."""
        while self._waiting:
            self._take()

    def note_erasure(self, erasure: int) -> None:
        """Record all that waits now; what is answered from now on comes after this erasure."""
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
        predictions = {prediction.method: prediction} | self._shadows(answered)
        chosen = answered.state.chosen
        if chosen in predictions:
            predictions[AUTO] = predictions[chosen]
        self._record(
            RecordedPrediction(
                prediction_id=answered.prediction_id,
                submission=answered.submission,
                method=prediction.method,
                predicted_walltime=prediction.predicted_walltime,
                estimates={method: each.predicted_walltime for method, each in predictions.items()},
                interval=prediction.interval,
                bounds={
                    method: (each.interval.lower, each.interval.upper)
                    for method, each in predictions.items()
                    if each.interval is not None
                },
                coverage=question.coverage,
                underestimation_rate=question.underestimation_rate,
                recorded_at=self._clock(),
                erasure=self.erasure,
            )
        )

    def _shadows(self, answered: AnsweredPrediction) -> dict[str, Prediction]:
        """What the other methods say, by method, if it is this submission's turn."""
        self._due += self._share
        if self._due < 1.0:
            return {}
        self._due -= 1.0
        if not self._is_allowed():
            return {}
        question = Question(coverage=answered.question.coverage)
        state, submission = answered.state, answered.submission
        asked = {
            method: state.ask(method, submission, question, phase="shadow")
            for method in state.predictors
            if method != answered.prediction.method and self._is_asked(method)
        }
        # The request in the place of a method that failed would be scored as the method's.
        return {method: each for method, each in asked.items() if each.basis is not FAILED}

    def _is_asked(self, method: str) -> bool:
        return not self._methods or method in self._methods

    def _is_allowed(self) -> bool:
        """Whether one more submission may have shadows now: a bucket of them fills with time."""
        now = self._loop.time()
        filled = self._allowed + (now - self._counted_at) * self._rate
        self._allowed = min(filled, self._rate * BURST_SECONDS)
        self._counted_at = now
        if self._allowed < 1.0:
            return False
        self._allowed -= 1.0
        return True
