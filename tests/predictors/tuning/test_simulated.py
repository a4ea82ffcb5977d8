"""Rounds in a simulation look at as many runs as those of a service."""

import numpy as np

from predictors.jobs import Completion, Submission
from predictors.methods.attention import Attention
from predictors.tuning.plan import FEWEST_JOBS, TuningPlan
from predictors.tuning.simulated import SimulatedRounds


def test_a_round_looks_at_the_learned_runs_and_at_the_test_runs_after_them():
    plan = TuningPlan(learned=600, test=100)
    rounds = SimulatedRounds(
        Attention(), first="least-cost", prices=(1.0,), plan=plan, every=FEWEST_JOBS
    )
    for number in range(800):
        end = 1000.0 * number
        job = Submission(requested_walltime=60.0, submit_time=end - 20.0, user="ada")
        run = Completion(submission=job, start_time=end - 10.0, end_time=end, runtime=10.0)
        said = {name: np.array([10.0]) for name in ("attention", "least-cost")}
        rounds.observe(run, said)
    older, later = rounds._stretch.divided(plan.test)
    assert [len(older), len(later)] == [600, 100]
    assert later[-1].end == 799_000.0
