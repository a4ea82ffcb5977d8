from dataclasses import replace

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from wait_prediction import snapshot, waits_at_arrival
from workloads import Given, workload_of

from predictors.methods.requested import Requested
from simulator.engine.loop import DONE
from simulator.engine.policies import POLICIES, run
from simulator.replay.trace_replay import InProcess
from simulator.scheduling.estimates import Estimates
from simulator.scheduling.forecast import (
    QueuedJobs,
    Snapshot,
    SnapshotError,
    forecast,
    nominal_coverage,
    other_futures,
    running_runtime,
)
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import empty_machine, simulate


def jobs(*rows, arrays=None, limit=0):
    """Columns of (processors, request, estimate, runtime, age)."""
    columns = np.array(rows, dtype=np.int64).reshape(-1, 5).T
    names = ("processors", "request", "estimate", "runtime", "age")
    return QueuedJobs(
        **dict(zip(names, columns, strict=True)),
        priority=np.zeros(len(rows)),
        owner=np.arange(len(rows)),
        array=np.full(len(rows), -1) if arrays is None else np.array(arrays),
        array_limit=np.full(len(rows), limit),
    )


def played(processors, running, waiting, **rules):
    found = forecast(
        Snapshot(processors=processors, running=jobs(*running), waiting=jobs(*waiting)),
        Semantics(**rules),
    )
    return found.start.tolist(), found.end.tolist(), found.running_end.tolist()


RUNNING = [(2, 100, 40, 40, 10), (1, 100, 70, 70, 50)]
"""On 4 processors: two until 30, one until 20, one is free."""


def test_waiting_jobs_start_when_running_ones_end_as_predicted():
    waiting = [(3, 60, 10, 10, 5), (1, 60, 15, 15, 0)]
    assert played(4, RUNNING, waiting, policy="fcfs") == ([30, 30], [40, 45], [30, 20])
    assert played(4, RUNNING, waiting, policy="easy") == ([30, 0], [40, 15], [30, 20])


def test_the_scheduler_may_know_requests_only_and_jobs_end_as_predicted():
    """By requests the head expects its processors at 90, so that the second job may pass it."""
    waiting = [(4, 60, 10, 10, 5), (1, 80, 35, 35, 0)]
    by_requests = {"estimated_backfilling": False, "estimated_running": False}
    assert played(4, RUNNING, waiting, policy="easy") == ([30, 40], [40, 75], [30, 20])
    assert played(4, RUNNING, waiting, policy="easy", **by_requests)[0] == [35, 0]


def test_an_estimate_that_was_outlived_is_corrected_at_once():
    """Estimated at 10 s it has run for 25: the scheduler expects 40 s, then 80 s; it runs 60."""
    running = [(3, 100, 10, 60, 25)]
    waiting = [(4, 60, 10, 10, 0), (1, 60, 15, 15, 0)]
    assert played(4, running, waiting, policy="easy") == ([35, 0], [45, 15], [35])
    waiting[1] = (1, 60, 16, 16, 0)
    assert played(4, running, waiting, policy="easy") == ([35, 15], [45, 31], [35])


def test_the_priority_of_groups_orders_the_queue():
    waiting = replace(jobs((4, 10, 10, 10, 9), (4, 10, 10, 10, 5)), priority=np.array([10.0, 49.0]))
    shown = Snapshot(processors=4, running=jobs(), waiting=waiting)
    assert forecast(shown, Semantics(order="psp")).start.tolist() == [10, 0]
    assert forecast(shown, Semantics(order="fcfs")).start.tolist() == [0, 10]


def test_nothing_waits_or_nothing_runs():
    assert played(4, RUNNING, []) == ([], [], [30, 20])
    assert played(4, [], [(4, 9, 9, 9, 7)]) == ([0], [9], [])
    assert played(4, [], []) == ([], [], [])


def test_waiting_times_count_where_the_order_depends_on_them():
    waiting = [(4, 10, 10, 10, 1), (4, 10, 10, 10, 50)]
    assert played(4, [], waiting, order="fcfs")[0] == [0, 10]
    assert played(4, [], waiting, order="wfp")[0] == [10, 0]


@pytest.mark.parametrize(
    ("running", "waiting", "words"),
    [
        ([(3, 9, 9, 9, 0), (2, 9, 9, 9, 0)], [], "in use"),
        ([], [(5, 9, 9, 9, 0)], "larger"),
        ([(1, 9, 9, 9, 9)], [], "should have ended"),
    ],
)
def test_impossible_snapshots_are_refused(running, waiting, words):
    with pytest.raises(SnapshotError, match=words):
        played(4, running, waiting)


@st.composite
def logs(draw):
    """Jobs for 8 processors: (submit, processors, run time, request)."""
    kinds = st.tuples(st.integers(0, 30), st.integers(1, 8), st.integers(1, 60), st.integers(0, 60))
    drawn = draw(st.lists(kinds, min_size=2, max_size=14))
    submit = 0
    log = []
    for gap, size, runtime, more in drawn:
        submit += gap
        log.append((submit, size, runtime, runtime + more))
    return log


def state_at_the_last_arrival(workload, semantics, estimates):
    """The simulation, stopped when the last jobs have been submitted but not looked at."""
    state = empty_machine(workload, semantics)
    state.jobs["estimate"] = estimates
    state.jobs["estimate"][workload.submit == workload.submit[-1]] = -1
    assert run(state) != DONE
    state.jobs["estimate"] = estimates
    return state


def in_order_of_submission(found, behind, state):
    """The starts of the jobs that waited, on the clock of the simulation."""
    clock = state.clock[0]
    queued = np.sort(state.queue["job"][clock["head"] : clock["tail"]])
    rows = np.concatenate([queued, np.arange(clock["submitted"], behind)])
    return dict(zip(rows.tolist(), (found.start + clock["now"]).tolist(), strict=True))


# No snapshot shows the plan of a policy that keeps one; in the order of submission, as here, it
# is made again as it was.
RULES = [
    *({"policy": policy} for policy in POLICIES),
    *({"policy": p, "order": o} for p in ("fcfs", "easy", "easy-sjbf") for o in ("sjf", "wfp")),
    {"policy": "easy", "depth": 3},
    {"policy": "conservative", "compression": "keep"},
    {"policy": "conservative", "compression": "replan"},
    {"policy": "fcfs-pinned", "pinning": 20},
]


@pytest.mark.parametrize("rules", RULES, ids=str)
@examples(25)
@given(log=logs())
def test_with_exact_runtimes_and_no_later_arrivals_a_forecast_is_the_simulated_future(rules, log):
    workload, semantics = workload_of(log, 8), Semantics(**rules)
    state = state_at_the_last_arrival(workload, semantics, workload.runtime)
    found = forecast(snapshot(state, len(workload), semantics), semantics)
    expected = in_order_of_submission(found, len(workload), state)
    future = simulate(workload, semantics, Given(workload.runtime)).start
    assert expected == {row: int(future[row]) for row in expected}


@pytest.mark.parametrize("policy", ["fcfs", "easy", "easy-sjbf"])
@examples(40)
@given(log=logs(), halved=st.booleans())
def test_so_it_is_when_the_scheduler_knows_less_and_keeps_no_plan(policy, log, halved):
    """It goes by requests, or by estimates that jobs outlive; the forecast knows the runtimes."""
    workload, semantics = workload_of(log, 8), Semantics(policy=policy)
    estimates = np.maximum(1, workload.runtime // 2) if halved else workload.request
    state = state_at_the_last_arrival(workload, semantics, estimates)
    shown = snapshot(state, len(workload), semantics)
    clock = state.clock[0]
    running = np.sort(state.running["job"][: clock["running"]])
    running = running[np.argsort(state.jobs["serial"][running])]
    queued = np.sort(state.queue["job"][clock["head"] : clock["tail"]])
    waiting = np.concatenate([queued, np.arange(clock["submitted"], len(workload))])
    knowing = shown.with_runtimes(workload.runtime[running], workload.runtime[waiting])
    found = forecast(knowing, semantics)
    future = simulate(workload, semantics, Given(estimates))
    assert (found.start + clock["now"]).tolist() == future.start[waiting].tolist()
    assert (found.running_end + clock["now"]).tolist() == future.end[running].tolist()


def test_in_other_futures_the_jobs_of_one_owner_err_together():
    """Both run for half of their time or for all of it; of two owners they differ at times."""
    waiting = jobs((4, 100, 80, 80, 0), (4, 100, 40, 40, 0))

    def ends(owners):
        shown = Snapshot(
            processors=4, running=jobs(), waiting=replace(waiting, owner=np.array(owners))
        )
        found = list(other_futures(shown, Semantics(), [0.5, 1.0], 50))
        return {tuple(future.end.tolist()) for future in found}

    assert ends([7, 7]) == {(40, 60), (80, 120)}
    assert ends([7, 8]) == {(40, 60), (80, 120), (40, 80), (80, 100)}
    alone = Snapshot(processors=4, running=jobs(), waiting=waiting)
    assert list(other_futures(alone, Semantics(), [], 50)) == []


@pytest.mark.parametrize("ratio", [1e308, float("inf")])
def test_however_much_longer_than_predicted_a_run_took_no_future_is_beyond_the_request(ratio):
    """A run of a request of next to no time took more than any number of times as long."""
    shown = Snapshot(processors=4, running=jobs(), waiting=jobs((4, 100, 40, 40, 0)))
    (future,) = other_futures(shown, Semantics(), [ratio], 1)
    assert future.end.tolist() == [100]


def test_waits_are_told_at_arrival():
    """The third job is told 19 s: the first one ends at 10 and not at 20."""
    workload = workload_of([(0, 4, 10, 20), (0, 4, 5, 5), (1, 4, 5, 5)], 4)
    told = waits_at_arrival(workload, Semantics(), Estimates.named("requested"))
    assert told.predicted.tolist() == [0, 20, 24]
    assert told.actual.tolist() == [0, 10, 14]
    assert told.lower.tolist() == told.upper.tolist() == [-1, -1, -1]


def test_the_intervals_of_waits_come_from_what_has_ended_before():
    """Two jobs took half and all of their requests; the last one waits for one that has begun."""
    rows = [(0, 4, 10, 20), (10, 4, 20, 20), (40, 4, 20, 40), (45, 4, 5, 5), (46, 4, 5, 5)]
    workload = workload_of(rows, 4)
    told = waits_at_arrival(workload, Semantics(), Estimates.named("requested"), samples=50)
    assert told.predicted.tolist()[2:] == [0, 35, 39]
    assert told.lower.tolist() == [-1, 0, 0, 15, 16]
    assert told.upper.tolist() == [-1, 0, 0, 35, 39]
    rare = waits_at_arrival(
        workload, Semantics(), Estimates.named("requested"), samples=50, every=2
    )
    assert rare.upper.tolist() == [-1, -1, 0, -1, 39]


def test_the_intervals_of_waits_come_from_the_distributions_of_a_method_that_tells_them():
    """Every job takes half of what is left to the last; by ratios all would take a tenth."""

    class Sure(Requested):
        def ask(self, *_):
            raise AssertionError

        def quantiles(self, submission, shares, elapsed=None):
            asked.append((submission.submit_time, elapsed))
            ran = elapsed or 0.0
            return [ran + (submission.requested_walltime - ran) / 2 for _ in shares]

    asked = []
    rows = [(0, 4, 4, 40), (10, 4, 20, 20), (12, 4, 4, 40), (16, 4, 4, 40)]
    workload = workload_of(rows, 4)
    estimates = Estimates("sure", InProcess({"sure": Sure()}))
    told = waits_at_arrival(workload, Semantics(), estimates, samples=3)
    assert told.lower.tolist() == told.upper.tolist() == [0, 0, 9, 7 + 20]
    begin = workload.trace.unix_start + workload.origin
    assert (begin + 12.0, 2.0) in asked, "what has run for two seconds is asked about as of now"
    assert (begin + 12.0, None) in asked


def test_other_futures_draw_from_what_is_told_of_each_job():
    """Of two jobs one behind the other the first takes one of twenty times, the second 10 s."""
    waiting = jobs((4, 100, 80, 80, 0), (4, 100, 40, 40, 0))
    shown = Snapshot(processors=4, running=jobs(), waiting=waiting)
    quantiles = ([], [[float(step) for step in range(1, 21)], [10.0] * 20])
    found = list(other_futures(shown, Semantics(), [], 50, quantiles))
    assert {int(future.end[1] - future.end[0]) for future in found} == {10}
    firsts = {int(future.end[0]) for future in found}
    assert firsts <= set(range(1, 21))
    assert len(firsts) > 10
    untold = list(other_futures(shown, Semantics(), [0.5], 1, ([], [None, [10.0] * 20])))
    assert untold[0].end.tolist() == [40, 50]


@pytest.mark.parametrize(
    ("correction", "waits"), [("double", [0, 20]), ("request", [0, 80]), ("tsafrir", [0, 50])]
)
def test_a_job_that_has_outlived_its_estimate_is_expected_as_it_is_corrected(correction, waits):
    """At 20 the first job, estimated at 10 s, is expected until 40, 100 or 70; it ends at 30."""
    workload = workload_of([(0, 4, 30, 100), (20, 4, 5, 5)], 4)
    told = waits_at_arrival(workload, Semantics(correction=correction), Given([10, 5]))
    assert told.predicted.tolist() == waits
    assert told.actual.tolist() == [0, 10]


@pytest.mark.parametrize(
    ("estimate", "request_", "elapsed", "expected"),
    [(10.0, 100.0, 20, 40), (500.0, 100.0, 20, 100), (10.0, 100.0, 100, 101), (30.9, 100.0, 5, 30)],
)
def test_a_running_job_is_assumed_to_run_on(estimate, request_, elapsed, expected):
    assert running_runtime(estimate, request_, elapsed, "double") == expected


@pytest.mark.parametrize(("named", "nodes"), [([[2], [0]], [[0, 1], [0]]), (None, [[0, 2], [0]])])
def test_a_forecast_names_the_nodes_on_which_jobs_will_start(named, nodes):
    """The job that began last runs until 30, the other one until 20; one node is free. At 30 all
    are: the last job takes the one with the least number."""
    shown = Snapshot(
        processors=3,
        running=jobs((1, 100, 40, 40, 10), (1, 100, 70, 70, 50)),
        waiting=jobs((2, 60, 10, 10, 5), (1, 60, 15, 15, 0)),
        running_nodes=named,
    )
    found = forecast(shown, Semantics(policy="fcfs-pinned"))
    assert found.start.tolist() == [20, 30]
    assert [sorted(each) for each in found.nodes] == nodes


def test_some_of_the_jobs_and_more_jobs_are_columns_too():
    both = jobs((1, 9, 8, 7, 0)) + jobs((2, 9, 8, 6, 0), (3, 9, 8, 5, 0))
    assert len(both) == 3
    assert both.take(np.array([2, 0])).runtime.tolist() == [5, 7]


@pytest.mark.parametrize(
    ("quantile_row", "ratios", "end"),
    [
        ([10.0] * 20, [], 1),  # it has run for longer already: it ends in a second
        ([500.0] * 20, [], 50),  # no job runs beyond its request
        ([70.4] * 20, [], 20),
        (None, [0.1, 1.0], 30),  # of what is longer than it has run
        (None, [0.1, 2.0], 50),
        (None, [0.1], 30),  # nothing was as long: as it is estimated
    ],
)
def test_a_running_job_is_drawn_from_what_ran_as_long(quantile_row, ratios, end):
    """It has been running for 50 s, is estimated at 80 s and requests 100 s."""
    shown = Snapshot(
        processors=4, running=jobs((4, 100, 80, 80, 50)), waiting=jobs((4, 9, 9, 9, 0))
    )
    found = list(other_futures(shown, Semantics(), ratios, 5, ([quantile_row], [[9.0] * 20])))
    assert [future.running_end.tolist() for future in found] == [[end]] * 5
    assert found[0].end.tolist() == [end + 9]


def test_the_range_of_more_futures_holds_more():
    assert nominal_coverage(19) == pytest.approx(0.9)
    assert nominal_coverage(39) == pytest.approx(0.95)


TASK = (1, 100, 10, 10, 0)


@pytest.mark.parametrize("events", ["batch", "sequential"])
@pytest.mark.parametrize("policy", ["fcfs", "easy", "easy-sjbf", "conservative"])
def test_tasks_of_a_throttled_array_run_one_after_the_other_and_delay_nobody(policy, events):
    running = jobs((1, 100, 10, 10, 4), arrays=[7], limit=1)
    waiting = jobs(TASK, TASK, (3, 100, 50, 50, 0), TASK, arrays=[7, 7, -1, 7], limit=1)
    found = forecast(
        Snapshot(processors=4, running=running, waiting=waiting),
        Semantics(policy=policy, events=events),
    )
    assert found.start.tolist() == [6, 16, 0, 26]


@pytest.mark.parametrize(
    ("limit", "starts"),
    [(1, [20, 30, 40]), (2, [10, 20, 20]), (3, [10, 10, 20]), (4, [0, 10, 10]), (0, [0, 0, 0])],
)
def test_no_more_tasks_run_at_once_than_the_throttle_lets_also_where_more_do_now(limit, starts):
    running = jobs(*[TASK] * 2, (1, 100, 20, 20, 0), arrays=[7] * 3)
    waiting = jobs(*[TASK] * 3, arrays=[7] * 3, limit=limit)
    found = forecast(Snapshot(processors=64, running=running, waiting=waiting), Semantics())
    assert found.start.tolist() == starts


def test_a_task_that_is_released_takes_its_place_in_the_queue():
    """One processor: the second task was there before the other job."""
    waiting = jobs(TASK, TASK, TASK, (1, 100, 10, 10, 0), arrays=[7, 7, 7, -1], limit=2)
    found = forecast(
        Snapshot(processors=1, running=jobs(), waiting=waiting), Semantics(policy="fcfs")
    )
    assert found.start.tolist() == [0, 10, 20, 30]


def test_every_future_keeps_to_the_throttle():
    waiting = jobs(*[TASK] * 20, arrays=[7] * 20, limit=2)
    snapshot = Snapshot(processors=64, running=jobs(), waiting=waiting)
    for future in other_futures(snapshot, Semantics(), [0.5, 1.0, 2.0], 5):
        times = [(time, change) for row in zip(future.start, future.end, strict=True)
                 for time, change in zip(row, (1, -1), strict=True)]  # fmt: skip
        at_once = np.cumsum([change for _, change in sorted(times)])
        assert at_once.max() == 2
