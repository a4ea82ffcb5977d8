"""Sending the head of an answer together with its body."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class OneWriteProtocol(HttpToolsProtocol):
    """uvicorn's protocol, except that an answer leaves in one piece.

    uvicorn writes the head of an answer by itself and its body after it: two system calls here,
    two packets, and a caller that is woken twice. This costs as much as a prediction.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to serve a connection."""
        super().connection_made(OneWriteTransport(transport))


class OneWriteTransport(asyncio.Transport):
    """A transport that keeps the head of an answer until something follows it.

    uvicorn always writes something after a head, if only an empty body, or closes.

    Args:
        transport: of the connection.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__()
        self._transport = transport
        self._write = transport.write
        self._head = b""

    def write(self, data: Any) -> None:
        """Send data, and before it the head that was kept; or keep it, if it is a head."""
        if self._head:
            data = self._head + data
            self._head = b""
        elif is_head(data):
            self._head = data
            return
        self._write(data)

    def close(self) -> None:
        """Close the connection once all is sent."""
        if self._head:
            self.write(b"")
        self._transport.close()

    def is_closing(self) -> bool:
        """Whether the connection is closing or closed."""
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """What the transport knows of the connection."""
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        """Read no more for now."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on."""
        self._transport.resume_reading()


def is_head(data: bytes) -> bool:
    """Whether it is the head of an answer that is still to come; an interim answer is none."""
    return (
        data.startswith(b"HTTP/1.1 ")
        and data.endswith(b"\r\n\r\n")
        and not data.startswith(b"HTTP/1.1 1")
    )
