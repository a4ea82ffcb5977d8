"""What predictions over HTTP see of ten open pages and of a queue of 2,000 jobs each minute.

    .venv/bin/python benchmarks/open_pages.py [--rounds 5] [--seconds 20]

The service as it is shipped, on a history of 30,000 completions, answers 500 predictions a second
(open loop); in turn alone, and beside ten browsers that ask for a page every five seconds, as the
pages' script does, while a snapshot of 2,000 jobs comes once in every minute of the measurement.
The browsers are played by threads: they ask, and do not draw.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from threading import Event, Thread
from typing import Any

import msgspec
from beside import options_of, p99_ratio
from serving import CLUSTER, Address

PAGES = ("/", "/queue", "/accuracy", "/", "/queue", "/users", "/", "/queue", "/rounds", "/queue")
EVERY_SECONDS = 5.0
SNAPSHOT_JOBS, SNAPSHOT_SECONDS = 2_000, 60.0

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


def browse(address: Address, token: str, path: str, stop: Event, asked: list[int]) -> None:
    """One open page: ask for it again every few seconds, with the cookie of a session."""
    connection = HTTPConnection(*address)
    kind = "application/x-www-form-urlencoded"
    headers = {"content-type": kind, "sec-fetch-site": "same-origin"}
    connection.request("POST", "/login", f"token={token}", headers)
    answer = connection.getresponse()
    answer.read()
    cookie = str(answer.headers["set-cookie"]).partition(";")[0]
    while not stop.is_set():
        connection.request("GET", f"{path}?cluster={CLUSTER}", headers={"cookie": cookie})
        answer = connection.getresponse()
        answer.read()
        asked.append(answer.status)
        stop.wait(EVERY_SECONDS)


def hand_over(address: Address, token: str, stop: Event) -> None:
    """A snapshot of the queue, again and again."""
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    while not stop.is_set():
        connection = HTTPConnection(*address)
        body = msgspec.json.encode(queue(SNAPSHOT_JOBS))
        connection.request("PUT", f"/v1/queues/{CLUSTER}", body, headers)
        connection.getresponse().read()
        stop.wait(SNAPSHOT_SECONDS)


@contextmanager
def open_pages(address: Address, token: str, asked: list[int]) -> Iterator[None]:
    """Ten of them, and a live queue, meanwhile."""
    stop = Event()
    threads = [Thread(target=browse, args=(address, token, path, stop, asked)) for path in PAGES]
    threads.append(Thread(target=hand_over, args=(address, token, stop)))
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def main() -> None:
    """Measure both sides in turn."""
    options = options_of(__doc__, rounds=5, seconds=20.0)
    asked: list[int] = []
    ratio = p99_ratio(
        lambda address, token: open_pages(address, token, asked), options, name="pages"
    )
    print(f"; {len(asked)} pages, {asked.count(200)} of them answered")
    if ratio > MOST:
        raise SystemExit(f"p99 beside open pages should be at most {MOST} times p99 without.")


if __name__ == "__main__":
    main()
