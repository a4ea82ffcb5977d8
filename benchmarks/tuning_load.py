"""Measures predictions over HTTP beside rounds of tuning that learn a forest.

    .venv/bin/python benchmarks/tuning_load.py [--rounds 7] [--seconds 8]

The service as it is shipped, on a history of 30,000 completions, answers 500 predictions a second
(open loop); in turn there is no round, and one round after the other, of all subjects. The rounds'
process shares the service's core, as it does where every core is busy; the load comes from the
other one.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from statistics import median
from threading import Event, Thread
from typing import Any

from harness import CLUSTER, Address, options_of, p99_ratio

POLL_SECONDS = 1.0
"""More often, and the answers to these questions would be what is measured."""

MOST = 1.3
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
    options = options_of(__doc__, rounds=7, seconds=8.0)
    os.environ["WALLTIMED_TUNING"] = "on-request"
    ended: list[float] = []
    ratio = p99_ratio(lambda address, token: rounds(address, token, ended), options, name="rounds")
    print(f"; {len(ended)} rounds, {median(ended):.1f} s each beside the load")
    if ratio > MOST:
        raise SystemExit(f"p99 beside a round should be at most {MOST} times p99 without.")


if __name__ == "__main__":
    main()
