"""Told starts are scored beside the scheduler's and past waits, and calibrate intervals."""

import random

import numpy as np
import pytest

from predictors.jobs import Submission
from service.cli.queue import trust_in
from service.live_queue.forecast_record import (
    ForecastPoint,
    JobForecast,
    TimeInterval,
    calibrated,
)
from service.live_queue.snapshot import JobState, LiveJob
from service.live_queue.told_starts import (
    ENOUGH,
    Calibration,
    Missed,
    PastWaits,
    ToldRecord,
    horizon_of,
    quantile,
    with_waits,
)
from service.operations.starts_showing import told_answers
from service.site.diagnosing import check_ranges
from service.worker.wait_scores import StartedJob, start_scores, told_record

HOUR = 3600.0


def started(points, start, *, queue="short", submit=0.0):
    submission = Submission(requested_walltime=60.0, submit_time=submit, job_id="1", queue=queue)
    job = LiveJob(submission=submission, state=JobState.WAITING)
    return StartedJob(
        job=job, forecast=JobForecast(predicted=60.0, points=points), start_time=start
    )


def point(start, *, at=0.0, half=None, scheduler=None, usual=None):
    interval = None if half is None else TimeInterval(start - half, start + half, 0.9)
    played = interval and (interval.lower, interval.upper)
    return ForecastPoint(at, start, start + 60, interval, interval, played, scheduler, usual)


def test_each_teller_is_scored_by_the_time_that_was_still_to_come():
    points = [
        point(5 * HOUR, half=HOUR, scheduler=9 * HOUR, usual=3 * HOUR),
        point(4 * HOUR, at=3.5 * HOUR, half=60.0),
    ]
    scores = start_scores([started(points, 4 * HOUR)])
    found = {(each.horizon, each.teller): each for each in told_answers(scores) if not each.queue}
    first = found["arrival", "walltimed"]
    assert (first.mean_error, first.half_within, first.coverage) == (HOUR, 80 * 60, 1.0)
    assert found["arrival", "scheduler"].mean_error == 5 * HOUR
    assert found["six-hours", "past-waits"].mean_error == -HOUR
    near = found["hour", "walltimed"]
    assert (near.mean_error, near.half_within, near.share_within_10_minutes) == (0.0, 600, 1.0)
    assert ("hour", "scheduler") not in found, "it told nothing then"


def test_the_scheduler_that_seldom_tells_is_shown_so():
    told, silent = point(60.0, scheduler=90.0), point(60.0)
    scores = start_scores([started([told], 60.0), started([silent], 60.0), started([silent], 60.0)])
    (scheduler,) = {
        each.share_told
        for each in told_answers(scores)
        if each.teller == "scheduler" and each.horizon == "arrival" and each.queue is None
    }
    assert scheduler == pytest.approx(1 / 3)


def test_forecasts_of_one_job_count_as_one_together():
    points = [point(100.0 + n, at=float(n)) for n in range(10)]
    (row,) = [
        each
        for each in start_scores([started(points, 100.0)])
        if (each.horizon, each.teller) == ("hour", "walltimed")
    ]
    assert (row.jobs, row.error) == pytest.approx((1.0, 4.5))


def record_of(misses, name="hour"):
    return ToldRecord(misses={name: [Missed(*each, is_held=True) for each in misses]})


def test_calibrated_intervals_hold_what_they_say_though_played_ones_are_too_narrow():
    """Starts are twice as far from the forecast as the futures have it, and mostly late."""
    draw = random.Random(7)
    record = ToldRecord()
    held, as_played = [], []
    for _ in range(3000):
        start = 1500.0 + draw.gauss(300.0, 400.0)
        raw = point(1500.0, half=330.0)
        shown = calibrated(raw, Calibration(record, 0.9))
        held.append(shown.start_interval.holds(start))
        as_played.append(raw.start_interval.holds(start))
        record = told_record(record, [started([shown], start)])
    assert np.mean(as_played) < 0.7
    assert np.mean(held[:ENOUGH]) >= 0.85, "a new site's are moved as those of others were"
    assert 0.88 <= np.mean(held[500:]) <= 0.92


def test_an_end_that_missed_too_often_is_moved_further_and_one_that_seldom_did_less_far():
    """Starts were up to ten widths late: of 100 values and one more, 95% are the 96th."""
    calibrated_ends = []
    for late in (5, 20, 0):
        misses = [
            Missed(-1.0, (place + 1) / 10, is_held=place < ENOUGH - late) for place in range(ENOUGH)
        ]
        calibration = Calibration(ToldRecord(misses={"hour": misses}), 0.9)
        calibrated_ends.append(calibration.interval(0.0, 1000.0, 2000.0)[1])
    assert calibrated_ends == pytest.approx([21_200.0, 22_000.0, 20_200.0])


def test_a_start_before_the_shown_interval_is_early_and_counts_for_the_lower_end_alone():
    (early, late) = (
        told_record(ToldRecord(), [started([point(600.0, half=60.0)], start)]).misses["hour"][0]
        for start in (300.0, 900.0)
    )
    assert (early.is_held, early.is_early, early.is_late) == (False, True, False)
    assert (late.is_held, late.is_early, late.is_late) == (False, False, True)


def test_of_a_job_one_interval_of_each_horizon_is_remembered_the_middle_one():
    points = [point(2 * HOUR + n, at=60.0 * n, half=60.0) for n in range(121)]
    (hour, earlier) = map(
        told_record(ToldRecord(), [started(points, 2 * HOUR + 30)]).misses.get,
        ("hour", "six-hours"),
    )
    assert (len(hour), len(earlier)) == (1, 1)
    assert earlier[0].after == pytest.approx((30 - points[31].start + 2 * HOUR - 60) / 1800)


def test_with_too_few_intervals_ends_are_moved_as_at_other_sites():
    record = record_of([(5.0, 5.0)] * (ENOUGH - 1))
    assert Calibration(record, 0.9).interval(100.0, 200.0, 300.0) == (100.0, 300.0 + 3.4 * 1800)


def test_horizons_are_calibrated_apart_and_the_start_stays_between_the_ends():
    calibration = Calibration(record_of([(-0.9, 2.0)] * ENOUGH), 0.9)
    assert calibration.interval(100.0, 200.0, 300.0) == (200.0, 3900.0)
    late = (2 * HOUR, 3 * HOUR, 4 * HOUR)
    moved = (late[0], late[2] + 0.5 * 2 * HOUR)
    assert calibration.interval(*late) == moved, (
        "as at other sites: nothing is known of that horizon"
    )
    wide = Calibration(record_of([(2.0, 0.0)] * ENOUGH), 0.9)
    assert wide.interval(100.0, 200.0, 300.0)[0] == 0.0, "no start lies before now"


def test_a_quantile_counts_one_more_value():
    assert [quantile([1.0, 2.0, 3.0, 4.0], share) for share in (0.1, 0.5, 0.8, 0.95)] == [
        1,
        3,
        4,
        4,
    ]
    assert [horizon_of(seconds) for seconds in (0, 3599, 3600, 21_600)] == [
        "hour", "hour", "six-hours", "later"
    ]  # fmt: skip


def test_past_waits_tell_the_median_of_those_that_are_longer():
    waits = with_waits({}, [("short", 60.0 * n) for n in range(1, 21)])
    past = PastWaits.of(waits)
    assert past.wait_of("short", 0.0) == 630.0
    assert past.wait_of("short", 300.0) == 780.0
    assert past.wait_of("short", 900.0) is None, "too few waited longer"
    assert past.wait_of("long", 0.0) is None
    assert len(with_waits(waits, [("short", 1.0)] * 900)["short"]) == 500


def test_ranges_that_do_not_hold_are_told_to_users_and_administrators():
    bad = {"usual_error": 2400.0, "observed_coverage": 0.6}
    assert (
        trust_in(bad) == "; starts usually right within 40 min; of the 90% ranges 60% held lately"
    )
    assert trust_in({"usual_error": None, "observed_coverage": 0.9}) == ""
    (note,) = check_ranges("hill", 0.6)
    assert "60% held" in note.says
    assert [*check_ranges("hill", 0.9), *check_ranges("hill", None)] == []
