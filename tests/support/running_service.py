"""Real `walltimed serve` processes for tests, reached through a Unix socket."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import httpx
from patience import eventually

WALLTIMED = Path(sys.executable).with_name("walltimed")

START_SECONDS = 150.0
"""How long a start may take on a busy machine; an idle one needs about a second."""


class Service:
    """One service in processes of its own; use it in a ``with`` block.

    Its method is max-usage, whose answers can be worked out by hand.

    Args:
        url: its history store.
        options: of `walltimed serve`.
        wrapper: a command to run it under.
    """

    def __init__(self, url: str, *options: str, wrapper: tuple[str, ...] = ()) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="walltimed-"))  # a short path: sockets
        self.socket = self.directory / "socket"
        self.log = self.directory / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*wrapper, str(WALLTIMED), "serve", "--database-url", url,
                 "--unix-socket", str(self.socket), *options],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
                cwd=self.directory, start_new_session=True, text=True,
                env={"WALLTIMED_METHOD": "max-usage", **os.environ},
            )  # fmt: skip
        self.client = self._new_client()

    def _new_client(self) -> httpx.Client:
        transport = httpx.HTTPTransport(uds=str(self.socket))
        return httpx.Client(transport=transport, base_url="http://walltimed", timeout=30.0)

    @contextmanager
    def connection(self) -> Iterator[None]:
        """Calls go through a connection of their own meanwhile."""
        before = self.client
        try:
            with self._new_client() as self.client:
                yield
        finally:
            self.client = before

    def __enter__(self) -> Self:
        try:
            announced = self.process.stdout.readline()
            assert announced == f"walltimed listens on unix:{self.socket}\n", self.log.read_text()
            eventually(self.is_ready, seconds=START_SECONDS)
        except BaseException:
            self.process.kill()
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self.client.close()
        if self.process.poll() is None:
            self.end(signal.SIGTERM)
        self.process.stdout.close()
        shutil.rmtree(self.directory)

    def is_ready(self) -> bool:
        """Whether it says so."""
        assert self.process.poll() is None, self.log.read_text()
        try:
            return self.client.get("/health/ready").is_success
        except httpx.TransportError:  # the socket is open before any worker takes connections
            return False

    def end(self, number: signal.Signals) -> int:
        """Send it a signal and wait for its exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout=30)

    def predict(self, user: str, **fields: object) -> float:
        """The predicted walltime of an hour's request."""
        submission = {"user": user, "requested_walltime": 3600, **fields}
        answer = self.client.post("/v1/predictions", json=submission)
        assert answer.status_code == httpx.codes.OK, answer.text
        return answer.json()["predicted_walltime"]

    def complete(self, *completions: dict) -> httpx.Response:
        """Post completions as one batch."""
        return self.client.post("/v1/completions", json={"completions": completions})

    def metric(self, name: str) -> float:
        """The value of a metric without labels."""
        text = self.client.get("/metrics").text
        return next(
            float(line.split()[1]) for line in text.splitlines() if line.startswith(f"{name} ")
        )


def run_walltimed(*command: str) -> subprocess.CompletedProcess[str]:
    """A command from its beginning to its end."""
    return subprocess.run(
        [WALLTIMED, *command], capture_output=True, text=True, check=False, timeout=60
    )


def completion(job_id: object, *, user: str = "ada", runtime: float = 900.0) -> dict:
    """A run of an hour's request that ended long ago."""
    submitted = 1_700_000_000.0
    return {
        "job_id": job_id, "user": user, "requested_walltime": 3600.0, "submit_time": submitted,
        "start_time": submitted, "end_time": submitted + runtime, "runtime": runtime,
        "status": "completed",
    }  # fmt: skip
