"""Schedules under every policy and predictions of every method, printed as JSON.

Run in a process of its own, with NUMBA_DISABLE_JIT=1 or without.
"""

import json
import sys
from collections.abc import Mapping

from workloads import log_of, starts_of

from predictors.jobs import Submission
from predictors.registry import PREDICTORS, create
from simulator.engine.policies import POLICIES
from simulator.scheduling.pbs_rules import PbsLimit, PbsRules
from simulator.scheduling.semantics import PBS, SLURM
from simulator.scheduling.slurm_rules import MULTIFACTOR, SlurmRules
from simulator.traces.completions import completions

TWIN = SlurmRules(
    priority_type=MULTIFACTOR,
    priority_weight_age=100,
    priority_weight_fair_share=100,
    priority_calc_period=5,
    bf_interval=3,
)

SERVER = PbsRules(
    job_sort_formula="min(eligible_time, 50) / walltime ** 2 - log(ncpus)",
    backfill_depth=2,
    limits=(PbsLimit(entity="o", resource="ncpus", most=4),),
)

JOBS = [(3 * job, 1 + job % 4, 4 + 7 * job % 40, 10 + 9 * job % 60) for job in range(40)]


def schedules() -> Mapping[str, list[int]]:
    """Return the starts of jobs under each policy, and under both orders of events."""
    starts = {
        f"{policy} {events}": starts_of(JOBS, 4, policy=policy, events=events)
        for policy in POLICIES
        for events in ("batch", "sequential")
    }
    return starts | {
        SLURM: starts_of(JOBS, 4, policy=SLURM, slurm=TWIN),
        PBS: starts_of(JOBS, 4, policy=PBS, pbs=SERVER),
    }


def predictions() -> Mapping[str, float]:
    """Return the prediction of each method after runs of these jobs."""
    job = Submission(user="1", requested_walltime=60.0, submit_time=1e4, requested_processors=2)
    answers = {}
    for name in PREDICTORS:
        method = create(name)
        for completion in completions(log_of(JOBS, 4)):
            method.observe(completion)
        answers[name] = method.predict(job).predicted_walltime
    return answers


if __name__ == "__main__":
    json.dump({"schedules": schedules(), "predictions": predictions()}, sys.stdout)
