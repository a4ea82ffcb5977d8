"""Browsers that were let in by a token, until they log out or some hours have passed.

Sessions are rows and not signed texts: so they end when a person logs out, hold in every worker
and across restarts, and nobody who reads the database can make one.
"""

import secrets
from hashlib import sha256

from sqlalchemy import Connection, delete, insert, select

from service.store.tables import sessions, tokens


def open_session(connection: Connection, token_id: str, now: float, seconds: float) -> str:
    """Let a browser in for ``seconds``; forgets the sessions that are over."""
    text = secrets.token_urlsafe(32)
    connection.execute(delete(sessions).where(sessions.c.expires_at <= now))
    connection.execute(
        insert(sessions).values(
            session_hash=_hash(text), token_id=token_id, expires_at=now + seconds
        )
    )
    return text


def token_of(connection: Connection, text: str, now: float) -> str | None:
    """The valid token that a session was opened by; None if the session is over."""
    found: str | None = connection.execute(
        select(sessions.c.token_id)
        .join(tokens, tokens.c.token_id == sessions.c.token_id)
        .where(
            sessions.c.session_hash == _hash(text),
            sessions.c.expires_at > now,
            tokens.c.revoked_at.is_(None),
        )
    ).scalar()
    return found


def close_session(connection: Connection, text: str) -> None:
    """End a session."""
    connection.execute(delete(sessions).where(sessions.c.session_hash == _hash(text)))


def _hash(text: str) -> bytes:
    return sha256(text.encode(errors="replace")).digest()
