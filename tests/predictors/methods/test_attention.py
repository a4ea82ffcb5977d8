"""Attention by hand: with weights that say one thing only, the answer can be worked out."""

from math import e
from threading import get_ident

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from runs import HOUR, ended, predictions_at, submission, taught

from predictors.base import COLD_START, Question
from predictors.distribution import NO_ROW
from predictors.jobs import without_digits
from predictors.methods import attention as attention_module
from predictors.methods import attention_decision
from predictors.methods.attention import ROWS_FOR_THREADS, Attention
from predictors.methods.attention_decision import KERNEL_RUNS, TAIL_STEPS
from predictors.methods.attention_features import FEATURES
from predictors.methods.attention_network import Weights, shipped, zeros
from predictors.methods.attention_support import RECENT, SUPPORT


def only(kernel_share=0.0, tail_runs=0.0, **scores):
    """Weights that add a score for each of some features; an underscore stands for a blank."""
    layers = zeros(1, 1)
    for name, score in scores.items():
        layers.direct[FEATURES.index(name.replace("_", " "))] = score
    return Weights(layers=layers, kernel_share=kernel_share, tail_runs=tail_runs, origin={})


def told(completions, weights, **parameters):
    return taught(Attention(weights=weights, **parameters), completions)


def answer(completions, weights, job=None, **parameters):
    return told(completions, weights, **parameters).predict(job or submission()).predicted_walltime


def test_the_score_of_a_feature_decides_whose_runtime_is_answered():
    runs = [ended(10.0, 100.0, application="a"), ended(20.0, 900.0, application="b")]
    job = submission(application="a")
    assert answer(runs, only(same_application=50), job, price=0) == 130.0
    assert answer(runs, only(another_application=50), job, price=0) == 930.0
    assert answer(runs, only(the_request=50), job, price=0) == HOUR


def test_hand_chosen_likeness_has_its_share_of_the_weight():
    """The network gives all weight to the request; least-cost weighs 100 s 0.96 times as 200 s.

    So of nine tenths that go by hand 100 s have 0.441, 200 s 0.459 and the request 0.1: 130 s are
    off by 392 s, 230 s by 408, the hour by 3104.
    """
    runs = [ended(10.0, 100.0), ended(20.0, 200.0)]
    attention = told(runs, only(kernel_share=0.9, the_request=50), price=0)
    values, weights, rows = attention.evidence(submission())[:3]
    by_value = {value: weights[values == value].sum() for value in (100.0, 200.0, HOUR)}
    assert by_value[100.0] == pytest.approx(0.9 * 0.96 / 1.96)
    assert by_value[200.0] == pytest.approx(0.9 / 1.96)
    assert by_value[HOUR] == pytest.approx(0.1)
    assert rows[values == 100.0].tolist() == [0]
    assert attention.predict(submission()).predicted_walltime == 130.0


def test_runs_that_are_no_atoms_count_by_hand_too():
    """The first of 60 like runs is too old for the network, and weighs 0.96 to the 59th by hand."""
    runs = [ended(10.0 * i, 100.0 + i, request=2 * HOUR) for i in range(60)]
    attention = told(runs, only(kernel_share=0.5, the_request=50))
    values, weights, rows = attention.evidence(submission())[:3]
    assert set(range(60)) == set(rows.tolist()) - {-1}
    oldest = weights[(rows == 0) & (values == 100.0)].sum()
    assert oldest == pytest.approx(0.5 * 0.96**59 / sum(0.96**i for i in range(60)))
    assert weights.sum() == pytest.approx(1)


def test_runtimes_that_no_run_had_count_as_some_runs():
    """Three runs and the hour weigh alike, as four; a guess of four beside them weighs a half.

    The median is 200 s, and 200 s and less have half of the weight as before. So all estimates
    from 200 s to the next value cost the same at price 0, and the shortest is the answer: 30 s
    more than 187.5, the longest that is guessed below the median. No row stands for a guess.
    """
    runs = [ended(10.0, 100.0), ended(20.0, 200.0), ended(30.0, 300.0)]
    attention = told(runs, only(tail_runs=4), price=0)
    values, weights, rows = attention.evidence(submission())[:3]
    assert weights[rows >= 0] == pytest.approx([1 / 8, 1 / 8, 1 / 8])
    assert weights[values <= 200.0].sum() == pytest.approx(0.5)
    assert weights[values < 100.0].sum() == pytest.approx(1 / 8)
    assert attention.predict(submission()).predicted_walltime == 217.5


def test_digits_of_a_name_do_not_count_but_those_of_a_number_do():
    assert without_digits("step_12.sh") == without_digits("step_7.sh") == "step_#.sh"
    assert without_digits("4711") == "4711"
    assert without_digits(None) is None


fields = {
    "request": st.sampled_from((1.0, 60.0, HOUR, 366 * 86400.0)),
    "user": st.sampled_from(("ada", "bob", "eve", None)),
    "group": st.sampled_from(("g", None)),
    "application": st.sampled_from(("a", "b", None)),
    "queue": st.sampled_from(("q", None)),
    "requested_processors": st.sampled_from((1, 4096, None)),
    "requested_memory": st.sampled_from((1.0, None)),
}
runs_of_any_kind = st.lists(
    st.builds(ended, st.integers(0, 50).map(float), st.floats(0, 1e9), **fields), max_size=30
)


@examples(100)
@given(
    log=runs_of_any_kind,
    copies=st.integers(0, 9),
    job=st.builds(submission, st.integers(0, 60).map(float), **fields),
)
def test_the_distribution_is_one_and_lies_within_the_request(log, copies, job):
    attention = Attention(price=3, history=1000)
    for completion in log * copies:
        attention.observe(completion)
    if job.user is None:
        assert attention.predict(job).predicted_walltime == job.requested_walltime
        return
    values, weights, rows = attention.evidence(job)[:3]
    assert len(values) <= SUPPORT + KERNEL_RUNS - RECENT + 2 * TAIL_STEPS
    estimates = predictions_at(attention, job, (0.0, 3.0, 1000.0))
    assert estimates[1] == attention.predict(job).predicted_walltime
    if len(values):
        assert np.isfinite(attention.network_inputs(job)[0]).all()
        assert weights.sum() == pytest.approx(1, abs=1e-5)
        assert (np.diff(values) >= 0).all()
        assert values.max() <= max(1.0, job.requested_walltime)
        assert (rows == NO_ROW).sum() == 1 + 2 * TAIL_STEPS  # the request, and the guess


def test_the_shipped_weights_name_the_logs_they_were_learned_from():
    logs = shipped().origin["logs"]
    assert len(logs) == 10
    assert all(log["acknowledgement"] and log["jobs"] > 10_000 for log in logs)


def test_shipped_weights_trust_runs_that_are_alike():
    """Twenty runs of ten minutes like the job, twenty of five hours with another script."""
    runs = [ended(1e5 + i * 1e3, 600.0, application="a", request=10 * HOUR) for i in range(20)]
    runs += [ended(2e5 + i * 1e3, 5 * HOUR, application="b", request=10 * HOUR) for i in range(20)]
    job = submission(3e5, application="a", request=10 * HOUR)
    assert answer(runs, shipped(), job, price=0.3) == 630.0


def test_of_a_job_of_an_unknown_user_nothing_is_shown():
    attention, job = told([ended(10.0, 100.0)], only(kernel_share=0.5)), submission(user=None)
    shown, values, context = attention.network_inputs(job)
    assert (shown.shape, values.shape, context.shape) == ((len(FEATURES), 0), (0,), (0,))
    assert predictions_at(attention, job, (0.0, 9.0)) == [HOUR, HOUR]


def test_many_runs_are_ranked_by_two_threads_as_by_one(monkeypatch):
    runs = [ended(100.0 * n, 10.0 + n * n % 977) for n in range(1, ROWS_FOR_THREADS + 200)]
    threads, rank = [], attention_decision.score_rows

    def watched(*arguments):
        threads.append(get_ident())
        rank(*arguments)

    monkeypatch.setattr(attention_decision, "score_rows", watched)
    attention, alone = told(runs, only()), told(runs, only())
    monkeypatch.setattr(attention_module, "ROWS_FOR_THREADS", len(runs) + 1)
    alone.ask(submission(), Question())
    assert len(threads) == 1
    monkeypatch.setattr(attention_module, "ROWS_FOR_THREADS", ROWS_FOR_THREADS)
    attention.ask(submission(), Question())
    assert len(set(threads)) == 2
    one, two = (each._recent.columns[0][:, : len(runs)] for each in (alone, attention))
    np.testing.assert_array_equal(one, two)


def test_of_a_request_below_a_second_nothing_that_is_said_is_longer():
    runs = [ended(10.0 * i, 0.4, request=0.5) for i in range(250)]
    attention, job = told(runs, shipped()), submission(request=0.5)
    assert attention.evidence(job).values.max() == 0.5
    answer = attention.ask(job, Question())
    assert 0 <= answer.interval.lower <= answer.median <= answer.interval.upper <= 0.5
    found = attention.quantiles(job, (0.1, 0.5, 0.9, 0.99))
    assert found == sorted(found)


def test_an_explanation_adds_up_what_a_run_weighs_as_it_is_and_scaled():
    """The run counts twice, as it is and scaled; bob's, which weighs the most, is not hers."""
    runs = [ended(5.0, 60.0, user="bob"), ended(10.0, 1800.0, request=2 * HOUR, job_id="7")]
    attention = told(runs, only(run_of_another_user=1))
    asked = attention.ask(submission(), Question(explain=True))
    (own,) = asked.explanation
    assert (own.job_id, own.runtime, own.requested_walltime) == ("7", 1800.0, 2 * HOUR)
    assert own.weight == pytest.approx(2 / (2 + e + 1), rel=1e-5)


def test_an_explanation_of_a_running_job_counts_the_atoms_that_are_longer():
    """Half an hour of two is a quarter of an hour when scaled: over, once 1000 s have passed."""
    attention = told([ended(10.0, 1800.0, request=2 * HOUR)], only())
    asked = attention.ask(submission(), Question(explain=True, elapsed=1000.0))
    assert [each.weight for each in asked.explanation] == pytest.approx([1 / 2])


def test_an_explanation_to_somebody_new_names_no_runs_of_nobody_known():
    attention = told([ended(10.0 * i, 900.0, user=None) for i in range(5)], only())
    answer = attention.ask(submission(user="new"), Question(explain=True))
    assert answer.basis == COLD_START
    assert answer.explanation == ()


def test_before_any_run_there_is_no_distribution_and_the_request_is_answered():
    attention = Attention(weights=only())
    assert [len(each) for each in attention.evidence(submission())[:3]] == [0, 0, 0]
    assert predictions_at(attention, submission(), (0.0, 9.0)) == [HOUR, HOUR]
    assert attention.predict(submission()).predicted_walltime == HOUR


@pytest.mark.parametrize(("price", "expected"), [(1.74, 130.0), (1.82, HOUR)])
def test_the_longest_answer_is_the_request(price, expected):
    """130 s cost 3 x 30 + 2 x (3470 + price x 975), the hour 3 x 3500, and 30 s more 150 more."""
    runs = [ended(10.0 * i, seconds) for i, seconds in enumerate([100.0, 100.0, 100.0, HOUR])]
    assert answer(runs, only(), price=price) == expected
