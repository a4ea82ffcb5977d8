"""Longer limits for running jobs, where no planned start moves."""

import pytest
from jobs_at_risk import hand_over, job, taught

from predictors.limits import LIKELY

LONGER = "/v1/clusters/hill/longer-limits"


@pytest.fixture
def service(serve, sqlite_url):
    return taught(serve, sqlite_url)


def ask(service, jobs, **rules):
    body = {"jobs": [{"job_id": name, "most": most} for name, most in jobs.items()], **rules}
    answer = service.request("POST", LONGER, json=body)
    assert answer.status_code == 200, answer.text
    return {each.pop("job_id"): each for each in answer.json()["limits"]}


def waiting(job_id, submitted, processors, request=600.0):
    fields = job(job_id, submitted, user="u1", request=request)
    del fields["start_time"]
    return fields | {"requested_processors": processors}


def test_a_job_that_will_be_cut_gets_what_nine_in_ten_need_where_nobody_waits(service):
    now = service.worker.clock()
    hand_over(service, job("1", now - 3300), job("early", now - 600), job("2", now - 3100))
    found = ask(service, {"1": 9000, "early": 9000, "2": 4000, "gone": 9000})
    assert (found["1"]["walltime"], found["1"]["reason"]) == (6300, "granted")
    assert (found["1"]["delay"], found["1"]["requested_walltime"]) == (0, 3600)
    assert found["1"]["probability"] >= LIKELY
    assert found["2"]["walltime"] == 3960, "whole minutes, at most what was said"
    assert found["early"] == {
        "requested_walltime": 3600, "walltime": None, "delay": None, "probability": None,
        "reason": "not-at-risk",
    }  # fmt: skip
    assert found["gone"]["reason"] == "unknown-job"
    assert found["gone"]["requested_walltime"] is None


def test_there_is_no_room_below_the_next_minute(service):
    now = service.worker.clock()
    hand_over(service, job("1", now - 3300))
    found = ask(service, {"1": 3659})["1"]
    assert (found["walltime"], found["delay"], found["reason"]) == (None, None, "no-room")
    assert ask(service, {"1": 60})["1"]["reason"] == "no-room"


def test_no_planned_start_moves_later_by_more_than_the_bound(service):
    now = service.worker.clock()
    hand_over(
        service,
        job("1", now - 3000),
        waiting=[waiting("next", now - 50, 64), waiting("small", now - 40, 1)],
    )
    found = ask(service, {"1": 9000})["1"]
    assert (found["walltime"], found["reason"]) == (None, "delays")
    assert found["delay"] == 6300 - 3600
    assert ask(service, {"1": 9000}, delay=2699)["1"]["reason"] == "delays"
    assert ask(service, {"1": 9000}, delay=2700)["1"]["walltime"] == 6300
    part = ask(service, {"1": 9000}, delay=700, late=600)["1"]
    assert (part["walltime"], part["delay"]) == (3600 + 660, 660), "a quarter, in whole minutes"


def test_a_limit_that_was_granted_counts_for_the_next_job(service):
    now = service.worker.clock()
    hand_over(
        service,
        job("1", now - 3100),
        job("2", now - 3000),
        waiting=[waiting("next", now - 50, 63)],
    )
    alone = ask(service, {"2": 9000}, delay=2600)["2"]
    both = ask(service, {"2": 9000, "1": 9000}, delay=2600)
    assert alone["delay"] == 2700, "it ends 100 s after the other one"
    assert both["1"]["walltime"] == 6300
    assert both["2"]["reason"] == "delays"


def test_an_old_queue_extends_nothing(service):
    now = service.worker.clock()
    hand_over(service, job("1", now - 53_300), taken_at=now - 50_000)
    assert ask(service, {"1": 90_000})["1"]["reason"] == "old-snapshot"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "jobs"),
        ({"jobs": [{"job_id": "1"}]}, "jobs.0.most"),
        ({"jobs": [{"job_id": "1", "most": -1}]}, "jobs.0.most"),
        ({"jobs": [], "delay": -1}, "delay"),
        ({"jobs": [], "used": 2}, "used"),
        ({"jobs": [], "step": 0}, "step"),
        ({"jobs": [], "bound": 0}, "bound"),
    ],
)
def test_a_wrong_field_is_named(service, body, field):
    answer = service.request("POST", LONGER, json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, field)


def test_without_a_queue_there_is_an_error(service):
    answer = service.request("POST", LONGER, json={"jobs": []})
    assert answer.json()["error"] == "UnknownSnapshotError"


def test_what_is_added_takes_the_whole_machine_for_so_many_seconds_at_most(service):
    now = service.worker.clock()
    hand_over(service, job("1", now - 3300))
    every, half = (ask(service, {"1": 9000}, machine=each)["1"] for each in (2700 / 32, 1350 / 32))
    assert (every["walltime"], half["walltime"]) == (6300, 3600 + 1320)
    assert ask(service, {"1": 9000}, machine=0)["1"]["reason"] == "no-room"
