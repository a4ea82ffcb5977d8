"""Users of this machine, for whom the kernel vouches: who connects to a Unix socket is who asks."""

import asyncio
import os
import pwd
import socket
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from service.auth import Caller, Scope
from service.errors import MissingTokenError
from service.pseudonyms import Pseudonym

PEER = "walltimed.peer"
"""In the connection's scope: the number of the user at the other end of a Unix socket."""

_CREDENTIALS = struct.Struct("3i")  # process, user, group (unix(7), SO_PEERCRED)

SUPERUSER = 0

REMEMBERED_USERS = 65_536
"""User numbers whose names are kept; beyond that they are forgotten and looked up again."""


def uid_of(transport: asyncio.BaseTransport) -> int | None:
    """The number of the user who has connected; None where it is no Unix socket."""
    connection = transport.get_extra_info("socket")
    if connection is None or connection.family != socket.AF_UNIX:
        return None
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    uid: int = _CREDENTIALS.unpack(raw)[1]
    return uid


def name_of(uid: int) -> str | None:
    """The name of a user; None if this machine knows none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return None


class Vouching:
    """Tells who calls over the socket for users.

    Args:
        path: of the socket; None where there is none.
        pseudonym: what the history calls a user.
        named: the name of a user's number; it may ask a directory server.
    """

    def __init__(
        self,
        path: Path | None,
        pseudonym: Pseudonym,
        named: Callable[[int], str | None] = name_of,
    ) -> None:
        self._path = None if path is None else str(path)
        self._pseudonym = pseudonym
        self._named = named
        self._names: dict[int, str] = {}

    def covers(self, connection: Mapping[str, Any]) -> bool:
        """Whether a connection came over the socket for users."""
        if self._path is None or PEER not in connection:
            return False
        server = connection.get("server")
        return server is not None and server[0] == self._path

    async def caller(self, uid: int) -> Caller:
        """Who calls: the user alone; root, and the service's own user, may see everything.

        Raises:
            MissingTokenError: nobody knows the name of the user.
        """
        if uid in (SUPERUSER, os.geteuid()):
            return Caller(frozenset({Scope.READ}))
        name = self._names.get(uid)
        if name is None:
            # A directory server may be asked, so not on the event loop.
            name = await asyncio.to_thread(self._named, uid)
            if name is None:
                raise MissingTokenError(f"This machine knows no name of the user {uid}.")
            if len(self._names) >= REMEMBERED_USERS:
                self._names.clear()
            self._names[uid] = name
        return Caller(frozenset({Scope.SELF}), self._pseudonym(name))
