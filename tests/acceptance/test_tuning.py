"""A round of tuning outlives the service that started it."""

import json
import signal

import pytest
from running_service import Service, eventually

pytestmark = pytest.mark.acceptance

PLAN = {"history": 1000, "training": 3000, "test": 1000, "penalty": 1, "subjects": ["knn"]}
RUNTIMES = {"a": 300.0, "b": 900.0, "c": 2700.0}


def history():
    for number, (application, runtime) in enumerate(list(RUNTIMES.items()) * 1700):
        end = 1_700_000_000.0 + 600 * number
        yield {
            "job_id": number,
            "user": f"u{number % 50}",
            "application": application,
            "requested_walltime": 3600.0,
            "submit_time": end - 3000.0,
            "start_time": end - runtime,
            "end_time": end,
            "status": "completed",
        }


def test_kill_9_of_the_service_does_not_lose_its_round(sqlite_url, monkeypatch):
    monkeypatch.setenv("WALLTIMED_TUNING_PLAN", json.dumps(PLAN))
    with Service(sqlite_url) as killed:
        killed.complete(*history()).raise_for_status()
        (begun,) = eventually(lambda: killed.client.get("/v1/tunings").json()["tunings"])
        assert begun["state"] == "running"
        path = f"/v1/tunings/{begun['tuning_id']}"
        assert killed.end(signal.SIGKILL) == -signal.SIGKILL
        # Only now, because the round's process works in the directory of the killed service.
        with Service(sqlite_url) as service:
            eventually(lambda: service.client.get(path).json()["state"] == "done")
            done = service.client.get(path).json()
            assert done["adopted"] is True
            eventually(lambda: parameters(service) == done["after"]["parameters"])


def parameters(service):
    methods = service.client.get("/v1/methods").json()["methods"]
    return next(method["parameters"] for method in methods if method["name"] == "knn")
