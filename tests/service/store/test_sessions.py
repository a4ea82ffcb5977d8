"""Browsers that are logged in."""

import pytest
from sqlalchemy import NullPool, create_engine

from service.store import open_store


@pytest.fixture
def token(store):
    issued, _ = store.tokens.issue("page", ["admin"], now=1.0)
    return issued.token_id


def test_a_session_holds_until_its_time_is_over(store, token):
    text = store.sessions.open(token, 100.0, seconds=60.0)
    assert store.sessions.token_of(text, 159.0) == token
    assert store.sessions.token_of(text, 160.0) is None
    assert store.sessions.token_of(text + "x", 101.0) is None


def test_a_session_holds_in_every_worker(store, store_url, token):
    text = store.sessions.open(token, 100.0, seconds=60.0)
    other = open_store(store_url)
    assert other.sessions.token_of(text, 101.0) == token
    other.close()


def test_logging_out_ends_the_session_for_good(store, token):
    text, kept = (store.sessions.open(token, 100.0, seconds=60.0) for _ in range(2))
    store.sessions.close(text)
    assert store.sessions.token_of(text, 101.0) is None
    assert store.sessions.token_of(kept, 101.0) == token


def test_a_revoked_token_ends_its_sessions(store, token):
    text = store.sessions.open(token, 100.0, seconds=60.0)
    store.tokens.revoke(token, now=101.0)
    assert store.sessions.token_of(text, 102.0) is None


def test_the_database_holds_nothing_that_a_browser_could_present(store, store_url, token):
    text = store.sessions.open(token, 100.0, seconds=60.0)
    with create_engine(store_url, poolclass=NullPool).connect() as connection:
        rows = connection.exec_driver_sql("SELECT * FROM sessions").all()
    assert len(rows) == 1
    assert text.encode() not in bytes(rows[0][0])
    assert text not in map(str, rows[0])


def test_sessions_that_are_over_are_forgotten(store, store_url, token):
    for now in (100.0, 160.0):
        store.sessions.open(token, now, seconds=60.0)
    with create_engine(store_url, poolclass=NullPool).connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM sessions").scalar() == 1
