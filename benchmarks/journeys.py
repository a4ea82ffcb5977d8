"""Files and function calls of the service on the way of a request.

    python benchmarks/journeys.py [--repeats 6] [--files]

Requests go to the real application in this process. A profile hook notes every call of a function
of the service by the request's own tasks and threads, and by the writer's thread. A file counts if
each repetition has entered it.
"""

import argparse
import asyncio
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import httpx

from service.http.app import create_app
from service.settings import Settings
from service.store import open_store

ROOT = Path(__file__).parents[1]
SERVICE = str(ROOT / "service")

CLUSTER = "hill"
RUNS = 300
WAITING_SECONDS = 60.0

JOB = {"user": "ada", "queue": "short", "requested_walltime": 3600.0, "cluster": CLUSTER}
SNAPSHOT = f"/v1/clusters/{CLUSTER}/snapshot"

Request = tuple[str, str, dict[str, Any]]


IN_REQUEST = ContextVar("IN_REQUEST", default=False)
"""Set in the task that sends a request, and so in tasks and threads that work for it."""


def is_of_request() -> bool:
    """Return whether this thread works for the request; the writer's always does."""
    return IN_REQUEST.get() or threading.current_thread().name == "writer"


class Journey:
    """The calls of the service's functions while it records."""

    def __init__(self) -> None:
        self.files: list[set[str]] = []
        self.calls: list[int] = []
        self._is_recording = False

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        """Note a call; Python's profile hook."""
        if event == "call" and self._is_recording and is_of_request():
            file = frame.f_code.co_filename
            if file.startswith(SERVICE):
                self.files[-1].add(file)
                self.calls[-1] += 1

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record the calls of one repetition."""
        self.files.append(set())
        self.calls.append(0)
        self._is_recording = True
        token = IN_REQUEST.set(True)
        try:
            yield
        finally:
            self._is_recording = False
            IN_REQUEST.reset(token)

    def row(self, name: str) -> str:
        """Return the figures of all repetitions, and forget them."""
        common, calls = self.common(), sorted(self.calls)
        self.files, self.calls = [], []
        return f"{name:<14}{len(common):>6}{calls[0]:>8} to {calls[-1]}"

    def common(self) -> list[str]:
        """Return the files that every repetition has entered."""
        return sorted(str(Path(file).relative_to(ROOT)) for file in set.intersection(*self.files))


def run_of(number: int) -> dict[str, Any]:
    """Return a completion."""
    end = time.time() - 86_400 + number
    times = {"submit_time": end - 1000, "start_time": end - 900, "end_time": end}
    return {**JOB, **times, "job_id": f"r{number}", "status": "completed"}


def queue(number: int) -> dict[str, Any]:
    """Return a queue of two jobs."""
    now = time.time()
    job = {key: value for key, value in JOB.items() if key != "cluster"}
    job |= {"requested_processors": 4, "submit_time": now - 60}
    return {
        "taken_at": now,
        "pools": [{"processors": 4, "queues": ["short"]}],
        "running": [{**job, "job_id": f"{number}1", "start_time": now - 30}],
        "waiting": [{**job, "job_id": f"{number}2"}],
    }


def requests(number: int) -> dict[str, Request]:
    """Return a request of each kind, other ones for each number."""
    what_if = {"submission": {key: value for key, value in JOB.items() if key != "cluster"}}
    return {
        "prediction": ("POST", "/v1/predictions", JOB),
        "completion": ("POST", "/v1/completions", run_of(RUNS + number)),
        "ask": ("POST", f"/v1/clusters/{CLUSTER}/what-if", what_if),
        "queue": ("PUT", SNAPSHOT, queue(number)),
    }


@asynccontextmanager
async def client_of(url: str) -> AsyncIterator[httpx.AsyncClient]:
    """Start the application, and wait until it is ready."""
    settings = Settings(
        config=None, database_url=url, tuning="off", web_pages=False, forecast_seconds=60.0
    )
    app = create_app(settings)
    transport = httpx.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://walltimed") as client,
    ):
        await until(client, "/health/ready", "status", "ready")
        yield client


async def until(client: httpx.AsyncClient, path: str, field: str, value: object) -> None:
    """Ask until an answer has the value.

    Raises:
        TimeoutError: it has another one for a minute.
    """
    async with asyncio.timeout(WAITING_SECONDS):
        while (await client.get(path)).json().get(field) != value:  # noqa: ASYNC110 - over HTTP
            await asyncio.sleep(0.05)


async def record(client: httpx.AsyncClient, request: Request) -> None:
    """Send a request.

    Raises:
        SystemExit: it is refused.
    """
    method, path, body = request
    answer = await client.request(method, path, json=body)
    if answer.is_error:
        raise SystemExit(f"{method} {path}: {answer.text}")


async def measure(url: str, *, repeats: int, prints_files: bool) -> None:
    """Record every kind of request, and print a row for each."""
    journey = Journey()
    threading.setprofile(journey)
    async with client_of(url) as client:
        runs = [run_of(number) for number in range(RUNS)]
        await record(client, ("POST", "/v1/completions", {"completions": runs}))
        first = queue(0)
        await record(client, ("PUT", SNAPSHOT, first))
        await until(client, SNAPSHOT, "forecast_at", first["taken_at"])
        print(f"{'request':<14}{'files':>6}{'calls':>8}")
        sys.setprofile(journey)
        for name in requests(0):
            for number in range(1, repeats + 1):
                request = requests(number)[name]
                with journey.recorded():
                    await record(client, request)
            files = journey.common()
            print(journey.row(name))
            if prints_files:
                print("".join(f"    {file}\n" for file in files), end="")
        sys.setprofile(None)
    threading.setprofile(None)


def main() -> None:
    """Record the journeys of a new history."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--files", action="store_true", help="print their names, too")
    options = parser.parse_args()
    with TemporaryDirectory() as directory:
        url = f"sqlite:///{directory}/history.sqlite3"
        store = open_store(url)
        store.upgrade()
        store.close()
        asyncio.run(measure(url, repeats=options.repeats, prints_files=options.files))


if __name__ == "__main__":
    main()
