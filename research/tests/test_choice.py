"""Costs of auto beside single methods, and without its parts."""

import pytest
from choice import PARTS, Divisible, compare, is_due, played_by_auto

from predictors.jobs import Completion, Submission

HOUR = 3600.0


def log(count):
    """Runs of six users in turn; every other job of the last takes an hour, all others a minute."""
    jobs = (
        (600.0 * place, f"u{place % 6}", HOUR if place % 12 == 5 else 60.0)
        for place in range(count)
    )
    return [
        Completion(
            submission=Submission(requested_walltime=HOUR, submit_time=time, user=user),
            start_time=time,
            end_time=time + runtime,
            runtime=runtime,
        )
        for time, user, runtime in jobs
    ]


@pytest.fixture(scope="module")
def taught():
    auto = Divisible(price=10.0, every=0)
    for run in log(900):
        auto.observe(run)
    return auto


def test_users_get_what_the_cluster_gets_without_sums_of_their_own(taught):
    job = Submission(requested_walltime=HOUR, submit_time=1e6, user="u5")
    costs = taught._costs(job)
    of_cluster = taught._costs_of_cluster(costs)
    assert [candidate for candidate, _ in of_cluster] == [candidate for candidate, _ in costs]
    assert of_cluster != costs
    other = Submission(requested_walltime=HOUR, submit_time=1e6, user="u1")
    assert taught._costs_of_cluster(taught._costs(other)) == of_cluster


def test_a_part_is_left_out_of_one_answer_only(taught):
    stranger = Submission(requested_walltime=HOUR, submit_time=1e6, user="new")
    usual = taught.predict(stranger).predicted_walltime
    left_out = {part: taught.without(part, stranger) for part in PARTS}
    assert left_out["forest"] == usual
    assert taught.predict(stranger).predicted_walltime == usual


def test_every_price_has_the_cost_of_auto_without_each_part():
    runs = log(60)
    rows = compare(runs, every=0)
    assert {tuple(row.without) for row in rows} == {(*PARTS, "starts")}
    assert all(row.without["forest"] == row.costs["auto"] for row in rows)
    played = played_by_auto(runs, [1.0], every=0)
    assert list(played.without) == ["starts"]


def test_forests_are_learned_at_equal_distances_from_the_first():
    assert [ended for ended in range(4_000) if is_due(ended, 1_500)] == [1_000, 2_500]
    assert not any(is_due(ended, 0) for ended in range(4_000))
