"""The compiled network against a plain definition, and the file of its weights."""

import json
from io import BytesIO

import numpy as np
import pytest
from reference_distributions import softmax_of_scores

from predictors.methods.attention_features import CONTEXT, FEATURES
from predictors.methods.attention_network import (
    LARGEST_FILE,
    NOTHING_LEARNED,
    Layers,
    UnusableWeightsError,
    Weights,
    shapes_of,
    weigh_support,
    zeros,
)


def random_layers(random, units=(5, 4), dtype=np.float32):
    return Layers(*(random.normal(0, 0.4, shape).astype(dtype) for shape in shapes_of(*units)))


def random_atoms(random, count=9):
    features = random.normal(0, 1, (len(FEATURES), count)).astype(np.float32)
    context = random.normal(0, 1, len(CONTEXT)).astype(np.float32)
    return features, random.uniform(10, 1000, count), context


@pytest.mark.parametrize("seed", range(5))
def test_weights_are_what_the_definition_says(seed):
    random = np.random.default_rng(seed)
    layers, (features, _, context) = random_layers(random), random_atoms(random)
    found = weigh_support(features, context, 9, layers)
    assert found == pytest.approx(softmax_of_scores(features, context, layers), rel=1e-4)
    assert found.sum() == pytest.approx(1, abs=1e-6)


def test_a_file_of_weights_is_read_as_it_was_written():
    layers = random_layers(np.random.default_rng(0))
    weights = Weights(layers=layers, kernel_share=0.25, tail_runs=6, origin={"logs": ["x"]})
    content = weights.to_bytes()
    read = Weights.from_bytes(content)
    assert read.origin == {"logs": ["x"]}
    assert (read.kernel_share, read.tail_runs) == (0.25, 6)
    assert all(np.array_equal(*pair) for pair in zip(read.layers, weights.layers, strict=True))
    assert Weights(layers=random_layers(np.random.default_rng(0), (24, 16)), origin={}).to_bytes()
    assert len(content) < LARGEST_FILE


def test_a_file_from_before_shares_were_told_is_read_as_if_they_were_nothing():
    weights = Weights(layers=random_layers(np.random.default_rng(0)), kernel_share=0.25, origin={})
    with np.load(BytesIO(weights.to_bytes())) as file:
        arrays = dict(file)
    header = json.loads(arrays["header"].tobytes())
    del header["by_hand"], header["unseen"]
    old = BytesIO()
    np.savez(old, **{**arrays, "header": np.frombuffer(json.dumps(header).encode(), np.uint8)})
    read = Weights.from_bytes(old.getvalue())
    assert (read.kernel_share, read.tail_runs) == (0, 0)


def refused(content):
    with pytest.raises(UnusableWeightsError) as raised:
        Weights.from_bytes(content)
    return str(raised.value)


def test_anything_else_than_a_file_of_weights_is_refused(tmp_path):
    good = random_layers(np.random.default_rng(0))
    content = Weights(layers=good, origin={}).to_bytes()
    assert "no file" in refused(b"")
    assert "no file" in refused(b"PK\x03\x04 not a zip")
    assert "no file" in refused(content[: len(content) // 2])
    assert "larger" in refused(b"x" * (LARGEST_FILE + 1))
    pickled = tmp_path / "pickled.npz"
    np.savez(pickled, header=np.array([{"version": 1}], dtype=object))
    assert "no file" in refused(pickled.read_bytes())


def test_weights_of_other_shapes_features_or_numbers_are_refused(monkeypatch):
    good = random_layers(np.random.default_rng(0))

    def with_layer(place, array):
        layers = Layers(*good[:place], array, *good[place + 1 :])
        return Weights(layers=layers, origin={}).to_bytes()

    assert "second must be" in refused(with_layer(3, np.zeros((2, 2), np.float32)))
    assert "32 bits" in refused(with_layer(6, np.zeros(len(FEATURES))))
    assert "finite" in refused(with_layer(2, np.full(5, np.nan, np.float32)))
    assert "units" in refused(with_layer(2, np.zeros(1000, np.float32)))
    for share in (-0.1, 1.0, float("nan"), "much", None):
        assert "by_hand" in refused(Weights(layers=good, kernel_share=share, origin={}).to_bytes())
    for runs in (-1, 1001, float("nan"), "many", None):
        assert "unseen" in refused(Weights(layers=good, tail_runs=runs, origin={}).to_bytes())
    content = Weights(layers=good, origin={}).to_bytes()
    monkeypatch.setattr("predictors.methods.attention_network.VERSION", 99)
    assert "version" in refused(content)
    monkeypatch.undo()
    monkeypatch.setattr("predictors.methods.attention_network.CONTEXT", ("other",))
    assert "learned for other context" in refused(content)
    monkeypatch.undo()
    monkeypatch.setattr("predictors.methods.attention_network.FEATURES", ("other",))
    assert "learned for other features" in refused(content)


def test_a_file_may_be_as_large_as_it_says_and_no_larger():
    largest = Weights(layers=zeros(64, 64), tail_runs=1000, kernel_share=0.999, origin={})
    assert Weights.from_bytes(largest.to_bytes()).tail_runs == 1000
    for units in ((65, 1), (1, 65), (0, 1), (1, 0)):
        weights = Weights(layers=zeros(*units), origin={})
        assert "1 to 64 units" in refused(weights.to_bytes())
    assert "larger than 200,000 bytes" in refused(b"x" * 200_001)
    assert "no file" in refused(b"x" * 200_000)


def test_a_network_that_has_learned_nothing_weighs_all_atoms_alike():
    features, _, context = random_atoms(np.random.default_rng(0))
    found = weigh_support(features, context, 9, NOTHING_LEARNED.layers)
    assert found == pytest.approx(np.full(9, 1 / 9))
    assert [len(NOTHING_LEARNED.layers[layer]) for layer in (2, 4)] == [1, 1]
    assert NOTHING_LEARNED.model[1:] == (0.0, 0.0)


def test_a_file_is_the_same_in_whatever_order_its_origin_was_told():
    layers = random_layers(np.random.default_rng(0))
    first, second = ({"seed": 1, "logs": []}, {"logs": [], "seed": 1})
    files = [Weights(layers=layers, origin=origin).to_bytes() for origin in (first, second)]
    assert files[0] == files[1]
