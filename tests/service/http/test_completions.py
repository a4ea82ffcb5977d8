import json

import pytest
from asgi_client import NOW, run_of

from service.store import StoreFullError, StoreUnavailableError


def test_one_completion_counts_once_however_often_it_is_sent(service):
    answers = [service.post("/v1/completions", run_of("1")).json() for _ in range(2)]
    assert answers == [{"accepted": 1, "duplicates": 0}, {"accepted": 0, "duplicates": 1}]
    assert service.worker.store.past_runs.count() == 1


def test_a_batch_counts_each_run_once(service):
    runs = [run_of("1"), run_of("2"), run_of("1")]
    assert service.complete(*runs) == {"accepted": 2, "duplicates": 1}
    assert service.complete() == {"accepted": 0, "duplicates": 0}


@pytest.mark.parametrize("number", [17, "17"])
def test_a_job_id_is_the_same_as_number_and_as_text(service, number):
    service.complete(run_of(number))
    assert service.complete(run_of("17"))["duplicates"] == 1


@pytest.mark.parametrize(
    ("times", "runtime"),
    [
        ({"start_time": NOW - 900}, 900.0),
        ({"runtime": 900}, 900.0),
        ({"start_time": NOW - 900, "runtime": 600}, 600.0),
        ({"start_time": NOW - 900, "submit_time": NOW + 900}, 900.0),
        ({"start_time": NOW}, 1.0),
    ],
)
def test_start_or_runtime_may_be_left_out(service, times, runtime):
    run = {"job_id": "1", "user": "ada", "requested_walltime": 3600, "end_time": NOW}
    service.complete(run | times)
    assert service.predict(user="ada")["predicted_walltime"] == runtime


@pytest.mark.parametrize("error", [StoreUnavailableError, StoreFullError])
def test_without_a_store_completions_are_refused_and_predictions_go_on(service, monkeypatch, error):
    service.complete(run_of("1"))

    async def fail(_group):
        raise error("The database is away.")

    monkeypatch.setattr(service.worker.writer, "acknowledged", fail)
    answer = service.post("/v1/completions", run_of("2"))
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert answer.json() == {"error": error.__name__, "detail": "The database is away."}
    assert service.predict(user="ada")["predicted_walltime"] == 900.0


@pytest.mark.parametrize("measured", [300.0, 1500.0])
def test_a_measured_runtime_is_kept_beside_times_that_say_another(service, measured):
    # Shorter: the job was suspended. Longer: the clock was set back while it ran.
    for job in ("1", "2"):
        service.complete(run_of(job, runtime=900, end_time=NOW) | {"runtime": measured})
    told = service.predict(user="ada", method="last-two", submit_time=NOW + 10)
    assert told["predicted_walltime"] == measured


def test_a_prediction_is_scored_when_its_job_ends(service):
    service.complete(run_of("1", runtime=900, end_time=NOW))
    service.predict(user="ada", job_id="2", submit_time=NOW + 10)
    assert service.score("max-usage") is None
    service.complete(run_of("2", runtime=600, end_time=NOW + 1000))
    score = service.score("max-usage")
    assert score["jobs"] == 1
    assert score["mean_absolute_error"] == pytest.approx(300.0)
    assert score["underestimation_rate"] == 0.0
    assert score["accuracy"] == pytest.approx(600 / 900)
    assert score["coverage"] is None
    assert service.score("requested")["mean_absolute_error"] == pytest.approx(3000.0)
    assert service.metric(
        "walltimed_mean_absolute_error_seconds", cluster="default", method="max-usage"
    ) == pytest.approx(300.0)


@pytest.mark.parametrize(("rate", "asked"), [(100.0, 4), (0.1, 1), (0.0, 0)])
def test_the_rate_of_submissions_asked_in_shadow_is_a_setting(serve, sqlite_url, rate, asked):
    service = serve(sqlite_url, shadow_max_per_second=rate)
    for place in range(4):
        service.predict(user="ada", job_id=place, submit_time=NOW - 1000)
    service.complete(*(run_of(place) for place in range(4)))
    assert service.score("max-usage")["jobs"] == 4
    shadow = service.score("last-two")
    assert (shadow["jobs"] if shadow else 0) == asked


def test_predictions_need_not_be_recorded(serve, sqlite_url):
    service = serve(sqlite_url, record_predictions=False)
    service.predict(user="ada", job_id="1", submit_time=NOW - 1000)
    service.complete(run_of("1"))
    assert service.score("max-usage") is None


def test_ingestion_is_counted(service):
    service.complete(run_of("1"), run_of("2"))
    service.complete(run_of("2"))
    assert service.metric("walltimed_completions_total", result="accepted") == 2
    assert service.metric("walltimed_completions_total", result="duplicate") == 1


def test_a_run_that_starts_before_its_submission_was_submitted_at_its_start(service):
    """A clock jumped back while the job waited; the adapters have the same rule."""
    run = run_of("1")
    service.complete(run | {"submit_time": run["start_time"] + 3600})
    reader = service.worker.store.reader()
    (completion,) = reader.read(10)
    reader.close()
    assert completion.submission.submit_time == completion.start_time == run["start_time"]


def test_of_a_key_given_twice_in_a_record_the_last_counts(service):
    record = (
        '{"jobid": 1, "username": "eve", "username": "carol", "state": "COMPLETED", "cluster": "c",'
        '"total_nodes": 1, "total_cpus": 1, "time_limit": 3600, "elapsed": 600, '
        '"@submit": "2023-11-14T22:00:00", "@start": "2023-11-14T22:00:00", '
        '"@end": "2023-11-14T22:10:00"}'
    )
    answer = service.send("/v1/adapters/slurm/jobcomp", record)
    assert answer.json() == {"accepted": 1, "duplicates": 0, "skipped": {}, "doubts": {}}
    assert service.get("/v1/users/carol/accuracy", cluster="c").status_code == 200
    assert service.get("/v1/users/eve/accuracy", cluster="c").status_code == 404


@pytest.mark.parametrize("kind", ["application/x-ndjson", "application/jsonl"])
def test_ndjson_is_refused_and_told_what_to_send_instead(service, kind):
    lines = b"".join(json.dumps(run_of(name)).encode() + b"\n" for name in "12")
    answer = service.send("/v1/completions", lines, kind)
    assert answer.status_code == 415
    assert "batch as application/json" in answer.json()["detail"]
    assert "walltimed import" in answer.json()["detail"]
    assert service.send("/v1/completions", lines).json()["error"] == "MalformedJSONError"
    assert service.worker.store.past_runs.count() == 0
