"""Measures a live queue of 2,000 jobs: its forecast, what-ifs, and predictions beside it.

    .venv/bin/python benchmarks/queues.py

A service of its own learns 20,000 runs of 200 users, then takes a queue of 1,000 running and 1,000
waiting jobs on 10,000 cores. Measured by the clock on the wall: handing the queue over, until its
forecast is there, what-ifs with one and with eight variants, and the 99th percentile of predictions
without the queue and while it is handed over again and again, for as long as ``--seconds`` says.
"""

import argparse
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from statistics import median, quantiles
from tempfile import TemporaryDirectory

from httpx import Client

from simulator.cli.players import private_service

USERS, RUNS, JOBS, CORES = 200, 20_000, 1000, 10_000
REPEATS = 15
WHAT_IF_LIMIT = 1.0
"""Seconds, from the issue."""

PAUSE = 0.002
"""Seconds between predictions: they come one by one, as from a submit filter."""


def runs(seed: int = 1) -> list[dict[str, object]]:
    """Runs of users who repeat their applications."""
    draw = random.Random(seed)  # noqa: S311 - repeatable
    now = time.time()
    found = []
    for number in range(RUNS):
        user, request = draw.randrange(USERS), draw.choice([1800, 7200, 43200, 86400])
        runtime = max(1.0, request * draw.betavariate(0.6, 1.2))
        end = now - (RUNS - number) * 30.0
        found.append(
            {
                "job_id": f"r{number}",
                "user": f"u{user}",
                "application": f"a{user % 7}",
                "requested_walltime": request,
                "requested_processors": draw.randrange(1, 64),
                "submit_time": end - runtime - 60,
                "start_time": end - runtime,
                "end_time": end,
                "status": "completed",
            }
        )
    return found


def queue(seed: int = 2) -> dict[str, object]:
    """A machine that is nearly full, and as many jobs that wait as run."""
    draw = random.Random(seed)  # noqa: S311 - repeatable
    now = time.time()

    def job(number: int, most: int) -> dict[str, object]:
        user, request = draw.randrange(USERS), draw.choice([1800, 7200, 43200, 86400])
        return {
            "job_id": number,
            "user": f"u{user}",
            "application": f"a{user % 7}",
            "queue": "batch",
            "requested_walltime": request,
            "requested_processors": draw.randrange(1, most),
            "submit_time": now - 90_000 + number,
        }

    running = [
        {**job(number, 19), "start_time": now - draw.randrange(1800)} for number in range(JOBS)
    ]
    waiting = [job(JOBS + number, 200) for number in range(JOBS)]
    pools = [{"processors": CORES, "queues": ["batch"]}]
    return {"taken_at": now, "pools": pools, "running": running, "waiting": waiting}


def seconds(call: Callable[[], object]) -> float:
    """Duration of a call in seconds."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def hand_over(client: Client) -> tuple[float, float]:
    """Seconds until the queue is taken, and until its forecast is there."""
    body = queue()
    began = time.perf_counter()
    client.put("/v1/clusters/default/snapshot", json=body).raise_for_status()
    taken = time.perf_counter() - began
    while client.get("/v1/clusters").json()["clusters"][0]["forecast_at"] != body["taken_at"]:
        time.sleep(0.01)
    return taken, time.perf_counter() - began


def what_if(client: Client, variants: int) -> None:
    """Ask about a job with so many other requests."""
    submission = {"requested_walltime": 86400, "requested_processors": 64, "user": "u1"}
    others = [{"requested_walltime": 3600 * (1 + each)} for each in range(variants)]
    body = {"submission": submission, "variants": others}
    client.post("/v1/clusters/default/what-if", json=body).raise_for_status()


def predictions(url: str, lasting: float) -> float:
    """The 99th percentile of predictions in milliseconds."""
    taken: list[float] = []
    ends = time.perf_counter() + lasting
    with Client(base_url=url, timeout=60) as client:
        while time.perf_counter() < ends:
            job = {"user": f"u{len(taken) % USERS}", "requested_walltime": 7200}
            taken.append(1000 * seconds(partial(client.post, "/v1/predictions", json=job)))
            time.sleep(PAUSE)
    return quantiles(taken, n=100)[-1]


@contextmanager
def queues_coming(url: str, every: float) -> Iterator[None]:
    """Meanwhile the queue is handed over again and again."""
    done = threading.Event()

    def go_on() -> None:
        with Client(base_url=url, timeout=120) as client:
            while not done.is_set():
                hand_over(client)
                done.wait(every)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="of predictions, each time")
    options = parser.parse_args()
    with TemporaryDirectory() as directory:
        settings = {"WALLTIMED_DATABASE_URL": f"sqlite:///{directory}/history.db"}
        with private_service(settings=settings) as service:
            with Client(base_url=service.url, timeout=120) as client:
                learn(client)
                measure(client)
            alone = predictions(service.url, options.seconds)
            with queues_coming(service.url, every=60.0):
                beside = predictions(service.url, options.seconds)
    print(f"predictions alone: p99 {alone:.2f} ms")
    print(f"predictions beside a queue a minute: p99 {beside:.2f} ms, {beside / alone:.2f} times")


def learn(client: Client) -> None:
    """Report the runs."""
    history = runs()
    for first in range(0, len(history), 5000):
        body = {"completions": history[first : first + 5000]}
        client.post("/v1/completions", json=body).raise_for_status()
    while client.get("/health/ready").json()["lag"]:
        time.sleep(0.05)


def measure(client: Client) -> None:
    """Print what the queue itself costs."""
    first, *others = [hand_over(client) for _ in range(6)]
    print(f"{2 * JOBS:,} jobs on {CORES:,} cores; seconds, median (slowest)")
    print(f"first forecast, the process being started: {first[1]:.2f}")
    for name, each in zip(("handed over", "forecast"), zip(*others, strict=True), strict=True):
        print(f"{name:<24}{median(each):.3f} ({max(each):.3f})")
    for variants in (1, 8):
        what_if(client, variants)
        taken = [seconds(partial(what_if, client, variants)) for _ in range(REPEATS)]
        word = "reached" if max(taken) <= WHAT_IF_LIMIT else "missed"
        print(
            f"what-if, {variants} variant{'s' if variants > 1 else ' '}      "
            f"{median(taken):.3f} ({max(taken):.3f})  {word} < {WHAT_IF_LIMIT:g} s"
        )


if __name__ == "__main__":
    main()
