"""Whoever asks a method that fails gets the request in its place, on every route that asks."""

import pytest
from asgi_client import NOW, run_of
from broken_method import BrokenMethod

JOB = {"job_id": "1", "requested_walltime": 3600, "submit_time": NOW, "user": "ada"}


@pytest.fixture
def broken(service):
    """A service that has learned of a run, and whose default method has failed ever since."""
    service.complete(run_of("before", runtime=900))
    service.worker.live.of("default").predictors["max-usage"] = BrokenMethod()
    return service


def failures(service, phase):
    return service.metric("walltimed_method_failures_total", method="max-usage", phase=phase)


def is_the_request(prediction):
    return (
        prediction["method"] == "requested"
        and prediction["basis"] == {"jobs": 0, "reason": "failure"}
        and prediction["predicted_walltime"] == prediction["requested_walltime"] == 3600.0
    )


def test_a_prediction_is_the_request(broken):
    assert is_the_request(broken.predict(user="ada"))
    assert failures(broken, "answer") == 1


def test_every_prediction_of_a_batch_is_the_request(broken):
    answer = broken.post("/v1/predictions/batch", {"submissions": [JOB, JOB]})
    assert all(map(is_the_request, answer.json()["predictions"]))
    assert failures(broken, "answer") == 2


@pytest.mark.parametrize(
    ("policy", "machine"),
    [("easy", {"processors": 1}), ("basic", {"nodes": [{"name": "n1"}]})],
)
def test_a_forecast_plays_the_request(broken, policy, machine):
    queue = {"machine": machine, "policy": policy, "samples": 0, "now": NOW, "waiting": [JOB]}
    answer = broken.post("/v1/forecasts", queue)
    assert answer.status_code == 200, answer.text
    (job,) = answer.json()["jobs"]
    assert job["end_time"] - job["start_time"] == job["predicted_walltime"] == 3600
    assert failures(broken, "answer") == 1


def test_in_shadow_it_fails_no_answer_and_gets_no_score(broken):
    asked = broken.predict(user="ada", job_id="2", submit_time=NOW, method="last-two")
    assert asked["method"] == "last-two"
    broken.complete(run_of("2", end_time=NOW + 1, prediction_id=asked["prediction_id"]))
    assert broken.score("last-two")["jobs"] == 1
    assert broken.score("max-usage") is None
    assert failures(broken, "shadow") == 1


def test_forecasts_vary_runtimes_by_what_was_answered_in_its_place(broken):
    broken.complete(run_of("2", runtime=1800, end_time=NOW + 1))
    assert broken.worker.live.of("default").error_ratios.ascending()[-1] == 1800 / 3600
    assert failures(broken, "observe") == 2  # it was asked, and was to learn
    assert broken.predict(user="ada", method="last-two")["predicted_walltime"] == 1350.0


def test_the_service_gets_ready_with_a_method_that_always_fails(serve, sqlite_url, monkeypatch):
    monkeypatch.setattr("predictors.methods.max_usage.MaxUsage.predict", BrokenMethod.predict)
    service = serve(sqlite_url)
    assert service.get("/health/ready").status_code == 200
    assert is_the_request(service.predict(user="ada"))
