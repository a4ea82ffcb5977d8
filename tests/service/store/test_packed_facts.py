"""Further facts of a submission at rest: what they take, and that they come back."""

import pytest
from msgspec.structs import replace

from predictors.facts import FACTS, Facts, hashed, unkeyed
from service.store.packed_facts import NAMED, packed, unpacked

FILTERED = Facts(
    work_dir="/scratch/ada/relax/run_17",
    script_hash="00aabbccddee",
    submit_line="sbatch relax.sh --steps 17",
    qos="normal",
    nodes=2,
    submit_host="login1",
    features={"input_bytes": 5e10, "rule": "align"},
)
FULL = replace(
    FILTERED,
    gpus=0,
    gpu_type="a100",
    array_size=16,
    constraint="ivy",
    dependency="afterok:12",
    interactive=True,
)


def test_facts_of_the_filter_of_slurm_and_of_a_workflow_take_at_most_40_bytes():
    assert len(packed(FILTERED)) == 40


def test_no_facts_take_nothing():
    assert packed(None) is None
    assert unpacked(None) is None


@pytest.mark.parametrize("name", FACTS)
def test_every_fact_comes_back_alone_and_beside_all_others(name):
    alone = Facts(**{name: getattr(FULL, name)})
    for facts in (alone, FULL, replace(FULL, interactive=False), replace(FULL, features={})):
        assert unpacked(packed(facts)) == hashed(facts, unkeyed)


@pytest.mark.parametrize(
    "value", [0.0, 1.0, -3.0, 3.5, 0.1, 2.0**31 - 1, 2.0**31, -(2.0**31), 1e15, -1e-15, 1e300]
)
@pytest.mark.parametrize("name", [*NAMED, "x", "groß", "n" * 64, "ü" * 64, "𝄞" * 64])
def test_numbers_and_names_of_features_come_back(name, value):
    facts = Facts(features={name: value, "last": "~0123abcd~"})
    found = unpacked(packed(facts))
    assert found == facts
    assert list(found.features) == [name, "last"]


def test_a_count_beyond_32_bits_is_the_largest():
    assert unpacked(packed(Facts(array_size=10**12))).array_size == 2**32 - 1


def test_a_text_that_reaches_the_store_unhashed_is_hashed_there():
    assert b"relax" not in packed(FULL)
    assert unpacked(packed(FULL)).work_dir == unkeyed("work_dir", FULL.work_dir)
