"""Connections that say nothing, and more of them than there is room for."""

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from threading import Thread

import httpx
import pytest
from patience import BUSY_SECONDS
from raw_http import answers_to, connection, request
from running_service import Service, completion, eventually

from service.http.connections import BoundedProtocol

pytestmark = pytest.mark.lengthy(25)

MOST_CONNECTIONS = 100

HALF_HEAD = b"POST /v1/predictions HTTP/1.1\r\nhost: local"
HALF_BODY = request(
    "POST", "/v1/predictions", "content-type: application/json", "content-length: 9"
)


def test_silent_connections_do_not_lock_others_out_for_long(attacked, tell):
    with ExitStack() as stack:
        for _ in range(MOST_CONNECTIONS):
            stack.enter_context(connection(attacked.socket))
        (refused,) = eventually(lambda: answers_to(attacked.socket, request("GET", "/health/live")))
        assert refused.status == 503
        assert refused.error == "TooManyConnectionsError"
        assert refused.headers["retry-after"] == "1"
        assert "as many as the service takes" in attacked.log.read_text()
        began = time.monotonic()
        limit = BoundedProtocol.head_seconds + BUSY_SECONDS
        answered = eventually(
            lambda: [a for a in answers_to(attacked.socket, request("GET", "/health/live"))
                     if a.status == 200],
            seconds=limit,
        )  # fmt: skip
        assert answered
        tell(f"others were locked out for {time.monotonic() - began:.1f} s")
    assert "did not come in time" in attacked.log.read_text()


def test_sigterm_waits_for_no_silent_connection(fresh_url, tell):
    with Service(fresh_url) as service, ExitStack() as stack:
        for said in (b"", HALF_HEAD, HALF_BODY + b"{") * 5:
            stack.enter_context(connection(service.socket)).sendall(said)
        eventually(lambda: service.client.get("/health/live").is_success)
        began = time.monotonic()
        assert service.end(signal.SIGTERM) == 0
        took = time.monotonic() - began
        log = service.log.read_text()
    tell(f"it ended after {took:.1f} s")
    assert "timeout graceful shutdown exceeded" not in log
    assert took < 9.0, "it waited for its grace of 10 s"


@pytest.fixture
def busy_machine():
    """Processes that compute while a test runs, four for each processor."""
    command = [sys.executable, "-c", "while True: pass"]
    burning = [subprocess.Popen(command) for _ in range(4 * (os.cpu_count() or 1))]
    yield
    for process in burning:
        process.kill()
        process.wait()


@contextmanager
def posters(service, count):
    """Threads that post runs until the service is no more."""

    def post(first):
        with suppress(httpx.TransportError), service._new_client() as client:
            for job in range(first, first + 1_000_000, 20):
                runs = [completion(job + each) for each in range(20)]
                client.post("/v1/completions", json={"completions": runs})

    threads = [Thread(target=post, args=(each * 1_000_000,)) for each in range(count)]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join()


# httpcore leaves a socket open that a service which ends has refused.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("busy_machine")
@pytest.mark.long
@pytest.mark.parametrize("workers", ["1", "2", "3"])
def test_sigterm_ends_within_ten_seconds_on_a_busy_machine(fresh_url, workers, tell):
    with (
        Service(fresh_url, "--workers", workers) as service,
        posters(service, 5),
        ExitStack() as stack,
    ):
        for _ in range(5):
            stack.enter_context(connection(service.socket)).sendall(HALF_BODY + b"{")
        time.sleep(2.0)  # of posts
        began = time.monotonic()
        assert service.end(signal.SIGTERM) == 0
        took = time.monotonic() - began
    tell(f"{workers} workers ended after {took:.1f} s")
    assert took < 10.0


def test_a_process_that_waits_for_something_for_ever_is_cut_off():
    program = "import threading; from service.http.server import end_within; "
    program += "end_within(0.2); threading.Event().wait()"
    done = subprocess.run([sys.executable, "-c", program], check=False, timeout=120)
    assert done.returncode == 0
