"""The twin of PBS against starts that a real OpenPBS recorded; no PBS is needed."""

import json
from pathlib import Path

import pytest
from recorded_plays import Likeness, interval_of, read_play, rules_of, twin_starts

PLAY = Path(__file__).parents[3] / "data/twins/pbs/whole"


@pytest.mark.parametrize("which", ["first", "second"])
def test_starts_are_those_of_the_real_pbs(which):
    notes = json.loads((PLAY / "play.json").read_text())
    play = read_play(PLAY / f"{which}.csv.gz")
    rules = rules_of(PLAY / "site", notes[which]["cycle_seconds"])
    starts = twin_starts(play, rules, rules.cluster.cpus)
    found = Likeness.of(play, starts, interval_of(rules))
    assert found.within_interval >= 0.80
    assert found.within_300 == 1.0
    assert found.median <= 10
    assert found.correlation >= 0.999
    assert found.other_wait == pytest.approx(found.wait, rel=0.03)
