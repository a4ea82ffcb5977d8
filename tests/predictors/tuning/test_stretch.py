"""What is kept of the last runs of a cluster, and how it is divided and asked again."""

import numpy as np
import pytest

from predictors.methods.attention import Attention
from predictors.methods.attention_features import FEATURES
from predictors.methods.attention_weights import Weights, zeros
from predictors.methods.least_cost import LeastCost
from predictors.tuning.case_answers import answers_of_case
from predictors.tuning.stretch import Stretch, stretch_of

PRICES = (0.0, 1.0, 10.0)


def only(**scores):
    """Weights that add a score for each of some features."""
    layers = zeros(1, 1)
    for name, score in scores.items():
        layers[6][FEATURES.index(name.replace("_", " "))] = score
    return Weights(layers=layers, origin={})


@pytest.fixture
def log(ended):
    """``log(count)``: runs of ann that take ten minutes and half an hour in turn."""

    def runs(count):
        seconds = (600.0, 1800.0)
        return [ended(end=1e4 * (at + 1), runtime=seconds[at % 2]) for at in range(count)]

    return runs


def stretch_with(runs, room=10, weights=None):
    attention, stretch = Attention(weights=weights or only(own_run=50)), Stretch(room, PRICES)
    for run in runs:
        stretch.note(run, attention, {"attention": np.zeros(3), "least-cost": np.zeros(3)})
        attention.observe(run)
    return stretch


def noted(stretch):
    older, later = stretch.divided(0)
    return [*older, *later]


def test_what_is_noted_of_a_run(ended):
    long, nobodys = ended(end=9e4, runtime=7200.0), ended(end=8e4, runtime=60.0, user=None)
    first, second = noted(stretch_with([nobodys, long]))
    assert (first.user, first.runtime, first.end, first.case) == ("", 60.0, 8e4, None)
    assert (second.user, second.runtime, second.end) == ("ann", 3600.0, 9e4)
    assert second.said["least-cost"].tolist() == [0, 0, 0]


def test_the_newest_runs_are_kept(log):
    stretch = stretch_with(log(7), room=3)
    assert len(stretch) == 3
    assert [run.end for run in noted(stretch)] == [5e4, 6e4, 7e4]
    assert len(stretch.asked_again(only())) == 3


@pytest.mark.parametrize(
    ("runs", "later", "expected"), [(8, 1, 1), (8, 2, 2), (8, 3, 2), (7, 3, 1), (3, 3, 0)]
)
def test_the_later_runs_are_as_many_as_wanted_but_a_quarter_at_most(log, runs, later, expected):
    older, newer = stretch_with(log(runs)).divided(later)
    assert (len(older), len(newer)) == (runs - expected, expected)
    assert [run.end for run in (*older, *newer)] == [run.end_time for run in log(runs)]


@pytest.mark.parametrize(
    ("price", "place"), [(0.0, 0), (0.4, 0), (0.6, 1), (5.4, 1), (5.6, 2), (99.0, 2)]
)
def test_the_nearest_price_is_told_by_its_place(price, place):
    assert Stretch(1, PRICES).nearest(price) == place


def test_other_weights_are_asked_at_prices_in_mean_runtimes(log):
    """Ten minutes and half an hour, two of each: a price of 1 is 20 minutes an underestimate."""
    asked, kept = only(the_request=1), stretch_with(log(4))
    first, *others = noted(kept.asked_again(asked))
    assert first.said["attention"].tolist() == [0, 0, 0]  # nothing was known of it
    for before, again in zip(noted(kept)[1:], others, strict=True):
        expected = answers_of_case(asked, before.case, np.array([0.0, 1200.0, 12000.0]))
        assert again.said["attention"].tolist() == expected.tolist()
        assert again.said["least-cost"].tolist() == [0, 0, 0]
        assert before.said["attention"].tolist() == [0, 0, 0]
    assert [run.end for run in (first, *others)] == [1e4, 2e4, 3e4, 4e4]


def test_attention_is_asked_again_only_where_it_was_asked(log):
    attention, stretch = Attention(weights=only()), Stretch(2, PRICES)
    for run in log(2):
        stretch.note(run, attention, {"least-cost": np.ones(3)})
        attention.observe(run)
    assert [set(run.said) for run in noted(stretch.asked_again(only()))] == [{"least-cost"}] * 2


def test_both_methods_are_asked_of_each_of_the_last_runs_as_it_was_submitted(log):
    runs, weights = log(8), only(own_run=50)
    stretch = stretch_of(runs, Attention(weights=weights), asked=3, prices=PRICES)
    assert [run.end for run in noted(stretch)] == [6e4, 7e4, 8e4]
    for place, run in zip((5, 6, 7), noted(stretch), strict=True):
        for at, price in enumerate(PRICES):
            for method in (Attention(price=price, weights=weights), LeastCost(price=price)):
                for earlier in runs[:place]:
                    method.observe(earlier)
                said = method.predict(runs[place].submission).predicted_walltime
                assert run.said[method.name][at] == pytest.approx(said)


def test_life_is_shown_at_every_hundredth_run(ended):
    attention, seen = Attention(weights=only()), []
    runs = [ended(end=1e4 * (at + 1), runtime=60.0) for at in range(201)]
    stretch_of(
        runs, attention, asked=1, prices=(1.0,), alive=lambda: seen.append(len(attention._recent))
    )
    assert seen == [1, 101, 201]
