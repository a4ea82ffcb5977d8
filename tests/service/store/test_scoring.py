"""Recorded predictions meet the ends of their jobs once, and are scored."""

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import a_run, between, ended, predicted, read_all, reported

from predictors import measures
from predictors.facts import Facts
from predictors.memory.running_jobs import Start
from service.store import Erasure, ObservedShare, scores
from service.store.scores import RECENT, Sums

DAY = scores.DAY_SECONDS

RUN = a_run("7", runtime=600.0, application="lammps", queue="batch")


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
    assert (least_cost.coverage, least_cost.nominal_coverage) == (0.5, pytest.approx(0.85))
    assert (max_usage.coverage, max_usage.nominal_coverage) == (None, None)


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
    assert recent.intervals == ObservedShare(
        jobs=RECENT, nominal=pytest.approx(0.9), observed=1 - 5 / RECENT
    )
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
    assert recent.rates == ObservedShare(jobs=2, nominal=pytest.approx(0.15), observed=0.5)
    assert recent.underestimation_rate == pytest.approx(2 / 3)


def test_what_is_predicted_to_the_second_is_not_too_short_and_within_its_interval(store):
    for job, (lower, upper) in enumerate([(600.0, 900.0), (300.0, 600.0)]):
        run = a_run(str(job), start=1000.0 * job, runtime=600.0)
        interval = between(lower, upper)
        asked = {"interval": interval, "underestimation_rate": 0.1}
        store.write([reported(run)], [predicted(f"p{job}", run, 600.0, **asked)])
    (recent,), (score,) = store.scores.recent("default"), store.scores.of_methods("default")
    assert recent.underestimation_rate == score.underestimation_rate == 0.0
    assert recent.rates == ObservedShare(jobs=2, nominal=pytest.approx(0.1), observed=0.0)
    assert recent.intervals.observed == score.coverage == 1.0


def test_a_job_that_is_killed_a_moment_after_its_request_is_held_by_an_interval_up_to_it(store):
    run = a_run("7", runtime=3605.0)
    store.write([], [predicted("p", run, 3600.0, interval=between(60.0, 3600.0))])
    store.write([reported(run)])
    assert store.scores.of_methods("default")[0].coverage == 1.0
    assert store.scores.recent("default")[0].intervals.observed == 1.0
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


def test_a_prediction_recorded_twice_is_scored_once(store):
    store.write([], [predicted("p", RUN)])
    store.write([reported(RUN)])
    store.write([], [predicted("p", RUN)])
    store.write([reported(a_run("8", start=RUN.start_time, application="lammps", queue="batch"))])
    assert scored(store) == 1


def test_the_walltime_requested_at_submission_wins(store, reader):
    store.write([], [predicted("p", RUN, requested_walltime=7200.0)])
    store.write([reported(RUN)])
    assert [run.submission.requested_walltime for run in read_all(reader)] == [7200.0]


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


def test_the_job_id_comes_before_the_submission(store):
    by_submission = predicted("older", RUN, 100.0, recorded_at=1.0)
    store.write([], [by_submission, predicted("p", RUN, 900.0, job_id="7", recorded_at=2.0)])
    store.write([reported(RUN)])
    assert store.scores.of_methods("default")[0].mean_absolute_error == 300.0


LATER = a_run("7", start=90_000.0)
OLD = a_run("7", start=3_000.0)
WAITED = ended(500_600.0, 600.0, waited=400_000.0, job_id="7", user="ada")
TWINS = [a_run(job, application="a") for job in "12"]
AT_START = [predicted(f"{job}'", TWINS[0], job_id=job) for job in "12"]


@pytest.mark.parametrize(
    ("predictions", "reports", "met", "left"),
    [
        pytest.param(predictions, reports, met, left, id=case)
        for case, predictions, reports, met, left in [
            ("a run that is sent twice", [predicted("p", RUN)], [reported(RUN, RUN)] * 2, 1, 0),
            ("the id of another cluster's prediction", [predicted("p", RUN, cluster="south")],
             [reported(RUN, prediction_id="p")], 0, 1),
            ("an unknown prediction id", [predicted("p", RUN, job_id="7")],
             [reported(RUN, prediction_id="q")], 1, 0),
            ("the job id of a user whose name is unknown",
             [predicted("p", RUN, job_id="7", user=None)], [reported(RUN)], 1, 0),
            ("the job id of another user's job", [predicted("p", RUN, job_id="7", user="bob")],
             [reported(RUN)], 0, 1),
            ("the job id of a job of days before", [predicted("p", OLD, job_id="7")],
             [reported(LATER)], 0, 1),
            ("the job id and a start after days", [predicted("p", WAITED, job_id="7",
             submit_time=WAITED.start_time)], [reported(WAITED)], 1, 0),
            ("unknown users are not the same", [predicted("p", RUN, user=None)],
             [reported(a_run("7", user=None, application="lammps", queue="batch"))], 0, 1),
            ("a job's other predictions", [predicted(name, RUN, job_id="7") for name in "abc"],
             [reported(RUN), reported(a_run("7", start=5000.0))], 1, 0),
            ("only the one named as replaced",
             [predicted("a", RUN), predicted("b", RUN), predicted("second", RUN, job_id="7")],
             [reported(RUN, prediction_id="second", replaced_id="b")], 1, 1),
            ("a replaced one of another cluster",
             [predicted("b", RUN, job_id="7"), predicted("a", RUN, cluster="south")],
             [reported(RUN, prediction_id="b", replaced_id="a")], 1, 1),
            ("a job that names its prediction leaves others alone",
             [predicted("a", RUN), predicted("b", RUN, job_id="7")],
             [reported(RUN, prediction_id="b")], 1, 1),
            ("tasks of an array beside a job of the same name",
             [predicted("array", TWINS[0]), predicted("job", TWINS[0])],
             [reported(each, prediction_id="array") for each in TWINS], 1, 1),
            ("a federated job with the id of another cluster's job",
             [predicted("p", RUN, job_id="7", cluster="south")], [reported(RUN)], 0, 1),
            ("a requeued job of days later, which kept its id",
             [predicted("p", OLD, job_id="7", user="bob")], [reported(OLD), reported(LATER)], 0, 1),
            ("one of two twins", [predicted(name, TWINS[0]) for name in "ab"] + AT_START,
             [reported(TWINS[0])], 1, 2),
            ("twins one after the other",
             [predicted(name, TWINS[0]) for name in "ab"] + AT_START,
             [reported(TWINS[0]), reported(TWINS[1])], 2, 0),
            ("twins in one report: the third is another job's",
             [predicted(name, TWINS[0]) for name in "abc"] + AT_START,
             [reported(*TWINS)], 2, 1),
            ("a later job with the same id",
             [predicted("p", RUN, job_id="7"), predicted("q", LATER, job_id="7")],
             [reported(RUN)], 1, 1),
            ("two jobs with the same id",
             [predicted("p", RUN, job_id="7"), predicted("q", LATER, job_id="7")],
             [reported(RUN), reported(LATER)], 2, 0),
            ("a prediction made after the run", [predicted("p", LATER, job_id="7")],
             [reported(RUN)], 0, 1),
            ("two clocks differ by two seconds",
             [predicted("p", RUN, job_id="7", submit_time=RUN.end_time + 2.0)],
             [reported(RUN)], 1, 0),
            ("two clocks differ by more",
             [predicted("p", RUN, job_id="7", submit_time=RUN.end_time + 2.1)],
             [reported(RUN)], 0, 1),
        ]
    ],
)  # fmt: skip
def test_a_run_meets_its_prediction_once(store, predictions, reports, met, left):
    store.write([], predictions)
    for report in reports:
        store.write([report])
    assert scored(store) == met
    assert scored(store, "south") == 0
    assert store.drop_stale_predictions(1e12) == left


def test_each_task_of_an_array_has_what_was_recorded_at_its_submission(store, reader):
    facts = Facts(array_size=2, script_hash="~aaaaaaaa~")
    recorded = predicted("array", TWINS[0], facts=facts, requested_walltime=700.0)
    store.write([], [recorded])
    for each in (*TWINS, a_run("8", user="carol")):
        store.write([reported(each, prediction_id="array")])
    jobs = {run.submission.job_id: run.submission for run in read_all(reader)}
    assert [jobs[job].facts for job in "128"] == [facts, facts, None]
    assert [jobs[job].requested_walltime for job in "12"] == [700.0, 700.0]


def test_an_extended_limit_is_kept_beside_the_one_at_the_submission(store, reader):
    runs = {job: a_run(job, requested_walltime=7200.0) for job in ("p", "s", "usual", "new")}
    asked = {"p": 3600.0, "usual": 7150.0}
    recorded = [
        predicted(job, runs[job], requested_walltime=limit, job_id=job)
        for job, limit in asked.items()
    ]
    store.write([], recorded)
    started = a_run("s", requested_walltime=3600.0)
    store.starts.add([Start(started.submission, started.start_time, 1_005.0)])
    store.write([reported(*runs.values())])
    found = {run.submission.job_id: run for run in read_all(reader)}
    limits = {
        job: (run.submission.requested_walltime, run.extended_to) for job, run in found.items()
    }
    assert limits == {"p": (3600.0, 7200.0), "s": (3600.0, 7200.0), "usual": (7150.0, None),
                      "new": (7200.0, None)}  # fmt: skip


@pytest.mark.parametrize(
    ("different", "expected"),
    [
        *(({}, 1), ({"submit_time": 938.0}, 1), ({"submit_time": 942.0}, 1)),
        *(({"submit_time": 937.9}, 0), ({"submit_time": 942.1}, 0), ({"user": "bob"}, 0)),
        *(({"application": "gromacs"}, 0), ({"application": None}, 0), ({"queue": "debug"}, 0)),
        *(({"cluster": "south"}, 0), ({"job_id": "8"}, 0)),
    ],
)
def test_without_ids_user_application_queue_and_submit_time_must_fit(store, different, expected):
    store.write([], [predicted("p", RUN, **different)])
    store.write([reported(RUN)])
    assert scored(store) == expected


def test_the_oldest_prediction_is_met_first(store):
    twins = [a_run("1", application="a"), a_run("2", application="a", runtime=700.0)]
    late = predicted("a", twins[0], 700.0, recorded_at=20.0)
    early = predicted("b", twins[0], 600.0, recorded_at=10.0)
    store.write([], [late, early])
    store.write([reported(*twins)])
    (score,) = store.scores.of_methods("default")
    assert (score.jobs, score.mean_absolute_error) == (2, 0.0)


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


@given(st.floats(1, 1e7), st.floats(0, 1e7))
def test_the_sums_of_scores_use_the_accuracy_that_all_measures_use(predicted, runtime):
    of_one = measures.accuracy(np.array([predicted]), np.array([runtime]))
    sums = Sums()
    sums.add(predicted, runtime)
    assert sums.accuracy == of_one[0]


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


def test_nominal_coverage_stands_beside_the_share_that_held(store):
    end(store, "1", day=3, runtime=600.0, interval=between(600.0, 700.0))
    end(store, "2", day=3, runtime=600.0, interval=between(100.0, 200.0))
    end(store, "3", day=3, runtime=600.0)
    (score,) = store.scores.daily("default", "day", days=1)
    assert (score.jobs, score.intervals, score.coverage) == (3, 2, 0.5)
    assert score.nominal_coverage == pytest.approx(0.9)


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
    store.erasures.erase(Erasure(before=5 * DAY), now=9 * DAY)
    assert [each.label for each in store.scores.daily("default", "day", days=9)] == [5]
    store.erasures.erase(Erasure(cluster="default"), now=9 * DAY)
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
