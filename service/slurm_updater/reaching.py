"""Reaching the service where it listens: on a port, or on a Unix socket of this machine."""

import socket
from http.client import HTTPConnection

from simulator.replay.remote import Client

SCHEME = "unix:"


class SocketConnection(HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, *, timeout: float) -> None:
        super().__init__("walltimed", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        """Open the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class SocketClient(Client):
    """A service that listens on a Unix socket; its file's mode says who may call."""

    def __init__(self, path: str, *, token: str | None, timeout: float) -> None:
        super().__init__("http://walltimed", token=token, timeout=timeout)
        self.url = f"{SCHEME}{path}"
        self._connection = SocketConnection(path, timeout=timeout)


def client_of(url: str, *, token: str | None, timeout: float) -> Client:
    """A connection to the service at ``http://HOST:PORT`` or ``unix:FILE``.

    Raises:
        AddressError: it is neither.
    """
    if url.startswith(SCHEME):
        return SocketClient(url.removeprefix(SCHEME), token=token, timeout=timeout)
    return Client(url, token=token, timeout=timeout)
