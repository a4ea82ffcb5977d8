"""Measures a prediction over HTTP beside an ordinary FastAPI endpoint that does nothing.

    .venv/bin/python benchmarks/serving.py [--rounds 7] [--seconds 4] [--history 100000]

The service runs as it is shipped: authentication, metrics, methods asked in shadow, and every
prediction recorded, on a SQLite history; rounds of tuning that it begins by itself run meanwhile,
unless WALLTIMED_TUNING=off is set. The endpoint beside it has the same request and answer
models and uvicorn's settings, but uvicorn's own protocol, and answers a constant. Both servers are
pinned to one core; the load comes from the other, which an import shares with it. They take turns
within each round; a ratio is the median of the rounds' ratios, because this machine's speed changes
between rounds by more than they differ.

"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import cycle
from pathlib import Path

from harness import (
    LOAD_CORE,
    OPEN_LOOP_RATE,
    Address,
    Ratios,
    Server,
    Times,
    closed_loop,
    history,
    open_loop,
    prepared,
    requests,
    serving,
    the_service,
)

from service.store import ReportedCompletion, open_store

LONGEST_IMPORT = 300.0

Load = Callable[[Address], Times]


@contextmanager
def the_endpoint() -> Iterator[Server]:
    """FastAPI as everybody uses it."""
    with serving(sys.executable, str(Path(__file__).with_name("ordinary_app.py"))) as server:
        yield server


@contextmanager
def importing(file: Path, jobs: int, first: int) -> Iterator[subprocess.Popen[bytes]]:
    """A process beside the load, on its core, that imports completions meanwhile."""
    command = [sys.executable, __file__, "--import-into", str(file), "--history", str(jobs)]
    process = subprocess.Popen([*command, "--first", str(first)])
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait()


def measure(file: Path, token: str, options: argparse.Namespace) -> None:
    """All rounds."""
    todo = requests(2000, options.history, token, options.method)
    with the_service(file) as service, the_endpoint() as endpoint:
        print(taking_turns(service, endpoint, todo, options).table(), flush=True)
    if options.imported:
        measure_imports(file, todo, options)


def taking_turns(
    ours: Server, theirs: Server, todo: list[bytes], options: argparse.Namespace
) -> Ratios:
    """Both servers under every load, one after the other in each round."""
    ratios = Ratios()
    for server in (ours, theirs):
        closed_loop(server.address, cycle(todo), connections=16, seconds=1)
    for number in range(options.rounds):
        turn = (ours, theirs) if number % 2 else (theirs, ours)
        for name, load in loads(todo, options.seconds).items():
            measured = {server: run(server, load) for server in turn}
            compare(ratios, name, measured[ours], measured[theirs])
    return ratios


def measure_imports(file: Path, todo: list[bytes], options: argparse.Namespace) -> None:
    """The service while its history grows; the endpoint while a history of nobody does.

    The import shares a core with the load: the endpoint tells how much of a time is due to that.
    """
    of_nobody = file.with_name("of-nobody.sqlite3")
    prepared(of_nobody, 1)
    print(f"while {options.imported:,} completions are imported, {OPEN_LOOP_RATE:.0f}/s open loop:")
    with the_endpoint() as endpoint:
        seen = beside_an_import(endpoint, of_nobody, todo, first=1, jobs=options.imported)
        print(f"endpoint   {seen}")
    with the_service(file) as service:
        seen = beside_an_import(service, file, todo, first=options.history, jobs=options.imported)
        print(f"walltimed  {seen}")


def loads(todo: list[bytes], seconds: float) -> dict[str, Load]:
    """The loads that are measured, by name."""
    closed: dict[str, Load] = {
        f"{connections} connections": partial(
            closed_loop, requests=cycle(todo), connections=connections, seconds=seconds
        )
        for connections in (1, 16, 64)
    }
    opened = partial(open_loop, requests=cycle(todo), per_second=OPEN_LOOP_RATE, seconds=seconds)
    return closed | {f"{OPEN_LOOP_RATE:.0f}/s open loop": opened}


def run(server: Server, load: Load) -> tuple[Times, float]:
    """The times of the answers, and the processor seconds of each."""
    before = server.processor_seconds()
    times = load(server.address)
    return times, (server.processor_seconds() - before) / len(times.seconds)


def compare(
    ratios: Ratios, name: str, ours: tuple[Times, float], theirs: tuple[Times, float]
) -> None:
    """Keep what both sides took."""
    ratios.add(f"{name}: requests/s", ours[0].rate, theirs[0].rate)
    for percent in (50, 99):
        ratios.add(
            f"{name}: p{percent} ms",
            ours[0].percentile(percent) * 1e3,
            theirs[0].percentile(percent) * 1e3,
        )
    ratios.add(f"{name}: processor us", ours[1] * 1e6, theirs[1] * 1e6)


def beside_an_import(
    server: Server, file: Path, todo: list[bytes], *, first: int, jobs: int
) -> str:
    """Measure predictions while completions are imported into a history."""
    with importing(file, jobs, first) as process:
        times = open_loop(
            server.address,
            cycle(todo),
            per_second=OPEN_LOOP_RATE,
            seconds=LONGEST_IMPORT,
            going_on=lambda: process.poll() is None,
        )
    return (
        f"p50 {times.percentile(50) * 1e3:.3f} ms, p99 {times.percentile(99) * 1e3:.3f} ms, "
        f"over {times.elapsed:.0f} s"
    )


def main() -> None:
    """Run the benchmark, or be the process that imports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    parser.add_argument("--history", type=int, default=100_000, help="completions")
    parser.add_argument("--imported", type=int, default=1_000_000, help="completions, 0: none")
    parser.add_argument("--method", help="that is asked, else the service's default")
    parser.add_argument("--import-into", help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.import_into:
        store = open_store(f"sqlite:///{options.import_into}")
        runs = history(options.history, first=options.first)
        for _ in store.store_reports(ReportedCompletion(completion=run) for run in runs):
            pass
        return
    os.sched_setaffinity(0, {LOAD_CORE})
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "walltimed.sqlite3"
        token = prepared(file, options.history)
        measure(file, token, options)


if __name__ == "__main__":
    main()
