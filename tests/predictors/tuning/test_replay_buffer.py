"""What is kept of the last runs of a cluster, and how it is divided."""

import numpy as np
import pytest
from runs import ended

from predictors.methods.attention import Attention
from predictors.methods.attention_features import FEATURES
from predictors.methods.attention_network import Weights, zeros
from predictors.methods.least_cost import LeastCost
from predictors.tuning.tunables import ReplayBuffer, fill_buffer

PRICES = (0.0, 1.0, 10.0)


def only(**scores):
    """Weights that add a score for each of some features."""
    layers = zeros(1, 1)
    for name, score in scores.items():
        layers.direct[FEATURES.index(name.replace("_", " "))] = score
    return Weights(layers=layers, origin={})


def log(count):
    """Runs of one user that take ten minutes and half an hour in turn."""
    seconds = (600.0, 1800.0)
    return [ended(end=1e4 * (at + 1), runtime=seconds[at % 2]) for at in range(count)]


def buffer_of(runs, room=10):
    buffer = ReplayBuffer(room, PRICES)
    for run in runs:
        buffer.add(run, {"attention": np.zeros(3), "least-cost": np.zeros(3)})
    return buffer


def records(buffer):
    older, later = buffer.divide(0)
    return [*older, *later]


def test_what_is_noted_of_a_run():
    long, nobodys = ended(end=9e4, runtime=7200.0), ended(end=8e4, runtime=60.0, user=None)
    first, second = records(buffer_of([nobodys, long]))
    assert (first.user, first.runtime, first.end) == ("", 60.0, 8e4)
    assert (second.user, second.runtime, second.end) == ("ada", 3600.0, 9e4)
    assert second.estimates["least-cost"].tolist() == [0, 0, 0]


def test_the_newest_runs_are_kept():
    buffer = buffer_of(log(7), room=3)
    assert len(buffer) == 3
    assert [run.end for run in records(buffer)] == [5e4, 6e4, 7e4]


@pytest.mark.parametrize(
    ("runs", "later", "expected"), [(8, 1, 1), (8, 2, 2), (8, 3, 2), (7, 3, 1), (3, 3, 0)]
)
def test_the_later_runs_are_as_many_as_wanted_but_a_quarter_at_most(runs, later, expected):
    older, newer = buffer_of(log(runs)).divide(later)
    assert (len(older), len(newer)) == (runs - expected, expected)
    assert [run.end for run in (*older, *newer)] == [run.end_time for run in log(runs)]


@pytest.mark.parametrize(
    ("price", "place"), [(0.0, 0), (0.4, 0), (0.6, 1), (5.4, 1), (5.6, 2), (99.0, 2)]
)
def test_the_nearest_price_is_told_by_its_place(price, place):
    assert ReplayBuffer(1, PRICES).nearest(price) == place


def test_both_methods_are_asked_of_each_of_the_last_runs_as_it_was_submitted():
    runs, weights = log(8), only(own_run=50)
    buffer = fill_buffer(runs, Attention(weights=weights), capacity=3, prices=PRICES)
    assert [run.end for run in records(buffer)] == [6e4, 7e4, 8e4]
    for place, run in zip((5, 6, 7), records(buffer), strict=True):
        for at, price in enumerate(PRICES):
            for method in (Attention(price=price, weights=weights), LeastCost(price=price)):
                for earlier in runs[:place]:
                    method.observe(earlier)
                seconds = method.predict(runs[place].submission).predicted_walltime
                assert run.estimates[method.name][at] == pytest.approx(seconds)
