"""The PBS hook against a stand-in of the pbs module, and a service that is well or is not.

No PBS can be installed where these tests were written: the hook has not met a real server.
"""

import sys
import time

import pytest
from fake_service import GARBAGE, fake_service, prediction
from pbs_stand_in import QUEUEJOB, RUNJOB, Duration, Event, Job, Run, run_hook

BUDGET, SLACK = 0.2, 0.15


@pytest.fixture(autouse=True)
def no_pause():
    yield
    if hasattr(sys, "walltimed_silent_until"):
        del sys.walltimed_silent_until


def job(**wanted):
    return Job(walltime=Duration("01:00:00"), ncpus=8, mem="16gb", **wanted)


def queued(tmp_path, service, submitted=None, **config):
    event = Event(QUEUEJOB, submitted or job())
    config = service.patience("budget_seconds") | config
    return run_hook(tmp_path, event, port=service.port, **config)


def started(tmp_path, service, submitted, waited=7200, **config):
    submitted.id, submitted.Job_Owner = "17.hill", "carol@login1"
    submitted.qtime = int(time.time() - waited)
    event = Event(RUNJOB, submitted, requestor="Scheduler")
    config = service.patience("budget_seconds") | config
    return run_hook(tmp_path, event, port=service.port, **config)


def test_the_question_is_the_job_in_the_words_of_the_api(tmp_path):
    with fake_service(prediction(), hangs_up=True) as service:
        run = queued(tmp_path, service, cluster="hill", token="wt_1_secret")
    assert run.verdict == "accepted"
    assert service.requests == [
        {
            "cluster": "hill",
            "user": "carol",
            "project": "zeolite",
            "queue": "batch",
            "application": "relax",
            "requested_walltime": 3600,
            "requested_processors": 8,
            "requested_memory": 2 * 1024 * 1024,
        }
    ]
    assert "Authorization: Bearer wt_1_secret\r\n" in service.headers[0]


@pytest.mark.parametrize(
    ("select", "cores"), [("2:ncpus=8:mem=4gb+1:ncpus=4", 20), ("3", 3), ("host=a:ncpus=2", 2)]
)
def test_chunks_are_counted_in_cores(tmp_path, select, cores):
    submitted = Job(walltime=Duration(60), select=select)
    with fake_service(prediction(), hangs_up=True) as service:
        queued(tmp_path, service, submitted)
    assert service.requests[0]["requested_processors"] == cores


def test_observe_sets_nothing_but_the_mark(tmp_path):
    with fake_service(prediction(), hangs_up=True) as service:
        run = queued(tmp_path, service, mode="observe")
    assert run.resources["soft_walltime"] is None
    assert run.resources["walltimed_prediction"] == "0b7c-42"


def test_soft_sets_the_soft_walltime_and_leaves_the_limit(tmp_path):
    with fake_service(prediction(), hangs_up=True) as service:
        run = queued(tmp_path, service, mode="soft")
    assert run.resources["soft_walltime"] == 422
    assert run.resources["walltime"] == 3600


def test_a_site_without_the_resource_for_the_mark_gets_its_soft_walltime(tmp_path):
    with fake_service(prediction(), hangs_up=True) as service:
        run = queued(tmp_path, service, job(is_marked=False), mode="soft")
    assert run.resources["soft_walltime"] == 422
    assert run.warnings == []


@pytest.mark.parametrize("predicted", [3600, 3599.5, 1e6])
def test_a_soft_walltime_stays_below_the_limit(tmp_path, predicted):
    with fake_service(prediction(predicted_walltime=predicted), hangs_up=True) as service:
        run = queued(tmp_path, service, mode="soft")
    assert run.resources["soft_walltime"] is None


@pytest.mark.parametrize(
    "wanted",
    [
        {"min_walltime": Duration(60)},
        {"max_walltime": Duration(60)},
        {"soft_walltime": Duration(60)},
    ],
)
def test_shrink_to_fit_jobs_and_soft_walltimes_of_others_are_left_alone(tmp_path, wanted):
    submitted = job(**wanted)
    before = dict(submitted.Resource_List)
    with fake_service(prediction(), hangs_up=True) as service:
        run = queued(tmp_path, service, submitted, mode="soft")
    assert (dict(run.resources), service.requests) == (before, [])


def test_a_job_without_a_walltime_is_left_alone(tmp_path):
    with fake_service(prediction(), hangs_up=True) as service:
        run = queued(tmp_path, service, Job(ncpus=1), mode="soft")
    assert (run.verdict, service.requests) == ("accepted", [])


def test_a_job_that_waited_long_is_predicted_again_at_its_start(tmp_path):
    submitted = job(soft_walltime=Duration(1800), walltimed_prediction="old")
    with fake_service(prediction(), hangs_up=True) as service:
        run = started(tmp_path, service, submitted, mode="soft")
    assert run.resources["soft_walltime"] == 422
    assert run.resources["walltimed_prediction"] == "0b7c-42"
    assert (service.requests[0]["user"], service.requests[0]["job_id"]) == ("carol", "17.hill")


def test_a_job_that_waited_little_keeps_its_prediction(tmp_path):
    submitted = job(soft_walltime=Duration(1800), walltimed_prediction="old")
    with fake_service(prediction(), hangs_up=True) as service:
        run = started(tmp_path, service, submitted, waited=60, mode="soft")
    assert (run.resources["soft_walltime"], service.requests) == (1800, [])


def test_a_soft_walltime_of_somebody_else_survives_the_start(tmp_path):
    with fake_service(prediction(), hangs_up=True) as service:
        run = started(tmp_path, service, job(soft_walltime=Duration(1800)), mode="soft")
    assert (run.resources["soft_walltime"], service.requests) == (1800, [])


@pytest.mark.parametrize(
    ("config", "is_asked"),
    [
        ({"mode": "off"}, False),
        ({"users": ["alice"]}, False),
        ({"users": ["carol"]}, True),
        ({"queues": ["long"]}, False),
        ({"queues": ["batch"]}, True),
    ],
)
def test_only_the_allowed_are_asked_about(tmp_path, config, is_asked):
    with fake_service(prediction(), hangs_up=True) as service:
        queued(tmp_path, service, **config)
    assert bool(service.requests) is is_asked


def test_a_service_that_hangs_costs_the_budget_once_per_pause(tmp_path):
    with fake_service(None) as service:
        runs = [queued(tmp_path, service, mode="soft") for _ in range(5)]
    assert BUDGET - 0.01 <= runs[0].seconds <= BUDGET + SLACK
    assert sum(run.seconds for run in runs[1:]) < BUDGET
    assert [run.verdict for run in runs] == ["accepted"] * 5
    assert len(runs[0].warnings) == 1
    assert not any(run.warnings for run in runs[1:])


def test_an_answer_that_trickles_in_costs_no_more_than_the_budget(tmp_path):
    with fake_service(prediction(), seconds_per_byte=0.02) as service:
        run = queued(tmp_path, service, mode="soft")
    assert run.verdict == "accepted"
    assert run.seconds <= BUDGET + SLACK


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_sets_nothing(tmp_path, kind):
    with fake_service(GARBAGE[kind], hangs_up=True) as service:
        run = queued(tmp_path, service, mode="soft")
    assert run.verdict == "accepted"
    assert run.resources["soft_walltime"] is None
    assert run.resources["walltimed_prediction"] is None


def test_a_service_that_is_gone_rejects_nobody(tmp_path):
    with fake_service() as service:
        pass
    assert queued(tmp_path, service, mode="soft").verdict == "accepted"


def test_a_host_name_is_never_looked_up(tmp_path):
    run = run_hook(tmp_path, Event(QUEUEJOB, job()), host="localhost", port=1)
    assert run.verdict == "accepted"
    assert "illegal IP address" in run.warnings[0]


def test_a_broken_configuration_rejects_nobody(tmp_path):
    (tmp_path / "hook.json").write_text("{")
    run = Run(Event(QUEUEJOB, job()), str(tmp_path / "hook.json"))
    assert (run.verdict, run.resources["soft_walltime"]) == ("accepted", None)
    assert Run(Event(QUEUEJOB, job()), str(tmp_path / "none")).verdict == "accepted"


def test_a_job_that_pbs_would_never_make_is_accepted(tmp_path):
    event = Event(QUEUEJOB, object())
    event.job = type("Odd", (), {"Resource_List": {}})()
    assert run_hook(tmp_path, event, mode="soft").verdict == "accepted"
