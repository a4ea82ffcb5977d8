import pytest
from runs import ended, submission, taught

import predictors.methods.percentile
from predictors.methods.percentile import GRACE_SECONDS, Percentile

DAY = 86400.0


def used(predictor, usages, **known):
    """Ten jobs or so that ended a minute apart, one after the other, from second 60 on."""
    runs = (ended(60 * minute, 3600 * usage, **known) for minute, usage in enumerate(usages, 1))
    return taught(predictor, runs)


def test_the_percentile_is_the_nearest_rank_of_the_usages():
    # ten jobs: 85% of ten is 8.5, so the ninth smallest usage
    usages = (0.3, 0.9, 0.1, 0.5, 1.0, 0.2, 0.6, 0.4, 0.8, 0.7)
    predictor = used(Percentile(key="user", lower_bound=0), usages)
    prediction = predictor.predict(submission(at=1000, request=1000))
    assert prediction.predicted_walltime == 900
    assert (prediction.basis.jobs, prediction.basis.reason) == (10, "history")


@pytest.mark.parametrize(
    ("percentile", "jobs", "rank"),
    [
        (0, 10, 1),
        (50, 10, 5),
        (50, 11, 6),
        (80, 10, 8),
        (85, 20, 17),
        (100, 10, 10),
        (7, 100, 7),  # 0.07 * 100 is 7.000000000000001 in floating point
        (55, 100, 55),  # as is 0.55 * 100 beyond 55
        (99.9, 1000, 999),
    ],
)
def test_a_rank_is_exact_in_spite_of_floating_point(percentile, jobs, rank):
    predictor = Percentile(key="user", percentile=percentile, lower_bound=0, window_days=None)
    usages = [(job + 1) / 1024 for job in range(jobs)]
    used(predictor, usages, request=3600)
    prediction = predictor.predict(submission(at=1e9, request=1024 * 1024))
    assert prediction.predicted_walltime == rank * 1024


def test_the_lower_bound_holds_and_can_be_turned_off():
    usages = [0.125] * 10
    bounded = used(Percentile(key="user"), usages)
    free = used(Percentile(key="user", lower_bound=0), usages)
    assert bounded.predict(submission(at=1000)).predicted_walltime == 1800
    assert free.predict(submission(at=1000)).predicted_walltime == 450


def test_fewer_jobs_than_the_minimum_adjust_nothing():
    predictor = used(Percentile(key="user", min_jobs=3), [0.5, 0.5])
    prediction = predictor.predict(submission(at=1000))
    assert prediction.predicted_walltime == 3600
    assert (prediction.basis.jobs, prediction.basis.reason) == (2, "too-few-jobs")


def test_both_ends_of_the_window_are_inside():
    predictor = Percentile(key="user", window_days=30, min_jobs=1, percentile=100, lower_bound=0)
    predictor.observe(ended(end=0, runtime=3600))
    predictor.observe(ended(end=1, runtime=1800))
    predictor.observe(ended(end=30 * DAY + 1, runtime=900))
    at = [
        predictor.predict(submission(at=time)).predicted_walltime
        for time in (30 * DAY, 30 * DAY + 0.5, 30 * DAY + 1, 30 * DAY + 1.5)
    ]
    assert at == [3600, 1800, 1800, 900]
    assert predictor.predict(submission(at=0)).predicted_walltime == 3600


@pytest.mark.parametrize(
    ("key", "like"),
    [
        ("user", {"user"}),
        ("project", {"project"}),
        ("user+project", {"user", "project"}),
        ("double", {"user", "project"}),
        ("user+walltime", {"user", "request"}),
        ("user+project+walltime", {"user", "project", "request"}),
        ("triple", {"user", "project", "request"}),
    ],
)
def test_jobs_are_similar_if_they_share_every_part_of_the_key(key, like):
    predictor = Percentile(key=key, min_jobs=1)
    predictor.observe(ended(end=10, runtime=1800, project="x", request=3600))
    asked = {"user": "ada", "project": "x", "request": 3600}
    assert predictor.predict(submission(at=20, **asked)).basis.jobs == 1
    for part, other in {"user": "bob", "project": "y", "request": 7200}.items():
        jobs = predictor.predict(submission(at=20, **asked | {part: other})).basis.jobs
        assert jobs == (0 if part in like else 1)


@pytest.mark.parametrize("key", ["user+project", "user+project+walltime"])
def test_jobs_of_one_user_without_a_project_are_alike_and_unlike_those_with_one(key):
    predictor = Percentile(key=key, min_jobs=1)
    predictor.observe(ended(end=10, runtime=1800, project=None))
    assert predictor.predict(submission(at=20, project=None)).predicted_walltime == 1800
    assert predictor.predict(submission(at=20, project="x")).basis.reason == "cold-start"


def test_jobs_and_keys_out_of_every_window_are_forgotten():
    predictor = Percentile(key="user", window_days=30)
    for day in range(1000):
        predictor.observe(ended(end=day * DAY, runtime=60))
        predictor.observe(ended(end=day * DAY, runtime=60, user=f"of day {day}"))
    assert len(predictor._groups) < 200
    assert len(predictor._groups["ada"]) < 100


def test_trimming_leaves_a_question_about_the_day_before_exact():
    predictor = Percentile(key="user", window_days=1, min_jobs=1, percentile=100, lower_bound=0)
    newest = 2999 * 300
    first_inside = newest - GRACE_SECONDS - DAY
    for end in range(0, newest + 1, 300):
        predictor.observe(ended(end=end, runtime=3600 if end == first_inside else 1800))
    prediction = predictor.predict(submission(at=newest - GRACE_SECONDS))
    assert (prediction.basis.jobs, prediction.predicted_walltime) == (289, 3600)
    assert len(predictor._groups["ada"]) < 1000


def test_a_few_end_times_in_the_far_future_erase_nothing():
    predictor = Percentile(key="user", min_jobs=1)
    for minute in range(500):
        absurd = minute % 10 == 0
        predictor.observe(ended(end=1e12 if absurd else minute * 60, runtime=60))
    assert predictor.predict(submission(at=500 * 60)).basis.jobs == 450


def test_a_percentile_rests_on_the_latest_jobs_up_to_a_maximum(monkeypatch):
    monkeypatch.setattr(predictors.methods.percentile, "MOST_JOBS", 16)
    predictor = Percentile(key="user", window_days=None, percentile=100, lower_bound=0)
    used(predictor, [1.0] * 100 + [0.5] * 16)
    prediction = predictor.predict(submission(at=1e6))
    assert (prediction.basis.jobs, prediction.predicted_walltime) == (16, 1800)
    assert len(predictor._groups["ada"]) <= 18
