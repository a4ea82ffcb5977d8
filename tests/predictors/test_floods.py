"""The runs of one user, however many, do not spoil the intervals of others, or their history."""

import pytest
from floods import (
    KINDS,
    METHODS,
    RUNS,
    START,
    USERS,
    Answers,
    answers,
    flood,
    history,
    taught,
    usual_run,
)
from numpy.random import default_rng

from predictors.base import Question
from predictors.registry import UNCERTAIN

POINTS = 0.1
"""How much less than before others' 90% intervals may hold: own runs are the measure behind it."""

FLOODS = [("short", 500), ("short", 2_000), ("alike", 5_000), ("mixed", 5_000), ("full", 5_000)]
LONG = 25_000
"""Runs after which none of the others' is among those that are searched."""

OF_THE_USER = ("last-two", "max-usage", "percentile")
"""Methods that look at the user's own runs alone."""


@pytest.fixture(scope="module", params=["attention", "least-cost", *OF_THE_USER])
def before(request: pytest.FixtureRequest) -> tuple[str, Answers]:
    return request.param, answers(taught(request.param, history()))


@pytest.mark.parametrize(("kind", "length"), FLOODS)
def test_a_flood_of_one_user_spoils_no_interval_of_others(before, kind, length):
    name, asked = before
    now = answers(taught(name, [*history(), *flood(kind, length)]))
    if name in OF_THE_USER and kind != "mixed":
        assert now.predicted == asked.predicted
    if asked.within is not None:
        assert now.within >= asked.within - POINTS


@pytest.mark.parametrize("name", ["attention", "least-cost"])
def test_others_keep_their_history_in_the_longest_flood_and_intervals_say_what_is_not_known(name):
    method = taught(name, [*history(), *flood("short", LONG)])
    random = default_rng(2)
    for user in range(0, USERS, 7):
        job = usual_run(user, 2.0 * START + 86_400.0, random).submission
        answer = method.ask(job, Question())
        assert (answer.basis.reason, answer.basis.jobs >= RUNS // 2) == ("history", True)
        assert answer.interval.upper == job.requested_walltime


def test_all_methods_but_those_that_look_at_the_last_runs_of_all_are_in_the_study():
    assert {"attention", "least-cost", *OF_THE_USER} <= {*METHODS}
    assert UNCERTAIN - {"attention", "least-cost"} == {"auto", "forest"}, "see results/floods.txt"
    assert {kind for kind, _ in FLOODS} == {*KINDS}
