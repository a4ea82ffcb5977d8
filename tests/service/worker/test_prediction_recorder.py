"""Recording keeps up with predicting."""

import asyncio

from predictors.base import COLD_START, USUAL, request_of
from predictors.jobs import Submission
from service.metrics import Metrics
from service.settings import Settings
from service.worker.live_state import LiveState
from service.worker.prediction_recorder import (
    SHARE_PER_TURN,
    AnsweredPrediction,
    PredictionRecorder,
)

CONNECTIONS = 64

JOB = Submission(requested_walltime=60.0, submit_time=0.0)


def answered_by(method):
    """A prediction of a method on a cluster without history."""
    return AnsweredPrediction(
        method=method,
        state=LiveState(Settings(), Metrics()).of("default"),
        submission=JOB,
        question=USUAL,
        prediction=request_of(JOB, method=method, basis=COLD_START),
        prediction_id="p",
    )


class Clock:
    """An event loop's clock that stands still."""

    now = 0.0

    def time(self):
        return self.now


def recorded(recorder, found, predictions):
    """The methods that were recorded for each of some predictions."""
    del found[:]
    for _ in range(predictions):
        recorder._waiting.append(answered_by("least-cost"))
    recorder.flush()
    return [set(each.estimates) for each in found]


def test_beyond_a_rate_nobody_else_is_asked_until_time_has_passed():
    found, loop = [], Clock()
    recorder = PredictionRecorder(record=found.append, rate=2.5, clock=lambda: 0.0)
    recorder.start(loop)
    asked = recorded(recorder, found, 7)
    assert [len(methods) > 1 for methods in asked] == [True] * 5 + [False] * 2
    loop.now = 0.4
    assert [len(methods) > 1 for methods in recorded(recorder, found, 2)] == [True, False]


def test_at_a_low_rate_others_are_asked_about_one_submission_at_a_time():
    found, loop = [], Clock()
    recorder = PredictionRecorder(record=found.append, rate=0.01, clock=lambda: 0.0)
    recorder.start(loop)
    assert [len(methods) > 1 for methods in recorded(recorder, found, 2)] == [True, False]
    loop.now = 100.0
    assert [len(methods) > 1 for methods in recorded(recorder, found, 2)] == [True, False]


def test_in_shadow_only_the_methods_of_the_setting_are_asked():
    found = []
    recorder = PredictionRecorder(
        record=found.append, rate=1.0, methods=["attention", "knn"], clock=lambda: 0.0
    )
    recorder.start(Clock())
    assert recorded(recorder, found, 1) == [{"least-cost", "attention", "knn"}]
    assert found[0].basis == COLD_START


def test_predictions_never_gather_faster_than_they_are_recorded():
    """Every connection may ask in every turn of the event loop, for hours."""
    answered = answered_by("max-usage")

    async def still_waiting():
        recorded = []
        recorder = PredictionRecorder(record=recorded.append, rate=0.0, clock=lambda: 0.0)
        recorder.start(asyncio.get_running_loop())
        made = turns = 0
        while turns < 1000:
            for _ in range(CONNECTIONS):
                recorder.later(answered)
            made += CONNECTIONS
            turns += bool(recorded)  # the first ones gather for some milliseconds
            await asyncio.sleep(0)
        return made - len(recorded)

    assert asyncio.run(still_waiting()) <= 2 * SHARE_PER_TURN * CONNECTIONS
