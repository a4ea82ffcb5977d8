"""Bounds of connections: their number, the length of heads, and times without a byte."""

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from service.errors import (
    HeadTooLargeError,
    MalformedRequestError,
    RequestTimeoutError,
    ServiceError,
    TooManyConnectionsError,
)
from service.http.json_calls import WHOLE, error_body, json_head
from terminal.logs import SparseLog

LONGEST_HEAD = 1 << 16
"""Bytes of a request's head, its first line included."""

MOST_HEADER_LINES = 100

MOST_PIECES = 1000
"""Most pieces, such as chunks, of a body, and one more for each `BYTES_PER_PIECE` bytes of it: each
piece costs a call of the parser, and clients send chunks of 100 bytes and more."""

BYTES_PER_PIECE = 40

PARSED_AT_ONCE = 1 << 14
"""Bytes of a body that are parsed between two checks of the number of its pieces."""

LINGERING_BYTES = 1 << 20
"""Most bytes of input that are drained from a refused connection."""

MOST_LINGERING = 64
"""Most refused connections in lingering close at a time; more are aborted."""

REFUSED = "refused"
"""Key in the lifespan's state: a function that counts errors of connections by their names."""

TAKES_WHOLE: dict[str, dict[object, object]] = {WHOLE: {}}
"""Extensions of a connection's scope."""

Headers = Sequence[tuple[bytes, bytes]]

full = SparseLog("connections are refused: there are as many as the service takes")
silent = SparseLog("connections are closed: their requests did not come in time")


class WholeAnswers(RequestResponseCycle):
    """A request's cycle that takes a whole answer in one message, and sends it by one system call.

    uvicorn takes head and body apart, sends them by two calls, and examines each header.
    """

    async def send(self, message: Any) -> None:
        """Send a part of an answer, or a whole one."""
        if message["type"] != WHOLE:
            await super().send(message)
            return
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if not self.disconnected:
            self._answer(message["status"], message["headers"], message["body"])

    def _answer(self, status: int, headers: Headers, body: bytes) -> None:
        ending = () if self.keep_alive else ((b"connection", b"close"),)
        self.transport.write(whole(status, (*self.default_headers, *headers, *ending), body))
        self.response_started = self.response_complete = True
        self.waiting_for_100_continue = False
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


class BoundedProtocol(HttpToolsProtocol):
    """Protocol of uvicorn for httptools, with the bounds that both lack.

    httptools joins the pieces of a header line without a limit; uvicorn limits only the idle time
    after an answer. This class limits:

    - the number of connections, by uvicorn's ``limit_concurrency``, before they send anything;
    - bytes and lines of heads, trailers, and bytes that belong to no request;
    - pieces of a body for each 40 bytes of it;
    - bodies that continue after their answer, by closing the connection;
    - seconds: of a head from its first byte or from the connection's start, of a body without a
      byte, and of an answer that is not read.

    Each connection has one timer, which is set to its next deadline.

    Attributes:
        silent_seconds: time limit of a body without a byte, and of an answer that is not read.
        lingering_seconds: lingering close: seconds to drain input, so that the client receives
            the error.
        lingering: connections that are refused and not closed yet.
    """

    head_seconds: float = 10.0
    silent_seconds: float = 30.0
    lingering_seconds: float = 1.0
    lingering: ClassVar[set["BoundedProtocol"]] = set()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to serve a connection, if there is room for it."""
        super().connection_made(transport)
        self._unparsed = 0  # bytes received since the last complete part of a request
        self._reads_body = False
        self._chunks: list[bytes] = []  # of the body, parsed and not delivered yet
        self._pieces = 0  # of the body
        self._content = 0  # bytes of the body
        self._is_refused = False
        self._dropped = 0
        self._refusal: ServiceError | None = None
        self._blocked_since: float | None = None
        self._heard_at = self.loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._set_timer(self.head_seconds)
        limit = self.limit_concurrency
        if limit is not None and len(self.connections) >= limit:
            self._refuse_connection()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer of a closed connection."""
        self._set_timer(None)
        self.lingering.discard(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes, in pieces no longer than a head may be."""
        if self._is_refused:
            self._drop(data)
            return
        if self._reads_body or not self._unparsed:
            self._heard_at = self.loop.time()
        step = PARSED_AT_ONCE if self._reads_body else LONGEST_HEAD
        for start in range(0, len(data), step):
            if not self._is_refused:
                self._feed(data[start : start + step])
        if len(data) > LONGEST_HEAD and self._reads_body and not self._is_refused:
            self._yield_reading()

    def _yield_reading(self) -> None:
        """Pause until the next turn of the loop: libuv reads up to 8 MB of one socket in a turn."""
        self.flow.pause_reading()
        self.loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        """Read on, unless the application has to take the body first."""
        if not self.transport.is_closing() and len(self.cycle.body) <= HIGH_WATER_LIMIT:
            self.flow.resume_reading()

    def _feed(self, data: bytes) -> None:
        self._unparsed += len(data)
        super().data_received(data)
        self._deliver_body()
        if self._unparsed > LONGEST_HEAD or len(self.headers or ()) > MOST_HEADER_LINES:
            self._refuse(too_large())
        elif not self._reads_body or self._is_refused:
            return
        elif self.cycle.response_complete:
            self._linger()
        elif self._pieces > MOST_PIECES + self._content // BYTES_PER_PIECE:
            self._refuse(MalformedRequestError("The body comes in too many small pieces."))

    def on_headers_complete(self) -> None:
        """Begin to serve a request, unless its head is too large."""
        if len(self.headers) > MOST_HEADER_LINES or (
            self._unparsed > LONGEST_HEAD and length_of(self.url, self.headers) > LONGEST_HEAD
        ):
            self._refusal = too_large()
            raise self._refusal
        super().on_headers_complete()
        if not self.access_log:
            self.cycle.__class__ = WholeAnswers  # uvicorn lets nobody choose it
            self.scope["extensions"] = TAKES_WHOLE
        self.headers = []  # trailers do not count as lines of the head
        self._unparsed = self._pieces = self._content = 0
        self._reads_body = True

    def on_body(self, body: bytes) -> None:
        """Collect a chunk of a body.

        uvicorn would append each chunk to the whole body, which takes time in proportion to both.
        """
        self._unparsed = 0
        self._pieces += 1
        self._content += len(body)
        self._chunks.append(body)

    def on_message_complete(self) -> None:
        """Expect another head."""
        self._deliver_body()
        self._unparsed = 0
        self._reads_body = False
        super().on_message_complete()

    def _deliver_body(self) -> None:
        """Hand the chunks that were parsed to the application, as one."""
        if self._chunks:
            body = b"".join(self._chunks)
            self._chunks = []
            super().on_body(body)

    def pause_writing(self) -> None:
        """Note when the client stopped reading its answer."""
        self._blocked_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Note that the client reads its answer again."""
        self._blocked_since = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that the parser rejects; uvicorn calls this."""
        self._refuse(self._refusal or MalformedRequestError(msg))

    def shutdown(self) -> None:
        """Close idle connections; give requests and answers on their way `lingering_seconds`."""
        super().shutdown()
        self.silent_seconds = self.lingering_seconds
        self._set_timer(self.lingering_seconds)

    def _check_deadline(self) -> None:
        """Close the connection if its deadline has passed; else look again at the deadline."""
        if self._is_refused or self.transport.is_closing():
            self.transport.abort()
            return
        now = self.loop.time()
        wait = self._due(now) - now
        if wait > 0:
            self._set_timer(wait)
            return
        silent.warn(seconds=round(now - self._heard_at, 1))
        self._refuse(RequestTimeoutError())

    def _due(self, now: float) -> float:
        """Return the connection's deadline on the loop's clock, if nothing is received before."""
        if self._blocked_since is not None:
            return self._blocked_since + self.silent_seconds
        if self._reads_body:
            if self.flow.read_paused:  # the service has paused reading
                self._heard_at = now
            return self._heard_at + self.silent_seconds
        if self._unparsed or self.cycle is None:
            return self._heard_at + self.head_seconds
        # It is being answered, or idle; uvicorn limits the idle time.
        return now + min(self.head_seconds, self.silent_seconds)

    def _refuse_connection(self) -> None:
        """Refuse a connection beyond the limit, with an answer unless too many linger already."""
        self.connections.discard(self)
        full.warn(connections=len(self.connections))
        if len(self.lingering) >= MOST_LINGERING:
            self._count(TooManyConnectionsError)
            self.transport.abort()
        else:
            self._refuse(TooManyConnectionsError())

    def _refuse(self, error: ServiceError) -> None:
        """Answer an error if no answer has begun, and close once the client can have read it."""
        if self._is_refused or self.transport.is_closing():
            return
        self._is_refused = True
        self._count(type(error))
        self._set_timer(self.lingering_seconds)
        if not self._can_answer(error):
            self.transport.close()
            return
        self.transport.write(self._answer(error))
        if self._reads_body:  # the application need not wait for the rest
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self._linger()

    def _linger(self) -> None:
        """Close lingering: drop further input for a while, so that the client reads its answer."""
        self._is_refused = True
        self._set_timer(self.lingering_seconds)
        self.lingering.add(self)
        self.transport.write_eof()

    def _can_answer(self, error: ServiceError) -> bool:
        """Return whether the client expects an answer now, and none of it has been sent."""
        if self.pipeline:
            return False
        if self._reads_body:
            return not self.cycle.response_started
        if isinstance(error, RequestTimeoutError) and not self._unparsed:
            return False
        return self.cycle is None or self.cycle.response_complete

    def _answer(self, error: ServiceError) -> bytes:
        body = error_body(error)
        fields = [
            *self.server_state.default_headers,
            *json_head(body, error.headers),
            (b"connection", b"close"),
        ]
        return whole(error.status, fields, body)

    def _drop(self, data: bytes) -> None:
        """Drop input of a refused client, up to `LINGERING_BYTES`."""
        self._dropped += len(data)
        if self._dropped > LINGERING_BYTES:
            self.transport.abort()

    def _count(self, error: type[Exception]) -> None:
        count = self.app_state.get(REFUSED)
        if count is not None:
            count(error.__name__)

    def _set_timer(self, seconds: float | None) -> None:
        """Set the timer to ``seconds`` from now; None stops it."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = (
            None if seconds is None else self.loop.call_later(seconds, self._check_deadline)
        )


def whole(status: int, headers: Headers, body: bytes) -> bytes:
    """Return the bytes of an answer."""
    lines = [b"%b: %b\r\n" % field for field in headers]
    return b"".join((STATUS_LINE[status], *lines, b"\r\n", body))


def length_of(url: bytes, headers: Sequence[tuple[bytes, bytes]]) -> int:
    """Return the length of a head in bytes, without its method and version."""
    return len(url) + sum(len(name) + len(value) + 4 for name, value in headers)


def too_large() -> HeadTooLargeError:
    """Return the error for a head with too many bytes or lines."""
    return HeadTooLargeError(
        f"A head has at most {LONGEST_HEAD} bytes and {MOST_HEADER_LINES} lines."
    )
