"""Callers who name themselves by a MUNGE credential in the Authorization header."""

import asyncio
import pwd
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from service import munge
from service.auth import Caller, Scope
from service.errors import MissingTokenError, MungeTooLongError

SCHEME = b"munge "

CREDENTIAL = re.compile(r"MUNGE:[A-Za-z0-9+/=]{1,4096}:")
"""The form of a credential; munged never sees anything else."""

SECONDS = 2.0
"""Time in which munged has to answer, waiting for a thread included."""

THREADS = 2


class MungeCallers:
    """Finds callers by credentials, in threads of its own: munged may be slow, or hang.

    Args:
        socket: of munged; None refuses every credential.
        pseudonym: from a user's name to the name in the history.
    """

    def __init__(self, socket: Path | None, pseudonym: Callable[[str | None], str | None]) -> None:
        self._socket = socket
        self._pseudonym = pseudonym
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="munge")

    async def caller(self, authorization: bytes) -> Caller:
        """Return the caller of a request, who may do what a token of scope self allows.

        Raises:
            MissingTokenError: the credential is not valid, or was used before.
            MungeTooLongError: munged does not answer in time.
        """
        credential = authorization[len(SCHEME) :].decode("latin-1").strip()
        if not CREDENTIAL.fullmatch(credential):
            raise MissingTokenError("This is no MUNGE credential.")
        if self._socket is None or not self._socket.exists():
            raise MissingTokenError("The service takes no MUNGE credentials; it needs a token.")
        loop = asyncio.get_running_loop()
        named = loop.run_in_executor(self._threads, user_of, credential, self._socket)
        try:
            name = await asyncio.wait_for(named, SECONDS)
        except (TimeoutError, munge.MungeUnavailableError) as error:
            raise MungeTooLongError("munged does not answer the service.") from error
        return Caller(frozenset({Scope.SELF}), self._pseudonym(name))


def is_credential(authorization: bytes | None) -> bool:
    """Return whether an Authorization header has the scheme ``Munge``."""
    return authorization is not None and authorization[: len(SCHEME)].lower() == SCHEME


def user_of(credential: str, socket: Path) -> str:
    """Return the name of the user who made a credential.

    Raises:
        MissingTokenError: it is refused, or the user is not known on this host.
        MungeUnavailableError: munged does not answer.
    """
    try:
        user_id = munge.decode(credential, socket)
    except munge.CredentialRefusedError as error:
        raise MissingTokenError(f"The MUNGE credential is refused: {error}.") from error
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        raise MissingTokenError(f"The service's host knows no user {user_id}.") from None
