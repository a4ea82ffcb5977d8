"""API tokens, `wt_<id>_<secret>`, and the browser sessions that they open.

The store keeps a hash of every secret. Sessions are rows and not signed texts: they end with
the log-out, are valid in every worker and across restarts, and cannot be forged by a reader of the
database.
"""

import hmac
import secrets
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from msgspec import Struct
from sqlalchemy import Row, delete, insert, select

from service.store.database import Database
from service.store.tables import sessions, tokens
from terminal.scopes import Scope

_PREFIX = "wt"


class Token(Struct, frozen=True, kw_only=True):
    """An API token without its secret.

    Attributes:
        name: purpose, in the administrator's words.
        scopes: permitted operations; ``admin`` permits everything.
        user: name in the history of the user whose jobs a token of scope ``self`` may see.
        secret_hash: SHA-256 of the secret part.
        revoked_at: Unix seconds; None while it is valid.
    """

    token_id: str
    name: str
    scopes: frozenset[str]
    secret_hash: bytes
    created_at: float
    user: str | None = None
    revoked_at: float | None = None

    def matches(self, secret: str) -> bool:
        """Return whether this is the token's secret, in equal time for every wrong one."""
        return hmac.compare_digest(_hash(secret), self.secret_hash)


class Tokens:
    """All tokens. The methods block, as those of the store do."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def issue(
        self, name: str, scopes: Iterable[str], now: float, *, user: str | None = None
    ) -> tuple[Token, str]:
        """Create a token; return it and the text that its bearer presents, which is not stored.

        Raises:
            ValueError: scopes are missing or unknown, or do not fit each other or ``user``.
        """
        wanted = frozenset(scopes)
        if not wanted or not wanted <= frozenset(Scope):
            raise ValueError(f"A token's scopes are some of {', '.join(sorted(Scope))}.")
        if (user is not None) != (Scope.SELF in wanted) or (user is not None and len(wanted) > 1):
            raise ValueError(
                "Scope self needs the name of a user, goes alone, and no other takes one."
            )
        secret = secrets.token_hex(32)
        token = Token(
            token_id=secrets.token_hex(6),
            name=name,
            scopes=wanted,
            secret_hash=_hash(secret),
            created_at=now,
            user=user,
        )
        row = {
            "token_id": token.token_id,
            "name": name,
            "scopes": " ".join(sorted(wanted)),
            "secret_hash": token.secret_hash,
            "created_at": now,
            "user_name": user,
        }
        with self._database.writing() as connection:
            connection.execute(insert(tokens).values(row))
        return token, f"{_PREFIX}_{token.token_id}_{secret}"

    def revoke(self, token_id: str, now: float) -> bool:
        """Revoke a token; return False if there is no valid token of that id."""
        valid = (tokens.c.token_id == token_id) & tokens.c.revoked_at.is_(None)
        with self._database.writing() as connection:
            change = tokens.update().where(valid).values(revoked_at=now)
            return connection.execute(change).rowcount == 1

    def forget_all(self) -> int:
        """Delete all tokens, as if none had ever been issued; return their number."""
        with self._database.writing() as connection:
            return connection.execute(delete(tokens)).rowcount

    def read_all(self) -> list[Token]:
        """Return all tokens, revoked ones too, oldest first."""
        oldest_first = select(tokens).order_by(tokens.c.created_at, tokens.c.token_id)
        with self._database.reading() as connection:
            return [_token(row) for row in connection.execute(oldest_first)]


class Sessions:
    """Sessions of browsers that a token opened, until log-out or the end of their time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def open(self, token_id: str, now: float, *, seconds: float) -> str:
        """Open a session by a token, and delete sessions that are over.

        Returns:
            The text that the browser presents, which is not stored.
        """
        text = secrets.token_urlsafe(32)
        row = {"session_hash": _hash(text), "token_id": token_id, "expires_at": now + seconds}
        with self._database.writing() as connection:
            connection.execute(delete(sessions).where(sessions.c.expires_at <= now))
            connection.execute(insert(sessions).values(row))
        return text

    def token_of(self, text: str, now: float) -> str | None:
        """Return the id of the valid token that opened a session; None if the session is over."""
        wanted = (
            select(sessions.c.token_id)
            .join(tokens, tokens.c.token_id == sessions.c.token_id)
            .where(
                sessions.c.session_hash == _hash(text),
                sessions.c.expires_at > now,
                tokens.c.revoked_at.is_(None),
            )
        )
        with self._database.reading() as connection:
            found: str | None = connection.execute(wanted).scalar()
        return found

    def close(self, text: str) -> None:
        """End a session, if there is one."""
        with self._database.writing() as connection:
            connection.execute(delete(sessions).where(sessions.c.session_hash == _hash(text)))


def parse_token(text: str) -> tuple[str, str] | None:
    """Split a presented token into its id and secret; None if the text is no token."""
    prefix, _, rest = text.partition("_")
    token_id, _, secret = rest.partition("_")
    return (token_id, secret) if prefix == _PREFIX and token_id and secret else None


def _token(row: Row[Any]) -> Token:
    return Token(
        token_id=row.token_id,
        name=row.name,
        scopes=frozenset(row.scopes.split()),
        secret_hash=row.secret_hash,
        created_at=row.created_at,
        user=row.user_name,
        revoked_at=row.revoked_at,
    )


def _hash(secret: str) -> bytes:
    return sha256(secret.encode(errors="replace")).digest()
