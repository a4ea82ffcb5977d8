"""A method in machine code predicts, and learns, what it does job by job."""

import io

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from workloads import log_of, workload_of

from predictors.memory.job_columns import ByColumns
from predictors.registry import PREDICTORS, create
from simulator.engine.state import JOB
from simulator.replay.trace_replay import InProcess
from simulator.scheduling.column_feed import column_feed
from simulator.scheduling.estimates import Estimates
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import empty_machine, simulate
from simulator.traces.completions import completions, job_columns
from simulator.traces.swf import read_swf

BY_COLUMNS = [name for name in PREDICTORS if isinstance(create(name), ByColumns)]
every_method = pytest.mark.parametrize("method", BY_COLUMNS)

OTHERS = {
    "max-usage": {"window": 2, "margin_seconds": 30, "factor": 1.5},
    "least-cost": {"price": 3, "window": 3, "history": 1000},
    "attention": {"price": 3, "history": 1000},
}
"""Parameters beside the defaults; whole numbers where fractions are allowed."""

names = st.sampled_from([-1, 3, 7, 70])
jobs = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 600, 86_400]),  # after the submission before it
        st.sampled_from([0, 5, 5000]),  # wait
        st.sampled_from([1, 59.5, 700, 3600, 9000]),  # runtime, perhaps beyond the request
        st.sampled_from([1, 3600, 7200]),
        st.sampled_from([-1, 1, 64]),
        st.sampled_from([-1, 1000]),
        st.tuples(names, names, names, names),
    ),
    max_size=30,
)


def trace_of(rows):
    """An SWF log of such jobs."""
    submit, lines = 0, ["; MaxProcs: 64", "; UnixStartTime: 1000000"]
    for number, (gap, _, run, request, size, memory, ids) in enumerate(rows, start=1):
        submit += gap
        user, group, application, queue = ids
        lines.append(
            f"{number} {submit} -1 {run} {size} -1 -1 {size} {request} {memory} 1 "
            f"{user} {group} {application} {queue} -1 -1 -1"
        )
    return read_swf(io.BytesIO("\n".join(lines).encode()))


def test_some_methods_come_as_machine_code():
    assert {"max-usage", "last-two", "least-cost", "attention"} <= set(BY_COLUMNS)


@every_method
@pytest.mark.parametrize("is_default", [True, False])
@examples(80)
@given(rows=jobs, copies=st.sampled_from([1, 1, 6]), seed=st.integers(0, 99))
def test_it_predicts_the_same_to_the_last_bit(method, is_default, rows, copies, seed):
    """Ends come in any order, between submissions and after them."""
    predictor = create(method, **({} if is_default else OTHERS.get(method, {})))
    trace = trace_of(rows * copies)
    runs = list(completions(trace))
    random = np.random.default_rng(seed)
    order = random.permutation(len(runs))
    state = np.zeros(len(runs), JOB)
    starts, seconds, known = state["start"], state["predicted"], 0
    starts[:] = [1 + row[1] for row in rows * copies] + trace.submit.astype(int)
    log = job_columns(trace)
    form = predictor.by_columns(log)
    for job, run in enumerate(runs):
        learned = min(len(runs), known + int(random.integers(0, 4)))
        turn = (known, learned, job, job + 1)
        form.play(form.method, (log, (order, starts, trace.unix_start)), turn, seconds)
        for place in order[known:learned].tolist():
            begin = float(trace.unix_start + starts[place])
            ended = runs[place]
            predictor.observe(replace(ended, start_time=begin, end_time=begin + ended.runtime))
        known = learned
        assert seconds[job] == predictor.predict(run.submission).predicted_walltime


class OneByOne(InProcess):
    """Is asked job by job."""


@every_method
@pytest.mark.parametrize("events", ["batch", "sequential"])
def test_a_schedule_is_the_same_job_by_job(method, events):
    random = np.random.default_rng(5)
    log, submit = [], 0
    for _ in range(400):
        submit += int(random.choice([0, 0, 3, 40]))
        request = int(random.choice([20, 60, 90]))
        size, user = int(random.integers(1, 9)), int(random.integers(1, 6))
        log.append((submit, size, int(random.integers(1, 100)), request, user))
    workload, rules = workload_of(log, 16), Semantics(policy="easy-sjbf", events=events)
    quick = simulate(workload, rules, Estimates.named(method))
    slow = simulate(workload, rules, Estimates(method, OneByOne({method: create(method)})))
    assert (quick.estimate < workload.request).any()
    for column in ("estimate", "start", "corrections", "backfilled"):
        assert (getattr(quick, column) == getattr(slow, column)).all()


def feed_of(estimates, **rules):
    workload, semantics = workload_of([(0, 1, 5, 9)], 4), Semantics(**rules)
    return column_feed(empty_machine(workload, semantics), workload, estimates, semantics)


def test_other_questions_and_methods_that_have_learned_are_answered_job_by_job():
    assert feed_of(Estimates.named("least-cost")) is not None
    assert feed_of(Estimates.named("least-cost"), guarded=True) is None
    assert feed_of(Estimates.named("least-cost"), order="psp") is None
    assert feed_of(Estimates.named("knn")) is None
    (run,) = completions(log_of([(0, 1, 5, 9)], 4))
    for method in BY_COLUMNS:
        learned = create(method)
        learned.observe(run)
        assert feed_of(Estimates(method, InProcess({method: learned}))) is None


def test_a_state_has_no_prediction_before_one_is_given():
    state = empty_machine(workload_of([(0, 1, 5, 9)], 4), Semantics())
    assert not state.jobs["predicted"].any()
