"""A stand-in for the service that is well, slow, hung, wrong or gone."""

import json
import socket
import threading
from contextlib import contextmanager, suppress
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
    "interval": {"lower": 60.0, "upper": 1801.0, "coverage": 0.9},
}


def http(status: int, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", *headers, "", ""]
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
    "a server error": http(500, b"{}"),
    "unauthorised": http(401, b"{}"),
    "no length": b"HTTP/1.1 200 OK\r\n\r\n{}",
    "a length that is too long": b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n",
    "a body cut short": b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{}",
    "headers without end": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500,
    "nothing": b"",
}


class FakeService:
    """Answers every request with ``answer``; None is silence. ``hangs_up`` closes after each.

    It listens on a port, or on a Unix socket at ``path``.
    """

    def __init__(
        self,
        answer: bytes | None = None,
        *,
        hangs_up: bool = False,
        seconds_per_byte: float = 0,
        port: int = 0,
        path: Path | None = None,
    ) -> None:
        self.answer, self.hangs_up, self.seconds_per_byte = answer, hangs_up, seconds_per_byte
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

    def patience(self, name: str, *, seconds: float = 1.0) -> dict[str, float]:
        """A budget for tests of other things than the budget, on machines that are busy."""
        is_well = bool(self.answer) and not self.seconds_per_byte
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
            connection.sendall(answer)
            return
        for byte in answer:
            if self.is_closed.wait(self.seconds_per_byte):
                return
            connection.sendall(bytes([byte]))

    def _read(self, reader) -> bool:
        head = [line := reader.readline()]
        while line not in (b"\r\n", b""):
            head.append(line := reader.readline())
        lengths = [h.split(b":")[1] for h in head if h.lower().startswith(b"content-length:")]
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
