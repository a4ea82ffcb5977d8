"""Measures the history store beside the bare database driver, on SQLite and on PostgreSQL.

    .venv/bin/python benchmarks/store.py [--rows 1000000] [--rounds 5] [--directory DIR]

Both sides write the same completions to the same tables with the same indexes on the same disk,
each commit made durable (SQLite: WAL, synchronous FULL; PostgreSQL: a private server with fsync),
in turns; ratios are medians over the rounds. Measured are

- single events: a loop of one INSERT and one commit per event in the bare driver, against 64
  posters who each await the acknowledgement of one event from the writer;
- batches of 1,000: the driver's bulk insert (SQLite: executemany; PostgreSQL: COPY), against the
  store's write transaction, which also finds duplicates and counts them;
- the import of a history and of the same history again;
- the start on that history: opening, checking, and reading what the predictors remember.
"""

import argparse
import asyncio
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count, islice
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter
from typing import Any

import psycopg
from sqlalchemy import make_url

from predictors.base import Memory
from predictors.jobs import Completion, Status, Submission
from service.store import ReportedCompletion, Store, open_store
from service.store.rows import COMPLETION, completion_row
from service.worker.writer import Writer

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from embedded_postgres import EmbeddedPostgres

POSTERS = 64
BATCH = 1000
SINGLE, BULK = 5_000, 50_000
BARE_SINGLE = 500  # of the events: the loop takes as long over them as the writer over all
USERS = 500
SECONDS_BETWEEN_ENDS = 30.0
MEMORY = Memory(jobs_per_user=25, latest_jobs=5000, window_seconds=30 * 86400.0)
"""More than any of the shipped predictors remembers."""

COLUMNS = ("seq", *COMPLETION)


def completions(seed: int = 1) -> Iterator[Completion]:
    """A history without end, as a busy cluster of 500 users writes it."""
    chance = Random(seed)  # noqa: S311 - no secrets here
    time = 1.5e9
    for job in count():
        time += chance.expovariate(1 / SECONDS_BETWEEN_ENDS)
        runtime = chance.expovariate(1 / 3000.0)
        yield Completion(
            submission=Submission(
                job_id=str(job),
                user=f"user{int(chance.paretovariate(0.5)) % USERS}",
                group="staff",
                project=f"p{chance.randrange(40)}",
                queue="batch",
                application=f"app{chance.randrange(50)}",
                requested_walltime=7200.0,
                requested_processors=chance.randrange(1, 64),
                submit_time=time - runtime - 100.0,
            ),
            start_time=time - runtime,
            end_time=time,
            runtime=runtime,
            status=Status.COMPLETED,
        )


class Bare:
    """The database through its driver alone: what there is to reach."""

    def __init__(self, url: str) -> None:
        place = make_url(url)
        self._is_sqlite = place.get_backend_name() == "sqlite"
        self._connection: Any
        if self._is_sqlite:
            self._connection = sqlite3.connect(str(place.database), isolation_level=None)
            self._connection.execute("PRAGMA synchronous = full")
            self._connection.execute("PRAGMA cache_size = -65536")
        else:
            self._connection = psycopg.connect(
                host=str(place.query["host"]), user=place.username, dbname=place.database
            )
            self._connection.autocommit = True
        mark = "?" if self._is_sqlite else "%s"
        marks = ", ".join([mark] * len(COLUMNS))
        self._insert = f"INSERT INTO completions ({', '.join(COLUMNS)}) VALUES ({marks})"  # noqa: S608

    def insert_one_by_one(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """One durable commit for every row."""
        for row in rows:
            self._connection.execute(self._insert, row)

    def insert_in_bulk(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """One durable commit for every batch, the fastest way the driver has."""
        for start in range(0, len(rows), BATCH):
            batch = rows[start : start + BATCH]
            if self._is_sqlite:
                self._connection.execute("BEGIN IMMEDIATE")
                self._connection.executemany(self._insert, batch)
                self._connection.execute("COMMIT")
            else:
                self._copy(batch)

    def _copy(self, batch: Sequence[tuple[Any, ...]]) -> None:
        types = ["int8", *COMPLETION.values()]
        statement = f"COPY completions ({', '.join(COLUMNS)}) FROM STDIN (FORMAT BINARY)"
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            copy.set_types(types)
            for row in batch:
                copy.write_row(row)

    def close(self) -> None:
        """Let go of the database."""
        self._connection.close()


def post_singly(store: Store, runs: Sequence[Completion]) -> None:
    """Sixty-four posters, each of which awaits one acknowledgement at a time."""
    waiting = iter([[ReportedCompletion(completion=run)] for run in runs])

    async def poster(writer: Writer) -> None:
        for group in waiting:
            await writer.acknowledged(group)

    async def all_posters() -> None:
        writer = Writer(store)
        writer.start()
        await asyncio.gather(*(poster(writer) for _ in range(POSTERS)))
        await asyncio.to_thread(writer.close)

    asyncio.run(all_posters())


def write_in_batches(store: Store, runs: Sequence[Completion]) -> None:
    """One write transaction for every batch."""
    for start in range(0, len(runs), BATCH):
        batch = runs[start : start + BATCH]
        store.write([[ReportedCompletion(completion=run) for run in batch]])


class Comparison:
    """Rates of the bare driver and of the store, round by round."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._bare: list[float] = []
        self._ours: list[float] = []

    def add(self, bare: float, ours: float) -> None:
        """Events per second of one round."""
        self._bare.append(bare)
        self._ours.append(ours)

    def __str__(self) -> str:
        ratio = median(ours / bare for ours, bare in zip(self._ours, self._bare, strict=True))
        return (
            f"{self._name:<28}{median(self._bare):>12,.0f}/s{median(self._ours):>12,.0f}/s"
            f"{ratio:>9.2f}x"
        )


def compare(new_url: Callable[[], str], rounds: int) -> None:
    """Measure single events and batches in turns, both sides on new databases in each round."""
    runs = list(islice(completions(), SINGLE + BULK))
    rows = [(seq, *completion_row(run)) for seq, run in enumerate(runs, start=1)]
    single, bulk = Comparison("single events, 64 posters"), Comparison("batches of 1,000")
    for _ in range(rounds):
        bare, store = Bare(upgraded(new_url())), open_store(upgraded(new_url()))
        one_by_one = rate(bare.insert_one_by_one, rows[:BARE_SINGLE])
        single.add(one_by_one, rate(partial(post_singly, store), runs[:SINGLE]))
        in_bulk = rate(bare.insert_in_bulk, rows[SINGLE:])
        bulk.add(in_bulk, rate(partial(write_in_batches, store), runs[SINGLE:]))
        bare.close()
        store.close()
    print(f"{'':<28}{'bare driver':>14}{'store':>14}{'ratio':>10}")
    print(single)
    print(bulk)


def upgraded(url: str) -> str:
    """The URL, when its database has the store's tables."""
    store = open_store(url)
    store.upgrade()
    store.close()
    return url


def rate(write: Callable[[Sequence[Any]], None], events: Sequence[Any]) -> float:
    """Events per second."""
    started = perf_counter()
    write(events)
    return len(events) / (perf_counter() - started)


def measure_history(url: str, runs: Sequence[Completion]) -> None:
    """Import a history twice and start on it."""
    store = open_store(upgraded(url))
    for name in ("import", "import again"):
        started = perf_counter()
        for _ in store.store_reports(ReportedCompletion(completion=run) for run in runs):
            pass
        print(f"{name:<28}{perf_counter() - started:>13.2f} s of {len(runs):,}")
    store.close()
    started = perf_counter()
    store = open_store(url)
    store.check()
    reader, [past] = store.past_runs.warm_start([MEMORY], now=2e9)
    read = sum(1 for _ in past)
    print(f"{'open, check, warm start':<28}{perf_counter() - started:>13.2f} s, {read:,} read")
    reader.close()
    store.close()


def main() -> None:
    """Measure both databases."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="length of the history")
    parser.add_argument("--rounds", type=int, default=5, help="of the comparisons")
    parser.add_argument("--directory", type=Path, help="where SQLite's file goes")
    arguments = parser.parse_args()
    runs = list(islice(completions(seed=2), arguments.rows))
    with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
        names = count()

        def sqlite_url() -> str:
            return f"sqlite:///{directory}/{next(names)}.sqlite3"

        print("SQLite")
        compare(sqlite_url, arguments.rounds)
        measure_history(sqlite_url(), runs)
    server = EmbeddedPostgres(durable=True)
    try:
        print("\nPostgreSQL")
        compare(server.create_database, arguments.rounds)
        measure_history(server.create_database(), runs)
    finally:
        server.close()


if __name__ == "__main__":
    main()
