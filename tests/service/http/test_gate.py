"""What a request meets before its route: how it names its host, its encoding, what is counted."""

import re
from dataclasses import replace
from functools import partial
from urllib.parse import unquote

import pytest
from asgi_client import run_of
from structlog.testing import capture_logs

HOST = (b"host", b"walltimed")
DURATION = "walltimed_request_duration_seconds"


def ask(
    service, path="/health/live", *, method="GET", version="1.1", headers=(HOST,), said=None, **more
):
    """The messages of the answer to a request as it comes from a connection."""
    sent = []
    scope = {
        "type": "http", "method": method, "http_version": version, "path": path,
        "raw_path": path.encode(), "root_path": "", "query_string": b"", "scheme": "http",
        "headers": list(headers), "server": ("127.0.0.1", 8580), "client": ("127.0.0.1", 1), **more,
    }  # fmt: skip

    async def receive():
        return said or {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    service.run(service.app(scope, receive, send))
    return sent


def status_of(*args, **options):
    return ask(*args, **options)[0]["status"]


def test_a_request_of_http_1_1_names_one_host(service):
    assert status_of(service) == 200
    assert status_of(service, headers=()) == 400
    assert status_of(service, headers=(), version="1.0") == 403, "while no token was issued"
    assert status_of(service, headers=(HOST, HOST)) == 400
    twice = (b"user-agent", b"x")
    assert status_of(service, headers=(HOST, twice, twice)) == 200


def test_names_of_others_are_refused_until_a_token_has_been_issued(service):
    strange = (b"host", b"evil.example")
    assert status_of(service, headers=(strange,)) == 403
    assert status_of(service, headers=(HOST, (b"origin", b"http://evil.example"))) == 403
    service.issue("filter", "predict")
    assert status_of(service, headers=(strange,)) == 200


@pytest.mark.parametrize("name", [b"portal.example.org", b"PORTAL.example.org:443"])
def test_the_names_of_the_setting_are_ours(serve, sqlite_url, name):
    service = serve(sqlite_url, host_names=["Portal.Example.org"])
    assert status_of(service, headers=((b"host", name), (b"origin", b"https://" + name))) == 200


def answered(answer, status, error):
    """The answer, if it has this status and error, in the one shape of errors."""
    assert (answer.status_code, answer.json()["error"]) == (status, error)
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.json()) - {"field"} == {"error", "detail"}
    return answer


def test_a_path_that_there_is_not_is_unknown(unchanged):
    answered(unchanged.get("/nowhere"), 404, "NotFoundError")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [("GET", "/v1/methods", None), ("POST", "/v1/completions", run_of("1"))],
)
def test_a_bug_is_a_sentence_for_the_caller_and_named_in_the_log(
    service, monkeypatch, method, path, body
):
    def fail(_):
        raise ZeroDivisionError

    monkeypatch.setattr(service.worker.store.scores, "of_methods", fail)
    monkeypatch.setattr(service.worker.writer, "acknowledged", fail)
    with capture_logs() as logged:
        answer = service.request(method, path, json=body)
    answered(answer, 500, "InternalError")
    record = next(each for each in logged if each["event"] == "a request failed")
    assert (record["log_level"], record["path"], record["kind"]) == (
        "error",
        path,
        "ZeroDivisionError",
    )


@pytest.mark.parametrize(
    ("encoding", "status"), [(b"", 200), (b" Identity ", 200), (b"gzip", 415), (b"br", 415)]
)
def test_a_body_comes_as_it_is(service, encoding, status):
    assert status_of(service, headers=(HOST, (b"content-encoding", encoding))) == status


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        ("/v1/waits", "cluster=%C3%BC", 200),
        ("/v1/waits", "cluster=%ff", 400),
        ("/v1/waits", "cluster=%C3", 400),
        ("/v1/clusters/%ff/snapshot", "", 400),
        ("/v1/clusters/%EF%BF%BD/snapshot", "", 404),
    ],
)
def test_a_name_that_is_no_text_is_refused_and_not_read_as_another(service, path, query, status):
    """%ff was read as U+FFFD, a character that a name may have."""
    local = (b"host", b"127.0.0.1")
    at = {"raw_path": path.encode(), "query_string": query.encode()}
    assert status_of(service, unquote(path), headers=(local,), **at) == status


def test_an_answer_to_head_has_the_head_of_the_answer_to_get_and_no_body(service):
    begin, body = ask(service)
    head, *rest = ask(service, method="HEAD")
    assert (head["status"], sorted(head["headers"])) == (200, sorted(begin["headers"]))
    assert body["body"]
    assert b"".join(message["body"] for message in rest) == b""


def test_a_caller_who_left_is_counted_and_not_answered(service):
    json = (b"content-type", b"application/json")
    gone = {"type": "http.disconnect"}
    sent = ask(service, "/v1/predictions", method="POST", headers=(HOST, json), said=gone)
    assert sent == []
    counted = "walltimed_requests_total"
    assert service.metric(counted, route="/v1/predictions", status="499") == 1


def test_a_caller_who_leaves_during_an_answer_is_no_failure(service):
    count = partial(service.metric, "walltimed_requests_total", route="/metrics", status="499")
    before = count()

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(_message):
        raise RuntimeError("unable to perform operation on <TCPTransport>; the handler is closed")

    scope = {
        "type": "http", "method": "GET", "http_version": "1.1", "path": "/metrics",
        "raw_path": b"/metrics", "root_path": "", "query_string": b"", "scheme": "http",
        "headers": [HOST], "server": ("127.0.0.1", 8580), "client": ("127.0.0.1", 1),
    }  # fmt: skip
    with capture_logs() as logged:
        service.run(service.app(scope, receive, send))
    assert not [record for record in logged if record["log_level"] == "error"]
    assert count() == before + 1


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_bug_is_answered_once_counted_and_left_to_the_server(service, has_begun):
    async def broken(_scope, _receive, send):
        if has_begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ZeroDivisionError

    endpoints = service.app.gate._endpoints
    key = ("GET", "/health/live")
    endpoints[key] = replace(endpoints[key], app=broken)
    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "GET", "http_version": "1.1", "path": key[1],
             "headers": [HOST]}  # fmt: skip
    with pytest.raises(ZeroDivisionError):
        service.run(service.app(scope, None, send))
    statuses = [message["status"] for message in sent if "status" in message]
    assert statuses == ([200] if has_begun else [500])


def test_only_refusals_of_programs_are_noted(service):
    service.token = service.issue("alice", "self", user="alice")
    noted = "walltimed_program_last_refusal_timestamp_seconds"
    admin = service.issue("admin", "admin")

    def refusals():
        service.token, own = admin, service.token
        lines = service.get("/metrics").text.splitlines()
        service.token = own
        return [line.split(" ")[0] for line in lines if line.startswith(f"{noted}{{")]

    job = {"user": "bob", "requested_walltime": 60}
    assert service.post("/v1/predictions", job).status_code == 403
    assert service.get("/v1/reports/requests", user="bob").status_code == 403
    service.token = None
    assert service.get("/v1/reports/requests", user="bob").status_code == 401
    assert refusals() == []
    assert service.post("/v1/predictions", job).status_code == 401
    assert refusals() == [f'{noted}{{route="/v1/predictions",status="401"}}']


def test_a_path_with_a_slash_too_many_leads_nowhere(service):
    assert status_of(service, "/health/live/") == 404


def test_an_answer_is_timed(service):
    service.predict()
    took = service.metric(f"{DURATION}_sum", route="/v1/predictions")
    assert 0 < took < 600


def test_the_submit_filter_that_asks_for_predictions_is_noted_and_nobody_else(service):
    filters = [(b"walltimed", "1.0"), (b"localhost", "2.0")]
    for path, release in (("/v1/predictions", ""), ("/health/live", ".0"), ("/nowhere", ".1")):
        method = "POST" if path.startswith("/v1") else "GET"
        for host, number in filters:
            agent = (b"user-agent", f"walltimed.lua/{number}{release}".encode())
            ask(service, path, method=method, headers=((b"host", host), agent))
    noted = re.findall(
        r'filter_last_request_timestamp_seconds{.*release="([^"]*)"', exposed(service)
    )
    assert noted == ["1.0"]


def exposed(service):
    return service.get("/metrics").text
