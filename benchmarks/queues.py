"""Measures live queues of up to 20,000 waiting jobs under the policies of Slurm and of PBS.

    .venv/bin/python benchmarks/queues.py
    .venv/bin/python benchmarks/queues.py --scheduler slurm --waiting 20000 --seconds 60

A service of its own learns 20,000 runs of 200 users. Then it takes queues with 2,000 running jobs
on 48,000 cores, of which 1% is new each time, as the updater of Slurm and the follower of PBS hand
them over. Measured by the clock on the wall: from a hand-over until its forecast is there, without
and with intervals, what-ifs in quiet and while queues are handed over, and predictions without a
queue and with one a minute, in turns. The processor time of a hand-over is that of the process that
answers; plays have processes of their own.
"""

import argparse
import itertools
import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from math import ceil
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec
from httpx import Client, codes

from simulator.cli.players import private_service

USERS, RUNS, RUNNING, CORES = 200, 20_000, 2000, 48_000
MOST_CORES = 46
"""Cores of the largest job: those that run fill the machine."""

REQUESTS = (1800, 7200, 43200, 86400)
MINUTE = 60.0

SECONDS_APART = 3
"""Seconds between two submissions."""

SCHEDULERS: dict[str, dict[str, Any]] = {
    "slurm": {"policy": "conservative", "planning_window": 86_400},
    "pbs": {"policy": "easy", "depth": 1},
}
"""Rules that the updater of Slurm and the follower of PBS send; Slurm's depth is an option."""

HAND_OVERS, WHAT_IFS, TURNS = 3, 100, 2
STATES = 12
"""Queues that are handed over one after the other beside what-ifs."""

PAUSE = 0.002
"""Seconds between predictions: they come one by one, as from a submit filter."""

POLLING_SECONDS, POLLING_SHARE = 0.05, 0.1
"""Least pause between looks for a forecast, and its share of the time passed: a look costs the
service a millisecond."""

TICKS = os.sysconf("SC_CLK_TCK")
GOALS = {
    "forecast without intervals": 2.0,
    "forecast with intervals": 10.0,
    "what-if, p99": 0.5,
    "what-if beside hand-overs, p99": 0.5,
    "processor time of a hand-over": 1.0,
}
"""Seconds."""


Fields = dict[str, Any]


def job(number: int, batch: int) -> Fields:
    """Return a job; every ``batch`` jobs of a user in a row are alike."""
    draw = random.Random(number // batch)  # noqa: S311 - repeatable
    user, request = draw.randrange(USERS), draw.choice(REQUESTS)
    return {
        "user": f"u{user}",
        "application": f"a{user % 7}",
        "requested_walltime": request,
        "requested_processors": draw.randint(1, MOST_CORES),
    }


def runs(batch: int) -> list[Fields]:
    """Return runs of users who repeat their applications."""
    draw = random.Random(1)  # noqa: S311 - repeatable
    now = time.time()
    found = []
    for number in range(RUNS):
        submission = job(-number, batch)
        runtime = max(1.0, submission["requested_walltime"] * draw.betavariate(0.6, 1.2))
        end = now - (RUNS - number) * 30.0
        times = {"submit_time": end - runtime - 60, "start_time": end - runtime, "end_time": end}
        found.append({"job_id": f"r{number}", **submission, **times, "status": "completed"})
    return found


class QueueState(NamedTuple):
    """The time of a queue in Unix seconds, and its body."""

    taken_at: float
    body: bytes


class Queue:
    """A queue whose jobs start in turn; each state of it is another body.

    Args:
        waiting: number of waiting jobs.
        rules: of the scheduler.
        batch: jobs in a row that are alike.
    """

    def __init__(self, waiting: int, rules: Fields, batch: int) -> None:
        self._waiting, self._rules, self._batch = waiting, rules, batch
        self._began = time.time()
        self._first = itertools.count(0, max(1, waiting // 100))

    def state(self) -> QueueState:
        """Return the next state: the first jobs have ended, the next ones have started."""
        first, now = next(self._first), time.time()
        numbers = range(first, first + RUNNING + self._waiting)
        jobs = [self._queued(number) for number in numbers]
        running = [
            {**each, "start_time": now - 60 - random.Random(number).randrange(1500)}  # noqa: S311
            for number, each in zip(numbers, jobs[:RUNNING], strict=False)
        ]
        pools = [{"processors": CORES, "queues": ["batch"]}]
        body = {"taken_at": now, "pools": pools, **self._rules}
        body |= {"running": running, "waiting": jobs[RUNNING:]}
        return QueueState(now, msgspec.json.encode(body))

    def _queued(self, number: int) -> Fields:
        submit = self._began - 200_000 + SECONDS_APART * number
        fields = {"job_id": number, "queue": "batch", "submit_time": submit}
        return {**job(number, self._batch), **fields}


class HandOver(NamedTuple):
    """Cost of one hand-over.

    Attributes:
        taken: seconds until it was answered.
        forecast: seconds until its forecast was there.
        processor: processor time of the process that answers, in seconds.
        playing: processor time of the processes that play queues, in seconds.
        size: bytes.
    """

    taken: float
    forecast: float
    processor: float
    playing: float
    size: int


def seconds(call: Callable[[], object]) -> float:
    """Return the duration of a call in seconds."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def processor_seconds(process: int) -> float:
    """Return the processor time of a process, without its children."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def playing_seconds(process: int) -> float:
    """Return the processor time of the children of a process."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return sum(processor_seconds(int(child)) for child in children)


def hand_over(client: Client, process: int, queue: QueueState) -> HandOver:
    """Hand a queue over, and wait for its forecast."""
    used, played = processor_seconds(process), playing_seconds(process)
    began = time.perf_counter()
    headers = {"Content-Type": "application/json"}
    path = "/v1/clusters/default/snapshot"
    client.put(path, content=queue.body, headers=headers).raise_for_status()
    taken = time.perf_counter() - began
    while (shown := client.get("/v1/clusters").json()["clusters"][0])[
        "forecast_at"
    ] != queue.taken_at:
        if shown["forecast_error"]:
            raise SystemExit(shown["forecast_error"])
        time.sleep(max(POLLING_SECONDS, POLLING_SHARE * (time.perf_counter() - began)))
    forecast = time.perf_counter() - began
    time.sleep(1.0)  # what is left to store
    return HandOver(
        taken,
        forecast,
        processor_seconds(process) - used,
        playing_seconds(process) - played,
        len(queue.body),
    )


def what_if(client: Client) -> Fields:
    """Ask about a job as it is written and with another request, as ``walltimed ask`` does."""
    submission = {"requested_walltime": 86400, "requested_processors": 16, "user": "u1"}
    body = {"submission": submission, "variants": [{"requested_walltime": 43200}]}
    answer = client.post("/v1/clusters/default/what-if", json=body)
    found: Fields = answer.raise_for_status().json()
    return found


def p99(times: list[float]) -> float:
    """Return the 99th percentile."""
    return quantiles(times, n=100)[-1]


def predictions(url: str, lasting: float) -> list[float]:
    """Return the durations of predictions in milliseconds."""
    taken: list[float] = []
    ends = time.perf_counter() + lasting
    with Client(base_url=url, timeout=60) as client:
        while time.perf_counter() < ends:
            submission = {"user": f"u{len(taken) % USERS}", "requested_walltime": 7200}
            taken.append(1000 * seconds(partial(client.post, "/v1/predictions", json=submission)))
            time.sleep(PAUSE)
    return taken


@contextmanager
def queues_coming(
    url: str, process: int, states: Iterable[QueueState], every: float = 0.0
) -> Iterator[None]:
    """Hand states of a queue over meanwhile, one in ``every`` seconds."""
    done = threading.Event()

    def go_on() -> None:
        with Client(base_url=url, timeout=120) as client:
            for state in states:
                began = time.perf_counter()
                hand_over(client, process, state)
                if done.wait(max(0.0, every - (time.perf_counter() - began))):
                    return

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def service(batch: int, **settings: object) -> Iterator[tuple[str, int]]:
    """Start a service that has learned the runs; yield its address and its process."""
    with TemporaryDirectory() as directory:
        names = {f"WALLTIMED_{name.upper()}": str(value) for name, value in settings.items()}
        names["WALLTIMED_DATABASE_URL"] = f"sqlite:///{directory}/history.db"
        with private_service(settings=names) as started:
            with Client(base_url=started.url, timeout=120) as client:
                learn(client, batch)
            yield started.url, started.process.pid


def learn(client: Client, batch: int) -> None:
    """Report the runs."""
    history = runs(batch)
    for first in range(0, len(history), 5000):
        body = {"completions": history[first : first + 5000]}
        client.post("/v1/completions", json=body).raise_for_status()
    while (ready := client.get("/health/ready")).status_code != codes.OK or ready.json()["lag"]:
        time.sleep(0.05)


def show(name: str, times: list[float]) -> None:
    """Print the median and the slowest of some times, and whether a goal was reached."""
    goal = GOALS.get(name)
    shown = times[-1] if "p99" in name else median(times)
    word = "" if goal is None else f"  {'reached' if shown <= goal else 'missed'} {goal:g}"
    print(f"  {name:<32}{shown:7.3f} ({max(times):.3f}){word}", flush=True)


def measure(options: argparse.Namespace, scheduler: str, waiting: int) -> None:
    """Print what one queue costs."""
    rules = dict(SCHEDULERS[scheduler])
    if scheduler == "slurm" and options.planning_depth:
        rules["planning_depth"] = options.planning_depth
    depth = f", bf_max_job_test={options.planning_depth}" if "planning_depth" in rules else ""
    print(f"{scheduler}{depth}, {waiting:,} waiting; seconds, median (slowest)", flush=True)
    queue = Queue(waiting, rules, options.batch)
    with (
        service(options.batch, forecast_samples=0) as (url, process),
        Client(base_url=url, timeout=120) as client,
    ):
        hand_over(client, process, queue.state())
        each = [hand_over(client, process, queue.state()) for _ in range(HAND_OVERS)]
        show("forecast without intervals", [one.forecast for one in each])
        show("processor time of its play", [one.playing for one in each])
    with service(options.batch) as (url, process):
        with Client(base_url=url, timeout=120) as client:
            first = hand_over(client, process, queue.state())
            measure_hand_overs(client, process, queue, first)
            quiet = [seconds(partial(what_if, client)) for _ in range(WHAT_IFS)]
            show("what-if, p99", [*quiet, p99(quiet)])
            # They are made before: that would take processor time from the service.
            states = [queue.state() for _ in range(STATES)]
            with queues_coming(url, process, states):
                beside = [seconds(partial(what_if, client)) for _ in range(WHAT_IFS)]
            show("what-if beside hand-overs, p99", [*beside, p99(beside)])
        measure_predictions(url, process, queue, options.seconds)


def measure_predictions(url: str, process: int, queue: Queue, lasting: float) -> None:
    """Print what predictions take alone and beside a queue a minute, in turns."""
    alone: list[float] = []
    busy: list[float] = []
    for _ in range(TURNS):
        alone += predictions(url, lasting)
        states = [queue.state() for _ in range(ceil(lasting / MINUTE))]
        with queues_coming(url, process, states, every=MINUTE):
            busy += predictions(url, lasting)
    print(
        f"  predictions, p99 in ms: alone {p99(alone):.2f}, beside a queue a minute "
        f"{p99(busy):.2f}: {p99(busy) / p99(alone):.2f} times (goal 1.3)",
        flush=True,
    )


def measure_hand_overs(client: Client, process: int, queue: Queue, first: HandOver) -> None:
    """Print what hand-overs cost, and what of the queue was forecast."""
    each = [hand_over(client, process, queue.state()) for _ in range(HAND_OVERS)]
    show("forecast with intervals", [one.forecast for one in each])
    show("processor time of its plays", [one.playing for one in each])
    show("until it is taken", [one.taken for one in each])
    show("processor time of a hand-over", [one.processor for one in each])
    shown = client.get("/v1/clusters").json()["clusters"][0]
    asked = what_if(client)["as_written"]
    print(
        f"  of the first one {first.processor:.2f}, its size {first.size / (1 << 20):.1f} MiB; "
        f"{shown['planned_jobs']:,} waiting jobs planned, {shown['samples']} futures, "
        f"what-if: {asked['obstacle'] or 'a start'}",
        flush=True,
    )


def main() -> None:
    """Print what each queue costs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scheduler", nargs="+", choices=SCHEDULERS, default=list(SCHEDULERS))
    parser.add_argument("--waiting", nargs="+", type=int, default=[1000, 3000, 10_000, 20_000])
    parser.add_argument("--planning-depth", type=int, default=500, help="bf_max_job_test; 0: all")
    parser.add_argument("--batch", type=int, default=10, help="jobs in a row that are alike")
    parser.add_argument(
        "--seconds",
        type=float,
        default=60.0,
        help="of predictions, each time; below 60 queues come oftener",
    )
    options = parser.parse_args()
    print(f"{RUNNING:,} jobs run on {CORES:,} cores; load {os.getloadavg()[0]:.1f}")
    for scheduler in options.scheduler:
        for waiting in options.waiting:
            measure(options, scheduler, waiting)


if __name__ == "__main__":
    main()
