"""Invariants of the twin's schedules."""

from dataclasses import replace

import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from slurm_workloads import JOBS, NODES
from workloads import schedule_of

from simulator.scheduling.slurm_rules import SlurmRules

RULES = st.builds(
    SlurmRules,
    epilog=st.sampled_from([0, 1, 40]),
    cycle_time=st.sampled_from([0.0, 0.4, 3.0]),
    test_time=st.sampled_from([0.0, 0.3]),
    bf_interval=st.sampled_from([1, 30, 77]),
    bf_resolution=st.sampled_from([1, 60, 300]),
    bf_window=st.sampled_from([900, 3600, 86400]),
    bf_max_job_test=st.sampled_from([2, 500]),
    bf_max_job_user=st.sampled_from([0, 3]),
    bf_node_space_size=st.sampled_from([0, 9]),
    bf_window_linear=st.sampled_from([0, 30]),
    default_queue_depth=st.sampled_from([1, 100]),
    defer=st.booleans(),
    release=st.sampled_from([2205, 2411, 2605]),
)


@st.composite
def shares(draw, jobs):
    """Estimates of jobs as parts of their requests."""
    parts = draw(st.lists(st.floats(0.05, 1.0), min_size=len(jobs), max_size=len(jobs)))
    return [
        max(1, int(part * request)) for part, (_, _, _, request, _) in zip(parts, jobs, strict=True)
    ]


@examples(150)
@given(jobs=JOBS, rules=RULES, data=st.data())
def test_every_job_starts_once_after_its_submission_on_free_nodes(jobs, rules, data):
    estimates = data.draw(st.none() | shares(jobs))
    schedule = schedule_of(jobs, NODES, policy="slurm", slurm=rules, estimates=estimates)
    assert (schedule.wait >= 0).all()
    times = np.concatenate([schedule.end + rules.epilog, schedule.start])
    changes = np.concatenate([-schedule.workload.processors, schedule.workload.processors])
    held = np.cumsum(changes[np.lexsort((changes, times))])
    assert held.max() <= NODES


@examples(150)
@given(jobs=JOBS, rules=RULES, data=st.data())
def test_a_cycle_that_is_skipped_would_have_changed_nothing(jobs, rules, data):
    estimates = data.draw(st.none() | shares(jobs))
    order = data.draw(st.sampled_from(["fcfs", "sjf", "response-ratio"]))
    given = {"policy": "slurm", "estimates": estimates, "order": order}
    skipping = schedule_of(jobs, NODES, slurm=rules, **given)
    playing = schedule_of(jobs, NODES, slurm=replace(rules, skips_cycles=False), **given)
    assert skipping.start.tolist() == playing.start.tolist()
