"""An answer with an interval comes from one call of machine code: the same as the separate ways."""

from random import Random

import pytest

from predictors.base import Question
from predictors.jobs import Completion, Submission
from predictors.memory.calibration import ENOUGH
from predictors.registry import create

RUNS = 5 * ENOUGH
QUESTIONS = (
    Question(),
    Question(coverage=0.5),
    Question(coverage=0.95, underestimation_rate=0.05),
    Question(underestimation_rate=0.3),
)
CASES = [
    ("least-cost", {"price": 3, "window": 4}),
    ("attention", {"price": 3}),
]


def submitted(random: Random, time: float) -> Submission:
    """A job of one of a few users, of whom one submits as much as all others."""
    user = random.choice([None, "ann", "bob", "cy", *["dora"] * 4])
    return Submission(
        user=user,
        project=random.choice([None, "x", "y"]),
        queue=random.choice([None, "short", "long"]),
        requested_walltime=random.choice([60, 3600, 86400]),
        requested_processors=random.choice([None, 1, 64]),
        requested_memory=random.choice([None, 1000.0]),
        submit_time=time,
    )


def ended(random: Random, time: float) -> Completion:
    """A run that ended at a time, perhaps after its request, perhaps long after its submission."""
    job = submitted(random, time - random.choice([0.0, 600.0, 50_000.0]))
    runtime = job.requested_walltime * random.choice([0.0, 0.01, 0.3, 0.31, 1.0, 1.2])
    return Completion(submission=job, start_time=time - runtime, end_time=time, runtime=runtime)


def same_answers(predictor, random: Random) -> int:
    """How many answers told a median by history, all of them being the same both ways."""
    told = 0
    for number in range(RUNS):
        now = 1e6 + 500.0 * number
        predictor.observe(ended(random, now - random.choice([0.0, 0.0, 3000.0])))
        if number % 10:
            continue
        job = submitted(random, now - random.choice([0.0, 2000.0, 50_000.0]))
        for question in QUESTIONS:
            answer = predictor.ask(job, question)
            assert answer == predictor._answered(job, question)
            told += answer.median is not None and answer.basis.reason == "history"
        assert predictor.ask(job, Question()).predicted_walltime == (
            predictor.predict(job).predicted_walltime
        )
    return told


@pytest.mark.parametrize(("method", "parameters"), CASES)
@pytest.mark.parametrize("seed", range(3))
def test_one_call_says_what_the_separate_ways_say(method, parameters, seed):
    told = same_answers(create(method, **parameters), Random(seed))
    assert told > 0
