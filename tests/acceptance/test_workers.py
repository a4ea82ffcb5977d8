"""Several workers on one store know what each of them was told."""

import os
import signal
from contextlib import contextmanager
from pathlib import Path

import pytest
from running_service import Service, completion, eventually

pytestmark = pytest.mark.acceptance


def listeners(service: Service) -> list[int]:
    """The worker processes: those children that have the service's socket open."""
    pid = service.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children if listens(int(child), service.socket)]


def listens(pid: int, socket: Path) -> bool:
    """Whether a process has the listening socket open."""
    inodes = {
        line.split()[6]
        for line in Path("/proc/net/unix").read_text().splitlines()
        if line.endswith(f" {socket}")
    }
    links = Path(f"/proc/{pid}/fd").iterdir()
    return any(str(link.readlink()).strip("socket:[]") in inodes for link in links)


@contextmanager
def only(worker: int, workers: list[int]):
    """The other workers stand still meanwhile, so that this one answers."""
    others = [pid for pid in workers if pid != worker]
    for pid in others:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in others:
            os.kill(pid, signal.SIGCONT)


def knows(service: Service, *, sqlite: bool, user: str, expected: float) -> bool:
    """Whether a prediction shows what was told elsewhere: on SQLite at once, else soon."""
    if sqlite:
        return service.predict(user) == expected
    return eventually(lambda: service.predict(user) == expected)


def test_two_services_on_one_store_see_each_others_completions_and_count_a_run_once(store_url):
    sqlite = store_url.startswith("sqlite")
    with Service(store_url) as one, Service(store_url) as other:
        for number in range(20):
            reporter, listener = (one, other) if number % 2 else (other, one)
            user, runtime = f"user-{number}", 600.0 + number
            told = reporter.complete(completion(number, user=user, runtime=runtime))
            assert told.json() == {"accepted": 1, "duplicates": 0}
            assert reporter.predict(user) == pytest.approx(runtime)
            assert knows(listener, sqlite=sqlite, user=user, expected=pytest.approx(runtime))

        runs = [completion(f"run-{number}") for number in range(100)]
        assert one.complete(*runs).json() == {"accepted": 100, "duplicates": 0}
        assert other.complete(*runs).json() == {"accepted": 0, "duplicates": 100}


def test_the_workers_of_one_service_see_each_others_completions(store_url):
    sqlite = store_url.startswith("sqlite")
    with Service(store_url, "--workers", "2") as service:
        workers = eventually(lambda: pids if len(pids := listeners(service)) == 2 else None)
        for worker in workers:
            with only(worker, workers), service.connection():
                eventually(service.is_ready)
        for number in range(6):
            reporter, listener = workers if number % 2 else workers[::-1]
            user, runtime = f"user-{number}", 600.0 + number
            with only(reporter, workers), service.connection():
                told = service.complete(completion(number, user=user, runtime=runtime))
                assert told.json() == {"accepted": 1, "duplicates": 0}
            with only(listener, workers), service.connection():
                assert knows(service, sqlite=sqlite, user=user, expected=pytest.approx(runtime))
