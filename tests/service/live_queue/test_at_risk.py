"""Running jobs that will probably be cut."""

import asyncio
from functools import partial

import pytest
from jobs_at_risk import AT_RISK, hand_over, job, taught

from service.worker.risks import JOBS_PER_TURN, MOSTLY_USED, jobs_at_risk


def test_running_jobs_that_will_probably_be_cut_are_listed_with_what_they_are_missing(
    serve, sqlite_url
):
    service = taught(serve, sqlite_url)
    now = service.worker.clock()
    hand_over(
        service,
        job("1", now - 3000),
        job("2", now - 3300),
        job("early", now - 600),
        job("calm", now - 3300, user="u1", request=36_000.0),
    )
    answer = service.get(AT_RISK).json()
    assert [each["job_id"] for each in answer["jobs"]] == ["2", "1"]
    first = answer["jobs"][0]
    assert first["limit_time"] == now - 3300 + 3600
    assert first["limit"]["probability"] >= answer["probability"] == 0.875
    assert first["limit"]["warning"] is True
    assert first["missing"] == 6300 - 3600
    assert first["end_time"] == now - 3300 + 6300
    count = partial(service.metric, "walltimed_snapshot_jobs_at_risk", cluster="hill")
    service.wait_until(lambda: count() == 2)
    early = service.get(AT_RISK, used=0.1, probability=0).json()["jobs"]
    assert {"early"} <= {each["job_id"] for each in early}


def test_thousands_of_jobs_at_risk_leave_turns_to_other_requests(serve, sqlite_url):
    service = taught(serve, sqlite_url)
    now, count = service.worker.clock(), 50 * JOBS_PER_TURN
    hand_over(service, *(job(f"{n}", now - 3300) for n in range(count)))
    snapshot = service.worker.queues.of("hill").snapshot
    state = service.worker.live.of("hill")
    turns = 0

    async def look():
        nonlocal turns
        looked = asyncio.create_task(
            jobs_at_risk(snapshot, state, now=now, used=MOSTLY_USED, least=0.6)
        )
        while not looked.done():
            await asyncio.sleep(0)
            turns += 1
        return looked.result()

    assert len(asyncio.run(look())) == count
    assert turns >= 50


def test_a_user_sees_own_jobs_at_risk_only(serve, sqlite_url):
    service = taught(serve, sqlite_url)
    now = service.worker.clock()
    hand_over(service, job("1", now - 3000))
    service.token = service.issue("bob", "self", user="bob")
    assert service.get(AT_RISK).json()["jobs"] == []
    service.token = service.issue("ada", "self", user="ada")
    assert len(service.get(AT_RISK).json()["jobs"]) == 1


def test_without_a_queue_or_with_a_share_beyond_one_there_is_an_error(service):
    assert service.get(AT_RISK).json()["error"] == "UnknownSnapshotError"
    answer = service.get(AT_RISK, used=2)
    assert (answer.status_code, answer.json()["field"]) == (422, "used")


def test_pages_show_jobs_at_risk_and_what_a_job_that_will_be_cut_would_need(serve, sqlite_url):
    service = taught(serve, sqlite_url)
    now = service.worker.clock()
    hand_over(service, job("<b>4711", now - 3300), job("calm", now - 3300, user="u1"))
    page = service.request("GET", "/at-risk?cluster=hill").text
    assert "1 job that has used 80% of the limit will be cut there" in page
    assert "&lt;b&gt;4711" in page
    assert "calm" not in page
    assert "9 of 10 would end within" in page
    hand_over(service, job("calm", now - 3300, user="u1"))
    service.wait_until(lambda: service.get(AT_RISK).json()["jobs"] == [])
    nobody = service.request("GET", "/at-risk?cluster=hill").text
    assert "No job that has used 80% of the limit will be cut there with a probability" in nobody
    hand_over(service, job("<b>4711", now - 3300), job("calm", now - 3300, user="u1"))
    service.wait_until(lambda: len(service.get(AT_RISK).json()["jobs"]) == 1)
    assert "hill: 1 running job will probably be cut." in service.request("GET", "/").text
    shown = service.request("GET", "/job?cluster=hill&id=%3Cb%3E4711").text
    assert "will probably be cut" in shown
    assert "12 of the last 12 like it did" in shown
    detail = service.get("/v1/clusters/hill/jobs/<b>4711")
    assert detail.json()["limit"]["warning"] is True
    assert detail.json()["limit"]["longer_walltime"] > 3600


@pytest.mark.parametrize("age", [1, 10_000])
def test_an_old_queue_is_marked_beside_its_jobs_at_risk(serve, sqlite_url, against, age):
    service = taught(serve, sqlite_url)
    now = service.worker.clock()
    hand_over(service, job("1", now - 3300), taken_at=now - age)
    is_old = age > 1000
    assert service.get(AT_RISK).json()["is_old"] is is_old
    assert (">old</span>" in service.request("GET", "/at-risk?cluster=hill").text) is is_old
    code, told, complained = against(service, "queue", "--at-risk", "--cluster", "hill")
    assert (code, "1 running job" in told) == (0, True)
    assert ("This queue is old" in complained) is is_old
