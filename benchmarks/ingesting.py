"""Measures the cost of ingestion over HTTP beside the bare database driver, on SQLite.

    .venv/bin/python benchmarks/ingesting.py [--rounds 5] [--directory DIR]

Both sides make every commit durable (WAL, synchronous FULL) on the same disk, in tables with the
same indexes, in turns; ratios are medians over the rounds. The service runs as it is shipped, with
authentication and metrics, and learns from every completion meanwhile. Measured are

- single events: the bare driver with one commit per event, against 64 connections that each post
  one completion at a time and wait for its acknowledgement;
- batches of 1,000: the bare driver's executemany with one commit per batch, against posts of
  1,000 completions over four connections, as JSON.
"""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import msgspec
from harness import Address, closed_loop, post, prepared, the_service
from store import BARE_SINGLE, BATCH, BULK, SINGLE, Bare, Comparison, completions, rate, upgraded

from predictors.jobs import Completion
from service.store.rows import completion_row

CONNECTIONS = 64
BATCH_CONNECTIONS = 4


def reported(run: Completion) -> dict[str, object]:
    """A completion as the service takes it."""
    known = msgspec.structs.asdict(run.submission)
    del known["facts"]  # no field of a report; these runs have none
    return {
        **known,
        "start_time": run.start_time,
        "end_time": run.end_time,
        "runtime": run.runtime,
        "status": run.status,
    }


def singles(runs: Sequence[Completion], token: str) -> list[bytes]:
    """One request for each."""
    return [
        post("/v1/completions", msgspec.json.encode(reported(run)), token=token) for run in runs
    ]


def batches(runs: Sequence[Completion], token: str) -> list[bytes]:
    """One request for every thousand."""
    bodies = (
        {"completions": [reported(run) for run in runs[start : start + BATCH]]}
        for start in range(0, len(runs), BATCH)
    )
    return [post("/v1/completions", msgspec.json.encode(body), token=token) for body in bodies]


def posted(
    address: Address, requests: Sequence[bytes], *, connections: int, completions: int
) -> float:
    """Completions per second."""
    times = closed_loop(address, requests, connections=connections)
    return completions / times.elapsed


def compare(files: Iterator[Path], rounds: int) -> None:
    """Measure both sides in turns, each on a new database in each round."""
    runs = list(islice(completions(), SINGLE + BULK))
    rows = [(seq, *completion_row(run)) for seq, run in enumerate(runs, start=1)]
    single, bulk = Comparison("single events, 64 posters"), Comparison("batches of 1,000")
    for _ in range(rounds):
        bare = Bare(upgraded(f"sqlite:///{next(files)}"))
        one_by_one = rate(bare.insert_one_by_one, rows[:BARE_SINGLE])
        in_bulk = rate(bare.insert_in_bulk, rows[SINGLE:])
        bare.close()
        file = next(files)
        token = prepared(file, 0)
        to_post = singles(runs[:SINGLE], token), batches(runs[SINGLE:], token)
        with the_service(file, pinned=False) as service:
            measure = partial(posted, service.address)
            single.add(one_by_one, measure(to_post[0], connections=CONNECTIONS, completions=SINGLE))
            bulk.add(in_bulk, measure(to_post[1], connections=BATCH_CONNECTIONS, completions=BULK))
    print(f"{'':<28}{'bare driver':>14}{'over HTTP':>14}{'ratio':>10}")
    print(single)
    print(bulk)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--directory", type=Path, help="where the databases go")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        files = (Path(directory) / f"{number}.sqlite3" for number in range(2 * options.rounds))
        compare(files, options.rounds)


if __name__ == "__main__":
    main()
