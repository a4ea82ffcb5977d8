"""Recorded predictions meet the ends of their jobs, once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import a_run, between, predicted, read_all, reported

from predictors import measures
from service.store import Promise, open_store
from service.store.scores import RECENT, Sums

RUN = a_run("7", runtime=600.0, application="lammps", queue="batch")


@pytest.fixture
def reader(store):
    opened = store.reader()
    yield opened
    opened.close()


def scored(store, cluster: str = "default") -> int:
    return sum(score.jobs for score in store.scores.of_methods(cluster))


def test_every_method_that_was_asked_is_scored(store):
    estimates = {"max-usage": 900.0, "requested": 3600.0, "last-two": 300.0}
    store.write(
        [], [predicted("p", RUN, 900.0, estimates=estimates, interval=between(500.0, 1000.0))]
    )
    store.write([reported(RUN)])
    last_two, max_usage, requested = store.scores.of_methods("default")
    assert (last_two.method, last_two.jobs, last_two.mean_absolute_error) == ("last-two", 1, 300.0)
    assert (last_two.underestimation_rate, last_two.accuracy) == (1.0, pytest.approx(0.5))
    assert (max_usage.mean_absolute_error, max_usage.accuracy) == (300.0, pytest.approx(600 / 900))
    assert (max_usage.underestimation_rate, max_usage.coverage) == (0.0, 1.0)
    assert (requested.mean_absolute_error, requested.coverage) == (3000.0, None)


def test_scores_are_means_over_the_jobs_of_a_cluster(store):
    intervals = [between(0.0, 100.0), between(0.0, 1000.0), None]
    for job, interval in enumerate(intervals):
        run = a_run(str(job), start=1000.0 * job, runtime=200.0 * (job + 1))
        store.write([], [predicted(f"p{job}", run, 400.0, interval=interval)])
        store.write([reported(run)])
    (score,) = store.scores.of_methods("default")
    assert (score.jobs, score.mean_absolute_error) == (3, pytest.approx(400 / 3))
    assert score.underestimation_rate == pytest.approx(1 / 3)
    assert score.accuracy == pytest.approx((200 / 400 + 400 / 400 + 400 / 600) / 3)
    assert score.coverage == pytest.approx(1 / 2)


def test_the_interval_of_every_method_that_was_asked_is_scored_beside_what_was_asked(store):
    for job, (bounds, coverage) in enumerate([((0, 500), 0.9), ((500, 700), 0.8)]):
        run = a_run(str(job), start=1000.0 * job, runtime=600.0)
        estimates = {"max-usage": 900.0, "least-cost": 600.0}
        shadow = {"least-cost": bounds}
        store.write(
            [],
            [predicted(f"p{job}", run, estimates=estimates, bounds=shadow, coverage=coverage)],
        )
        store.write([reported(run)])
    least_cost, max_usage = store.scores.of_methods("default")
    assert (least_cost.coverage, least_cost.asked_coverage) == (0.5, pytest.approx(0.85))
    assert (max_usage.coverage, max_usage.asked_coverage) == (None, None)


def test_recent_scores_are_over_the_thousand_jobs_that_ended_last(store):
    early = [a_run(f"e{job}", start=10.0 * job, runtime=1000.0) for job in range(10)]
    late = [a_run(f"l{job}", start=1e6 + job, runtime=600.0) for job in range(RECENT - 5)]
    for run in [*late, *early]:
        name = run.submission.job_id
        interval = between(0.0, 700.0)
        store.write([], [predicted(name, run, 900.0, job_id=name, interval=interval)])
    store.write([reported(*late)])
    store.write([reported(*early)])
    (recent,) = store.scores.recent("default")
    assert recent.jobs == RECENT == 1000
    assert recent.underestimation_rate == 5 / RECENT
    assert recent.intervals == Promise(jobs=RECENT, asked=pytest.approx(0.9), got=1 - 5 / RECENT)
    assert recent.rates is None
    assert store.scores.of_methods("default")[0].underestimation_rate == 10 / (RECENT + 5)
    assert store.scores.recent("south") == []


def test_a_rate_of_underestimates_that_was_asked_for_is_compared_with_what_came(store):
    for job, rate in enumerate([0.1, 0.2, None]):
        run = a_run(str(job), start=1000.0 * job, runtime=600.0 + 400.0 * job)
        name = f"p{job}"
        store.write([], [predicted(name, run, 700.0, job_id=str(job), underestimation_rate=rate)])
        store.write([reported(run)])
    (recent,) = store.scores.recent("default")
    assert recent.rates == Promise(jobs=2, asked=pytest.approx(0.15), got=0.5)
    assert recent.underestimation_rate == pytest.approx(2 / 3)


def test_what_is_predicted_to_the_second_is_not_too_short_and_within_its_interval(store):
    for job, (lower, upper) in enumerate([(600.0, 900.0), (300.0, 600.0)]):
        run = a_run(str(job), start=1000.0 * job, runtime=600.0)
        interval = between(lower, upper)
        asked = {"interval": interval, "underestimation_rate": 0.1}
        store.write([reported(run)], [predicted(f"p{job}", run, 600.0, **asked)])
    (recent,), (score,) = store.scores.recent("default"), store.scores.of_methods("default")
    assert recent.underestimation_rate == score.underestimation_rate == 0.0
    assert recent.rates == Promise(jobs=2, asked=pytest.approx(0.1), got=0.0)
    assert recent.intervals.got == score.coverage == 1.0


def test_a_job_that_is_killed_a_moment_after_its_request_is_held_by_an_interval_up_to_it(store):
    run = a_run("7", runtime=3605.0)
    store.write([], [predicted("p", run, 3600.0, interval=between(60.0, 3600.0))])
    store.write([reported(run)])
    assert store.scores.of_methods("default")[0].coverage == 1.0
    assert store.scores.recent("default")[0].intervals.got == 1.0
    assert store.scores.recent("default")[0].underestimation_rate == 1.0


def test_a_run_that_is_known_takes_no_prediction_from_a_later_run_of_its_job(store, reader):
    """The job was requeued, asked about once more, and then both runs were reported together."""
    first, second = (a_run("7", start=start, submit_time=900.0) for start in (1000.0, 5000.0))
    store.write([reported(first)])
    store.write([], [predicted("p", second, 900.0, job_id="7", requested_walltime=1800.0)])
    store.write([reported(first, second)])
    assert scored(store) == 1
    known = {run.start_time: run.submission.requested_walltime for run in read_all(reader)}
    assert known == {1000.0: 3600.0, 5000.0: 1800.0}


def test_a_run_of_no_time_at_all_is_scored(store):
    run = a_run("0", runtime=0.0)
    store.write([reported(run)], [predicted("p", run, 400.0)])
    (score,) = store.scores.of_methods("default")
    assert (score.mean_absolute_error, score.accuracy) == (400.0, 0.0)


def test_a_completion_sent_twice_is_scored_once(store):
    store.write([], [predicted("p", RUN), predicted("q", RUN, recorded_at=1e6)])
    store.write([reported(RUN, RUN), reported(RUN)])
    store.write([reported(RUN)])
    assert scored(store) == 1


def test_a_prediction_recorded_twice_is_scored_once(store):
    store.write([], [predicted("p", RUN)])
    store.write([reported(RUN)])
    store.write([], [predicted("p", RUN)])
    store.write([reported(a_run("8", start=RUN.start_time, application="lammps", queue="batch"))])
    assert scored(store) == 1


def test_prediction_and_completion_may_come_in_one_transaction(store):
    store.write([reported(RUN)], [predicted("p", RUN)])
    assert scored(store) == 1


def test_the_walltime_requested_at_submission_wins(store, reader):
    store.write([], [predicted("p", RUN, requested_walltime=7200.0)])
    store.write([reported(RUN)])
    assert [run.submission.requested_walltime for run in read_all(reader)] == [7200.0]


def test_without_a_recorded_prediction_the_reported_request_stays(store, reader):
    store.write([reported(a_run("7", requested_memory=4096.0))])
    (run,) = read_all(reader)
    assert run.submission.requested_walltime == 3600.0
    assert run.submission.requested_memory == 4096.0


@pytest.mark.parametrize("asked", [None, 512.0])
def test_the_memory_requested_at_submission_wins_and_no_request_stays_unknown(store, reader, asked):
    run = a_run("7", requested_memory=4096.0)
    store.write([], [predicted("p", run, requested_memory=asked)])
    store.write([reported(run)])
    assert [run.submission.requested_memory for run in read_all(reader)] == [asked]


def test_the_prediction_id_comes_before_the_job_id(store):
    other = predicted("named", a_run("8", user="bob", submit_time=10.0), 100.0)
    store.write([], [predicted("p", RUN, 900.0, job_id="7"), other])
    store.write([reported(RUN, prediction_id="named")])
    (score,) = store.scores.of_methods("default")
    assert score.mean_absolute_error == 500.0


def test_a_prediction_id_of_another_cluster_is_not_believed(store):
    store.write([], [predicted("named", RUN, cluster="south")])
    store.write([reported(RUN, prediction_id="named")])
    assert scored(store) == scored(store, "south") == 0


def test_an_unknown_prediction_id_falls_back_on_the_job_id(store):
    store.write([], [predicted("p", RUN, job_id="7", user="somebody else")])
    store.write([reported(RUN, prediction_id="never heard of")])
    assert scored(store) == 1


def test_the_job_id_comes_before_the_submission(store):
    by_submission = predicted("older", RUN, 100.0, recorded_at=1.0)
    store.write([], [by_submission, predicted("p", RUN, 900.0, job_id="7", recorded_at=2.0)])
    store.write([reported(RUN)])
    assert store.scores.of_methods("default")[0].mean_absolute_error == 300.0


@pytest.mark.parametrize(
    ("different", "expected"),
    [
        ({}, 1),
        ({"submit_time": 938.0}, 1),
        ({"submit_time": 942.0}, 1),
        ({"submit_time": 937.9}, 0),
        ({"submit_time": 942.1}, 0),
        ({"user": "bob"}, 0),
        ({"application": "gromacs"}, 0),
        ({"application": None}, 0),
        ({"queue": "debug"}, 0),
        ({"cluster": "south"}, 0),
        ({"job_id": "8"}, 0),
    ],
)
def test_without_ids_user_application_queue_and_submit_time_must_fit(store, different, expected):
    store.write([], [predicted("p", RUN, **different)])
    store.write([reported(RUN)])
    assert scored(store) == expected


def test_unknown_users_are_not_the_same_user(store):
    run = a_run("7", user=None)
    store.write([], [predicted("p", run)])
    store.write([reported(run)])
    assert scored(store) == 0


def test_the_oldest_prediction_is_met_first(store):
    twins = [a_run("1", application="a"), a_run("2", application="a", runtime=700.0)]
    late = predicted("a", twins[0], 700.0, recorded_at=20.0)
    early = predicted("b", twins[0], 600.0, recorded_at=10.0)
    store.write([], [late, early])
    store.write([reported(*twins)])
    (score,) = store.scores.of_methods("default")
    assert (score.jobs, score.mean_absolute_error) == (2, 0.0)


def test_a_jobs_other_predictions_are_closed_unscored(store):
    store.write([], [predicted(name, RUN, job_id="7") for name in "abc"])
    store.write([reported(RUN)])
    store.write([reported(a_run("7", start=5000.0))])
    assert scored(store) == 1
    assert store.drop_stale_predictions(1e12) == 0


@pytest.mark.parametrize("named", [{"prediction_id": "second", "replaced_id": "first"}, {}])
def test_the_prediction_at_submission_is_closed_when_a_second_one_was_made_at_the_start(
    store, named
):
    second = {"job_id": "7", "submit_time": RUN.start_time}
    store.write([], [predicted("first", RUN, 100.0), predicted("second", RUN, 900.0, **second)])
    store.write([reported(RUN, **named)])
    (score,) = store.scores.of_methods("default")
    assert (score.jobs, score.mean_absolute_error) == (1, 300.0)
    assert store.drop_stale_predictions(1e12) == 0, "none is left open"


def test_only_the_prediction_that_is_named_as_replaced_is_closed(store):
    second = predicted("second", RUN, 900.0, job_id="7")
    store.write([], [predicted("a", RUN), predicted("b", RUN), second])
    store.write([reported(RUN, prediction_id="second", replaced_id="b")])
    twin = a_run("8", application="lammps", queue="batch")
    store.write([reported(twin, prediction_id="a")])
    assert scored(store) == 2
    assert store.drop_stale_predictions(1e12) == 0


def test_a_job_that_names_its_prediction_leaves_others_of_its_second_alone(store):
    store.write([], [predicted("a", RUN), predicted("b", RUN, job_id="7")])
    store.write([reported(RUN, prediction_id="b")])
    assert store.drop_stale_predictions(1e12) == 1


def test_of_twins_without_names_each_closes_one_prediction_at_submission(store):
    twins = [a_run("1", application="a"), a_run("2", application="a")]
    firsts = [predicted(name, twins[0]) for name in "ab"]
    seconds = [
        predicted(f"{run.submission.job_id}'", run, job_id=run.submission.job_id) for run in twins
    ]
    store.write([], firsts + seconds)
    store.write([reported(twins[0])])
    assert scored(store) == 1
    store.write([reported(twins[1])])
    assert scored(store) == 2
    assert store.drop_stale_predictions(1e12) == 0


def test_twins_that_end_in_one_report_close_a_prediction_at_submission_each(store):
    twins = [a_run(job, application="a") for job in "12"]
    at_start = [predicted(f"{job}'", twins[0], job_id=job) for job in "12"]
    store.write([], [*(predicted(name, twins[0]) for name in "abc"), *at_start])
    store.write([reported(*twins)])
    assert scored(store) == 2
    assert store.drop_stale_predictions(1e12) == 1, "the third is another job's"


def test_the_prediction_of_a_later_job_with_the_same_id_stays_open(store):
    later = a_run("7", start=90_000.0)
    store.write([], [predicted("p", RUN, job_id="7"), predicted("q", later, job_id="7")])
    store.write([reported(RUN)])
    store.write([reported(later)])
    assert scored(store) == 2


@pytest.mark.parametrize(("late", "expected"), [(2.0, 1), (2.1, 0)])
def test_two_clocks_may_differ_by_two_seconds_at_the_end_of_a_run_too(store, late, expected):
    end = RUN.end_time + late
    store.write([], [predicted("p", RUN, job_id="7", submit_time=end)])
    store.write([reported(RUN)])
    assert scored(store) == expected


def test_a_replaced_prediction_of_another_cluster_is_left_alone(store):
    store.write([], [predicted("b", RUN, job_id="7"), predicted("a", RUN, cluster="south")])
    store.write([reported(RUN, prediction_id="b", replaced_id="a")])
    assert store.drop_stale_predictions(1e12) == 1


def test_a_prediction_made_after_the_run_is_of_a_later_job_with_the_same_id(store):
    later = a_run("7", start=90_000.0)
    store.write([], [predicted("p", later, job_id="7")])
    store.write([reported(RUN)])
    assert scored(store) == 0
    store.write([reported(later)])
    assert scored(store) == 1


def test_predictions_of_jobs_that_never_ended_are_forgotten(store):
    store.write(
        [], [predicted("old", RUN, recorded_at=100.0), predicted("new", RUN, recorded_at=300.0)]
    )
    assert store.drop_stale_predictions(200.0) == 1
    assert store.drop_stale_predictions(200.0) == 0
    store.write([reported(RUN)])
    assert scored(store) == 1


def test_a_large_batch_finds_all_its_predictions(store):
    runs = [a_run(str(job), start=1000.0 + job, user=f"u{job % 50}") for job in range(1500)]
    store.write([], [predicted(f"p{job}", run, job_id=str(job)) for job, run in enumerate(runs)])
    store.write([reported(*runs[:700]), reported(*runs[700:])])
    assert scored(store) == 1500


def test_no_prediction_is_scored_by_two_workers(store, store_url):
    other = open_store(store_url)
    store.write([], [predicted("p", RUN, job_id="7"), predicted("q", RUN, job_id="7")])
    store.write([reported(RUN)])
    other.write([reported(a_run("7", start=3000.0))])
    assert scored(store) == 1
    other.close()


@given(st.floats(1, 1e7), st.floats(0, 1e7))
def test_the_sums_of_scores_use_the_accuracy_that_all_measures_use(predicted, runtime):
    of_one = measures.accuracy(np.array([predicted]), np.array([runtime]))
    sums = Sums()
    sums.add(predicted, runtime)
    assert sums.accuracy == of_one[0]
