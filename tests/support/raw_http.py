"""Bytes to a service and what comes back, without a client that would know better."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

SECONDS = 30.0
"""How long an answer is waited for; machines are shared."""


class Answer(NamedTuple):
    """One answer: its status, its header fields in lower case, its body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def error(self) -> str:
        """The name of the error in it."""
        return json.loads(self.body)["error"]


@contextmanager
def connection(path: Path) -> Iterator[socket.socket]:
    """A connection to the Unix socket at ``path``."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as opened:
        opened.settimeout(SECONDS)
        opened.connect(str(path))
        yield opened


def answers_to(path: Path, *parts: bytes) -> list[Answer]:
    """Everything that is answered to these bytes until the service closes the connection."""
    with connection(path) as opened:
        try:
            for part in parts:
                opened.sendall(part)
        except OSError:
            pass  # it was closed before all was sent; what it said can still be read
        return parse(read_all(opened))


def request(method: str, target: str, *lines: str, body: bytes = b"") -> bytes:
    """A request that the service is to close the connection after."""
    head = [f"{method} {target} HTTP/1.1", "host: localhost", "connection: close", *lines]
    if body:
        head.append(f"content-length: {len(body)}")
    return "\r\n".join([*head, "", ""]).encode("latin-1") + body


def read_all(opened: socket.socket) -> bytes:
    """What comes until the connection is closed."""
    received = b""
    try:
        while piece := opened.recv(1 << 16):
            received += piece
    except ConnectionResetError:
        pass
    return received


def parse(received: bytes) -> list[Answer]:
    """The answers in what was received; one without a length extends to the end."""
    answers = []
    while received:
        head, _, received = received.partition(b"\r\n\r\n")
        status, *fields = head.decode("latin-1").split("\r\n")
        headers = {
            name.lower(): text for name, _, text in (field.partition(": ") for field in fields)
        }
        length = int(headers.get("content-length", len(received)))
        answers.append(Answer(int(status.split()[1]), headers, received[:length]))
        received = received[length:]
    return answers
