"""Fine-tuning on runs whose rule the weights do not know, and the judgement of what it brought."""

import numpy as np
import pytest
from msgspec.structs import replace

from predictors.methods.attention import Attention
from predictors.methods.attention_context import CONTEXT
from predictors.methods.attention_features import FEATURES
from predictors.methods.attention_weights import Weights, shapes_of
from predictors.tuning.case_answers import answers_of_case
from predictors.tuning.fine_tuning import (
    Case,
    FineTuning,
    adapt,
    case_of,
    judge,
    losses,
)
from predictors.tuning.stretch import Noted, Stretch
from predictors.tuning.subjects import FEWEST_CASES, AttentionWeights
from predictors.tuning.verdict import Demand, noise, standard_error

TELLING = FEATURES.index("scaled")
NO_RUNS = (np.empty(0), np.empty(0))


def weights(seed=0) -> Weights:
    random = np.random.default_rng(seed)
    layers = tuple(random.normal(0, 0.2, shape).astype(np.float32) for shape in shapes_of(4, 4))
    return Weights(layers=layers, origin={"logs": ["public"]})


def cases(count, seed=1, users=40):
    """Of six values the one that is right bears a mark; all else is noise."""
    random = np.random.default_rng(seed)
    found = []
    for place in range(count):
        features = random.normal(0, 0.3, (len(FEATURES), 6)).astype(np.float32)
        values = random.uniform(60, 3600, 6)
        right = random.integers(6)
        features[TELLING] = 0
        features[TELLING, right] = 1
        context = random.normal(0, 0.3, len(CONTEXT)).astype(np.float32)
        found.append(
            Case(features, values, context, NO_RUNS, values[right], 3600.0, f"u{place % users}")
        )
    return found


PLAN = FineTuning(rate=1e-2, passes=5, batch=50)
DEMAND = Demand()


def test_it_learns_a_rule_and_is_found_to_win_on_later_runs():
    start = weights()
    tuned = adapt(start, cases(500), PLAN)
    verdict = judge(start, tuned, cases(200, seed=2), DEMAND)
    assert verdict.wins
    assert verdict.gain > 0.15
    assert not verdict.loses
    back = judge(tuned, start, cases(200, seed=2), DEMAND)
    assert back.loses
    assert not back.wins
    assert tuned.origin == {"logs": ["public"], "fine_tuned_on": 500}
    assert np.array_equal(start.layers[0], weights().layers[0])


def noted(found):
    return [
        Noted(case.user, case.runtime, float(place), case, {}) for place, case in enumerate(found)
    ]


def just_missed(case):
    """It took a minute longer than the value that bears the mark: near, and too short."""
    return case._replace(runtime=case.runtime + 60.0)


def test_weights_whose_answers_cost_no_less_are_not_adopted_though_distributions_are_nearer():
    start = weights()
    tuned = adapt(start, cases(500), PLAN)
    subject = AttentionWeights(PLAN, DEMAND, 2.0)
    told_well = cases(400, seed=2)
    verdict = subject.judge(start, tuned, noted([just_missed(case) for case in told_well]))
    assert verdict.gain > 0.1
    assert verdict.cost < 0.02
    assert not verdict.wins
    assert subject.judge(start, tuned, noted(told_well)).wins


def test_new_weights_are_proposed_from_as_many_cases_as_tell_something():
    subject = AttentionWeights(PLAN, DEMAND, 2.0)
    few = noted(cases(FEWEST_CASES - 1))
    unknown = few[0]._replace(case=None)
    assert subject.propose(weights(), [*few, unknown]) is None
    enough = noted(cases(FEWEST_CASES))
    proposed = subject.propose(weights(), [*enough, unknown])
    assert proposed.origin["fine_tuned_on"] == FEWEST_CASES


def test_what_would_have_been_said_is_told_again_by_other_weights():
    """The marked value is nearly certain to tuned weights, so that its margin later is said."""
    tuned = adapt(weights(), cases(2000), PLAN)
    stretch, found = Stretch(10, (0.0, 1.0)), cases(10, seed=5)
    stretch._noted.extend(
        each._replace(said={"attention": np.zeros(2), "least-cost": np.zeros(2)})
        for each in noted(found)
    )
    older, later = stretch.asked_again(tuned).divided(5)
    for case, again in zip(found, [*older, *later], strict=True):
        assert again.said["least-cost"].tolist() == [0, 0]
        assert (again.said["attention"] > 0).all()
        assert again.said["attention"][0] <= again.said["attention"][1] <= case.request


@pytest.mark.parametrize("by_hand", [0.0, 0.3])
def test_what_is_said_again_of_a_case_is_what_attention_says(ended, by_hand):
    attention = Attention(weights=replace(weights(), by_hand=by_hand))
    prices = np.array([0.0, 1.0, 10.0])
    for at in range(60):
        run = ended(end=1e4 * (at + 1), runtime=100.0 * (at % 7 + 1))
        if (case := case_of(attention, run)) is not None:
            unit = np.mean([100.0 * (before % 7 + 1) for before in range(at)])
            again = answers_of_case(attention.weights, case, prices * unit)
            assert again == pytest.approx(attention.estimates(run.submission, prices))
        attention.observe(run)


def test_it_is_the_same_every_time():
    first, second = (adapt(weights(), cases(100), PLAN) for _ in range(2))
    assert all(np.array_equal(*pair) for pair in zip(first.layers, second.layers, strict=True))


def test_a_strong_pull_keeps_the_weights_where_they_were():
    def moved(pull):
        plan = FineTuning(rate=1e-2, passes=5, batch=50, pull=pull)
        tuned = adapt(weights(), cases(200), plan)
        pairs = zip(tuned.layers, weights().layers, strict=True)
        return sum(float(((new - old) ** 2).sum()) for new, old in pairs)

    assert moved(10.0) < 0.1 * moved(0.0)


def test_noise_wins_nothing():
    """Runtimes that nothing tells: what was learned from some is no gain on others."""
    random = np.random.default_rng(3)
    blind = [
        case._replace(runtime=float(random.choice(case.values))) for case in cases(400, seed=4)
    ]
    tuned = adapt(weights(), blind[:200], PLAN)
    assert not judge(weights(), tuned, blind[200:], DEMAND).wins


def test_a_burst_of_one_user_is_no_proof():
    """One user gains much in one moment, all others nothing: that is one observation."""
    users = [f"u{place}" for place in range(100)] * 2
    gains = np.zeros(200)
    gains[120:140], users[120:140] = 1.0, ["burst"] * 20
    assert noise(gains, users) > 0.9 * gains.mean()
    spread = np.zeros(200)
    spread[::10] = 1.0
    assert noise(spread, users) < 0.3 * spread.mean()


def test_the_standard_error_counts_groups_not_runs():
    """Two users, gains of 1 and -1: as sure of their mean as of two numbers, however many runs."""
    gains = np.array([1.0] * 50 + [-1.0] * 50)
    assert standard_error(gains, np.repeat([0, 1], 50)) == pytest.approx(1.0)
    assert standard_error(gains, np.arange(100)) == pytest.approx(0.1, rel=0.01)
    assert standard_error(gains, np.zeros(100, np.int64)) == float("inf")


def test_without_later_runs_nothing_is_adopted():
    verdict = judge(weights(), weights(1), [], DEMAND)
    assert verdict.cases == 0
    assert not verdict.wins
    assert not verdict.loses


def test_a_case_is_the_run_as_it_looked_at_its_submission(ended):
    attention = Attention()
    first = ended(end=1000.0, runtime=600.0)
    assert case_of(attention, first) is None
    attention.observe(first)
    case = case_of(attention, ended(end=9000.0, runtime=7000.0))
    assert case.values.tolist() == [600.0, 3600.0]
    assert case.runtime == 3600.0
    assert case.user == "ann"
    assert losses(weights(), [case])[0] > 0
    assert case_of(attention, ended(end=9000.0, runtime=7.0, user=None)) is None
