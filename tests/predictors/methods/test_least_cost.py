"""least-cost answers what its docstring says, worked out by hand and by a slow definition."""

import numpy as np
import pytest
import reference_distributions as reference
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from runs import HOUR, at_price, ended, predictions_at, submission, taught

from predictors.answers import CAUTIOUS_RATE
from predictors.base import COLD_START, SHORTEST_ESTIMATE, Question
from predictors.memory.histograms import ENOUGH
from predictors.methods.kernel import OTHERS
from predictors.methods.least_cost import LeastCost


def told(completions, **parameters):
    return taught(LeastCost(history=1000, **parameters), completions)


def answer(completions, job=None, **parameters):
    return told(completions, **parameters).predict(job or submission()).predicted_walltime


def by_definition(completions, job, *, price, window):
    """The candidates by plain numpy and their costs; None where no run of the user counts."""
    places = [i for i, c in enumerate(completions) if c.end_time <= job.submit_time]
    ended_first = sorted(places, key=lambda i: (completions[i].end_time, i))
    runs = [completions[i] for i in reversed(ended_first)]
    runs = [reference.Run.of(run.submission, run.end_time, run.runtime) for run in runs]
    values, weights, mu = reference.least_cost(runs, reference.Run.of(job), window, 1000)
    if job.user is None or all(run.user != job.user for run in runs):
        return None
    return reference.costs(values, weights, job.requested_walltime, price * mu)


fields = {
    "request": st.sampled_from((60.0, HOUR, 2 * HOUR, 86400.0)),
    "user": st.sampled_from(("ada", "ada", "bob", None)),
    "queue": st.sampled_from(("short", "long", None)),
    "application": st.sampled_from(("a", "b", None)),
    "requested_processors": st.sampled_from((1, 4, None)),
}
runs = st.builds(ended, st.integers(0, 50).map(float), st.floats(0, 9e4), **fields)
jobs = st.builds(submission, st.integers(0, 60).map(float), **fields)


@examples(200)
@given(
    st.lists(runs, max_size=20),
    st.integers(0, 40),
    jobs,
    st.sampled_from((0.0, 0.3, 1.0, 20.0)),
    st.sampled_from((1, 5, 128)),
)
def test_it_answers_what_its_definition_says(completions, copies, job, price, window):
    log = completions + [ended(10.0 + i, 77.0 * i, user=f"u{i % 7}") for i in range(copies)]
    prediction = told(log, price=price, window=window).predict(job)
    found = by_definition(log, job, price=price, window=window)
    if found is None:
        assert prediction.predicted_walltime == job.requested_walltime
        assert prediction.basis.reason == "cold-start"
        return
    candidates, costs = found
    # Of two estimates that cost the same but for rounding either will do.
    chosen = costs[np.maximum(candidates, SHORTEST_ESTIMATE) == prediction.predicted_walltime]
    assert chosen.min() == pytest.approx(costs.min(), rel=1e-9, abs=1e-6)


def test_without_a_price_it_is_the_weighted_median_and_a_margin():
    assert answer([ended(10.0, 100.0), ended(20.0, 200.0), ended(30.0, 300.0)], price=0) == 230.0


def test_an_underestimate_costs_the_price_in_mean_runtimes():
    """Their mean is 1850 s: at price 1, 130 s costs 3361.2 + 0.96 x 1850, more than 3500."""
    completions = [ended(10.0, HOUR), ended(20.0, 100.0)]
    assert answer(completions, price=0.07) == 130.0
    assert answer(completions, price=0.08) == HOUR


def test_a_new_user_is_predicted_cautiously_by_what_all_users_do():
    """Every other user's run is the first of its user and takes 600 s, the others take 900."""
    completions = [
        ended(float(i), 600.0 + 300.0 * (i % 2), user=f"u{i}") for i in range(ENOUGH + OTHERS[0])
    ]
    method, job = told(completions, price=0), submission(1e6)
    prediction = method.predict(job)
    assert 900.0 <= prediction.predicted_walltime <= HOUR
    assert prediction.basis.reason == "others"
    assert prediction.basis.jobs == OTHERS[0]
    asked = method.ask(job, Question())
    assert asked.predicted_walltime == prediction.predicted_walltime
    (by_level,) = method.quantiles(job, (1 - CAUTIOUS_RATE,))
    assert prediction.predicted_walltime == by_level
    assert predictions_at(method, job, (0.0, 9.0)) == [by_level, by_level]
    assert method.predict(job) == at_price(method, 9.0).predict(job), "whatever the price"


def test_a_new_user_of_a_young_cluster_gets_the_request():
    completions = [ended(float(i), 900.0, user=f"u{i}") for i in range(OTHERS[0])]
    prediction = told(completions, price=0).ask(submission(), Question())
    assert prediction.predicted_walltime == HOUR
    assert prediction.basis == COLD_START


@pytest.mark.parametrize("own", [OTHERS[0] - 1, OTHERS[0], OTHERS[0] + 1])
def test_a_user_with_as_many_runs_as_stand_for_all_users_is_predicted(own):
    told_ = told([ended(1000.0 * place, 600.0) for place in range(1, own + 1)])
    answered = told_.predict(submission())
    assert answered.predicted_walltime < HOUR
    assert (answered.basis.jobs, answered.basis.reason) == (own, "history")


def test_runs_that_weigh_nothing_explain_nothing():
    """(1e-90 / 3600) to the fourth is less than any number."""
    asked = told([ended(1.0, 1.0, request=1e-90)]).ask(submission(), Question(explain=True))
    assert asked.basis.jobs == 1
    assert asked.explanation == ()
