"""Jumps of the service's clock lose nothing, fail no answer, and pass."""

from unittest.mock import patch

import pytest
from asgi_client import NOW, InProcess, run_of

from service.http import app
from service.worker.live_state import LATE_RUNS
from service.worker.worker import Worker

DAY = 86_400.0

READ = [
    *("/", "/accuracy", "/queue", "/users", "/user?name=ada", "/tuning", "/what-if", "/at-risk"),
    *("/job?id=w-1", "/v1/methods", "/v1/clusters", "/v1/waits", "/v1/tunings", "/metrics"),
    *("/v1/clusters/default/snapshot", "/v1/clusters/default/at-risk", "/health/ready"),
    *("/v1/clusters/default/jobs/w-1", "/v1/ended-jobs/early-1", "/v1/accuracy-groups"),
    *("/v1/reports/requests", "/v1/reports/users", "/v1/users/ada/accuracy"),
]


class Clock:
    """A clock that jumps."""

    now = NOW + 10.0

    def __call__(self) -> float:
        return self.now


def service_with(clock: Clock, url: str) -> InProcess:
    """A service all of whose parts go by this clock."""

    class ByThisClock(Worker):
        def __init__(self, settings, *, owns_process) -> None:
            super().__init__(settings, clock=clock, owns_process=owns_process)
            self.writer._clock = clock

    with patch.object(app, "Worker", ByThisClock):
        return InProcess(url)


def queue_of(taken_at: float) -> dict:
    """A queue with a running and a waiting job."""
    job = {"user": "ada", "requested_walltime": 3600, "requested_processors": 1}
    times = {"submit_time": taken_at - 100.0}
    return {
        "taken_at": taken_at,
        "pools": [{"processors": 1}],
        "running": [{**job, **times, "job_id": "r-1", "start_time": taken_at - 50.0}],
        "waiting": [{**job, **times, "job_id": "w-1"}],
    }


def post_queue(service: InProcess, taken_at: float):
    return service.request("PUT", "/v1/clusters/default/snapshot", json=queue_of(taken_at))


def lag(service: InProcess) -> int:
    return service.get("/health/ready").json()["lag"]


@pytest.mark.parametrize("jump", [DAY, -DAY, 365 * DAY, -365 * DAY])
def test_a_jump_of_the_clock_loses_no_run_and_fails_no_answer(sqlite_url, jump):
    clock = Clock()
    with service_with(clock, sqlite_url) as service:
        service.complete(*(run_of(f"early-{each}", end_time=NOW - each) for each in range(100)))
        assert post_queue(service, NOW).status_code == 202
        before = service.predict(user="ada", submit_time=NOW)
        assert before["basis"]["reason"] == "history"

        clock.now += jump
        failed = [path for path in READ if service.get(path).status_code >= 500]
        assert not failed
        asked = service.predict(user="ada")
        assert asked["basis"]["reason"] == ("history" if jump > 0 else "cold-start")
        runs = [run_of(f"then-{each}", runtime=30.0, end_time=clock.now - each)
                for each in range(2 * LATE_RUNS)]  # fmt: skip
        assert service.complete(*runs)["accepted"] == len(runs)
        taken = post_queue(service, NOW)
        if jump < 0:
            assert taken.status_code == 422
            assert "taken in the future" in taken.text
        assert post_queue(service, clock.now).status_code == 202

        clock.now -= jump
        failed = [path for path in READ if service.get(path).status_code >= 500]
        assert not failed
        assert post_queue(service, NOW + 5.0).status_code == 202
        assert service.complete(run_of("last", end_time=NOW))["accepted"] == 1
        service.wait_until(lambda: lag(service) == 0)
        known = service.predict(user="ada", submit_time=NOW)
        assert service.worker.store.past_runs.count() == 100 + len(runs) + 1
    with InProcess(sqlite_url) as restarted:
        assert restarted.worker.store.past_runs.count() == 100 + len(runs) + 1
        assert restarted.predict(user="ada", submit_time=NOW)["basis"] == known["basis"]
        again = restarted.predict(user="ada", submit_time=NOW)["predicted_walltime"]
        assert again == known["predicted_walltime"] == before["predicted_walltime"]
