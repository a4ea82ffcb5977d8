"""Bearer tokens and their scopes decide which calls a caller may make, and whose jobs it sees."""

from base64 import b64decode
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from service.errors import ForbiddenError, MissingTokenError
from service.settings import Settings
from service.store import Token, parse_token


class Scope(StrEnum):
    """The permissions of a token; ``admin`` allows everything.

    ``read`` is good for everything that is no secret and changes nothing; ``self`` for what belongs
    to one user, and for the numbers of jobs in the live queue.
    """

    PREDICT = "predict"
    INGEST = "ingest"
    READ = "read"
    SELF = "self"
    ADMIN = "admin"


MOST_CACHED_HEADERS = 1_000
"""Headers with a valid token that are remembered; who may say one may spell it in many ways."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, as far as it decides what may be done and seen.

    Attributes:
        scopes: what the caller may do.
        restricted_to: name in the history of the one user whose jobs the caller may see; None if
            the caller may see all jobs.
    """

    scopes: frozenset[str]
    restricted_to: str | None = None

    def has_scope(self, wanted: Collection[str]) -> bool:
        """Whether one of the ``wanted`` scopes is the caller's; without any, everybody may."""
        return not wanted or not self.scopes.isdisjoint({*wanted, Scope.ADMIN})

    def can_see(self, user: str | None) -> bool:
        """Whether the caller may see the jobs of ``user``."""
        return self.restricted_to is None or self.restricted_to == user


EVERYBODY = Caller(frozenset(Scope))
"""Whoever calls a service that asks for no tokens."""


class Guard:
    """Admits requests by the tokens that the store holds.

    Until the first token is issued the service is open, unless it was told to be ``always`` closed,
    as it is beyond loopback. From then on every call needs one, also when all are revoked: who
    revokes a token that leaked wants the door closed.

    A header that was good is remembered until the tokens are read again, which is seconds. It is
    found by its hash, of a key that the process draws: how long that takes tells nothing of it.

    Attributes:
        is_open: no call needs a token.
    """

    def __init__(self, *, always: bool) -> None:
        self._always = always
        self.is_open = not always
        self._tokens: dict[str, tuple[Token, Caller]] = {}
        self._callers: dict[bytes | None, Caller] = {}

    def update(self, tokens: Iterable[Token]) -> None:
        """Know these tokens from now on, revoked ones among them, and no others."""
        ever_issued = list(tokens)
        self._callers.clear()
        self.is_open = not (ever_issued or self._always)
        self._tokens = {
            token.token_id: (token, Caller(token.scopes, token.user))
            for token in ever_issued
            if token.revoked_at is None
        }

    def admit(self, authorization: bytes | None, scopes: Collection[str]) -> Caller:
        """Let the request pass, and say whose it is; without ``scopes`` any valid token will do.

        Raises:
            MissingTokenError: there is no valid token in the header.
            ForbiddenError: its token does not allow this call.
        """
        if self.is_open:
            return EVERYBODY
        caller = self._callers.get(authorization)
        if caller is None:
            caller = self._bearer(authorization)
            if len(self._callers) == MOST_CACHED_HEADERS:
                self._callers.clear()
            self._callers[authorization] = caller
        return allowed(caller, scopes)

    def find(self, text: str) -> tuple[Token, Caller] | None:
        """The valid token of this text, and who bears it; None if there is none."""
        token_id, secret = parse_token(text) or ("", "")
        found = self._tokens.get(token_id)
        return found if found and found[0].matches(secret) else None

    def bearer_of(self, token_id: str) -> tuple[Token, Caller] | None:
        """The valid token of this id, and who bears it: for whoever has shown it before."""
        return self._tokens.get(token_id)

    def _bearer(self, authorization: bytes | None) -> Caller:
        """Who bears the valid token that the header names.

        A token reads ``wt_<id>_<secret>``: the id finds the hash that the secret must match.
        """
        if authorization is None:
            raise MissingTokenError("This call needs a token: 'Authorization: Bearer wt_…'.")
        found = self.find(token_text(authorization))
        if found is None:
            raise MissingTokenError("The token is not valid.")
        return found[1]


class NotProtectedError(OSError):
    """The service would listen beyond this machine without a token."""


def check_protected(settings: Settings, tokens: Callable[[], Iterable[Token]]) -> None:
    """Refuse to listen beyond loopback while no valid token has been issued.

    Args:
        settings: of the service.
        tokens: reads all tokens, where they matter.

    Raises:
        NotProtectedError: the message says what to do.
    """
    if settings.is_loopback or settings.insecure:
        return
    if all(token.revoked_at is not None for token in tokens()):
        raise NotProtectedError(
            f"Listening on {settings.host} needs a token: issue one with "
            "`walltimed token issue`, or pass --insecure."
        )


def allowed(caller: Caller, scopes: Collection[str]) -> Caller:
    """The caller, if one of ``scopes`` is theirs.

    Raises:
        ForbiddenError: none is.
    """
    if not caller.has_scope(scopes):
        raise ForbiddenError(f"This call needs a token with scope {' or '.join(scopes)}.")
    return caller


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
