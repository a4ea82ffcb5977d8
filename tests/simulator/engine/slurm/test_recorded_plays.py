"""The twin against starts that a real Slurm recorded; no Slurm is needed."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from recorded_plays import (
    Likeness,
    estimates_of,
    read_play,
    rules_of,
    twin_starts,
    workload_of,
)

from simulator.engine.slurm.node_sets import members_of
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import initial_state, run
from simulator.scheduling.slurm_rules import SlurmRules

PLAYS = Path(__file__).parents[3] / "data/twins"

NODES = 128

CYCLE = 31
"""Seconds: one bf_interval and the start of a cycle."""

RULES = SlurmRules(over_time_limit=300, epilog=3, cycle_time=1.0)
"""The configuration of the plays. A faked clock makes ends and cycles take seconds."""


def likeness(name):
    play = read_play(PLAYS / f"{name}.csv")
    return Likeness.of(play, twin_starts(play, RULES, NODES), CYCLE)


def differences(name):
    play = read_play(PLAYS / f"{name}.csv")
    return np.abs(twin_starts(play, RULES, NODES) - play.start)


def test_without_soft_limits_starts_are_those_of_the_real_slurm():
    found = likeness("k113")
    assert found.within_interval >= 0.95
    assert found.within_300 >= 0.99
    assert found.median <= 5
    assert found.other_wait == pytest.approx(found.wait, rel=0.03)


def test_in_a_play_on_a_busy_machine_one_decision_differs():
    found = likeness("k113b")
    assert found.within_interval >= 0.80
    assert found.within_300 >= 0.98
    assert differences("k113b").max() > 30_000  # the job that two real plays differ in, too
    assert found.other_wait == pytest.approx(found.wait, rel=0.03)


def test_with_soft_limits_starts_are_those_of_the_real_slurm():
    found = likeness("k113auto")
    assert found.within_interval >= 0.85
    assert found.within_300 >= 0.98
    assert found.other_wait == pytest.approx(found.wait, rel=0.03)


@pytest.mark.parametrize("name", sorted(file.parent.name for file in PLAYS.glob("*/play.json")))
@pytest.mark.parametrize("which", ["first", "second"])
def test_starts_under_other_configurations_are_those_of_the_real_slurm(name, which):
    notes = json.loads((PLAYS / name / "play.json").read_text())
    play = read_play(PLAYS / name / f"{which}.csv.gz")
    rules = rules_of(PLAYS / name / "site", notes[which]["cycle_seconds"])
    found = Likeness.of(play, twin_starts(play, rules, rules.cluster.cpus), CYCLE)
    assert found.within_300 >= 0.84
    assert found.median <= 15
    assert found.correlation >= 0.999
    assert found.other_wait == pytest.approx(found.wait, rel=0.03)


ZERO = 1_800_000_120
"""Unix seconds of second 0 of the play with reservations."""


@pytest.mark.parametrize(("name", "least"), [("reservations", 0.9), ("gpus", 0.8)])
def test_starts_beside_reservations_and_of_jobs_with_gpus_are_those_of_the_real_slurm(name, least):
    play = read_play(PLAYS / name / "play.csv")
    rules = rules_of(PLAYS / name / "site", cycle_time=0.2)
    found = Likeness.of(play, twin_starts(play, rules, rules.cluster.cpus, ZERO), CYCLE)
    assert found.within_interval >= least
    assert found.within_300 >= 0.98
    assert found.correlation >= 0.998
    assert found.other_wait == pytest.approx(found.wait, rel=0.02)
    other = replace(rules, cluster=replace(rules.cluster, reservations=(), gpus=()))
    without = Likeness.of(play, twin_starts(play, other, other.cluster.cpus, ZERO), CYCLE)
    assert without.within_300 <= 0.35


def nodes_of(text):
    """The numbers in a list such as ``n[2-17,20]``."""
    ranges = re.findall(r"(\d+)(?:-(\d+))?", text)
    return [node for low, high in ranges for node in range(int(low), int(high or low) + 1)]


def nodes_held(play):
    """The nodes that the twin gave to jobs, of those that ran at any submission."""
    workload = workload_of(play, NODES)
    state = initial_state(workload, Semantics(policy="slurm", slurm=RULES))
    state.jobs["estimate"] = estimates_of(play).beforehand(workload)
    held = {}
    for stop in range(1, len(play.submit) + 1):
        state.clock["pause_at"] = stop
        run(state)
        for place in state.by_end[: state.clock["running"][0]]:
            held[int(state.runs["job"][place])] = members_of(state.run_sets[place])
    return held


def test_jobs_run_on_the_nodes_that_the_real_slurm_chose_until_two_ends_change_places():
    play = read_play(PLAYS / "k113.csv")
    held = nodes_held(play)
    assert len(held) > 250
    by_start = sorted(held, key=lambda job: play.start[job])
    same = [held[job] == nodes_of(play.nodes[job]) for job in by_start]
    assert all(same[:60])
    assert np.mean(same) > 0.5
