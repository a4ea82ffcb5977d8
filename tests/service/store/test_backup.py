"""A copy of the history in use, and the way back."""

import os
import shutil
import sqlite3
import stat
import threading
from pathlib import Path

import pytest
from asgi_client import InProcess, run_of
from runs import a_run, read_all, reported

from service.store import (
    StoreDamagedError,
    StoreError,
    StoreUnavailableError,
    open_store,
)
from service.store.sqlite_backup import FileInTheWayError


def runs_of(store) -> list[str]:
    reader = store.reader()
    found = [run.submission.job_id for run in read_all(reader)]
    reader.close()
    return found


def restored(copy: Path, store, tmp_path) -> Path:
    aside = tmp_path / "aside"
    store.restore(copy, aside=aside)
    return aside


def test_a_backup_holds_what_was_acknowledged_and_only_its_owner_reads_it(sqlite_store, tmp_path):
    sqlite_store.write([reported(*(a_run(str(n)) for n in range(100)))])
    sqlite_store.back_up(tmp_path / "copy")
    assert stat.S_IMODE((tmp_path / "copy").stat().st_mode) == 0o600
    copy = open_store(f"sqlite:///{tmp_path / 'copy'}")
    assert copy.past_runs.count() == 100
    copy.close()
    assert not [*tmp_path.glob(".copy*")]


def test_a_backup_is_made_while_completions_come(sqlite_store, tmp_path):
    """Each batch is in the copy as a whole or not at all, and nobody had to wait."""
    stopped = threading.Event()
    failures = []

    def store_on():
        number = 0
        while not stopped.is_set():
            number += 1
            try:
                sqlite_store.write([reported(*(a_run(f"{number}-{n}") for n in range(50)))])
            except StoreUnavailableError as error:
                failures.append(error)

    writer = threading.Thread(target=store_on)
    writer.start()
    try:
        for number in range(5):
            sqlite_store.back_up(tmp_path / f"copy{number}")
    finally:
        stopped.set()
        writer.join()
    assert failures == []
    for number in range(5):
        copy = open_store(f"sqlite:///{tmp_path / f'copy{number}'}")
        copy.check_whole()
        assert copy.past_runs.count() % 50 == 0
        copy.close()


def test_a_backup_overwrites_nothing(sqlite_store, tmp_path):
    (tmp_path / "copy").write_text("precious")
    with pytest.raises(FileInTheWayError, match="is there already"):
        sqlite_store.back_up(tmp_path / "copy")
    assert (tmp_path / "copy").read_text() == "precious"


def test_what_a_backup_that_was_killed_has_left_is_overwritten(sqlite_store, tmp_path):
    left = tmp_path / ".copy.unfinished"
    left.write_text("half a copy")
    left.chmod(0o644)
    sqlite_store.back_up(tmp_path / "copy")
    assert stat.S_IMODE((tmp_path / "copy").stat().st_mode) == 0o600
    assert not left.exists()


def test_a_backup_that_cannot_be_written_is_told(sqlite_store, tmp_path):
    with pytest.raises(StoreUnavailableError, match="cannot be written"):
        sqlite_store.back_up(tmp_path / "nowhere" / "copy")


def test_a_restored_history_is_its_owner_s_alone_and_leaves_nothing_lying_about(
    sqlite_store, sqlite_file, tmp_path
):
    sqlite_store.back_up(tmp_path / "copy")
    (tmp_path / "copy").chmod(0o644)
    restored(tmp_path / "copy", sqlite_store, tmp_path)
    assert stat.S_IMODE(sqlite_file.stat().st_mode) == 0o600
    (tmp_path / "copy").write_bytes(b"SQLite format 3\x00" + b"\x55" * 9000)
    with pytest.raises(StoreDamagedError):
        restored(tmp_path / "copy", sqlite_store, tmp_path)
    assert not [*tmp_path.glob(".*")]


def test_the_only_token_is_kept(sqlite_store, tmp_path):
    sqlite_store.back_up(tmp_path / "copy")
    token, _ = sqlite_store.tokens.issue("new", ["admin"], now=1.0)
    restored(tmp_path / "copy", sqlite_store, tmp_path)
    assert sqlite_store.tokens.read_all() == [token]


def test_a_restored_history_gives_no_place_out_twice(sqlite_store, tmp_path):
    sqlite_store.write([reported(a_run("1"))])
    sqlite_store.back_up(tmp_path / "copy")
    sqlite_store.write([reported(a_run("2"), a_run("3"))])
    reader = sqlite_store.reader()
    assert len(read_all(reader)) == 3
    place = reader._seq
    reader.close()
    restored(tmp_path / "copy", sqlite_store, tmp_path)
    assert runs_of(sqlite_store) == ["1"]
    sqlite_store.write([reported(a_run("4"))])
    behind = sqlite_store._database.follow(place)
    assert [run.submission.job_id for run in read_all(behind)] == ["4"]
    behind.close()


def test_what_was_there_before_is_kept(sqlite_store, tmp_path, opening):
    sqlite_store.back_up(tmp_path / "copy")
    sqlite_store.write([reported(a_run("1"))])
    aside = restored(tmp_path / "copy", sqlite_store, tmp_path)
    assert sqlite_store.past_runs.count() == 0
    before = opening(f"sqlite:///{aside}")
    assert before.past_runs.count() == 1


def test_a_revoked_token_stays_revoked(sqlite_store, tmp_path):
    token, _ = sqlite_store.tokens.issue("leaked", ["admin"], now=1.0)
    sqlite_store.back_up(tmp_path / "copy")
    sqlite_store.tokens.revoke(token.token_id, now=2.0)
    later, _ = sqlite_store.tokens.issue("new", ["predict"], now=3.0)
    restored(tmp_path / "copy", sqlite_store, tmp_path)
    found = {each.token_id: each.revoked_at for each in sqlite_store.tokens.read_all()}
    assert found == {token.token_id: 2.0, later.token_id: None}


def test_a_history_in_use_is_not_replaced(sqlite_store, sqlite_url, tmp_path):
    sqlite_store.back_up(tmp_path / "copy")
    with InProcess(sqlite_url) as service:
        with pytest.raises(StoreUnavailableError, match="stop the service first"):
            restored(tmp_path / "copy", sqlite_store, tmp_path)
        assert service.complete(run_of("1"))["accepted"] == 1
    assert runs_of(sqlite_store) == ["1"]


def test_a_damaged_history_is_replaced_by_its_backup(sqlite_store, sqlite_file, tmp_path):
    sqlite_store.write([reported(*(a_run(str(n)) for n in range(2000)))])
    sqlite_store.back_up(tmp_path / "copy")
    sqlite_store.close()
    junk = bytearray(sqlite_file.read_bytes())
    junk[8192:40960] = b"\x55" * (40960 - 8192)
    sqlite_file.write_bytes(junk)
    with pytest.raises(StoreDamagedError, match="is damaged"):
        sqlite_store.check_whole()
    restored(tmp_path / "copy", sqlite_store, tmp_path)
    sqlite_store.check_whole()
    assert sqlite_store.past_runs.count() == 2000


def test_a_damaged_backup_replaces_nothing(sqlite_store, tmp_path):
    sqlite_store.write([reported(a_run("1"))])
    (tmp_path / "copy").write_bytes(b"SQLite format 3\x00" + b"\x55" * 9000)
    with pytest.raises(StoreDamagedError):
        restored(tmp_path / "copy", sqlite_store, tmp_path)
    assert runs_of(sqlite_store) == ["1"]


def test_the_commands_back_up_and_restore(walltimed, sqlite_url, sqlite_store, tmp_path):
    sqlite_store.write([reported(a_run("1"))])
    copy = tmp_path / "b.sqlite3"
    code, said, _ = walltimed("db", "backup", copy, "-d", sqlite_url)
    assert (code, "holds the history" in said) == (0, True)
    sqlite_store.write([reported(a_run("2"))])
    sqlite_store.close()
    code, said, _ = walltimed("db", "restore", copy, "-d", sqlite_url)
    assert code == 0
    assert "holds 1 runs again" in said
    assert "before-restore" in said


def test_postgresql_is_left_to_its_own_tools(walltimed, postgres_url, tmp_path):
    for command, tool in (("backup", "pg_dump"), ("restore", "pg_restore")):
        code, _, said = walltimed("db", command, tmp_path / "copy", "-d", postgres_url)
        assert code == 1
        assert tool in said


def made_by_the_future(copy: Path) -> None:
    with sqlite3.connect(copy) as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'from_the_future'")
    connection.close()


def made_by_another_program(copy: Path) -> None:
    copy.unlink()
    with sqlite3.connect(copy) as connection:
        connection.execute("CREATE TABLE recipes (recipe TEXT)")
    connection.close()


def made_on_a_full_disk(copy: Path) -> None:
    copy.write_bytes(b"")


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (made_by_the_future, "copy was brought to schema from_the_future"),
        (made_by_another_program, "copy is the database of another program"),
        (made_on_a_full_disk, "copy holds no history"),
    ],
)
def test_what_is_no_history_of_this_release_replaces_nothing(sqlite_store, tmp_path, spoil, told):
    sqlite_store.write([reported(a_run("1"))])
    sqlite_store.back_up(tmp_path / "copy")
    spoil(tmp_path / "copy")
    with pytest.raises(StoreError, match=told):
        restored(tmp_path / "copy", sqlite_store, tmp_path)
    assert runs_of(sqlite_store) == ["1"]
    assert not [*tmp_path.glob(".*"), *tmp_path.glob("aside*")]


def test_a_log_that_a_lost_history_has_left_behind_is_not_written_into_the_restored_one(
    sqlite_store, sqlite_file, tmp_path
):
    sqlite_store.write([reported(a_run("1"))])
    sqlite_store.back_up(tmp_path / "copy")
    sqlite_store.write([reported(a_run("2"))])
    log = sqlite_file.with_name(f"{sqlite_file.name}-wal")
    left = log.read_bytes()
    sqlite_store.close()
    sqlite_file.unlink()
    log.write_bytes(left)
    aside = restored(tmp_path / "copy", sqlite_store, tmp_path)
    assert runs_of(sqlite_store) == ["1"]
    assert aside.with_name("aside-wal").read_bytes() == left


def test_what_root_restores_belongs_to_the_service_as_its_directory_does(
    sqlite_store, sqlite_file, tmp_path, monkeypatch
):
    sqlite_store.back_up(tmp_path / "copy")
    sqlite_store.close()
    sqlite_file.unlink()
    given = {}
    monkeypatch.setattr(os, "lchown", lambda path, user, _: given.update({Path(path).name: user}))
    restored(tmp_path / "copy", sqlite_store, tmp_path)
    assert given == {f".{sqlite_file.name}.unfinished": tmp_path.stat().st_uid}


def test_nobody_else_can_read_a_history_while_it_is_being_restored(
    sqlite_store, tmp_path, monkeypatch
):
    sqlite_store.back_up(tmp_path / "copy")
    modes = []

    def watched(source, target):
        copyfile(source, target)
        modes.append(stat.S_IMODE(target.stat().st_mode))

    copyfile = shutil.copyfile
    monkeypatch.setattr(shutil, "copyfile", watched)
    restored(tmp_path / "copy", sqlite_store, tmp_path)
    assert modes == [0o600]
