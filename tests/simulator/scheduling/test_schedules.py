"""The scheduling loop against a second scheduler, and what every schedule must keep."""

from dataclasses import asdict

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from reference_pinning import PinnedReference
from reference_scheduler import Reference
from workloads import Given, jobs_of, log_of, schedule_of, workload_of

from simulator.engine.policies import POLICIES
from simulator.engine.policies.conservative import COMPRESSIONS
from simulator.engine.policies.pinning import PINNED
from simulator.engine.queue_orders import ORDERS
from simulator.engine.state import RULES, whole_seconds
from simulator.scheduling.estimates import Estimates
from simulator.scheduling.semantics import EVENT_ORDERS, PROFILES, Semantics
from simulator.scheduling.simulate import simulate
from simulator.scheduling.workload import OVERRUNS, prepare

MACHINE = 8
PLANNED_WITHOUT_NODES = ("fcfs", "easy", "easy-sjbf", "conservative")


@st.composite
def logs(draw):
    """A few jobs close together, so that they get into each other's way."""
    gaps = st.sampled_from([0, 0, 1, 2, 5, 17])
    times = st.integers(1, 40)
    jobs = draw(
        st.lists(
            st.tuples(gaps, st.integers(1, MACHINE), times, times, st.integers(1, 3)), max_size=25
        )
    )
    submits = np.cumsum([gap for gap, *_ in jobs]).tolist()
    return [(submit, *job[1:]) for submit, job in zip(submits, jobs, strict=True)]


@st.composite
def semantics(draw):
    one_of = {
        "policy": PLANNED_WITHOUT_NODES,
        "order": ORDERS,
        "events": EVENT_ORDERS,
        "depth": [1, 1, 2, 3, 100],
        "compression": COMPRESSIONS,
        "correction": ["double", "request", "tsafrir"],
        "estimated_order": [True, False],
        "estimated_backfilling": [True, False],
        "estimated_running": [True, False],
    }
    return Semantics(**{rule: draw(st.sampled_from(list(known))) for rule, known in one_of.items()})


def reference_of(jobs, rules, predict=None):
    of_others = {"pinning", "pinned", "slurm", "pbs", "site_factor", "ratio"}
    known = {name: rule for name, rule in asdict(rules).items() if name not in of_others}
    return Reference(jobs, MACHINE, predict=predict, **known)


@examples(400)
@given(log=logs(), rules=semantics(), overrun=st.sampled_from(list(OVERRUNS)), data=st.data())
def test_every_start_is_that_of_a_scheduler_that_knows_only_the_rules(log, rules, overrun, data):
    workload = workload_of(log, MACHINE, overrun=overrun)
    said = np.array([data.draw(st.integers(1, int(each))) for each in workload.request], np.int64)
    schedule = simulate(workload, rules, Given(said))
    jobs = jobs_of(workload, said, schedule.priority.tolist())
    assert schedule.start.tolist() == reference_of(jobs, rules).run()
    assert schedule.in_gap.tolist() == [job.in_gap for job in jobs]


class LastTwo:
    """The predictor, once more: the mean of the last two, from all that ended before."""

    def __init__(self, jobs, users):
        self.jobs = jobs
        self.user = {id(job): user for job, user in zip(jobs, users, strict=True)}

    def __call__(self, job, before):
        ended = [
            other
            for other in self.jobs
            if other.start is not None
            and other.end < before
            and self.user[id(other)] == self.user[id(job)]
        ]
        ended.sort(key=lambda other: (other.end, other.serial))
        if len(ended) < 2:
            return job.request
        return min(job.request, (ended[-1].runtime + ended[-2].runtime) // 2)


@examples(150)
@given(log=logs(), rules=semantics().filter(lambda rules: not rules.needs_priorities))
def test_with_a_predictor_and_corrections_in_the_loop_as_well(log, rules):
    workload = workload_of(log, MACHINE)
    schedule = simulate(workload, rules, Estimates.named("last-two"))
    jobs = jobs_of(workload, workload.request)
    starts = reference_of(jobs, rules, LastTwo(jobs, workload.trace.user.tolist())).run()
    assert schedule.estimate.tolist() == [job.estimate for job in jobs]
    assert schedule.start.tolist() == starts


every_policy = pytest.mark.parametrize("policy", POLICIES)


@examples(100)
@given(log=logs(), compression=st.sampled_from(list(COMPRESSIONS)))
def test_conservative_keeps_its_promises_to_the_second_when_estimates_are_exact(log, compression):
    workload = workload_of(log, MACHINE)
    schedule = simulate(
        workload,
        Semantics(policy="conservative", compression=compression),
        Estimates.named("exact"),
    )
    assert (schedule.start == schedule.promise).all()


pinned = st.builds(
    Semantics,
    policy=st.just("fcfs-pinned"),
    pinning=st.integers(0, 60),
    pinned=st.sampled_from(list(PINNED)),
    order=st.sampled_from(list(ORDERS)),
    events=st.sampled_from(list(EVENT_ORDERS)),
    correction=st.sampled_from(["double", "request", "tsafrir"]),
    estimated_backfilling=st.booleans(),
    estimated_running=st.booleans(),
)


@examples(400)
@given(log=logs(), rules=pinned, data=st.data())
def test_nodes_and_starts_of_pinned_jobs_are_those_of_a_scheduler_that_knows_only_the_rules(
    log, rules, data
):
    workload = workload_of(log, MACHINE)
    estimates = [data.draw(st.integers(1, int(request))) for request in workload.request]
    schedule = simulate(workload, rules, Given(np.array(estimates, dtype=np.int64)))
    jobs = jobs_of(workload, estimates, schedule.priority.tolist())
    unused = {"depth", "compression", "slurm", "pbs", "site_factor", "ratio"}
    known = {name: rule for name, rule in asdict(rules).items() if name not in unused}
    reference = PinnedReference(jobs, MACHINE, **known)
    assert schedule.start.tolist() == reference.run()
    assert schedule.promise.tolist() == [job.promise for job in jobs]
    assert schedule.nodes_since.tolist() == [reference.since[id(job)] for job in jobs]


@every_policy
@examples(40)
@given(log=logs())
def test_nodes_of_one_core_are_a_pool_of_processors(policy, log):
    pool = schedule_of(log, MACHINE, policy=policy)
    nodes = schedule_of(log, MACHINE, cores=1, policy=policy)
    assert pool.start.tolist() == nodes.start.tolist()


@examples(60)
@given(log=logs(), order=st.sampled_from(list(ORDERS)))
def test_nobody_passes_the_head_without_backfilling_in_any_order(log, order):
    schedule = schedule_of(log, MACHINE, policy="fcfs", order=order)
    assert not schedule.backfilled.any()


@examples(40)
@given(log=logs(), rules=semantics())
def test_a_simulation_gives_the_same_schedule_again(log, rules):
    workload = workload_of(log, MACHINE)
    first, second = (simulate(workload, rules, Estimates.named("max-usage")) for _ in range(2))
    assert (first.start == second.start).all()
    assert (first.estimate == second.estimate).all()


def test_progress_is_told_and_changes_nothing():
    log = [(number // 3, 1 + number % 5, 7, 9, number % 4) for number in range(5000)]
    workload = prepare(log_of(log, MACHINE))
    for estimates in ("requested", "last-two"):
        told = []
        watched = simulate(workload, Semantics(), Estimates.named(estimates), progress=told.append)
        plain = simulate(workload, Semantics(), Estimates.named(estimates))
        assert sum(told) == len(workload)
        assert len(told) > 2
        assert (watched.start == plain.start).all()


def test_predictions_are_cut_to_whole_seconds_but_not_by_rounding_errors():
    predictions = (0.2, 1.0, 1.5, 2.999, 999.999999999)
    assert [whole_seconds(prediction) for prediction in predictions] == [1, 1, 1, 2, 1000]


def test_the_rules_have_a_number_for_every_name_the_loop_looks_at():
    assert set(Semantics().numbers()) == set(RULES.names)


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ({"policy": "round-robin"}, "There is no policy 'round-robin'; there are fcfs"),
        ({"order": "lifo"}, "There is no order 'lifo'"),
        ({"events": "random"}, "There is no order of events 'random'"),
        ({"compression": "zip"}, "There is no compression 'zip'"),
        ({"correction": "none"}, "There is no correction 'none'"),
        ({"depth": 0}, "depth must be between 1 and"),
        ({"pinning": -1}, "pinning must not be negative"),
    ],
)
def test_rules_that_mean_nothing_are_refused_by_name(rule, sentence):
    with pytest.raises(ValueError, match=sentence):
        Semantics(**rule)


def test_selective_adjustment_leaves_running_jobs_to_their_requests():
    assert Semantics.adjusted("selective") == Semantics(estimated_running=False)
    assert Semantics.adjusted("regular") == Semantics()
    overridden = Semantics.adjusted("selective", estimated_running=True)
    assert overridden == Semantics()
    with pytest.raises(ValueError, match=f"there are {', '.join(PROFILES)}"):
        Semantics.adjusted("none")


def test_as_many_jobs_as_no_queue_has_can_have_reservations():
    assert Semantics(depth=2**31).depth == 2_147_483_648
    with pytest.raises(ValueError, match="not 2147483649"):
        Semantics(depth=2**31 + 1)


@pytest.mark.parametrize(
    ("policy", "own"),
    [
        ("fcfs", set()),
        ("easy", {"Reservations"}),
        ("conservative", {"Compression"}),
        ("fcfs-pinned", {"Pinning"}),
    ],
)
def test_the_card_has_the_rules_of_its_policy_alone(policy, own):
    shared = {"Policy", "Order", "Events", "Estimates act on", "Correction"}
    assert Semantics(policy=policy).card().keys() == shared | own


@pytest.mark.parametrize(
    ("rules", "places"),
    [
        ({}, ("estimate", "estimate", "estimate")),
        ({"estimated_order": False}, ("request", "estimate", "estimate")),
        ({"estimated_backfilling": False}, ("estimate", "request", "estimate")),
        ({"estimated_running": False}, ("estimate", "estimate", "request")),
    ],
    ids=str,
)
def test_the_card_says_what_each_decision_goes_by(rules, places):
    order, backfilling, running = places
    assert Semantics(**rules).card()["Estimates act on"] == (
        f"queue order: {order}, backfilling: {backfilling}, running jobs: {running}"
    )


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_long_plan_starts_jobs_when_a_scheduler_that_knows_only_the_rules_does(compression):
    random = np.random.default_rng(1)
    request = random.integers(2, 500, 100)
    runtime = np.where(random.random(100) < 0.5, request, request // 2)
    columns = (np.arange(100) // 3, random.integers(1, MACHINE + 1, 100), runtime, request)
    workload = workload_of(list(zip(*(each.tolist() for each in columns), strict=True)), MACHINE)
    rules = Semantics(policy="conservative", compression=compression)
    schedule = simulate(workload, rules, Given(None))
    jobs = jobs_of(workload, workload.request)
    assert schedule.start.tolist() == reference_of(jobs, rules).run()
