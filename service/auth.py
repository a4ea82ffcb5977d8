"""Bearer tokens and their scopes decide which calls a caller may make."""

from base64 import b64decode
from collections.abc import Iterable
from enum import StrEnum

from service.errors import ForbiddenError, MissingTokenError
from service.store import Token


class Scope(StrEnum):
    """The permissions of a token; ``admin`` allows everything."""

    PREDICT = "predict"
    INGEST = "ingest"
    ADMIN = "admin"


class Guard:
    """Admits requests by the tokens that the store holds.

    Until the first token is issued the service is open, unless it was told to be ``always`` closed,
    as it is beyond loopback. From then on every call needs one, also when all are revoked: who
    revokes a token that leaked wants the door closed.

    Attributes:
        is_open: no call needs a token.
    """

    def __init__(self, *, always: bool) -> None:
        self._always = always
        self.is_open = not always
        self._tokens: dict[str, Token] = {}

    def update(self, tokens: Iterable[Token]) -> None:
        """Know these tokens from now on, revoked ones among them, and no others."""
        ever_issued = list(tokens)
        self.is_open = not (ever_issued or self._always)
        self._tokens = {token.token_id: token for token in ever_issued if token.revoked_at is None}

    def admit(self, authorization: bytes | None, scope: str | None) -> None:
        """Let the request pass; ``scope`` None asks for any valid token.

        Raises:
            MissingTokenError: there is no valid token in the header.
            ForbiddenError: its token does not allow this call.
        """
        if self.is_open:
            return
        token = self._bearer(authorization)
        if scope is not None and not token.allows(scope):
            raise ForbiddenError(f"This call needs a token with scope {scope}.")

    def _bearer(self, authorization: bytes | None) -> Token:
        """The valid token that the header names.

        A token reads ``wt_<id>_<secret>``: the id finds the hash that the secret must match.
        """
        if authorization is None:
            raise MissingTokenError("This call needs a token: 'Authorization: Bearer wt_…'.")
        prefix, _, rest = token_text(authorization).partition("_")
        token_id, _, secret = rest.partition("_")
        token = self._tokens.get(token_id)
        if prefix != "wt" or token is None:
            raise MissingTokenError("The token is not valid.")
        if not token.matches(secret):
            raise MissingTokenError("The token is not valid.")
        return token


def token_text(authorization: bytes) -> str:
    """The token of a header: as it is, or as the password of any user.

    Slurm's jobcomp plugin can send no header but the one of ``http://user:password@host/``.
    """
    kind, _, text = authorization.decode("latin-1").partition(" ")
    if kind.lower() == "bearer":
        return text.strip()
    if kind.lower() != "basic":
        return ""
    try:
        credentials = b64decode(text.strip(), validate=True)
    except ValueError:
        return ""
    return credentials.decode("latin-1").partition(":")[2]
