"""Whatever fails is answered in one shape, what FastAPI and Starlette complain of too."""

import asyncio

import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import Mount
from structlog.testing import capture_logs

from service.http import error_answers
from service.store import StoreUnavailableError


@pytest.fixture
def ask():
    """Asks an application that has some paths, and fails at others."""
    app = FastAPI()

    @app.get("/jobs")
    async def sought(first: int, second: int) -> int:
        return first + second

    @app.put("/jobs")
    async def put() -> None:
        pass

    @app.delete("/bug")
    async def fail() -> None:
        raise ZeroDivisionError

    @app.delete("/store")
    async def miss() -> None:
        raise StoreUnavailableError("The store is away.")

    app.routes.append(Mount("/mounted", routes=[]))
    error_answers.install(app)

    def asked(method, path):
        async def answer():
            transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://h") as client:
                return await client.request(method, path)

        told = asyncio.run(answer())
        assert told.headers["content-type"] == "application/json"
        return told

    return asked


def test_a_path_that_there_is_not_is_unknown(ask):
    answer = ask("GET", "/nowhere")
    assert answer.status_code == 404
    assert answer.json() == {"error": "NotFoundError", "detail": "There is nothing at this path."}


@pytest.mark.parametrize(("path", "allowed"), [("/jobs", "GET, HEAD, PUT"), ("/bug", "DELETE")])
def test_another_method_is_told_all_those_of_the_path(ask, path, allowed):
    answer = ask("POST", path)
    assert answer.status_code == 405
    assert answer.headers["allow"] == allowed
    told = {"error": "MethodNotAllowedError", "detail": f"This path takes {allowed}."}
    assert answer.json() == told


def test_the_first_parameter_that_is_wrong_is_named(ask):
    answer = ask("GET", "/jobs?first=x&second=y")
    assert answer.status_code == 422
    assert (answer.json()["error"], answer.json()["field"]) == ("InvalidFieldError", "first")


def test_an_error_of_ours_has_its_status_and_headers(ask):
    answer = ask("DELETE", "/store")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json()["error"] == "StoreUnavailableError"


def test_a_bug_is_a_sentence_for_the_caller_and_named_in_the_log(ask):
    with capture_logs() as logged:
        answer = ask("DELETE", "/bug")
    assert answer.status_code == 500
    assert answer.json()["error"] == "InternalError"
    (record,) = logged
    assert (record["event"], record["log_level"]) == ("a request failed", "error")
    assert (record["path"], record["kind"]) == ("/bug", "ZeroDivisionError")
