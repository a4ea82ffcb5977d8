"""Several machines of one cluster, with one method that learns from all."""

from dataclasses import replace

import numpy as np
from synth import SyntheticLog, synthesise
from workloads import log_of

from simulator.scheduling.estimates import Estimates
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import simulate, simulate_together
from simulator.scheduling.workload import prepare


def test_a_method_knows_the_runs_of_the_other_machine_by_their_ends():
    first = log_of([(0, 4, 100, 1000)], 4)
    second = log_of([(100, 4, 60, 1000), (150, 4, 60, 1000)], 4)
    early = replace(log_of([(99, 4, 60, 1000)], 4))
    schedules = simulate_together(
        [prepare(first), prepare(second)], Semantics(), Estimates.named("max-usage")
    )
    # One run of 100 s in 1000 s had ended on the other machine when the first job came.
    assert schedules[1].estimate.tolist() == [100, 100]
    blind = simulate_together(
        [prepare(first), prepare(early)], Semantics(), Estimates.named("max-usage")
    )
    assert blind[1].estimate.tolist() == [1000]


def test_machines_without_shared_history_are_as_if_alone():
    trace = synthesise(SyntheticLog(jobs=300, seed=3, processors=64))
    halves = [prepare(trace.select(trace.user % 2 == side), processors=64) for side in (0, 1)]
    together = simulate_together(halves, Semantics(), Estimates.named("max-usage"))
    for workload, schedule in zip(halves, together, strict=True):
        alone = simulate(workload, Semantics(), Estimates.named("max-usage"))
        np.testing.assert_array_equal(schedule.start, alone.start)
        np.testing.assert_array_equal(schedule.estimate, alone.estimate)


def test_requests_need_no_machine_to_wait_for_another():
    trace = synthesise(SyntheticLog(jobs=200, seed=4, processors=64))
    workload = prepare(trace, processors=64)
    pair = simulate_together([workload, workload], Semantics(), Estimates.named("requested"))
    alone = simulate(workload, Semantics(), Estimates.named("requested"))
    for schedule in pair:
        np.testing.assert_array_equal(schedule.start, alone.start)
