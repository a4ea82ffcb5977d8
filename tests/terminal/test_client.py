"""The client against a server that misbehaves as it is told."""

import re
import socket
from contextlib import contextmanager
from threading import Thread

import pytest
from hand_worked_log import run

from terminal.client import (
    AddressError,
    Client,
    RemoteError,
    ServiceUnavailableError,
    ServiceUnreachableError,
    fields_of,
)

HANG_UP = b""
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def answer(status, body, headers=""):
    return f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n{headers}\r\n{body}".encode()


def received(connection):
    """A whole request; empty when the client has hung up."""
    request = b""
    while b"\r\n\r\n" not in request:
        part = connection.recv(65536)
        if not part:
            return b""
        request += part
    head, _, body = request.partition(b"\r\n\r\n")
    length = next((int(n) for n in re.findall(rb"(?i)content-length: (\d+)", head)), 0)
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


@contextmanager
def server(*answers):
    """Gives one answer for each request, each on a connection of its own after a hang-up."""
    requests = []

    def serve(listener):
        remaining = list(answers)
        while remaining:
            connection, _ = listener.accept()
            with connection:
                while remaining:
                    request = received(connection)
                    if not request:
                        break
                    requests.append(request)
                    if not (reply := remaining.pop(0)):
                        break
                    connection.sendall(reply)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", requests
        thread.join(10)


def test_a_connection_that_was_closed_meanwhile_is_opened_again():
    with server(OK, HANG_UP, OK) as (url, requests), Client(url) as client:
        assert client.call("GET", "/one") == b"{}"
        assert client.call("GET", "/two") == b"{}"
        assert [request.split()[1] for request in requests] == [b"/one", b"/two", b"/two"]


def test_a_server_that_hangs_up_twice_is_unreachable():
    with (
        server(HANG_UP, HANG_UP) as (url, _),
        Client(url) as client,
        pytest.raises(ServiceUnreachableError, match="No service answers"),
    ):
        client.call("GET", "/")


def test_a_server_that_says_nothing_is_unreachable_after_the_timeout():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        late = pytest.raises(ServiceUnreachableError, match="timed out")
        with Client(url, timeout=0.05) as client, late:
            client.call("GET", "/")


def test_an_error_carries_the_field_and_the_services_own_sentence():
    refusal = answer(422, '{"error": "InvalidField", "detail": "No such field.", "field": "x"}')
    with (
        server(refusal) as (url, _),
        Client(url) as client,
        pytest.raises(RemoteError, match="422: x: No such field") as caught,
    ):
        client.call("GET", "/")
    assert caught.value.status == 422


def test_an_error_that_is_none_of_ours_is_shown_as_it_is():
    with (
        server(answer(502, "<h1>Bad gateway</h1>")) as (url, _),
        Client(url) as client,
        pytest.raises(RemoteError, match="<h1>Bad gateway</h1>"),
    ):
        client.call("GET", "/")


def test_readiness_is_waited_for():
    waiting = answer(503, '{"error": "NotReady", "detail": "reading"}')
    with server(waiting, waiting, OK) as (url, requests), Client(url) as client:
        client.wait_until_ready()
        assert len(requests) == 3
    with (
        server(waiting) as (url, _),
        Client(url) as client,
        pytest.raises(ServiceUnavailableError, match="reading"),
    ):
        client.wait_until_ready(seconds=-1)


def test_the_token_and_the_path_of_the_address_are_sent():
    with server(OK) as (url, requests), Client(f"{url}/site/", token="wt_1_s") as client:
        client.call("GET", "/v1/methods")
    [request] = requests
    assert request.startswith(b"GET /site/v1/methods ")
    assert b"Authorization: Bearer wt_1_s" in request


def test_many_completions_go_in_several_requests(monkeypatch):
    monkeypatch.setattr("terminal.client.LARGEST_BATCH", 2)
    with server(OK, OK) as (url, requests), Client(url) as client:
        client.observe(*(run(number, 0, 1) for number in range(3)))
    assert [request.count(b'"job_id"') for request in requests] == [2, 1]


@pytest.mark.parametrize("url", ["ftp://host", "host:80", "http://"])
def test_an_address_must_be_http(url):
    with pytest.raises(AddressError):
        Client(url)


def test_https_is_spoken():
    with Client("https://walltimed.example:8443") as client:
        assert type(client._connection).__name__ == "HTTPSConnection"


def test_what_is_unknown_is_not_sent():
    assert fields_of(run(1, 0, 1).submission) == {
        "requested_walltime": 100,
        "submit_time": 1000,
        "cluster": "default",
        "job_id": "1",
        "user": "ada",
        "requested_processors": 1,
    }
