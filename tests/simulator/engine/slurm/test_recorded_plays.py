"""The twin against starts that a real Slurm 26.05.5 recorded; no Slurm is needed."""

import numpy as np
import pytest
from recorded_plays import RULES, nodes_held, played, recorded

CYCLE = 31
"""Seconds: one bf_interval and the start of a cycle."""


class Likeness:
    """Differences between the starts of the twin and those of the real Slurm."""

    def __init__(self, name, rules=RULES):
        play = recorded(name)
        starts = played(play, rules).jobs["start"]
        self.differences = np.abs(starts - play.start)
        self.waits = float((starts - play.submit).mean())
        self.real_waits = float((play.start - play.submit).mean())

    def within(self, seconds):
        return float((self.differences <= seconds).mean())


def test_without_soft_limits_starts_are_those_of_the_real_slurm():
    likeness = Likeness("k113")
    assert likeness.within(CYCLE) >= 0.95
    assert likeness.within(300) >= 0.99
    assert np.median(likeness.differences) <= 5
    assert likeness.waits == pytest.approx(likeness.real_waits, rel=0.03)


def test_in_a_play_on_a_busy_machine_one_decision_differs():
    likeness = Likeness("k113b")
    assert likeness.within(CYCLE) >= 0.80
    assert likeness.within(300) >= 0.98
    assert np.sort(likeness.differences)[-1] > 30_000  # the job that two real plays differ in, too
    assert likeness.waits == pytest.approx(likeness.real_waits, rel=0.03)


def test_with_soft_limits_starts_are_those_of_the_real_slurm():
    likeness = Likeness("k113auto")
    assert likeness.within(CYCLE) >= 0.85
    assert likeness.within(300) >= 0.98
    assert likeness.waits == pytest.approx(likeness.real_waits, rel=0.03)


def test_jobs_run_on_the_nodes_that_the_real_slurm_chose_until_two_ends_change_places():
    play = recorded("k113")
    held = nodes_held(play)
    assert len(held) > 250
    by_start = sorted(held, key=lambda job: play.start[job])
    same = [held[job] == play.nodes[job] for job in by_start]
    assert all(same[:60])
    assert np.mean(same) > 0.5
