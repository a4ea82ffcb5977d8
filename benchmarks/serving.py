"""What a prediction over HTTP costs beside an ordinary FastAPI endpoint that does nothing.

    .venv/bin/python benchmarks/serving.py [--rounds 7] [--seconds 4] [--history 100000]
    .venv/bin/python benchmarks/serving.py --without [PART…] [--method METHOD]
    .venv/bin/python benchmarks/serving.py --shadows [METHOD…] [--method METHOD]

The service runs as it is shipped: authentication, metrics, methods asked in shadow, and every
prediction recorded, on a SQLite history. The endpoint beside it has the same request and answer
models and uvicorn's settings, but uvicorn's own protocol, and answers a constant. Both servers are
pinned to one core; the load comes from the other, which an import shares with it. They take turns
within each round; a ratio is the median of the rounds' ratios, because this machine's speed changes
between rounds by more than they differ.

With `--without` the service takes turns with itself without one of its parts (see `without.py`),
so that it is seen what each of them earns, or costs: `--without intervals --method least-cost`
tells what an interval adds to a prediction.

With `--shadows` it is asked with no method in shadow, with one after the other for every
submission, with all of them, and as it is shipped, at 16 connections.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from http import HTTPStatus
from http.client import HTTPConnection
from itertools import cycle
from pathlib import Path
from random import Random
from shutil import copyfile
from statistics import median
from typing import NamedTuple

import msgspec
from load import Times, closed_loop, open_loop, post
from without import PARTS

from predictors.jobs import Completion, Status, Submission
from predictors.registry import PREDICTORS
from service.store import open_store

SERVER_CORE, LOAD_CORE = 0, 1
CLUSTER = "alpha"
START = 1.6e9
SECONDS_BETWEEN_ENDS = 30.0
OPEN_LOOP_RATE = 500.0
LONGEST_IMPORT = 300.0

TICKS = os.sysconf("SC_CLK_TCK")

Address = tuple[str, int]
Load = Callable[[Address], Times]


class Server(NamedTuple):
    """A running server."""

    address: Address
    process_id: int

    def processor_seconds(self) -> float:
        """What it has used so far; unlike times, it hardly depends on who else is running."""
        fields = Path(f"/proc/{self.process_id}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


def history(jobs: int, *, first: int = 0) -> Iterator[Completion]:
    """What a cluster of 300 users did: repeated applications, modal requests."""
    chance = Random(first)  # noqa: S311 - no secrets here
    for job in range(first, first + jobs):
        end = START + job * SECONDS_BETWEEN_ENDS
        submission = submission_of(chance, str(job), end - 40_000)
        runtime = submission.requested_walltime * chance.random()
        yield Completion(
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
            msgspec.json.encode(
                msgspec.to_builtins(submission_of(chance, f"s{job}", now + job)) | named
            ),
            token=token,
        )
        for job in range(jobs)
    ]


def prepared(file: Path, jobs: int) -> str:
    """Store a history and issue a token; gives the token."""
    store = open_store(f"sqlite:///{file}")
    store.upgrade()
    for _ in store.import_completions(history(jobs)):
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
    without: str = "",
    settings: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """Walltimed as it is shipped, without one of its parts, or by other settings."""
    command = [str(Path(sys.executable).with_name("walltimed"))]
    if without:
        command = [sys.executable, str(Path(__file__).with_name("without.py")), without]
    url = f"sqlite:///{file}"
    command += ["serve", "-p", "0", "-d", url]
    with serving(*command, pinned=pinned, settings=settings) as server:
        while not is_ready(server.address):
            time.sleep(0.02)
        yield server


@contextmanager
def the_endpoint() -> Iterator[Server]:
    """FastAPI as everybody uses it."""
    with serving(sys.executable, str(Path(__file__).with_name("ordinary_app.py"))) as server:
        yield server


def is_ready(address: Address) -> bool:
    """Whether the history is folded."""
    connection = HTTPConnection(*address)
    connection.request("GET", "/health/ready")
    return connection.getresponse().status == HTTPStatus.OK


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


def measure(file: Path, token: str, options: argparse.Namespace) -> None:
    """All rounds."""
    todo = requests(2000, options.history, token, options.method)
    with the_service(file) as service, the_endpoint() as endpoint:
        print(taking_turns(service, endpoint, todo, options).table(), flush=True)
    if options.imported:
        measure_imports(file, todo, options)


def measure_parts(file: Path, token: str, options: argparse.Namespace) -> None:
    """The service beside itself without each of the parts."""
    todo = requests(2000, options.history, token, options.method)
    for part in options.without or PARTS:
        copy = file.with_name(f"without-{part}.sqlite3")
        copyfile(file, copy)
        with the_service(file) as whole, the_service(copy, without=part) as less:
            ratios = taking_turns(whole, less, todo, options)
            print(ratios.table("with", f"- {part}"[:12]), end="\n\n", flush=True)


def measure_shadows(file: Path, token: str, options: argparse.Namespace) -> None:
    """What each method in shadow adds to a prediction, in processor time, and in requests."""
    todo = requests(2000, options.history, token, options.method)
    always = {"WALLTIMED_SHADOW_RATE": "1000000"}
    wanted = {"nobody": {"WALLTIMED_SHADOW_SHARE": "0"}}
    for method in options.shadows or PREDICTORS:
        wanted[method] = always | {"WALLTIMED_SHADOW_METHODS": f'["{method}"]'}
    wanted |= {"all, always": always, "as shipped": {}}
    ratios = Ratios()
    with ExitStack() as stack:
        endpoint = stack.enter_context(the_endpoint())
        servers = {"endpoint": endpoint}
        for name, settings in wanted.items():
            copy = file.with_name(f"{len(servers)}.sqlite3")
            copyfile(file, copy)
            servers[name] = stack.enter_context(the_service(copy, settings=settings))
        load = partial(closed_loop, requests=cycle(todo), connections=16, seconds=options.seconds)
        for number in range(options.rounds + 1):
            found = {name: run(server, load) for name, server in servers.items()}
            for name, (times, spent) in found.items():
                if number:  # the first round warms up
                    before = found["endpoint"]
                    ratios.add(f"{name}: requests/s", times.rate, before[0].rate)
                    ratios.add(f"{name}: processor us", spent * 1e6, before[1] * 1e6)
    print(ratios.table("in shadow"), flush=True)


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
    """What is measured, by name."""
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
    """What predictions see while completions are imported into a history."""
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
    parser.add_argument("--without", nargs="*", choices=sorted(PARTS), help="parts, else each")
    parser.add_argument("--shadows", nargs="*", choices=list(PREDICTORS), help="else each")
    parser.add_argument("--method", help="that is asked, else the service's default")
    parser.add_argument("--import-into", help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.import_into:
        store = open_store(f"sqlite:///{options.import_into}")
        for _ in store.import_completions(history(options.history, first=options.first)):
            pass
        return
    os.sched_setaffinity(0, {LOAD_CORE})
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "walltimed.sqlite3"
        token = prepared(file, options.history)
        if options.shadows is not None:
            measure_shadows(file, token, options)
        elif options.without is not None:
            measure_parts(file, token, options)
        else:
            measure(file, token, options)


if __name__ == "__main__":
    main()
