"""Backup of a SQLite history in use, and restoring it."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

from service.store.database import StoreDamagedError, StoreError, StoreUnavailableError
from terminal.new_files import create_anew, refuse_foreign

_LAST_PLACE = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'completions'"
_RAISE_LAST_PLACE = "UPDATE sqlite_sequence SET seq = ? WHERE name = 'completions' AND seq < ?"
_ADD_LAST_PLACE = """
    INSERT INTO sqlite_sequence (name, seq)
    SELECT 'completions', ? WHERE NOT EXISTS
        (SELECT 1 FROM sqlite_sequence WHERE name = 'completions')"""


class FileInTheWayError(StoreError):
    """Raised when the file to create already exists."""


def back_up(file: Path, copy: Path) -> None:
    """Write the present history to ``copy``, readable only to its owner.

    The history may be in use: ``VACUUM INTO`` reads one state of it, and no other process waits.
    The copy gets its name when it is complete and on the disk.

    Raises:
        FileInTheWayError: the file exists.
        StoreUnavailableError: the copy cannot be written.
    """
    if os.path.lexists(copy):
        raise FileInTheWayError(f"{copy} is there already: name another file.")
    unfinished = copy.with_name(f".{copy.name}.unfinished")
    try:
        refuse_foreign(copy)
        os.close(create_anew(unfinished))
        with closing(connect(file)) as connection:
            connection.execute("VACUUM INTO ?", (str(unfinished),))
        write_through(unfinished)
        os.link(unfinished, copy)  # unlike renaming, this fails if the file exists by now
        write_through(copy.parent)
    except FileExistsError as error:
        raise FileInTheWayError(f"{copy} is there already: name another file.") from error
    except OSError as error:
        raise StoreUnavailableError(f"{copy} cannot be written: {error.strerror}.") from error
    finally:
        unfinished.unlink(missing_ok=True)


def restore(copy: Path, file: Path, *, aside: Path, bring_up: Callable[[Path], None]) -> None:
    """Replace the history ``file`` by ``copy``; the old one is renamed to ``aside``.

    Before that ``bring_up`` upgrades the copy to this release's schema, or refuses it.

    No place in the log is used twice: the restored history goes on counting after the last place
    of the old one, so that a reader at any place misses no run. The tokens of the old history are
    kept: revoked tokens stay revoked, and a closed service stays closed.

    Raises:
        StoreDamagedError: the copy is no whole database.
        StoreUnavailableError: a process uses the history, or the disk cannot be written.
    """
    unfinished = file.with_name(f".{file.name}.unfinished")
    try:
        refuse_foreign(file)
        os.close(create_anew(unfinished))
        shutil.copyfile(copy, unfinished)
        check_whole(unfinished, name=copy)
        bring_up(unfinished)
        take_out_of_use(unfinished)
        if file.exists():
            take_out_of_use(file)
            carry_over(file, unfinished)
        like(unfinished, file if file.exists() else file.parent)
        put_aside(file, aside)  # also a log without history: it would be read as the new one's
        write_through(unfinished)
        unfinished.replace(file)
        write_through(file.parent)
    except OSError as error:
        raise StoreUnavailableError(
            f"{error.filename or file} cannot be used: {error.strerror}."
        ) from error
    finally:
        for leftover in (unfinished, *companions(unfinished)):
            leftover.unlink(missing_ok=True)


def check_whole(file: Path, *, name: Path) -> None:
    """Read every page of a database; errors name it ``name``.

    Raises:
        StoreDamagedError: the database is damaged.
    """
    try:
        with closing(connect(file)) as connection:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        raise StoreDamagedError(f"{name} is damaged, or no SQLite database: {error}.") from error
    if found != "ok":
        raise StoreDamagedError(f"{name} is damaged: {found}.")


def take_out_of_use(file: Path) -> None:
    """Move the write-ahead log into the history, which needs exclusive access.

    A damaged history is left unchanged.

    Raises:
        StoreUnavailableError: another process has the history open.
    """
    try:
        with closing(connect(file)) as connection:
            connection.execute("PRAGMA journal_mode = delete")
    except sqlite3.OperationalError as error:
        raise StoreUnavailableError(
            f"{file} is in use ({error}): stop the service first, `systemctl stop walltimed`."
        ) from error
    except sqlite3.DatabaseError:
        return


def carry_over(file: Path, restored: Path) -> None:
    """Copy the tokens of ``file`` to ``restored``, and let it count on from its last place.

    Only columns of tokens that both schemas have are copied.
    """
    with closing(connect(restored)) as connection:
        columns = columns_of_tokens(connection)
    try:
        with closing(connect(file)) as connection:
            row = connection.execute(_LAST_PLACE).fetchone()
            names = [name for name in columns_of_tokens(connection) if name in columns]
            tokens = connection.execute(f"SELECT {', '.join(names)} FROM tokens").fetchall()  # noqa: S608 - of columns
    except sqlite3.DatabaseError:  # damaged, or without schema: there is nothing to copy
        return
    marks = ", ".join("?" * len(names))
    put = f"INSERT OR REPLACE INTO tokens ({', '.join(names)}) VALUES ({marks})"  # noqa: S608 - of columns
    with closing(connect(restored)) as connection, connection:
        connection.execute(_ADD_LAST_PLACE, row)
        connection.execute(_RAISE_LAST_PLACE, row * 2)
        connection.executemany(put, tokens)


def columns_of_tokens(connection: sqlite3.Connection) -> list[str]:
    """Return the names of the columns of tokens in this database."""
    return [row[1] for row in connection.execute("PRAGMA table_info(tokens)")]


def put_aside(file: Path, aside: Path) -> None:
    """Rename a history with its companion files."""
    for part, target in zip((file, *companions(file)), (aside, *companions(aside)), strict=True):
        if part.exists():
            part.rename(target)


def companions(file: Path) -> tuple[Path, Path]:
    """Return the files that SQLite keeps beside a database in use."""
    return file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")


def connect(file: Path) -> sqlite3.Connection:
    """Open an existing database, unless another user's link leads to it."""
    refuse_foreign(file)
    return sqlite3.connect(f"file:{quote(str(file))}?mode=rw", uri=True, timeout=1.0)


def like(file: Path, other: Path) -> None:
    """Give a file to the owner of another one, if this user may."""
    owner = other.stat()
    with suppress(PermissionError):
        os.lchown(file, owner.st_uid, owner.st_gid)


def write_through(path: Path) -> None:
    """Wait until a file, or the names in a directory, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
