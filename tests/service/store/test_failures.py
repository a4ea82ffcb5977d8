"""What a store does when its database cannot do what it is asked."""

import os
import sqlite3
from pathlib import Path

import pytest
from running_service import eventually
from runs import a_run, predicted, read_all, reported
from sqlalchemy import NullPool, create_engine, event, make_url

from service.store import (
    RefusedRecordError,
    SchemaOutdatedError,
    StoreDamagedError,
    StoreFullError,
    StoreUnavailableError,
    open_store,
)


def on_connect(store, *pragmas: str) -> None:
    """Run statements on every connection that the store opens from now on."""

    @event.listens_for(store._database.engine, "connect")
    def _(connection, _record):
        for pragma in pragmas:
            connection.execute(pragma)


def many(count: int = 5000):
    return reported(*(a_run(str(job), application="x" * 100) for job in range(count)))


def test_a_full_sqlite_database_says_so_and_keeps_what_was_acknowledged(sqlite_store):
    on_connect(sqlite_store, "PRAGMA max_page_count = 60")
    sqlite_store.write([reported(a_run("kept"))])
    with pytest.raises(StoreFullError):
        sqlite_store.write([many()])
    assert sqlite_store.past_runs.count() == 1
    assert sqlite_store.write([reported(a_run("small"))])[0].accepted == 1


def test_a_full_postgresql_database_says_so(empty_postgres_url, opening):
    store = opening(empty_postgres_url)
    store.upgrade()
    engine = create_engine(empty_postgres_url, poolclass=NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql("""
            CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$""")
        connection.exec_driver_sql(
            "CREATE TRIGGER fill BEFORE INSERT ON completions EXECUTE FUNCTION fill()"
        )
    with pytest.raises(StoreFullError, match=r"could not extend file\.$"):
        store.write([reported(a_run("1"))], [predicted("p", a_run("1"))])
    assert store.past_runs.count() == 0


def test_who_may_not_write_a_sqlite_file_is_told_whose_it_is(
    sqlite_store, sqlite_file, monkeypatch
):
    error = sqlite3.OperationalError("unable to open database file")
    error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
    assert "cannot be used now" in str(sqlite_store._database.meaning(error)), "rights are enough"
    monkeypatch.setattr(os, "access", lambda *_arguments, **_options: False)
    owner = sqlite_file.owner()
    told = str(sqlite_store._database.meaning(error))
    assert f"permission denied. It belongs to {owner}: use `sudo -u {owner}`." in told


def test_a_sqlite_file_that_is_gone_is_missed_and_found_again(sqlite_store, sqlite_file):
    sqlite_store.write([reported(a_run("1"))])
    reader = sqlite_store.reader()
    assert len(read_all(reader)) == 1
    away = sqlite_file.rename(sqlite_file.with_name("away"))
    with pytest.raises(StoreUnavailableError, match="There is no"):
        sqlite_store.write([reported(a_run("2"))])
    with pytest.raises(StoreUnavailableError):
        sqlite_store.past_runs.count()
    eventually(lambda: not reader.has_news() and reader.error)
    assert isinstance(reader.error, StoreUnavailableError)
    assert reader.read(10) == []
    assert not sqlite_file.exists()
    away.rename(sqlite_file)
    assert sqlite_store.write([reported(a_run("2"))])[0].accepted == 1
    assert len(read_all(reader)) == 1
    assert reader.error is None
    reader.close()


def test_nothing_is_written_to_a_sqlite_file_that_was_replaced(sqlite_store, sqlite_file, opening):
    sqlite_store.write([reported(a_run("1"))])
    sqlite_file.rename(sqlite_file.with_name("old"))
    fresh = opening(f"sqlite:///{sqlite_file}")
    fresh.upgrade()
    assert sqlite_store.write([reported(a_run("2"))])[0].accepted == 1
    assert fresh.past_runs.count() == 1


def test_a_sqlite_database_that_somebody_else_is_writing_to_is_unavailable(
    sqlite_store, sqlite_file
):
    on_connect(sqlite_store, "PRAGMA busy_timeout = 1")
    other = sqlite3.connect(sqlite_file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailableError, match="locked"):
        sqlite_store.write([reported(a_run("1"))])
    other.execute("ROLLBACK")
    assert sqlite_store.write([reported(a_run("1"))])[0].accepted == 1
    other.close()


@pytest.mark.parametrize(("chosen", "number"), [("full", 2), ("normal", 1)])
def test_a_sqlite_history_survives_what_it_was_told_to_and_overwrites_what_it_deletes(
    sqlite_url, chosen, number, opening
):
    store = opening(sqlite_url, sqlite_synchronous=chosen)
    with store._database.reading() as connection:
        for pragma, value in (
            ("synchronous", number),
            ("secure_delete", 1),
            ("journal_mode", "wal"),
        ):
            assert connection.exec_driver_sql(f"PRAGMA {pragma}").scalar() == value


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("owner", [0, 65534])
def test_a_history_that_root_makes_belongs_to_the_owner_of_its_directory(tmp_path, owner):
    os.chown(tmp_path, owner, owner)
    store = open_store(f"sqlite:///{tmp_path / 'x.sqlite3'}")
    store.upgrade()
    store.close()
    made = (tmp_path / "x.sqlite3").stat()
    assert (made.st_uid, made.st_gid) == (owner, owner)


def test_a_file_that_is_no_database_is_called_so(tmp_path, opening):
    file = tmp_path / "notes.txt"
    file.write_text("not a database at all, but longer than its header " * 10)
    store = opening(f"sqlite:///{file}")
    for attempt in (store.check, store.upgrade):
        with pytest.raises(StoreDamagedError, match="not a database"):
            attempt()
    assert file.read_text().startswith("not a database at all")


def test_a_directory_that_is_missing_is_named(tmp_path, opening):
    store = opening(f"sqlite:///{tmp_path / 'nowhere' / 'x.sqlite3'}")
    with pytest.raises(StoreUnavailableError, match="nowhere"):
        store.upgrade()


def test_a_postgresql_server_that_is_gone_is_missed_and_found_again(
    postgres, postgres_url, opening
):
    store = opening(postgres_url)
    store.write([reported(a_run("1"))])
    reader = store.reader()
    assert len(read_all(reader)) == 1
    postgres.stop("QUIT")
    try:
        with pytest.raises(StoreUnavailableError):
            store.write([reported(a_run("2"))])
        with pytest.raises(StoreUnavailableError):
            store.past_runs.warm_start([], 0.0)
        reader.refresh()
        assert isinstance(reader.error, StoreUnavailableError)
        assert not reader.has_news()
    finally:
        postgres.start()
    assert store.write([reported(a_run("2"))])[0].accepted == 1
    assert [run.submission.job_id for run in read_all(reader)] == ["2"]
    assert reader.error is None
    reader.close()


def test_a_reader_follows_again_by_itself_after_the_server_was_gone(
    postgres, postgres_url, opening
):
    reader = opening(postgres_url).reader()
    postgres.stop("INT")
    postgres.start()
    store = open_store(postgres_url)
    store.write([reported(a_run("1"))])
    store.close()
    while not reader.has_news():
        reader._closed.wait(0.01)
    assert len(reader.read(10)) == 1


@pytest.mark.parametrize(
    "known",
    [
        {"requested_processors": 1 << 63},
        {"user": "\ud800"},
        {"requested_walltime": float("nan")},
    ],
)
def test_a_value_that_no_database_holds_refuses_all_of_its_transaction(store, known):
    with pytest.raises(RefusedRecordError):
        store.write([reported(a_run("good")), reported(a_run("bad", **known))])
    assert store.past_runs.count() == 0


def test_a_text_that_postgresql_cannot_hold_is_refused(postgres_url, opening):
    store = opening(postgres_url)
    with pytest.raises(RefusedRecordError):
        store.write([reported(a_run("bad", user="a\0b"))])


def test_a_completion_without_a_job_id_is_refused(store):
    with pytest.raises(RefusedRecordError, match="job id"):
        store.write([reported(a_run(None))])


def test_a_database_without_its_schema_is_outdated(empty_store_url, opening):
    store = opening(empty_store_url)
    if empty_store_url.startswith("sqlite"):
        Path(make_url(empty_store_url).database).touch()
    with pytest.raises(SchemaOutdatedError, match="walltimed db upgrade"):
        store.write([reported(a_run("1"))])
    with pytest.raises(SchemaOutdatedError, match="walltimed db upgrade"):
        store.check()


def test_a_connection_in_use_is_closed_once_it_is_given_back_to_a_closed_store(store_url, opening):
    store = opening(store_url)
    with store._database.reading() as connection:
        pooled = connection.connection
        driver = pooled.dbapi_connection
        store.close()
        assert connection.exec_driver_sql("SELECT 1").scalar_one() == 1
    assert is_closed(driver)
    assert store.past_runs.count() == 0, "it may be used again"


def is_closed(connection) -> bool:
    """Whether a connection of either driver is closed."""
    if isinstance(connection, sqlite3.Connection):
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.total_changes  # noqa: B018 - it is refused
        return True
    return connection.closed
