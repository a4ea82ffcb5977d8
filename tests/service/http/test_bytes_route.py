"""A fast route is described and behaves like the ordinary route that it replaces."""

import asyncio
import json
from dataclasses import dataclass
from typing import Annotated

import httpx
import pytest
from fastapi import APIRouter, FastAPI, Query
from fastapi.routing import APIRoute

from service.contract.bodies import PredictionBatch, PredictionRequest
from service.http import error_answers
from service.http.bytes_route import BytesRoute

GOOD = b'{"requested_walltime": 60, "user": "ada"}'
LIMIT = 4096


@dataclass
class Echo:
    """What was understood."""

    requested_walltime: float
    user: str | None


def application(route_class):
    router = APIRouter(route_class=route_class)
    router.max_body_size = LIMIT

    @router.post("/echo", responses={418: {"description": "Teapot."}})
    async def echo(body: PredictionRequest) -> Echo:
        """Say it again."""
        return Echo(requested_walltime=body.requested_walltime, user=body.user)

    @router.post("/count", status_code=201)
    async def count(body: PredictionBatch) -> int:
        return len(body.submissions)

    @router.get("/add")
    async def add(first: int, second: Annotated[int, Query()] = 2) -> int:
        return first + second

    app = FastAPI(openapi_url="/openapi.json", redirect_slashes=False)
    app.router.routes.extend(router.routes)
    error_answers.install(app)
    return app


def ask(app, method, path, **options):
    async def answer():
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.request(method, path, **options)

    return asyncio.run(answer())


FAST = application(BytesRoute)
ORDINARY = application(APIRoute)


def both(method, path, **options):
    return ask(FAST, method, path, **options), ask(ORDINARY, method, path, **options)


def send(content, kind="application/json", path="/echo"):
    return {"method": "POST", "path": path, "content": content, "headers": {"content-type": kind}}


def test_the_documents_are_the_same():
    assert FAST.openapi() == ORDINARY.openapi()


@pytest.mark.parametrize(
    "request_",
    [
        send(GOOD),
        send(GOOD, "application/json; charset=utf-8"),
        send(GOOD, "Application/JSON"),
        send(GOOD, "application/problem+json"),
        send(b' \n{"user": "ada", "requested_walltime": 60.0 } '),
        send('{"requested_walltime": 60, "user": "ädä"}'.encode()),
        send(b'{"requested_walltime": 60, "user": "\\u00e4d\\u00e4"}'),
        send(b'{"submissions": [{"requested_walltime": 60}]}', path="/count"),
        {"method": "GET", "path": "/add?first=1"},
        {"method": "GET", "path": "/nowhere"},
        {"method": "GET", "path": "/echo"},
        {"method": "HEAD", "path": "/echo"},
        {"method": "PUT", "path": "/echo"},
        {"method": "POST", "path": "/echo/"},
    ],
)
def test_what_both_serve_both_answer_alike(request_):
    fast, ordinary = both(**request_)
    assert fast.status_code == ordinary.status_code
    assert fast.content == ordinary.content
    assert dict(fast.headers) == dict(ordinary.headers)


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"requested_walltime": 0}',
        b'{"requested_walltime": "60"}',
        b'{"requested_walltime": null}',
        b'{"requested_walltime": 60, "usr": "ada"}',
        b'{"requested_walltime": 60, "user": "a\\u0000"}',
        b'{"requested_walltime": 60, "user": {"deep": [1, [2]]}}',
        b'{"requested_walltime": 60, "job_id": 1e400}',
        b'{"requested_walltime": 60, "submit_time": "soon"}',
        b'{"requested_walltime": 60, "requested_processors": 99999999999999999999999999}',
    ],
)
def test_both_refuse_the_same_fields(body):
    fast, ordinary = both(**send(body))
    assert fast.status_code == ordinary.status_code == 422
    assert fast.json()["error"] == ordinary.json()["error"]
    assert ordinary.json()["field"].startswith(fast.json()["field"])


GOLDEN = {
    b"{}": ("requested_walltime", "Field required."),
    b'{"requested_walltime": 0}': ("requested_walltime", "Input should be greater than 0."),
    b'{"requested_walltime": NaN}': ("requested_walltime", "Input should be a finite number."),
    b'{"requested_walltime": "1"}': ("requested_walltime", "Input should be a valid number."),
    b'{"requested_walltime": 1, "usr": 2}': ("usr", "There is no such field."),
    b'{"requested_walltime": 1, "user": "a\\nb"}': (
        "user",
        "Input should be a string of 1 to 256 printable characters.",
    ),
    b'{"requested_walltime": 1, "job_id": 1.5}': (
        "job_id",
        "Input should be a string of 1 to 256 printable characters or a whole number.",
    ),
    b'{"requested_walltime": 1, "submit_time": "x"}': (
        "submit_time",
        "Input should be Unix seconds in [0, 1e11] or an RFC 3339 time.",
    ),
    b"[]": ("body", "Input should be an object."),
    b'"x"': ("body", "Input should be an object."),
    b"null": ("body", "Input should be an object."),
}


@pytest.mark.parametrize("body", GOLDEN)
def test_a_refusal_names_the_field_and_says_what_is_wrong(body):
    field, detail = GOLDEN[body]
    answer = ask(FAST, **send(body))
    assert answer.status_code == 422
    assert answer.json() == {"error": "InvalidFieldError", "detail": detail, "field": field}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b"{'requested_walltime': 60}",
        b'{"requested_walltime": 60,}',
        b'{"requested_walltime": 60} x',
        b'{"requested_walltime": 60, "user": "\\ud800"}',
        b'{"requested_walltime": 60, "user": "\xff"}',
        b'{"requested_walltime": 60, "user": "a\nb"}',
        b'{"requested_walltime": 060}',
        b"\xef\xbb\xbf{}",
        b"[" * LIMIT,
        b'{"a":' * 500 + b"1" + b"}" * 500,
    ],
)
def test_what_is_not_json_is_said_not_to_be(body):
    answer = ask(FAST, **send(body))
    assert answer.status_code == 400
    assert answer.json()["error"] == "MalformedJSONError"


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonp",
        "json",
        "",
    ],
)
def test_what_is_not_sent_as_json_is_refused(kind):
    answer = ask(FAST, **send(GOOD, kind))
    assert answer.status_code == 415
    assert answer.json()["error"] == "UnsupportedMediaTypeError"


def test_a_body_without_a_type_is_refused():
    assert ask(FAST, "POST", "/echo", content=GOOD).status_code == 415


async def trickle(total, size=100):
    for _ in range(total // size):
        yield b" " * size


@pytest.mark.parametrize("content", [b" " * (LIMIT + 1), trickle(LIMIT + 100)])
def test_a_body_over_the_limit_is_refused(content):
    answer = ask(FAST, **send(content))
    assert answer.status_code == 413
    assert answer.json() == {
        "error": "BodyTooLargeError",
        "detail": f"The body must not be longer than {LIMIT} bytes.",
    }


def test_a_body_of_just_the_limit_is_read():
    assert ask(FAST, **send(GOOD.ljust(LIMIT))).status_code == 200


def test_a_body_that_has_become_too_long_is_not_read_on():
    pieces = iter([b"{", b" ", b" " * LIMIT])

    async def receive():
        return {"type": "http.request", "body": next(pieces), "more_body": True}

    assert status_of(receive) == 413


def test_a_body_that_says_it_is_too_long_is_not_waited_for():
    started = []

    async def receive():
        assert not started, "read on"
        started.append(True)
        return {"type": "http.request", "body": b"{", "more_body": True}

    assert status_of(receive, (b"content-length", b"99999999999")) == 413


@pytest.mark.parametrize("length", [b"x", b"-1", b"\xb2"])
def test_a_length_that_is_no_number_is_not_believed(length):
    pieces = iter([GOOD[:5], GOOD[5:]])

    async def receive():
        piece = next(pieces)
        return {"type": "http.request", "body": piece, "more_body": piece == GOOD[:5]}

    assert status_of(receive, (b"content-length", length)) == 200


@pytest.mark.parametrize("began", [True, False])
def test_a_caller_who_leaves_gets_no_answer(began):
    messages = [{"type": "http.request", "body": b"{", "more_body": True}] * began
    messages = iter([*messages, {"type": "http.disconnect"}])

    async def receive():
        return next(messages)

    assert status_of(receive) is None


def status_of(receive, *headers):
    """The status that a request with such a body is answered with."""
    statuses = []

    async def send(message):
        statuses.append(message.get("status"))

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/echo",
        "raw_path": b"/echo",
        "root_path": "",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json"), *headers],
    }
    asyncio.run(FAST(scope, receive, send))
    return statuses[0] if statuses else None


def test_deep_errors_do_not_take_for_ever():
    body = json.dumps({"submissions": [{"requested_walltime": 0}] * 100}).encode()
    answer = ask(FAST, **send(body, path="/count"))
    assert answer.json()["field"] == "submissions.0.requested_walltime"
