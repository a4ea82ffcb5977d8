"""What the application is made of, and what ends with it."""

import pytest
from asgi_client import InProcess
from fastapi import FastAPI
from fastapi.telemetry import _asgi
from pages_here import PagesHere

from service.http.app import create_app
from service.settings import Settings


def test_what_makes_pages_ends_with_the_service(sqlite_url, monkeypatch):
    ended = []
    close = PagesHere.close
    monkeypatch.setattr(PagesHere, "close", lambda pages: ended.append(pages) or close(pages))
    with InProcess(sqlite_url):
        assert ended == []
    assert len(ended) == 1


WHAT_IF = "/v1/queues/hill/what-if"

CALLS = ("/v1/predictions", "/v1/completions", "/v1/forecasts", WHAT_IF)


@pytest.fixture(scope="module")
def narrow(tmp_path_factory, sqlite_template):
    """A service that takes bodies of 1024 bytes."""
    file = tmp_path_factory.mktemp("narrow") / "walltimed.sqlite3"
    file.write_bytes(sqlite_template.read_bytes())
    with InProcess(f"sqlite:///{file}", max_body_bytes=1024) as service:
        yield service


@pytest.mark.parametrize("path", CALLS)
def test_no_call_takes_a_larger_body_than_is_set(narrow, path):
    assert narrow.send(path, b" " * 1024).status_code in {400, 422}
    assert narrow.send(path, b" " * 1025).status_code == 413


def calls_that_take_json(service):
    """Every one that is documented to, with its method."""
    for path, calls in service.get("/openapi.json").json()["paths"].items():
        for method, call in calls.items():
            kinds = call.get("requestBody", {}).get("content", {})
            if "application/json" in kinds and "/adapters/" not in path:
                yield method.upper(), path.format(cluster="hill")


NOT_JSON = (b"", b"{", b"{'user': 1}", b"\xff\xfe", b"[" * 1000)


def test_every_call_says_of_a_body_that_is_not_json_that_it_is_not(narrow):
    calls = list(calls_that_take_json(narrow))
    assert ("POST", WHAT_IF) in calls
    assert ("PUT", "/v1/queues/hill") in calls
    for method, path in calls:
        for body in NOT_JSON:
            answer = narrow.send(path, body, method=method)
            told = (path, body[:20], answer.status_code, answer.json()["error"])
            assert told == (path, body[:20], 400, "MalformedJSONError")


def test_every_call_refuses_json_that_does_not_say_that_it_is(narrow):
    for method, path in calls_that_take_json(narrow):
        answer = narrow.send(path, b"{}", method=method, kind="text/plain")
        assert (path, answer.status_code) == (path, 415)


def test_an_opentelemetry_sdk_that_is_installed_watches_no_request(monkeypatch):
    monkeypatch.setattr(_asgi, "_unconfigured", lambda _provider: False)
    assert FastAPI()._native_telemetry.enabled()
    app = create_app(Settings(database_url="sqlite:///never-opened"))
    assert not app._native_telemetry.enabled()
