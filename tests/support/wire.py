"""A transport without a network, for tests of the protocol by the second and the byte."""

import asyncio


class Wire(asyncio.Transport):
    """A transport without a network: it keeps the bytes written to it."""

    _protocol: asyncio.BaseProtocol

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_closed = False
        self.closed = asyncio.Event()

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
