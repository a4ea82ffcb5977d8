"""Attention and least-cost against plain numpy, on a made log and on real ones."""

import heapq
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import reference_distributions as reference
from runs import at_price, predictions_at

from predictors.methods.attention import Attention
from predictors.methods.attention_network import shipped
from predictors.methods.least_cost import LeastCost
from simulator.traces.cleaning import REPLAY_RULES, clean
from simulator.traces.completions import completions
from simulator.traces.swf import read_swf

TRACES = Path(__file__).parents[4] / "shared/traces"
MADE = Path(__file__).parents[3] / "simulator/data/synthetic.swf.gz"
PRICES = (0.0, 1.0, 10.0)
JOBS, EVERY = 6_000, 20

LOGS = [
    MADE,
    *(
        pytest.param(
            TRACES / name,
            marks=[
                pytest.mark.traces,
                pytest.mark.skipif(not TRACES.exists(), reason=f"no real traces in {TRACES}"),
                *further,
            ],
        )
        for name, *further in (
            ["SDSC-SP2-1998-4.2-cln.swf.gz"],
            ["CERIT-SC-wagap-2013.swf.gz", pytest.mark.long],
            ["ALCF-Theta-2023.swf.gz", pytest.mark.long],
        )
    ),
]


def name_of(log):
    return log.name.partition(".")[0]


def submissions(file, method):
    """Some jobs of a log, each with the ended runs that ``method`` has observed by then."""
    trace, _ = clean(read_swf(file), REPLAY_RULES)
    jobs = sorted(islice(completions(trace), JOBS), key=lambda job: job.submission.submit_time)
    ended, running = [], []
    for place, job in enumerate(jobs):
        while running and running[0][0] <= job.submission.submit_time:
            run = jobs[heapq.heappop(running)[1]]
            method.observe(run)
            ended.append(reference.Run.of(run.submission, run.end_time, run.runtime))
        if place % EVERY == 0:
            yield job.submission, ended[::-1]
        heapq.heappush(running, (job.end_time, place))


def shares(values, weights, seconds):
    """The weight up to each of some numbers of seconds; equal values may come in any order."""
    return np.array([weights[values <= each * (1 + 1e-9)].sum() for each in seconds])


def check_answer(answer, values, weights, q, price):
    """The answer is a candidate whose expected cost is least, but for rounding."""
    candidates, cost = reference.costs(values, weights, q, price)
    chosen = cost[np.isclose(candidates, answer)]
    assert chosen.min(initial=np.inf) == pytest.approx(cost.min(), rel=1e-5)


@pytest.mark.parametrize("log", LOGS, ids=name_of)
def test_attention_is_what_its_formulas_say(log):
    method, compared = Attention(), 0
    for submission, ended in submissions(log, method):
        job = reference.Run.of(submission)
        values, weights, mu = reference.attention(ended, job, shipped().model)
        evidence = method.evidence(submission) if submission.user else None
        found, by_weight = evidence[:2] if evidence else ([], [])
        assert found == pytest.approx(values)
        assert shares(found, by_weight, values) == pytest.approx(
            shares(values, weights, values), abs=1e-5
        )
        for price in PRICES if evidence and evidence.own else ():
            (answer,) = predictions_at(method, submission, (price,))
            check_answer(answer, values, weights, job.q, price * mu)
            compared += 1
    assert compared > 300


@pytest.mark.parametrize("log", LOGS, ids=name_of)
def test_least_cost_is_what_its_formulas_say(log):
    method, compared = LeastCost(), 0
    for submission, ended in submissions(log, method):
        job = reference.Run.of(submission)
        values, weights, mu = reference.least_cost(ended, job)
        is_known = submission.user and method.evidence(submission).own
        for price in PRICES if is_known else ():
            answer = at_price(method, price).predict(submission).predicted_walltime
            check_answer(answer, values, weights, job.q, price * mu)
            compared += 1
    assert compared > 300
