"""What an administrator does when tired: old releases, wrong files, signals, locks, erasures."""

import json
import signal
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from running_service import Service, completion, eventually, run_walltimed
from sqlalchemy import make_url

NAME = "carolina-secret"


def file_of(url: str) -> Path:
    """The SQLite file."""
    return Path(make_url(url).database)


def children_of(process_id: int) -> str:
    """The numbers of the processes that this one has started."""
    return Path(f"/proc/{process_id}/task/{process_id}/children").read_text(encoding="ascii")


def upgraded(url: str) -> sqlite3.Connection:
    """A new history, opened past the service."""
    assert run_walltimed("db", "upgrade", "-d", url).returncode == 0
    return sqlite3.connect(file_of(url))


def refused(*command: str, url: str) -> str:
    """What the command says when it will not go on."""
    done = run_walltimed(*command, "-d", url)
    assert done.returncode not in {0, 3}
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def url(tmp_path_factory) -> str:
    """A history of this module."""
    return f"sqlite:///{tmp_path_factory.mktemp('served') / 'walltimed.sqlite3'}"


@pytest.fixture(scope="module")
def service(url) -> Iterator[Service]:
    """One service on it."""
    with Service(url) as service:
        yield service


@pytest.mark.usefixtures("only_long")
def test_a_newer_schema_is_told_with_what_to_do(fresh_url):
    with closing(upgraded(fresh_url)) as history, history:
        history.execute("UPDATE alembic_version SET version_num = 'ffff00000000'")
    for command in ("serve", "db upgrade", "db check"):
        assert "newer walltimed" in refused(*command.split(), url=fresh_url)


@pytest.mark.usefixtures("only_long")
def test_another_program_s_database_is_left_alone(fresh_url):
    with closing(sqlite3.connect(file_of(fresh_url))) as notes, notes:
        notes.execute("CREATE TABLE completions (word TEXT)")
    refused("serve", url=fresh_url)
    with closing(sqlite3.connect(file_of(fresh_url))) as notes:
        assert notes.execute("SELECT sql FROM sqlite_master").fetchall() == [
            ("CREATE TABLE completions (word TEXT)",)
        ]


@pytest.mark.usefixtures("only_long")
def test_pages_of_junk_are_told_in_a_sentence(fresh_url):
    upgraded(fresh_url).close()
    with file_of(fresh_url).open("r+b") as opened:
        opened.seek(4096)
        opened.write(b"\x55" * 16384)
    assert "damaged" in refused("serve", url=fresh_url)


@pytest.mark.usefixtures("only_long")
def test_an_empty_file_is_said_to_be_new(fresh_url):
    file_of(fresh_url).touch()
    done = run_walltimed("db", "upgrade", "-d", fresh_url)
    assert done.returncode == 0
    assert "new and empty" in done.stderr


def test_a_forgotten_name_is_in_no_file_and_in_no_memory(service, url):
    def found() -> int:
        files = file_of(url).parent.glob("walltimed.sqlite3*")
        return sum(file.read_bytes().count(NAME.encode()) for file in files)

    def basis() -> str:
        asked = {"user": NAME, "requested_walltime": 3600}
        return service.client.post("/v1/predictions", json=asked).json()["basis"]["reason"]

    service.complete(*(completion(n, user=NAME) for n in range(10))).raise_for_status()
    assert basis() == "history"
    eventually(found)
    forgotten = run_walltimed("forget", "--user", NAME, "--yes", "-d", url)
    assert forgotten.returncode == 0, forgotten.stderr
    assert found() == 0
    eventually(lambda: basis() == "cold-start", seconds=60)


def test_a_hangup_ends_nothing(service):
    service.process.send_signal(signal.SIGHUP)
    assert service.predict("ada") == 3600
    assert service.process.poll() is None


def test_a_backup_is_made_while_serving_and_is_its_owner_s_alone(service, url, tmp_path):
    copy = tmp_path / "copy"
    service.complete(*(completion(f"kept-{n}", user="bob") for n in range(50))).raise_for_status()
    made = run_walltimed("db", "backup", str(copy), "-d", url)
    assert made.returncode == 0, made.stderr
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with closing(sqlite3.connect(copy)) as opened:
        kept = opened.execute("SELECT count(*) FROM completions WHERE user_name = 'bob'")
        assert kept.fetchone() == (50,)


def test_readiness_tells_of_a_lock(service, url):
    def status() -> str:
        return json.loads(service.client.get("/health/ready").text)["status"]

    with closing(sqlite3.connect(file_of(url))) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert service.predict("ada") == 3600
        eventually(lambda: status() == "read-only", seconds=60)
    eventually(lambda: status() == "ready", seconds=60)


def test_the_process_of_forecasts_starts_with_the_service(service):
    eventually(lambda: children_of(service.process.pid))
