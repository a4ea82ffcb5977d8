"""What a history shows of how a site is connected, on either database."""

import pytest
from runs import a_run, predicted, reported

from service.store import Shift

DAY = 86400.0
NOW = 1_800_000_000.0


def signs(store, cluster="default"):
    found = {each.cluster: each for each in store.diagnostics(NOW - 7 * DAY, NOW)}
    return found.get(cluster)


def recent(job, ago=3600.0, **known):
    return a_run(job, start=NOW - ago - 600, **known)


def test_an_empty_history_shows_nothing(store):
    assert store.diagnostics(0, NOW) == []


def test_a_cluster_that_works_has_scored_predictions_and_none_overdue(store):
    run = recent("1")
    store.write([reported(run)], [predicted("p", run)])
    found = signs(store)
    assert (found.predictions, found.scored, found.runs, found.answerable) == (1, 1, 1, 1)
    assert (found.overdue, found.unasked, found.ahead) == (0, 0, 0)
    assert (found.twice, found.moved) == (None, None)
    assert found.last_run == run.end_time


def test_open_predictions_are_overdue_once_their_jobs_must_have_ended(store):
    old, young = recent("1", ago=DAY), recent("2", ago=600)
    store.write([], [predicted("old", old), predicted("young", young)])
    found = signs(store)
    assert (found.predictions, found.overdue, found.last_run) == (2, 1, None)


def test_predictions_from_before_the_last_run_are_not_overdue(store):
    store.write([], [predicted("open", recent("1", ago=DAY))])
    store.write([reported(recent("2"))])
    assert signs(store).overdue == 0


def test_runs_that_were_submitted_after_the_last_prediction_are_counted(store):
    asked, unasked = recent("1", ago=DAY), recent("2")
    store.write([reported(asked, unasked)], [predicted("p", asked)])
    assert signs(store).unasked == 1


def test_what_was_long_ago_counts_as_history_only(store):
    store.write([reported(recent("1", ago=30 * DAY))])
    found = signs(store)
    assert found.runs == 0
    assert found.last_run is not None


def test_a_run_whose_end_lies_ahead_is_counted_and_is_not_the_last_run(store):
    store.write([reported(recent("1", ago=-7200.0))])
    found = signs(store)
    assert (found.ahead, found.last_run) == (1, None)


def test_a_log_that_was_imported_again_in_another_zone_is_noticed(store):
    runs = [recent(str(job), ago=DAY + 60 * job) for job in range(4)]
    moved = [recent(str(job), ago=DAY + 60 * job + 7200) for job in range(3)]
    store.write([reported(*runs), reported(*moved)])
    assert signs(store).twice == Shift(seconds=-7200, jobs=3)


def test_a_job_that_was_requeued_is_not_taken_for_two_zones(store):
    first = recent("1", ago=DAY, submit_time=NOW - 2 * DAY)
    second = recent("1", ago=DAY - 7200, submit_time=NOW - 2 * DAY)
    store.write([reported(first, second)])
    assert signs(store).twice is None


def test_jobs_that_come_every_quarter_of_an_hour_are_not_taken_for_another_zone(store):
    past = [recent(f"r{job}", ago=DAY + 900 * job, application="a") for job in range(20)]
    asked = [recent(f"p{job}", ago=DAY - 900 * job, application="a") for job in range(1, 5)]
    store.write([reported(*past)], [])
    store.write([], [predicted(run.submission.job_id, run) for run in asked])
    assert signs(store).moved is None


def test_another_history_has_another_fingerprint_and_one_keeps_its_own(store, tmp_path, opening):
    other = opening(f"sqlite:///{tmp_path / 'other.sqlite3'}")
    other.upgrade()
    assert len({store.fingerprint(), store.fingerprint(), other.fingerprint()}) == 2


def moved_by(*zones: tuple[int, float]):
    """Runs, and the same again: some moved by one zone, some by another."""
    first, second = [], []
    for jobs, seconds in zones:
        for _ in range(jobs):
            job = len(first)
            first.append(recent(str(job), ago=DAY + 60 * job))
            second.append(recent(str(job), ago=DAY + 60 * job + seconds))
    return [reported(*first), reported(*second)]


@pytest.mark.parametrize(
    ("zones", "shown"),
    [
        ([(4, 3600), (2, 7200)], Shift(seconds=-3600, jobs=4)),
        ([(2, 3600), (4, -7200)], Shift(seconds=7200, jobs=4)),
        ([(3, 3600), (2, 7200)], None),
        ([(1, 50_400)], Shift(seconds=-50_400, jobs=1)),
        ([(1, 902)], Shift(seconds=-900, jobs=1)),
        ([(1, 898)], Shift(seconds=-900, jobs=1)),
        ([(1, 903)], None),
        ([(1, 1)], None),
    ],
)
def test_a_shift_is_of_whole_quarters_of_an_hour_and_shown_by_twice_as_many_jobs_as_any_other(
    store, zones, shown
):
    store.write(moved_by(*zones))
    assert signs(store).twice == shown


@pytest.mark.parametrize(("jobs", "shown"), [(2, None), (3, Shift(seconds=3600, jobs=3))])
def test_fewer_than_three_runs_of_another_zone_may_be_chance(store, jobs, shown):
    asked = [recent(str(job), ago=DAY + 700 * job, application="a") for job in range(jobs)]
    ended = [recent(str(job), ago=DAY + 700 * job - 3600, application="a") for job in range(jobs)]
    store.write([], [predicted(f"p{place}", run) for place, run in enumerate(asked)])
    store.write([reported(*ended)])
    assert signs(store).moved == shown
