"""A job by its id, in the queue or ended: one call answers both."""

import pytest
from asgi_client import NOW, run_of

pytestmark = pytest.mark.usefixtures("played_here")

QUEUE = {
    "pools": [{"processors": 4}],
    "waiting": [{"job_id": "7", "user": "ada", "requested_walltime": 60, "submit_time": NOW}],
}


def hand_over(service):
    return service.request("PUT", "/v1/clusters/hill/snapshot", json=QUEUE)


def test_a_job_is_found_in_the_queue_or_among_those_that_have_ended(service):
    service.complete(run_of("6", cluster="hill"), run_of("7", cluster="hill"))
    assert hand_over(service).status_code == 202
    live, ended = (service.get(f"/v1/clusters/hill/jobs/{name}").json() for name in "76")
    assert live["job"]["state"] == "waiting"
    assert ended["runs"][0]["status"]
    assert ended == service.get("/v1/ended-jobs/6", cluster="hill").json()


def test_a_job_that_nobody_knows_is_an_unknown_job_with_and_without_a_queue(service):
    for cluster in ("hill", "dale"):
        if cluster == "hill":
            hand_over(service)
        answer = service.get(f"/v1/clusters/{cluster}/jobs/8")
        assert (answer.status_code, answer.json()["error"]) == (404, "UnknownJobError")
