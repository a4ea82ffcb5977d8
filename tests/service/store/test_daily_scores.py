"""Scores are kept by the day on which jobs ended and by what the jobs were."""

from math import inf

import pytest
from runs import a_run, between, predicted, reported

from service.store import Erasure, scores

DAY = scores.DAY_SECONDS


def end(store, job: str, *, day: int, runtime: float, predicted_seconds=900.0, **known) -> None:
    """A job that is predicted, and ends on a day."""
    interval = known.pop("interval", None)
    run = a_run(job, start=day * DAY + 3600.0, runtime=runtime, **known)
    store.write([reported(run)], [predicted(f"p{job}", run, predicted_seconds, interval=interval)])


def test_a_day_has_the_jobs_that_ended_on_it(store):
    end(store, "1", day=3, runtime=600.0)
    end(store, "2", day=3, runtime=1200.0)
    end(store, "3", day=5, runtime=900.0)
    first, second = store.scores.daily("default", "day", days=10)
    assert (first.label, first.method, first.jobs) == (3, "max-usage", 2)
    assert first.mean_absolute_error == 300.0
    assert first.underestimation_rate == 0.5
    assert first.accuracy == pytest.approx((600 / 900 + 900 / 1200) / 2)
    assert (second.label, second.mean_absolute_error) == (5, 0.0)
    assert second.underestimation_rate == 0.0, "to the second is not too short"


@pytest.mark.parametrize(("end", "day"), [(86_399.9, 0), (86_400.0, 1), (172_799.0, 1)])
def test_a_day_ends_at_midnight(end, day):
    assert scores.kind_of(a_run("1").submission, end).day == day


def test_days_are_counted_back_from_the_newest(store):
    for day in (3, 5, 9):
        end(store, str(day), day=day, runtime=600.0)
    assert [each.label for each in store.scores.daily("default", "day", days=5)] == [5, 9]
    assert store.scores.daily("another", "day", days=5) == []


def test_asked_coverage_stands_beside_the_share_that_held(store):
    end(store, "1", day=3, runtime=600.0, interval=between(600.0, 700.0))
    end(store, "2", day=3, runtime=600.0, interval=between(100.0, 200.0))
    end(store, "3", day=3, runtime=600.0)
    (score,) = store.scores.daily("default", "day", days=1)
    assert (score.jobs, score.intervals, score.coverage) == (3, 2, 0.5)
    assert score.asked_coverage == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("side", "labels"),
    [("queue", ["", "long", "short"]), ("group", ["", "physics"]), ("size", ["", "1", "33-128"])],
)
def test_jobs_are_told_apart_by_what_they_were(store, side, labels):
    end(store, "1", day=3, runtime=600.0, queue="long", group="physics", requested_processors=64)
    end(store, "2", day=3, runtime=600.0, queue="short", group="physics", requested_processors=1)
    end(store, "3", day=4, runtime=600.0)
    found = store.scores.daily("default", side, days=9)
    assert [each.label for each in found] == labels
    assert sum(each.jobs for each in found) == 3


def test_the_days_add_up_to_the_scores_of_all_time(store):
    for job in range(40):
        end(store, str(job), day=job % 7, runtime=100.0 * job, queue=f"q{job % 3}")
    (total,) = store.scores.of_methods("default")
    days = store.scores.daily("default", "day", days=30)
    assert sum(day.jobs for day in days) == total.jobs == 40
    error = sum(day.mean_absolute_error * day.jobs for day in days)
    assert error / 40 == pytest.approx(total.mean_absolute_error)


def test_old_days_are_dropped_whole(store):
    for day in (3, 4):
        end(store, str(day), day=day, runtime=600.0)
    assert store.scores.drop_daily(-inf) == 0
    assert store.scores.drop_daily(5 * DAY - 1.0) == 1
    assert [each.label for each in store.scores.daily("default", "day", days=9)] == [4]


def test_what_is_erased_has_no_days(store):
    for day in (3, 4, 5):
        end(store, str(day), day=day, runtime=600.0)
    store.erase(Erasure(before=5 * DAY), now=9 * DAY)
    assert [each.label for each in store.scores.daily("default", "day", days=9)] == [5]
    store.erase(Erasure(cluster="default"), now=9 * DAY)
    assert store.scores.daily("default", "day", days=9) == []


@pytest.mark.parametrize(
    ("processors", "name"),
    [
        *((None, ""), (1, "1"), (2, "2-8"), (8, "2-8"), (9, "9-32"), (32, "9-32")),
        *((33, "33-128"), (128, "33-128"), (129, "129-512"), (512, "129-512")),
        (513, "513 or more"),
    ],
)
def test_every_number_of_processors_has_a_class(processors, name):
    assert scores.size_of(processors) == name
