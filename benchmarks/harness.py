"""Shared parts of benchmarks of the service: its process, a history, a load generator, ratios.

Closed loop: every connection posts again as soon as it has its answer, which finds the highest
rate. Open loop: posts are due at fixed times whatever the answers do, and a time counts from
when its post was due, so that no slow answer hides the ones that had to wait behind it.
"""

import argparse
import os
import re
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from http import HTTPStatus
from http.client import HTTPConnection
from itertools import cycle, islice, takewhile
from math import inf
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter
from typing import NamedTuple

import msgspec
from msgspec import Struct

from predictors.jobs import Completion, Status, Submission
from service.store import ReportedCompletion, open_store

SERVER_CORE, LOAD_CORE = 0, 1
CLUSTER = "alpha"
START = 1.6e9
SECONDS_BETWEEN_ENDS = 30.0
OPEN_LOOP_RATE = 500.0
HISTORY = 30_000
KIBIBYTE, MEGABYTE = 1024, 1_000_000
TICKS = os.sysconf("SC_CLK_TCK")

Address = tuple[str, int]
Work = Callable[[Path], AbstractContextManager[None]]
"""(address, token) -> work that goes on while it is entered."""

OPEN_CONNECTIONS = 32
"""Connections of an open loop: more than are busy unless the server cannot keep up."""


class Times(Struct, frozen=True, kw_only=True):
    """Times of the answers.

    Attributes:
        seconds: of each answer, sorted.
        elapsed: of the whole run.
    """

    seconds: list[float]
    elapsed: float

    @property
    def rate(self) -> float:
        """Answers per second."""
        return len(self.seconds) / self.elapsed

    def percentile(self, percent: float) -> float:
        """The time in seconds that ``percent`` of the answers do not exceed."""
        return self.seconds[min(len(self.seconds) - 1, int(len(self.seconds) * percent / 100))]


def post(
    path: str, body: bytes, *, token: str | None = None, kind: str = "application/json"
) -> bytes:
    """The bytes of a request."""
    lines = [
        f"POST {path} HTTP/1.1",
        "host: walltimed",
        f"content-type: {kind}",
        f"content-length: {len(body)}",
        *([f"authorization: Bearer {token}"] if token else []),
        "",
        "",
    ]
    return "\r\n".join(lines).encode() + body


class Connection:
    """One connection with at most one request on its way."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.since = 0.0
        self._received = b""

    def fileno(self) -> int:
        """For ``select``."""
        return self.socket.fileno()

    def send(self, request: bytes, since: float) -> None:
        """Send a request whose time counts from ``since``."""
        self.since = since
        self.socket.sendall(request)

    def receive(self) -> bool:
        """Take what has come; says whether the answer is complete.

        Raises:
            RuntimeError: the answer is not 200.
        """
        self._received += self.socket.recv(1 << 16)
        head, found, body = self._received.partition(b"\r\n\r\n")
        if not found:
            return False
        _, _, rest = head.lower().partition(b"content-length:")
        if len(body) < int(rest.partition(b"\r\n")[0]):
            return False
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(self._received.decode())
        self._received = b""
        return True


def closed_loop(
    address: tuple[str, int], requests: Iterable[bytes], *, connections: int, seconds: float = inf
) -> Times:
    """Post as fast as the answers come, until the requests or the seconds end.

    There are at least as many requests as connections.
    """
    todo = iter(requests)
    opened = [Connection(address) for _ in range(connections)]
    times: list[float] = []
    begin = perf_counter()
    end = begin + seconds
    busy = set(opened)
    for connection, request in zip(opened, islice(todo, connections), strict=True):
        connection.send(request, perf_counter())
    while busy:
        for connection in select.select(busy, (), ())[0]:
            if not connection.receive():
                continue
            now = perf_counter()
            times.append(now - connection.since)
            following = next(todo, None) if now < end else None
            if following is None:
                busy.remove(connection)
            else:
                connection.send(following, now)
    return finished(opened, times, begin)


def open_loop(
    address: tuple[str, int],
    requests: Iterable[bytes],
    *,
    per_second: float,
    seconds: float,
    going_on: Callable[[], bool] = lambda: True,
) -> Times:
    """Post at fixed times, on whichever connection is free, for so long or while it goes on."""
    todo = iter(requests)
    opened = [Connection(address) for _ in range(OPEN_CONNECTIONS)]
    free = deque(opened)
    busy: set[Connection] = set()
    times: list[float] = []
    begin = perf_counter()
    due = takewhile(lambda _: going_on(), dues(begin, per_second, seconds))
    at = next(due, None)
    while busy or at is not None:
        now = perf_counter()
        while at is not None and at <= now and free:
            connection = free.popleft()
            connection.send(next(todo), at)
            busy.add(connection)
            at = next(due, None)
        wait = max(0.0, at - perf_counter()) if at is not None and free else None
        for connection in select.select(busy, (), (), wait)[0]:
            if connection.receive():
                times.append(perf_counter() - connection.since)
                busy.remove(connection)
                free.append(connection)
    return finished(opened, times, begin)


def dues(begin: float, per_second: float, seconds: float) -> Iterator[float]:
    """Times at which posts are due."""
    return (begin + place / per_second for place in range(int(per_second * seconds)))


def finished(opened: Sequence[Connection], times: list[float], begin: float) -> Times:
    """Close the connections and return the measurements."""
    elapsed = perf_counter() - begin
    for connection in opened:
        connection.socket.close()
    return Times(seconds=sorted(times), elapsed=elapsed)


class Server(NamedTuple):
    """A running server."""

    address: Address
    process_id: int

    def processor_seconds(self) -> float:
        """Processor time used so far, in seconds; other processes hardly change it."""
        fields = Path(f"/proc/{self.process_id}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


def history(jobs: int, *, first: int = 0) -> Iterator[Completion]:
    """A history of a cluster with 300 users: repeated applications, modal requests."""
    chance = Random(first)  # noqa: S311 - no secrets here
    for job in range(first, first + jobs):
        yield run_that_ends(chance, str(job), START + job * SECONDS_BETWEEN_ENDS)


def run_that_ends(chance: Random, job_id: str, end: float) -> Completion:
    """A run of such a cluster that ends at a time."""
    submission = submission_of(chance, job_id, end - 40_000)
    runtime = submission.requested_walltime * chance.random()
    return Completion(
        submission=submission,
        start_time=end - runtime,
        end_time=end,
        runtime=runtime,
        status=Status.COMPLETED,
    )


def submission_of(chance: Random, job_id: str, submit_time: float) -> Submission:
    """A job like the others of its user."""
    user = chance.randrange(300)
    return Submission(
        requested_walltime=chance.choice((900.0, 3600.0, 7200.0, 43200.0, 86400.0)),
        submit_time=submit_time,
        cluster=CLUSTER,
        job_id=job_id,
        user=f"user{user}",
        group=f"group{user % 30}",
        project=f"project{user % 50}",
        queue=chance.choice(("batch", "short", "large")),
        application=f"application{(user + chance.randrange(3)) % 100}",
        requested_processors=chance.choice((1, 4, 16, 64, 256)),
    )


def requests(jobs: int, after: int, token: str, method: str | None = None) -> list[bytes]:
    """Submissions that follow the history, for the service's method or another."""
    named = {} if method is None else {"method": method}
    chance = Random(1)  # noqa: S311 - no secrets here
    now = START + after * SECONDS_BETWEEN_ENDS
    return [
        post(
            "/v1/predictions",
            msgspec.json.encode(body_of(submission_of(chance, f"s{job}", now + job)) | named),
            token=token,
        )
        for job in range(jobs)
    ]


def body_of(submission: Submission) -> dict[str, object]:
    """The fields of a body that a submit filter sends."""
    return {
        name: each for name, each in msgspec.to_builtins(submission).items() if each is not None
    }


def prepared(file: Path, jobs: int) -> str:
    """Store a history and issue a token; gives the token."""
    store = open_store(f"sqlite:///{file}")
    store.upgrade()
    for _ in store.store_reports(ReportedCompletion(completion=run) for run in history(jobs)):
        pass
    _, token = store.tokens.issue("benchmark", ["admin"], time.time())
    store.close()
    return token


@contextmanager
def serving(
    *command: str, pinned: bool = True, settings: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """A server, pinned to its core; its address is on the first line that it prints."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | (settings or {}),
    )
    if pinned:
        os.sched_setaffinity(process.pid, {SERVER_CORE})
    try:
        assert process.stdout is not None  # noqa: S101 - for mypy
        [(host, port)] = re.findall(r"http://([\d.]+):(\d+)", process.stdout.readline())
        yield Server((host, int(port)), process.pid)
    finally:
        process.terminate()
        process.wait()


@contextmanager
def the_service(
    file: Path,
    *,
    pinned: bool = True,
    settings: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """Walltimed as it is shipped, or by other settings."""
    command = [str(Path(sys.executable).with_name("walltimed"))]
    url = f"sqlite:///{file}"
    command += ["serve", "-p", "0", "-d", url]
    with serving(*command, pinned=pinned, settings=settings) as server:
        while not is_ready(server.address):
            time.sleep(0.02)
        yield server


def is_ready(address: Address) -> bool:
    """Whether the history is folded."""
    connection = HTTPConnection(*address)
    connection.request("GET", "/health/ready")
    return connection.getresponse().status == HTTPStatus.OK


class Ratios:
    """Figures of both sides over the rounds."""

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple[float, float]]] = {}

    def add(self, name: str, ours: float, theirs: float) -> None:
        """Keep the figures of one round."""
        self.rows.setdefault(name, []).append((ours, theirs))

    def table(self, ours: str = "walltimed", theirs: str = "endpoint") -> str:
        """The medians of both sides, by their names, and the median of the ratios."""
        lines = [f"{'':32} {ours:>12} {theirs:>12} {'ratio':>8}"]
        for name, figures in self.rows.items():
            our_median, their_median = (median(side) for side in zip(*figures, strict=True))
            ratio = median(our / their for our, their in figures)
            lines.append(f"{name:32} {our_median:12,.3f} {their_median:12,.3f} {ratio:8.2f}")
        return "\n".join(lines)


def family(process_id: int) -> Iterator[int]:
    """A process and all that it has started, except what ends meanwhile."""
    yield process_id
    children: list[str] = []
    with suppress(OSError):
        for task in Path(f"/proc/{process_id}/task").iterdir():
            children += (task / "children").read_text().split()
    for child in children:
        yield from family(int(child))


def megabytes(process_id: int) -> float:
    """A process's memory: of pages that it shares with others it has its part; 0 once it ended."""
    try:
        lines = Path(f"/proc/{process_id}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    sizes = (int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return sum(sizes) * KIBIBYTE / MEGABYTE


def p99_ratio(work: Work, options: argparse.Namespace, *, name: str) -> float:
    """The median ratio of p99 with ``work`` to p99 without; every round is printed."""
    ratios: list[float] = []
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
                with work(file):
                    with_it = p99()
                ratios.append(with_it / without)
                print(f"p99 without {without:7.3f} ms, beside {name} {with_it:7.3f} ms", flush=True)
    print(f"ratio {median(ratios):.2f} (median of {len(ratios)})", end="")
    return median(ratios)


def options_of(description: str | None, *, rounds: int, seconds: float) -> argparse.Namespace:
    """The options of such a benchmark, with its defaults."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--seconds", type=float, default=seconds, help="of each measurement")
    return parser.parse_args()
