"""What predictions over HTTP see of a round of tuning that runs beside the service.

    .venv/bin/python benchmarks/tuning_load.py [--rounds 7] [--seconds 8]

The service as it is shipped, on a history of 30,000 completions, answers 500 predictions a second
(open loop); in turn there is no round, and one round after the other. The rounds' process shares
the service's core, as it does where every core is busy; the load comes from the other one.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import cycle
from pathlib import Path
from statistics import median
from threading import Event, Thread
from typing import Any

from load import open_loop
from serving import CLUSTER, OPEN_LOOP_RATE, Address, prepared, requests, the_service

HISTORY = 30_000
POLL_SECONDS = 1.0
"""More often, and the answers to these questions would be what is measured."""

MOST = 1.5
"""How many times p99 without rounds the one with rounds may be."""


def call(address: Address, token: str, method: str, path: str, body: Any = None) -> Any:
    """The answer to one call."""
    connection = HTTPConnection(*address)
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    connection.request(method, path, json.dumps(body) if body else None, headers)
    return json.loads(connection.getresponse().read())


def tune_until(stop: Event, address: Address, token: str, ended: list[float]) -> None:
    """Run one round after the other, the last to its end; notes how long each took."""
    while not stop.is_set():
        began = time.perf_counter()
        asked = call(address, token, "POST", "/v1/tunings", {"cluster": CLUSTER})
        path = f"/v1/tunings/{asked['tuning_id']}"
        while call(address, token, "GET", path)["state"] in {"waiting", "running"}:
            time.sleep(POLL_SECONDS)
        ended.append(time.perf_counter() - began)


@contextmanager
def rounds(address: Address, token: str, ended: list[float]) -> Iterator[None]:
    """Rounds run meanwhile."""
    stop = Event()
    thread = Thread(target=tune_until, args=(stop, address, token, ended))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def main() -> None:
    """Measure both sides in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=8.0, help="of each measurement")
    options = parser.parse_args()
    os.environ["WALLTIMED_TUNING"] = "on-request"
    ratios: list[float] = []
    ended: list[float] = []
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "history.sqlite3"
        token = prepared(file, HISTORY)
        todo = requests(2000, HISTORY, token)
        with the_service(file) as service:

            def p99() -> float:
                times = open_loop(
                    service.address, cycle(todo), per_second=OPEN_LOOP_RATE, seconds=options.seconds
                )
                return times.percentile(99) * 1e3

            p99()
            for _ in range(options.rounds):
                without = p99()
                with rounds(service.address, token, ended):
                    beside = p99()
                ratios.append(beside / without)
                print(f"p99 without {without:7.3f} ms, beside rounds {beside:7.3f} ms", flush=True)
    print(f"ratio {median(ratios):.2f} (median of {len(ratios)}); {len(ended)} rounds", end="")
    print(f", {median(ended):.1f} s each beside the load")
    if median(ratios) > MOST:
        raise SystemExit(f"p99 beside a round should be at most {MOST} times p99 without.")


if __name__ == "__main__":
    main()
