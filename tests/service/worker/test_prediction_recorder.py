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


def test_predictions_never_gather_faster_than_they_are_recorded():
    """Every connection may ask in every turn of the event loop, for hours."""
    metrics = Metrics()
    job = Submission(requested_walltime=60.0, submit_time=0.0)
    answered = AnsweredPrediction(
        state=LiveState(Settings(), metrics).of("default"),
        submission=job,
        question=USUAL,
        prediction=request_of(job, method="max-usage", basis=COLD_START),
        prediction_id="p",
    )

    async def still_waiting():
        recorded = []
        recorder = PredictionRecorder(record=recorded.append, share=0.0, clock=lambda: 0.0)
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
