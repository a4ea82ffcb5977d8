"""Trying, before anybody is served, whether uvicorn does what our protocol supposes."""

import asyncio
import logging
import re
import reprlib
from collections.abc import Sequence

import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from service.http.bytes_route import send_json

HEAD = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n"
REQUEST = HEAD + b"{}"

SHORT_SECONDS = 0.02
"""Time limits of the rehearsal."""

PATIENCE_SECONDS = 10.0
"""How long a busy machine may take to come to them."""

SERVED = [b"200", b"200"]
"""What a connection is answered that stays open."""

TIMED_OUT: tuple[list[bytes], ...] = ([b"408"], [])
"""What a connection is answered whose time has passed: in a head or body, or before any byte."""

NO_LOG = logging.getLogger("walltimed.rehearsal")
NO_LOG.disabled = True


class NotAsSupposedError(Exception):
    """The installed uvicorn or httptools works in another way than our protocol relies on."""


class Wire(asyncio.Transport):
    """A transport without a network: it keeps the bytes written to it."""

    _protocol: asyncio.BaseProtocol

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_closed = False
        self.closed = asyncio.Event()

    @property
    def statuses(self) -> list[bytes]:
        """Of all answers."""
        return re.findall(rb"HTTP/1\.1 (\d+)", self.written)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Name what is told that the connection has ended."""
        self._protocol = protocol

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Keep the data."""
        self.written += data

    def write_eof(self) -> None:
        """Nothing more will be written."""

    def close(self) -> None:
        """End the connection at the loop's next turn, as transports do."""
        if not self.is_closed:
            self.is_closed = True
            self.closed.set()
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, None)

    def abort(self) -> None:
        """Close at once, as ``close`` does: nothing waits to be sent."""
        self.close()

    def is_closing(self) -> bool:
        """Whether it has ended."""
        return self.is_closed

    def pause_reading(self) -> None:
        """Nothing is read by itself."""

    def resume_reading(self) -> None:
        """Nothing is read by itself."""


def rehearse(kind: type[HttpToolsProtocol]) -> None:
    """Serve a request, and refuse what has no end: a head, a silence, trailers, many lines.

    Raises:
        NotAsSupposedError: one of these went another way.
    """
    asyncio.run(_rehearse(kind))


async def _rehearse(kind: type[HttpToolsProtocol]) -> None:
    chunked = b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n0\r\n"
    endless = [b"x" * 1000] * 100
    scenes: tuple[tuple[list[bytes], list[bytes]], ...] = (
        (SERVED, [REQUEST, REQUEST]),
        ([b"431"], [b"GET / HTTP/1.1\r\nendless: ", *endless]),
        ([b"431"], [b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200]),
        ([b"431"], [chunked, b"endless: ", *endless]),
        ([b"408"], [b"GET / HTTP/1.1\r\nhost: "]),
        ([b"408"], [HEAD]),
        ([b"400"], [b"nonsense\r\n\r\n"]),
        ([], []),
    )
    wires = await asyncio.gather(
        *(
            _play(_hasty(kind, hurries=answers in TIMED_OUT), sent, closes=answers != SERVED)
            for answers, sent in scenes
        )
    )
    for (answers, sent), wire in zip(scenes, wires, strict=True):
        if wire.statuses != answers or wire.is_closed != (answers != SERVED):
            raise NotAsSupposedError(
                f"{reprlib.repr(sent)} is answered {wire.statuses} and not {answers}"
            )


def _hasty(kind: type[HttpToolsProtocol], *, hurries: bool) -> type[HttpToolsProtocol]:
    """The protocol, silent as nobody wants its refusals logged, with short limits if it hurries.

    On a busy machine a short limit would pass before a head has come that is to be refused.
    """
    times = dict.fromkeys(
        ("head_seconds", "silent_seconds"), SHORT_SECONDS if hurries else PATIENCE_SECONDS
    )
    lingering = {"lingering_seconds": SHORT_SECONDS}
    return type("Hasty", (kind,), {**times, **lingering, "report_silence": lambda *_: None})


async def _play(kind: type[HttpToolsProtocol], sent: Sequence[bytes], *, closes: bool) -> Wire:
    """What a connection answers to what is sent, and whether it is closed in the end.

    Raises:
        NotAsSupposedError: it is not closed where it should be.
    """
    config = uvicorn.Config(
        _application,
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
    )
    wire = Wire()
    protocol = kind(config, ServerState(), {})
    protocol.logger = NO_LOG
    wire.set_protocol(protocol)
    protocol.connection_made(wire)
    for part in sent:
        if not wire.is_closed:
            protocol.data_received(part)
            await asyncio.sleep(0)  # an answer that waits for nothing is there then
    if closes:
        try:
            await asyncio.wait_for(wire.closed.wait(), PATIENCE_SECONDS)
        except TimeoutError as error:
            raise NotAsSupposedError(f"{reprlib.repr(sent)} leaves the connection open") from error
    return wire


async def _application(_scope: Scope, receive: Receive, send: Send) -> None:
    while (await receive()).get("more_body"):
        pass
    await send_json(send, 200, b"{}")
