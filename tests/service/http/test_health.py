import threading

import pytest
from asgi_client import NOW, InProcess, run_of
from sqlalchemy import NullPool, create_engine

from service.store import StoreDamagedError, StoreUnavailableError
from service.worker import worker


def test_the_process_lives(service):
    assert service.get("/health/live").json() == {"status": "live"}


def test_a_level_service_is_ready(service):
    service.complete(run_of("1"))
    answer = service.get("/health/ready")
    assert answer.status_code == 200
    assert answer.json() == {
        "status": "ready",
        "lag": 0,
        "stale_seconds": 0.0,
        "detail": None,
        "history": service.worker.store.fingerprint(),
    }
    assert service.metric("walltimed_ready") == 1
    assert service.metric("walltimed_clusters") == 1


def test_until_the_history_is_folded_the_service_is_not_ready_but_answers(sqlite_url, monkeypatch):
    with InProcess(sqlite_url) as service:
        service.complete(run_of("1"), run_of("2"))
    slow = InProcess(sqlite_url)
    fold = slow.worker._fold
    may_go_on = threading.Event()
    monkeypatch.setattr(slow.worker, "_fold", lambda: may_go_on.wait() and fold())
    monkeypatch.setattr(slow, "wait_until", lambda _: None)
    recorded = []
    monkeypatch.setattr(slow.worker.recorder, "later", recorded.append)
    with slow:
        answer = slow.get("/health/ready")
        assert answer.status_code == 503
        assert (answer.json()["status"], answer.json()["lag"]) == ("starting", 2)
        assert slow.metric("walltimed_ready") == 0
        first = slow.predict(user="ada")
        assert first["predicted_walltime"] == 3600.0
        assert first["basis"] == {"jobs": 0, "reason": "starting"}
        may_go_on.set()
        InProcess.wait_until(lambda: slow.get("/health/ready").status_code == 200)
        assert slow.predict(user="ada")["predicted_walltime"] == 900.0
    assert len(recorded) == 1, "the answer of a starting service was recorded"


@pytest.fixture
def starting(sqlite_url, monkeypatch):
    """A service that never ends to read its history."""
    service, is_over = InProcess(sqlite_url), threading.Event()
    fold = service.worker._fold
    monkeypatch.setattr(service.worker, "_fold", lambda: is_over.wait() and fold())
    monkeypatch.setattr(service, "wait_until", lambda _: None)
    with service:
        yield service
        is_over.set()


JOB = {"user": "ada", "requested_walltime": 3600.0}
WAITING = {"job_id": "1", "submit_time": NOW, **JOB}
HISTORY_CALLS = [
    ("POST", "/v1/predictions/batch", {"submissions": [JOB]}),
    ("POST", "/v1/predictions/extend",
     {"predicted_walltime": 60.0, "requested_walltime": 3600.0, "elapsed": 60.0,
      "submission": JOB}),
    ("POST", "/v1/priorities", {"jobs": [WAITING]}),
    ("GET", "/v1/users/ada/accuracy", None),
    ("GET", "/v1/accuracy-groups", None),
    ("PUT", "/v1/clusters/default/snapshot",
     {"pools": [{"processors": 4}]}),
    ("POST", "/v1/forecasts",
     {"machine": {"processors": 4}, "policy": "easy", "now": NOW, "running": [],
      "waiting": [WAITING | {"requested_processors": 1}]}),
    ("GET", "/users", None),
]  # fmt: skip
"""One call of each kind that answers from the history."""


@pytest.mark.parametrize(
    ("verb", "path", "body"), HISTORY_CALLS, ids=[path for _, path, _ in HISTORY_CALLS]
)
def test_a_starting_service_gives_programs_no_answer_from_an_empty_history(
    starting, verb, path, body
):
    answer = starting.request(verb, path, json=body)
    assert (answer.status_code, answer.headers.get("retry-after")) == (503, "1"), answer.text


def test_a_history_that_cannot_be_folded_yet_is_folded_later(sqlite_url, monkeypatch):
    service = InProcess(sqlite_url)
    fold = service.worker._fold
    failures = iter([StoreUnavailableError("away")])

    def fail_once():
        for failure in failures:
            raise failure
        return fold()

    monkeypatch.setattr(service.worker, "_fold", fail_once)
    with service:
        assert service.get("/health/ready").json()["status"] == "ready"


def test_a_damaged_history_is_called_so_until_another_is_in_its_place(sqlite_url, monkeypatch):
    monkeypatch.setattr(worker, "DAMAGED_SECONDS", 0.01)
    service = InProcess(sqlite_url)
    fold = service.worker._fold
    is_damaged = threading.Event()
    is_damaged.set()

    def fold_what_is_whole():
        if is_damaged.is_set():
            raise StoreDamagedError("page 7")
        return fold()

    def readiness():
        return service.get("/health/ready").json()

    monkeypatch.setattr(service.worker, "_fold", fold_what_is_whole)
    monkeypatch.setattr(service, "wait_until", lambda _: None)
    with service:
        InProcess.wait_until(lambda: readiness()["status"] == "failed")
        assert readiness()["detail"] == "The history store is damaged; the log says where."
        is_damaged.clear()
        InProcess.wait_until(lambda: readiness()["status"] == "ready")


def test_a_bug_while_folding_shows_in_readiness(sqlite_url, monkeypatch):
    service = InProcess(sqlite_url)
    monkeypatch.setattr(service.worker, "_fold", lambda: 1 / 0)
    monkeypatch.setattr(service, "wait_until", lambda _: None)
    with service:
        InProcess.wait_until(lambda: service.get("/health/ready").json()["status"] == "failed")
        answer = service.get("/health/ready")
    assert answer.status_code == 503
    assert answer.json()["detail"] == "A background task has failed; the log says why."


def test_a_store_that_cannot_be_followed_shows_as_stale(service, monkeypatch):
    service.complete(run_of("1"))
    reader = service.worker.follower._reader
    monkeypatch.setattr(reader, "error", StoreUnavailableError("at 192.0.2.7, port 5432"))
    monkeypatch.setattr(reader, "has_news", lambda: False)
    InProcess.wait_until(lambda: service.metric("walltimed_stale_seconds") > 0)
    answer = service.get("/health/ready")
    assert (answer.status_code, answer.json()["status"]) == (200, "stale")
    assert answer.json()["stale_seconds"] > 0
    assert answer.json()["detail"] == "The history store cannot be read; the log says why."
    assert service.predict(user="ada")["predicted_walltime"] == 900.0


def test_requests_are_counted_by_route_and_status(service):
    service.predict(user="ada")
    service.post("/v1/predictions", {})
    service.get("/v1/users/ada/accuracy")
    service.get("/v1/users/bob/accuracy")
    service.get("/nowhere")
    count = "walltimed_requests_total"
    assert service.metric(count, route="/v1/predictions", status="200") == 1
    assert service.metric(count, route="/v1/predictions", status="422") == 1
    assert service.metric(count, route="/v1/users/{user}/accuracy", status="404") == 2
    assert service.metric(count, route="none", status="404") == 1
    assert service.metric("walltimed_request_duration_seconds_count", route="/v1/predictions") == 2
    assert service.metric("walltimed_predictions_total", method="max-usage") == 1


def test_no_label_names_a_user_or_a_job(service):
    service.complete(run_of("job 1", user="lovelace"))
    service.predict(user="lovelace", job_id="job 2")
    service.get("/v1/users/lovelace/accuracy")
    metrics = service.get("/metrics").text
    assert "lovelace" not in metrics
    assert "job 1" not in metrics
    assert "job 2" not in metrics


def test_metrics_outlive_the_store(service, monkeypatch):
    service.complete(run_of("1"))

    def fail(_cluster):
        raise StoreUnavailableError("away")

    monkeypatch.setattr(service.worker.store.scores, "of_methods", fail)
    assert service.get("/metrics").status_code == 200
    answer = service.get("/v1/methods")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


def test_a_worker_sees_what_another_was_told(serve, store_url):
    one, other = serve(store_url), serve(store_url)
    one.complete(run_of("1"))
    InProcess.wait_until(lambda: other.predict(user="ada")["predicted_walltime"] == 900.0)


@pytest.mark.parametrize("count", [1, 65, 1000])
def test_an_acknowledged_batch_is_known_at_once(serve, store_url, count):
    service = serve(store_url)
    service.complete(*(run_of(place, end_time=NOW + place) for place in range(count)))
    last = run_of("last", runtime=1800, end_time=NOW + 10_000)
    service.complete(last)
    assert service.predict(user="ada")["predicted_walltime"] == 1800.0
    assert service.get("/health/ready").json()["lag"] == 0


def status_of(service):
    return service.get("/health/ready").json()["status"]


def test_a_history_that_another_program_locks_is_called_read_only(serve, store_url):
    """The recorded prediction cannot be written, and neither could a completion."""
    service = serve(store_url)
    engine = create_engine(store_url, poolclass=NullPool)
    with engine.connect() as other:
        if engine.name == "sqlite":
            other.exec_driver_sql("BEGIN EXCLUSIVE")
        else:
            other.exec_driver_sql("LOCK TABLE completions, predictions IN EXCLUSIVE MODE")
        assert service.predict(user="ada")["predicted_walltime"] == 3600
        service.wait_until(lambda: status_of(service) == "read-only")
        answer = service.get("/health/ready")
        assert answer.status_code == 200
        assert "cannot be written to" in answer.json()["detail"]
        assert "walltimed.sqlite3" not in answer.text
        assert service.predict(user="ada")["predicted_walltime"] == 3600
        assert service.metric("walltimed_read_only") == 1
        other.rollback()
    service.wait_until(lambda: status_of(service) == "ready")
    assert service.complete(run_of("1"))["accepted"] == 1
