"""What `walltimed db` says of a database that is away, of the wrong encoding, or damaged."""

import time

import pytest

from service.cli import db


def test_an_upgrade_waits_for_a_database_that_is_still_starting(walltimed, tmp_path, monkeypatch):
    """Its directory appears while it waits."""
    directory = tmp_path / "later"
    monkeypatch.setattr(db.time, "sleep", lambda _: directory.mkdir(exist_ok=True))
    code, said, told = walltimed(
        "db", "upgrade", "--wait", "30", "-d", f"sqlite:///{directory}/walltimed.sqlite3"
    )
    assert code == 0
    assert "Waiting" in told
    assert "is current" in said


def test_an_upgrade_waits_no_longer_than_it_was_told(walltimed):
    began = time.monotonic()
    url = "postgresql+psycopg://walltimed@127.0.0.1:1/walltimed"
    assert walltimed("db", "upgrade", "--wait", "0.3", "-d", url)[0] == 4
    assert time.monotonic() - began < 20


@pytest.fixture
def ascii_url(postgres):
    url = postgres.create_database(
        "ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    )
    yield url
    postgres.drop_database(url)


@pytest.mark.parametrize("command", ["upgrade", "check"])
def test_a_database_that_is_not_utf8_is_told_in_a_sentence(walltimed, ascii_url, command):
    code, _, said = walltimed("db", command, "-d", ascii_url)
    assert code == 1
    assert "encoding SQL_ASCII" in said
    assert "must be UTF8" in said


def test_pages_of_junk_are_told_in_a_sentence(walltimed, sqlite_url):
    file = sqlite_url.removeprefix("sqlite:///")
    with open(file, "r+b") as opened:  # noqa: PTH123 - to write in its middle
        opened.seek(4096)
        opened.write(b"\x55" * 16384)
    for command in (("serve",), ("db", "check"), ("token", "list")):
        code, _, said = walltimed(*command, "-d", sqlite_url)
        assert code == 1, command
        assert "is damaged" in said
        assert "Traceback" not in said
