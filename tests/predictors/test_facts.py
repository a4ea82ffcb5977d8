"""Further facts of a submission: their normal form, and hashes in place of their text."""

import re

import pytest

from predictors.facts import (
    FACTS,
    TEXTS,
    Facts,
    hashed,
    known,
    merged,
    normalised,
    script_hash_of,
    unkeyed,
)

SCRIPT = """#!/bin/bash
#SBATCH --time=60
module load lammps/2024.1   # the new one
srun lmp -in melt.in -var size 100
"""
FULL = Facts(
    work_dir="/home/ada/run1",
    script_hash="0011",
    submit_line="sbatch --time=60 case.sh 7",
    qos="high",
    nodes=2,
    gpus=8,
    gpu_type="a100",
    array_size=16,
    constraint="ivy",
    dependency="afterok:12",
    submit_host="login1",
    interactive=True,
    features={"rule": "align", "size": 3.5},
)


def test_the_scripts_of_a_parameter_study_have_one_hash():
    other = SCRIPT.replace("100", "2.5").replace("--time=60", "--time=10").replace("\n", "\n\n")
    assert script_hash_of(other) == script_hash_of(SCRIPT)
    assert script_hash_of(SCRIPT.replace("melt", "freeze")) != script_hash_of(SCRIPT)


def test_only_the_beginning_of_a_long_script_counts():
    assert script_hash_of("a" * 40_000) == script_hash_of("a" * 50_000)


def test_the_hash_of_bytes_is_that_of_the_text():
    assert script_hash_of(SCRIPT.encode()) == script_hash_of(SCRIPT)
    assert re.fullmatch("[0-9a-f]{12}", script_hash_of(b"\xff\x00"))


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("sbatch case.sh", "case.sh"),
        ("/usr/bin/sbatch -t 60 -N2 --mem=4G ./case.sh 12 fast", "case.sh # fast"),
        ("qsub -l walltime=60 -q batch job.pbs", "job.pbs"),
        ("/home/ada/case.sh 12", "case.sh #"),
        ("sbatch", "sbatch"),
        ("sbatch --wrap", "sbatch --wrap"),
    ],
)
def test_of_a_command_line_program_and_arguments_count(line, command):
    assert normalised("submit_line", line) == command


def test_no_text_is_left_in_hashed_facts():
    found = hashed(FULL, unkeyed)
    for name in TEXTS:
        assert re.fullmatch("~[0-9a-f]{8}~", getattr(found, name))
    assert re.fullmatch("~[0-9a-f]{8}~", found.features["rule"])
    numbers = (found.nodes, found.gpus, found.array_size, found.interactive)
    assert numbers == (2, 8, 16, True)
    assert found.features["size"] == 3.5


def test_equal_texts_of_two_kinds_have_different_hashes_and_a_hash_stays():
    found = hashed(Facts(qos="x", constraint="x"), unkeyed)
    assert found.qos != found.constraint
    assert hashed(found, unkeyed) == found


def test_facts_that_differ_in_what_does_not_count_are_hashed_alike():
    one = Facts(work_dir="/home/ada/run1", dependency="afterok:1", submit_line="sbatch a.sh 1")
    two = Facts(work_dir="/home/ada/run22", dependency="afterok:7:8", submit_line="./a.sh 12")
    assert hashed(one, unkeyed) == hashed(two, unkeyed)


def test_what_was_recorded_first_wins_fact_by_fact():
    first = Facts(qos="high", features={"size": 1.0})
    second = Facts(qos="low", gpus=4, features={"other": 2.0})
    assert merged(first, second) == Facts(qos="high", gpus=4, features={"size": 1.0})
    assert merged(None, second) is second
    assert merged(first, None) is first
    assert merged(None, None) is None


def test_no_facts_are_none():
    assert known(Facts()) is None
    assert known(FULL) is FULL
    assert len(FACTS) == 13
