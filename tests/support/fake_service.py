"""A stand-in for the service that is well, slow, hung, wrong or gone."""

import json
import socket
import threading
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

PREDICTION = {
    "prediction_id": "0b7c-42",
    "job_id": None,
    "cluster": "hill",
    "predicted_walltime": 421.5,
    "requested_walltime": 3600,
    "method": "max-usage",
    "basis": {"jobs": 5, "reason": "history"},
    "likely": 300.0,
    "interval": {"lower": 60.0, "upper": 1801.0, "coverage": 0.9},
}


def http(status: int, body: bytes, *headers: str, length: object = None) -> bytes:
    """An answer; ``length`` is a lie about the body's, or the truth."""
    says = len(body) if length is None else length
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {says}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def prediction(**changes: Any) -> bytes:
    return http(200, json.dumps(PREDICTION | changes).encode())


GARBAGE = {
    "no HTTP": b"220 mail.example.org ESMTP\r\n",
    "HTML": http(200, b"<html>It works!</html>"),
    "an empty object": http(200, b"{}"),
    "wrong types": prediction(predicted_walltime="soon", prediction_id=["x"]),
    "a negative time": prediction(predicted_walltime=-5),
    "an endless time": prediction(predicted_walltime=1e300),
    "no time at all": prediction(predicted_walltime=0),
    "a server error": http(500, b"{}"),
    "a server error with a prediction": http(500, json.dumps(PREDICTION).encode()),
    "unauthorised": http(401, b"{}"),
    "no status": b"220 mail.example.org ESMTP\r\n\r\n",
    "no length": b"HTTP/1.1 200 OK\r\n\r\n{}",
    "a length that is too long": b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n",
    "a body cut short": b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{}",
    "headers without end": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500,
    "nothing": b"",
}
TOLD = json.dumps(PREDICTION).encode()
BODILESS = {
    "an empty body": http(200, b""),
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "a redirect": http(302, b"", "Location: http://127.0.0.1:1/"),
    "an error with a length and no body": http(503, b"", length=500),
}
WRONG_LENGTHS = {
    "a length that is too short": http(200, TOLD, length=len(TOLD) - 30),
    "a length that cuts a number": http(200, TOLD, length=TOLD.index(b"421.5") + 2),
    "a length beyond all memory": http(200, TOLD, length=10**30),
    "a negative length": http(200, TOLD, length=-1),
    "a length in words": http(200, TOLD, length="many"),
    "a prediction's name of a megabyte": prediction(prediction_id="a" * 2**20),
}
LARGEST_ANSWER = 2**16
"""Bytes of a body that submit filters take."""


def padded(length: int) -> bytes:
    """A good answer of so many bytes."""
    return http(200, TOLD.ljust(length))


LONG_HEAD = http(200, TOLD, "X: " + "y" * 30_000)
"""A good answer whose head is longer than submit filters take."""

STREAMS = {
    "a status line without end": (b"", b"HTTP/1.1 " * 100),
    "headers without end": (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 100),
    "a header line without end": (b"HTTP/1.1 200 OK\r\nX: ", b"a" * 1000),
    "a body without end": (http(200, TOLD[:-1], length=10**12), b" " * 1000),
    "a body without end or length": (b"HTTP/1.1 200 OK\r\n\r\n" + TOLD[:-1], b" " * 1000),
}
"""How an answer begins, and what then goes on until somebody hangs up."""

MOST_TAKEN = 8 * 2**20
"""Bytes of a stream that a client may take: what its bounds allow, and the kernel's buffers."""

BAD_NAMES = ["", "a" * 65, "x;wtp=1", "x\n$(reboot)", "../etc", "é", 7, None, ["x"]]
"""What no prediction is called."""


class FakeService:
    """Answers every request with ``answer``; None is silence. ``hangs_up`` closes after each.

    ``forever`` follows the answer again and again, until the client hangs up. It listens on a port,
    or on a Unix socket at ``path``.

    Attributes:
        sent: bytes that went to clients, into their kernel's buffers at least.
    """

    def __init__(
        self,
        answer: bytes | None = None,
        *,
        hangs_up: bool = False,
        forever: bytes = b"",
        seconds_per_byte: float = 0,
        port: int = 0,
        path: Path | None = None,
    ) -> None:
        self.answer, self.hangs_up, self.seconds_per_byte = answer, hangs_up, seconds_per_byte
        self.forever = forever
        self.sent = 0
        self.is_closed = threading.Event()
        self.requests: list[dict[str, Any]] = []
        self.headers: list[str] = []
        self.connections = 0
        if path:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(str(path))
            self.listener.listen()
        else:
            self.listener = socket.create_server(("127.0.0.1", port))
            self.port = self.listener.getsockname()[1]
        self._open: list[socket.socket] = []

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def patience(self, name: str, *, seconds: float = 1.0) -> dict[str, float]:
        """A budget for tests of other things than the budget, on machines that are busy."""
        is_well = bool(self.answer) and not self.seconds_per_byte and not self.forever
        return {name: 2 * seconds} if is_well else {}

    @contextmanager
    def serving(self):
        """Serve meanwhile."""
        thread = threading.Thread(target=self._serve, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.close()
            thread.join()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as reader:
                while self._read(reader):
                    if self.answer is None:
                        continue
                    self._send(connection, self.answer)
                    if self.hangs_up or not self.answer:
                        return
        except OSError:
            return

    def _send(self, connection: socket.socket, answer: bytes) -> None:
        if not self.seconds_per_byte:
            self._sent(connection, answer)
            while self.forever:
                self._sent(connection, self.forever)
            return
        for byte in answer:
            if self.is_closed.wait(self.seconds_per_byte):
                return
            self._sent(connection, bytes([byte]))

    def _sent(self, connection: socket.socket, data: bytes) -> None:
        connection.sendall(data)
        self.sent += len(data)

    def _read(self, reader) -> bool:
        head = [line := reader.readline()]
        while line not in (b"\r\n", b""):
            head.append(line := reader.readline())
        lengths = [h.split(b":")[1] for h in head if h.lower().startswith(b"content-length:")]
        if not lengths and head[0].startswith(b"GET "):
            self.headers = [line.decode("latin-1") for line in head]
            return True
        if not lengths:
            return False
        self.headers.append(b"".join(head).decode())
        self.requests.append(self._parsed(reader.read(int(lengths[0]))))
        return True

    @staticmethod
    def _parsed(body: bytes) -> dict[str, Any]:
        return json.loads(body) if body.startswith(b"{") else {"text": body.decode()}

    def close(self) -> None:
        self.is_closed.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self._open:
            # Closing alone leaves a connection that is being read alive, and answered.
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()


def fake_service(answer: bytes | None = None, **kwargs: Any):
    """One that serves in a ``with`` block."""
    return FakeService(answer, **kwargs).serving()


@contextmanager
def full_backlog(path: Path | None = None):
    """A listener that takes no more connections: its port, or a Unix socket at ``path``.

    Linux drops the first packet of a connection for which the queue has no room, so that
    connecting to it takes two minutes to fail.
    """
    family = socket.AF_UNIX if path else socket.AF_INET
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket(family))
        listener.bind(str(path) if path else ("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket(family))
            waiting.settimeout(0)
            waiting.connect_ex(listener.getsockname())
        yield None if path else listener.getsockname()[1]
