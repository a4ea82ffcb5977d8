"""Calls with a JSON body: all of them read bodies in one way, within one bound."""

import asyncio

import pytest
from asgi_client import InProcess

from service.contract.bodies import PredictionRequest
from service.errors import ServiceError
from service.http.json_calls import JSONCall, send_error

GOOD = b'{"requested_walltime": 60, "user": "ada"}'
LIMIT = 2048
PREDICTIONS, QUEUE = "/v1/predictions", "/v1/clusters/{cluster}/snapshot"


@pytest.fixture(scope="module")
def narrow(lasting_url):
    """A service that takes bodies of 2048 bytes."""
    with InProcess(lasting_url(), max_body_bytes=LIMIT) as service:
        yield service


@pytest.fixture(scope="module")
def calls(narrow):
    """Method and path of every call that is documented to take JSON."""
    paths = narrow.get("/openapi.json").json()["paths"]
    return [
        (method.upper(), path)
        for path, operations in paths.items()
        for method, call in operations.items()
        if "application/json" in call.get("requestBody", {}).get("content", {})
        and "/adapters/" not in path
    ]


def send(narrow, call, body, kind="application/json"):
    method, path = call
    return narrow.send(path.format(cluster="hill"), body, method=method, kind=kind)


def test_every_call_that_takes_json_is_served_past_fastapi(narrow, calls):
    gate = narrow.app.gate
    declared = [*gate._endpoints.items()]
    declared += [((verb, path.pattern), end) for verb, path, end in gate._templates]
    past = [key for key, endpoint in declared if isinstance(endpoint.app, JSONCall)]
    assert len(past) == len(calls)
    assert {
        ("POST", PREDICTIONS),
        ("PUT", QUEUE),
        ("POST", "/v1/clusters/{cluster}/what-if"),
    } < set(calls)


@pytest.mark.parametrize(
    "kind", ["application/json; charset=utf-8", "Application/JSON", "application/problem+json"]
)
def test_json_may_be_announced_in_several_ways(narrow, kind):
    assert send(narrow, ("POST", PREDICTIONS), GOOD, kind).status_code == 200


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
        "application/jsonp", "json", "",
    ],
)  # fmt: skip
def test_what_is_not_sent_as_json_is_refused(narrow, calls, kind):
    for call in calls:
        answer = send(narrow, call, b"{}", kind)
        assert (call, answer.status_code) == (call, 415)
        assert answer.json()["error"] == "UnsupportedMediaTypeError"


@pytest.mark.parametrize(
    "body",
    [
        b"", b" ", b"{", b"{'requested_walltime': 60}", b'{"requested_walltime": 60,}',
        b'{"requested_walltime": 60} x', b'{"requested_walltime": 60, "user": "\\ud800"}',
        b'{"user": "\xff"}', b'{"user": "a\nb"}', b'{"requested_walltime": 060}',
        b"\xef\xbb\xbf{}", b"\xff\xfe", b"[" * LIMIT,
        b'{"a":' * 250 + b"1" + b"}" * 250,
    ],
)  # fmt: skip
def test_what_is_not_json_is_said_not_to_be(narrow, calls, body):
    for call in calls:
        answer = send(narrow, call, body)
        assert (call, answer.status_code) == (call, 400)
        assert answer.json()["error"] == "MalformedJSONError"


async def trickle(total, size=100):
    for _ in range(total // size):
        yield b" " * size


def test_a_body_over_the_limit_is_refused_whether_it_comes_at_once_or_in_pieces(narrow, calls):
    for call in set(calls) - {("PUT", QUEUE)}:
        assert send(narrow, call, b" " * LIMIT).status_code == 400
        for body in (b" " * (LIMIT + 1), trickle(LIMIT + 100)):
            answer = send(narrow, call, body)
            assert (call, answer.status_code) == (call, 413)
            assert answer.json()["error"] == "BodyTooLargeError"
    assert send(narrow, ("PUT", QUEUE), b" " * (LIMIT + 1)).status_code == 400


@pytest.mark.parametrize("body", [b"[]", b'"x"', b"null"])
def test_a_body_is_an_object(narrow, calls, body):
    for call in calls:
        answer = send(narrow, call, body)
        assert (call, answer.status_code, answer.json()["field"]) == (call, 422, "body")


@pytest.mark.parametrize(
    "text",
    [
        '{"requested_walltime": 60.0, "user": "ädä"}',
        ' \n{"user": "\\u00e4", "requested_walltime": 60} ',
    ],
)
def test_numbers_and_texts_may_be_written_in_several_ways(narrow, text):
    assert send(narrow, ("POST", PREDICTIONS), text.encode()).status_code == 200


def status_of(receive, *headers):
    """The status that a call with such a body is answered with; None without an answer."""
    statuses = []

    async def send(message):
        statuses.append(message.get("status"))

    async def echo(body):
        return body.user

    call = JSONCall(endpoint=echo, validate=PredictionRequest.model_validate_json, limit=LIMIT)

    async def served():
        try:
            await call(
                {"headers": [(b"content-type", b"application/json"), *headers]}, receive, send
            )
        except ServiceError as error:
            await send_error(send, error)

    asyncio.run(served())
    return statuses[0] if statuses else None


def in_pieces(*bodies, last):
    """Receives bodies of which more follow, and then a last message."""
    messages = [{"type": "http.request", "body": body, "more_body": True} for body in bodies]
    left = iter([*messages, last] if last else messages)

    async def receive():
        return next(left)

    return receive


REST = {"type": "http.request", "body": GOOD[5:]}


def test_a_body_that_has_become_too_long_is_not_read_on():
    assert status_of(in_pieces(b"{", b" ", b" " * LIMIT, last=None)) == 413


def test_a_body_that_says_it_is_too_long_is_not_waited_for():
    assert status_of(in_pieces(b"{", last=None), (b"content-length", b"99999999999")) == 413


@pytest.mark.parametrize("length", [b"x", b"-1", b"\xb2"])
def test_a_length_that_is_no_number_is_not_believed(length):
    assert status_of(in_pieces(GOOD[:5], last=REST), (b"content-length", length)) == 200


@pytest.mark.parametrize("began", [(), (b"{",)])
def test_a_caller_who_leaves_gets_no_answer(began):
    assert status_of(in_pieces(*began, last={"type": "http.disconnect"})) is None
