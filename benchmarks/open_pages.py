"""Measures predictions over HTTP beside ten open pages and a queue of 2,000 jobs each minute.

    .venv/bin/python benchmarks/open_pages.py [--turns 10] [--seconds 5] [--pinned]

The service as it is shipped, on a history of 30,000 completions, answers 500 predictions a second
(open loop): in turn alone, and beside ten browsers that ask for a page every five seconds, as the
pages' script does, one after the other, while a snapshot of 2,000 jobs comes once in each minute of
these turns. Turns are short, so that both sides see the same machine; all answers of a side are
counted together. The browsers are played by threads: they ask, and do not draw. Every page was
asked for once before, and a queue was forecast. ``--pinned`` keeps the service and all its
processes on one core.
"""

import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPConnection
from itertools import cycle
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any

import msgspec
from harness import (
    CLUSTER,
    HISTORY,
    OPEN_LOOP_RATE,
    Address,
    Server,
    open_loop,
    prepared,
    requests,
    the_service,
)

PAGES = ("/", "/queue", "/accuracy", "/", "/queue", "/users", "/", "/queue", "/tuning", "/queue")
EVERY_SECONDS = 5.0
SNAPSHOT_JOBS, SNAPSHOT_SECONDS = 2_000, 60.0

SWITCH_SECONDS = 0.0005
"""How long a browser's thread may keep the one that measures waiting."""

MOST = 1.3
"""How many times p99 without pages the one with pages may be."""


def queue(jobs: int) -> dict[str, Any]:
    """A queue of which a tenth runs."""
    now = time.time()
    listed = [
        {
            "job_id": str(place),
            "user": f"u{place % 50}",
            "requested_walltime": 3600.0 + 60 * (place % 300),
            "requested_processors": 1 + place % 16,
            "submit_time": now - 600 - place,
        }
        for place in range(jobs)
    ]
    running = [{**job, "start_time": now - 300} for job in listed[: jobs // 10]]
    return {"pools": [{"processors": 4096}], "running": running, "waiting": listed[jobs // 10 :]}


def logged_in(address: Address, token: str) -> str:
    """The cookie of a session."""
    connection = HTTPConnection(*address)
    kind = "application/x-www-form-urlencoded"
    headers = {"content-type": kind, "sec-fetch-site": "same-origin"}
    connection.request("POST", "/login", f"token={token}", headers)
    answer = connection.getresponse()
    answer.read()
    return str(answer.headers["set-cookie"]).partition(";")[0]


def browse(address: Address, cookies: list[str], place: int, stop: Event, asked: list[int]) -> None:
    """One open page: ask for it again every few seconds, as whoever has logged in."""
    connection = HTTPConnection(*address)
    stop.wait(EVERY_SECONDS * place / len(PAGES))
    while not stop.is_set():
        path = f"{PAGES[place]}?cluster={CLUSTER}"
        connection.request("GET", path, headers={"cookie": cookies[place]})
        answer = connection.getresponse()
        answer.read()
        asked.append(answer.status)
        stop.wait(EVERY_SECONDS)


def hand_over(address: Address, token: str, body: bytes) -> None:
    """A snapshot of the queue."""
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    connection = HTTPConnection(*address)
    connection.request("PUT", f"/v1/clusters/{CLUSTER}/snapshot", body, headers)
    connection.getresponse().read()


@contextmanager
def open_pages(
    address: Address, token: str, cookies: list[str], asked: list[int], snapshot: bytes | None
) -> Iterator[None]:
    """Ten of them, and perhaps a snapshot of the queue, meanwhile."""
    stop = Event()
    threads = [
        Thread(target=browse, args=(address, cookies, place, stop, asked))
        for place in range(len(PAGES))
    ]
    if snapshot is not None:
        threads.append(Thread(target=hand_over, args=(address, token, snapshot)))
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def measure(server: Server, token: str, cookies: list[str], options: Namespace) -> float:
    """Take turns, print each, and tell the ratio of the two 99th percentiles."""
    todo = cycle(requests(2000, HISTORY, token))
    asked: list[int] = []
    every = max(1, round(SNAPSHOT_SECONDS / options.seconds))
    sides: dict[str, list[float]] = {"without": [], "beside pages": []}

    def turn(name: str) -> None:
        times = open_loop(server.address, todo, per_second=OPEN_LOOP_RATE, seconds=options.seconds)
        sides[name] += times.seconds
        print(f"{name} {times.percentile(99) * 1e3:.2f}", end=" ", flush=True)

    print("p99 of each turn, ms:", end=" ")
    for place in range(options.turns):
        turn("without")
        body = msgspec.json.encode(queue(SNAPSHOT_JOBS)) if place % every == 0 else None
        with open_pages(server.address, token, cookies, asked, body):
            turn("beside pages")
    print(f"\n{len(asked)} pages, {asked.count(HTTPStatus.OK)} of them answered")
    without, beside = (p99(name, seconds) for name, seconds in sides.items())
    return beside / without


def p99(name: str, seconds: list[float]) -> float:
    """The 99th percentile of a side, which is printed in milliseconds with the median."""
    found = quantiles(seconds, n=100)
    told = f"p50 {found[49] * 1e3:.2f} ms, p99 {found[98] * 1e3:.2f} ms of {len(seconds):,} answers"
    print(f"{name}: {told}")
    return found[98]


def warm_up(server: Server, token: str, cookies: list[str]) -> None:
    """Open every page once and have a queue forecast, which starts the processes for it."""
    hand_over(server.address, token, msgspec.json.encode(queue(SNAPSHOT_JOBS)))
    asked: list[int] = []
    with open_pages(server.address, token, cookies, asked, None):
        while len(asked) < len(PAGES) or not is_forecast(server.address, token):
            time.sleep(0.1)


def is_forecast(address: Address, token: str) -> bool:
    """Whether the queue has been played."""
    connection = HTTPConnection(*address)
    headers = {"authorization": f"Bearer {token}"}
    connection.request("GET", f"/v1/clusters/{CLUSTER}/snapshot?limit=1", headers=headers)
    return msgspec.json.decode(connection.getresponse().read())["forecast_at"] is not None


def main() -> None:
    """Measure both sides in turn."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each turn")
    parser.add_argument("--pinned", action="store_true", help="the service has one core")
    options = parser.parse_args()
    sys.setswitchinterval(SWITCH_SECONDS)
    os.environ["WALLTIMED_TUNING"] = "off"
    with TemporaryDirectory() as directory:
        file = Path(directory) / "history.sqlite3"
        token = prepared(file, HISTORY)
        with the_service(file, pinned=options.pinned) as server:
            cookies = [logged_in(server.address, token) for _ in PAGES]
            warm_up(server, token, cookies)
            ratio = measure(server, token, cookies, options)
    print(f"ratio {ratio:.2f}")
    if ratio > MOST:
        raise SystemExit(f"p99 beside open pages should be at most {MOST} times p99 without.")


if __name__ == "__main__":
    main()
