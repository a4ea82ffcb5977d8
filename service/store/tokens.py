"""API tokens: `wt_<id>_<secret>`, of which the store keeps a hash of the secret."""

import secrets
from collections.abc import Iterable
from hashlib import sha256

from sqlalchemy import Connection, Row, select

from service.store.tables import tokens
from service.store.types import Token

SCOPES = frozenset({"predict", "ingest", "read", "self", "admin"})

SELF = "self"
_PREFIX = "wt"


def parse_token(text: str) -> tuple[str, str] | None:
    """Split a presented token into its id and secret; None if the text is no token."""
    prefix, _, rest = text.partition("_")
    token_id, _, secret = rest.partition("_")
    return (token_id, secret) if prefix == _PREFIX and token_id and secret else None


def issue(
    connection: Connection,
    name: str,
    scopes: Iterable[str],
    now: float,
    *,
    user: str | None = None,
) -> tuple[Token, str]:
    """Store a new token and return it with its text.

    Raises:
        ValueError: there are no scopes, unknown ones, or such as do not go together.
    """
    wanted = frozenset(scopes)
    if not wanted or not wanted <= SCOPES:
        raise ValueError(f"A token's scopes are some of {', '.join(sorted(SCOPES))}.")
    if (user is not None) != (SELF in wanted) or (user is not None and len(wanted) > 1):
        raise ValueError("Scope self needs the name of a user, goes alone, and no other takes one.")
    secret = secrets.token_hex(32)
    token = Token(
        token_id=secrets.token_hex(6),
        name=name,
        scopes=wanted,
        secret_hash=sha256(secret.encode()).digest(),
        created_at=now,
        user=user,
    )
    connection.execute(
        tokens.insert().values(
            token_id=token.token_id,
            name=name,
            scopes=" ".join(sorted(wanted)),
            secret_hash=token.secret_hash,
            created_at=now,
            user_name=user,
        )
    )
    return token, f"{_PREFIX}_{token.token_id}_{secret}"


def revoke(connection: Connection, token_id: str, now: float) -> bool:
    """Mark a valid token as revoked; False if there is none of that id."""
    valid = (tokens.c.token_id == token_id) & tokens.c.revoked_at.is_(None)
    return connection.execute(tokens.update().where(valid).values(revoked_at=now)).rowcount == 1


def forget_all(connection: Connection) -> int:
    """Delete all tokens; returns how many."""
    return connection.execute(tokens.delete()).rowcount


def read_all(connection: Connection) -> list[Token]:
    """All tokens, oldest first."""
    found = connection.execute(select(tokens).order_by(tokens.c.created_at, tokens.c.token_id))
    return [_token(row) for row in found]


def _token(row: Row[tuple[object, ...]]) -> Token:
    return Token(
        token_id=row.token_id,
        name=row.name,
        scopes=frozenset(row.scopes.split()),
        secret_hash=row.secret_hash,
        created_at=row.created_at,
        user=row.user_name,
        revoked_at=row.revoked_at,
    )
