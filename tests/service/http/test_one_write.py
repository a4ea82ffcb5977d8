"""An answer leaves in one piece, and nothing is kept back for good."""

import asyncio

import pytest
import uvicorn
from uvicorn.server import ServerState

from service.http.one_write import OneWriteProtocol

HEADERS = [(b"content-type", b"text/plain"), (b"content-length", b"5")]


class Wire(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self):
        super().__init__()
        self.writes = []
        self.is_closed = False

    def write(self, data):
        self.writes.append(bytes(data))

    def close(self):
        self.is_closed = True

    def is_closing(self):
        return self.is_closed

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass


def start(headers=HEADERS, status=200):
    return {"type": "http.response.start", "status": status, "headers": headers}


def body(data=b"", *, more=False):
    return {"type": "http.response.body", "body": data, "more_body": more}


def wire_after(*messages, request=b"GET / HTTP/1.1\r\nhost: h\r\n\r\n", reads=False):
    """What was written while an application sent messages, which may be exceptions too."""

    async def application(_scope, receive, send):
        if reads:
            await receive()
        for message in messages:
            if isinstance(message, Exception):
                raise message
            await send(message)

    async def served():
        wire = Wire()
        config = uvicorn.Config(application, lifespan="off", log_config=None, date_header=False)
        config.load()
        protocol = OneWriteProtocol(config=config, server_state=ServerState(), app_state={})
        protocol.connection_made(wire)
        for part in request if isinstance(request, list) else [request]:
            protocol.data_received(part)
            for _ in range(10):
                await asyncio.sleep(0)
        protocol.connection_lost(None)
        return wire

    return asyncio.run(served())


def test_an_answer_is_one_write():
    (whole,) = wire_after(start(), body(b"hello")).writes
    assert whole.startswith(b"HTTP/1.1 200 OK\r\n")
    assert whole.endswith(b"\r\n\r\nhello")


@pytest.mark.parametrize(
    ("messages", "request_line"),
    [((start(), body()), b"HEAD"), ((start([], 204), body()), b"GET")],
)
def test_an_answer_without_a_body_is_one_write(messages, request_line):
    (whole,) = wire_after(
        *messages, request=request_line + b" / HTTP/1.1\r\nhost: h\r\n\r\n"
    ).writes
    assert whole.endswith(b"\r\n\r\n")


def test_parts_of_a_body_are_not_kept_back():
    writes = wire_after(start([]), body(b"one", more=True), body(b"two")).writes
    assert [write.partition(b"\r\n\r\n")[2] for write in writes[:1]] == [b"3\r\none\r\n"]
    assert writes[1:] == [b"3\r\ntwo\r\n0\r\n\r\n"]


def test_answers_to_one_connection_keep_their_order():
    request = b"GET / HTTP/1.1\r\nhost: h\r\n\r\n"
    writes = wire_after(start(), body(b"hello"), request=[request, request]).writes
    assert [write.endswith(b"\r\n\r\nhello") for write in writes] == [True, True]


def test_a_caller_that_waits_to_be_told_to_go_on_is_told_at_once():
    request = b"POST / HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n"
    writes = wire_after(start(), body(b"hello"), request=[request, b"{}"], reads=True).writes
    assert writes[0] == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert writes[1].endswith(b"hello")


def test_a_head_whose_body_never_comes_is_sent_before_the_connection_closes():
    wire = wire_after(start(), ZeroDivisionError())
    (head,) = wire.writes
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert wire.is_closed


def test_what_is_no_http_is_refused():
    wire = wire_after(request=b"\x00\x01\r\n\r\n")
    assert wire.writes[0].startswith(b"HTTP/1.1 400 ")
    assert wire.is_closed
