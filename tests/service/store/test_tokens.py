"""API tokens, shown once, kept as a hash, worthless when revoked; and sessions of browsers."""

import pytest
from sqlalchemy import NullPool, create_engine

from service.store import open_store, parse_token


def test_a_token_is_known_by_its_text(store):
    token, text = store.tokens.issue("slurm", ["predict", "ingest"], now=100.0)
    token_id, secret = parse_token(text)
    assert token_id == token.token_id
    assert token.matches(secret)
    assert store.tokens.read_all() == [token]


@pytest.mark.parametrize("wrong", ["", "x", "é", "\ud800"])
def test_another_secret_does_not_match(store, wrong):
    token, text = store.tokens.issue("slurm", ["predict"], now=100.0)
    assert not token.matches(wrong)
    assert not token.matches(text)


def test_a_token_keeps_its_scopes(store):
    token, _ = store.tokens.issue("x", ["predict", "ingest"], now=1.0)
    (kept,) = store.tokens.read_all()
    assert kept.scopes == token.scopes == {"predict", "ingest"}


def test_a_revoked_token_is_known_as_revoked(store):
    token, _ = store.tokens.issue("x", ["admin"], now=1.0)
    assert store.tokens.revoke(token.token_id, now=2.0)
    (revoked,) = store.tokens.read_all()
    assert revoked.revoked_at == 2.0


def test_only_a_valid_token_can_be_revoked(store):
    token, _ = store.tokens.issue("x", ["admin"], now=1.0)
    assert not store.tokens.revoke("nobody", now=2.0)
    assert store.tokens.revoke(token.token_id, now=2.0)
    assert not store.tokens.revoke(token.token_id, now=3.0)


@pytest.mark.parametrize("scopes", [[], ["root"], ["predict", "root"], ["predict ingest"]])
def test_unknown_scopes_are_refused(store, scopes):
    with pytest.raises(ValueError, match="admin, ingest, predict"):
        store.tokens.issue("x", scopes, now=1.0)
    assert store.tokens.read_all() == []


def test_no_secret_reaches_the_database(sqlite_url, tmp_path):
    store = open_store(sqlite_url)
    _, text = store.tokens.issue("x", ["admin"], now=1.0)
    store.close()
    secret = parse_token(text)[1].encode()
    assert all(secret not in file.read_bytes() for file in tmp_path.iterdir() if file.is_file())


@pytest.mark.parametrize("text", ["", "wt", "wt_", "wt_ab", "wt_ab_", "wt__cd", "xx_ab_cd"])
def test_what_is_no_token_is_not_taken_for_one(text):
    assert parse_token(text) is None


@pytest.mark.parametrize(
    ("scopes", "user"), [({"self"}, None), ({"predict"}, "ann"), ({"self", "read"}, "ann")]
)
def test_a_token_of_ones_own_has_its_user_and_no_other_scope(store, scopes, user):
    with pytest.raises(ValueError, match="Scope self"):
        store.tokens.issue("x", scopes, now=1.0, user=user)
    assert store.tokens.read_all() == []


def test_a_token_of_ones_own_is_kept_with_its_user(store):
    own, _ = store.tokens.issue("x", ["self"], now=1.0, user="ann")
    assert [token.user for token in store.tokens.read_all()] == [own.user] == ["ann"]
    assert own.scopes == {"self"}


def test_all_tokens_can_be_forgotten_as_if_there_had_been_none(store):
    for now in (1.0, 2.0):
        store.tokens.issue("x", ["admin"], now=now)
    assert store.tokens.forget_all() == 2
    assert store.tokens.read_all() == []


@pytest.fixture
def token(store):
    issued, _ = store.tokens.issue("page", ["admin"], now=1.0)
    return issued.token_id


def test_a_session_holds_until_its_time_is_over(store, token):
    text = store.sessions.open(token, 100.0, seconds=60.0)
    assert store.sessions.token_of(text, 159.0) == token
    assert store.sessions.token_of(text, 160.0) is None
    assert store.sessions.token_of(text + "x", 101.0) is None


def test_a_session_holds_in_every_worker(store, store_url, token, opening):
    text = store.sessions.open(token, 100.0, seconds=60.0)
    other = opening(store_url)
    assert other.sessions.token_of(text, 101.0) == token


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
