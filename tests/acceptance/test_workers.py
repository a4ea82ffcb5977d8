"""Several workers on one store know what each of them was told."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from patience import BUSY_SECONDS
from running_service import WALLTIMED, Service, completion, eventually

pytestmark = pytest.mark.acceptance


def listeners(service: Service) -> list[int]:
    """The worker processes: those children that have the service's socket open."""
    pid = service.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children if listens(int(child), service.socket)]


def listens(pid: int, socket: Path) -> bool:
    """Whether a process has the listening socket open; one that has just ended has none."""
    inodes = {
        line.split()[6]
        for line in Path("/proc/net/unix").read_text().splitlines()
        if line.endswith(f" {socket}")
    }
    with suppress(FileNotFoundError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed meanwhile
                if str(link.readlink()).strip("socket:[]") in inodes:
                    return True
    return False


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


@pytest.mark.parametrize("workers", ["1", "3"])
@pytest.mark.parametrize("seconds", [0.0, 0.7, 2.0])
def test_sigterm_ends_a_start_well_and_soon(sqlite_url, workers, seconds):
    command = [WALLTIMED, "serve", "-d", sqlite_url, "--port", "0", "--workers", workers]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert b"listens" in process.stdout.readline()
        time.sleep(seconds)  # a worker imports its modules, then reads the history, then serves
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
        assert time.monotonic() - began < 10 + BUSY_SECONDS


@pytest.fixture
def busy_machine():
    """Processes that compute while a test runs, two for each processor."""
    command = [sys.executable, "-c", "while True: pass"]
    burning = [subprocess.Popen(command) for _ in range(2 * (os.cpu_count() or 1))]
    yield
    for process in burning:
        process.kill()
        process.wait()


@pytest.mark.usefixtures("busy_machine")
@pytest.mark.long
def test_three_workers_start_on_one_file_of_a_busy_machine_and_refuse_no_run(sqlite_url):
    with Service(sqlite_url, "--workers", "3") as service:
        until = time.monotonic() + 20.0
        job = 0
        while time.monotonic() < until or len(listeners(service)) < 3:
            with service.connection():  # another worker may take it
                assert service.complete(completion(job)).status_code == httpx.codes.OK
                service.predict("ada")
            job += 1
        assert "locked" not in service.log.read_text()
        began = time.monotonic()
        assert service.end(signal.SIGTERM) == 0
        assert time.monotonic() - began < 10 + BUSY_SECONDS


def test_a_worker_is_replaced_while_the_settings_file_is_broken(sqlite_url, tmp_path):
    settings = tmp_path / "walltimed.toml"
    settings.write_text('method = "max-usage"\n')
    wrapper = ("env", f"WALLTIMED_CONFIG={settings}")
    with Service(sqlite_url, "--workers", "2", wrapper=wrapper) as service:
        first, second = eventually(lambda: pids if len(pids := listeners(service)) == 2 else None)
        settings.write_text("nonsense = [")
        os.kill(first, signal.SIGKILL)
        numbers = eventually(
            lambda: pids if len(pids := {*listeners(service)} - {first}) == 2 else None, seconds=60
        )
        assert second in numbers
        os.kill(second, signal.SIGKILL)
        with service.connection():
            assert eventually(lambda: service.predict("ada"), seconds=60) == 3600.0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_hangup_ends_no_process(sqlite_url, workers):
    with Service(sqlite_url, "--workers", workers) as service:
        eventually(lambda: workers == "1" or len(listeners(service)) == 2)
        numbers = listeners(service)
        for process in (service.process.pid, *numbers):
            os.kill(process, signal.SIGHUP)
        assert service.predict("ada") == 3600
        assert listeners(service) == numbers
        assert service.process.poll() is None
