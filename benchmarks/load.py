"""A load generator: posts over many connections from one process, and times every answer.

Closed loop: every connection posts again as soon as it has its answer, which finds the highest
rate. Open loop: posts are due at fixed times whatever the answers do, and a time counts from
when its post was due, so that no slow answer hides the ones that had to wait behind it.
"""

import select
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, takewhile
from math import inf
from time import perf_counter

from msgspec import Struct

OPEN_CONNECTIONS = 32
"""Connections of an open loop: more than are busy unless the server cannot keep up."""


class Times(Struct, frozen=True, kw_only=True):
    """How long the answers took.

    Attributes:
        seconds: of each answer, sorted.
        elapsed: of the whole run.
    """

    seconds: list[float]
    elapsed: float

    @property
    def rate(self) -> float:
        """Answers per second."""
        return len(self.seconds) / self.elapsed

    def percentile(self, percent: float) -> float:
        """The time in seconds that ``percent`` of the answers do not exceed."""
        return self.seconds[min(len(self.seconds) - 1, int(len(self.seconds) * percent / 100))]


def post(
    path: str, body: bytes, *, token: str | None = None, kind: str = "application/json"
) -> bytes:
    """The bytes of a request."""
    lines = [
        f"POST {path} HTTP/1.1",
        "host: walltimed",
        f"content-type: {kind}",
        f"content-length: {len(body)}",
        *([f"authorization: Bearer {token}"] if token else []),
        "",
        "",
    ]
    return "\r\n".join(lines).encode() + body


class Connection:
    """One connection with at most one request on its way."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.since = 0.0
        self._received = b""

    def fileno(self) -> int:
        """For ``select``."""
        return self.socket.fileno()

    def send(self, request: bytes, since: float) -> None:
        """Send a request whose time counts from ``since``."""
        self.since = since
        self.socket.sendall(request)

    def receive(self) -> bool:
        """Take what has come; says whether the answer is complete.

        Raises:
            RuntimeError: the answer is not 200.
        """
        self._received += self.socket.recv(1 << 16)
        head, found, body = self._received.partition(b"\r\n\r\n")
        if not found:
            return False
        _, _, rest = head.lower().partition(b"content-length:")
        if len(body) < int(rest.partition(b"\r\n")[0]):
            return False
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(self._received.decode())
        self._received = b""
        return True


def closed_loop(
    address: tuple[str, int], requests: Iterable[bytes], *, connections: int, seconds: float = inf
) -> Times:
    """Post as fast as the answers come, until the requests or the seconds end.

    There are at least as many requests as connections.
    """
    todo = iter(requests)
    opened = [Connection(address) for _ in range(connections)]
    times: list[float] = []
    begin = perf_counter()
    end = begin + seconds
    busy = set(opened)
    for connection, request in zip(opened, islice(todo, connections), strict=True):
        connection.send(request, perf_counter())
    while busy:
        for connection in select.select(busy, (), ())[0]:
            if not connection.receive():
                continue
            now = perf_counter()
            times.append(now - connection.since)
            following = next(todo, None) if now < end else None
            if following is None:
                busy.remove(connection)
            else:
                connection.send(following, now)
    return finished(opened, times, begin)


def open_loop(
    address: tuple[str, int],
    requests: Iterable[bytes],
    *,
    per_second: float,
    seconds: float,
    going_on: Callable[[], bool] = lambda: True,
) -> Times:
    """Post at fixed times, on whichever connection is free, for so long or while it goes on."""
    todo = iter(requests)
    opened = [Connection(address) for _ in range(OPEN_CONNECTIONS)]
    free = deque(opened)
    busy: set[Connection] = set()
    times: list[float] = []
    begin = perf_counter()
    due = takewhile(lambda _: going_on(), dues(begin, per_second, seconds))
    at = next(due, None)
    while busy or at is not None:
        now = perf_counter()
        while at is not None and at <= now and free:
            connection = free.popleft()
            connection.send(next(todo), at)
            busy.add(connection)
            at = next(due, None)
        wait = max(0.0, at - perf_counter()) if at is not None and free else None
        for connection in select.select(busy, (), (), wait)[0]:
            if connection.receive():
                times.append(perf_counter() - connection.since)
                busy.remove(connection)
                free.append(connection)
    return finished(opened, times, begin)


def dues(begin: float, per_second: float, seconds: float) -> Iterator[float]:
    """When each post is due."""
    return (begin + place / per_second for place in range(int(per_second * seconds)))


def finished(opened: Sequence[Connection], times: list[float], begin: float) -> Times:
    """What was measured; the connections are closed."""
    elapsed = perf_counter() - begin
    for connection in opened:
        connection.socket.close()
    return Times(seconds=sorted(times), elapsed=elapsed)
