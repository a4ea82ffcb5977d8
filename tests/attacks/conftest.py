"""One service that is attacked, and how hard.

`pytest tests/attacks` takes a minute or two and is part of `make test`; `--long` sends what the
audit sent, in hundreds of megabytes and thousands of connections, and waits for every time limit.
With `--release DIR` another checkout is attacked, to see which attacks it does not withstand.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import running_service
from patience import BUSY_SECONDS
from raw_http import answers_to
from raw_http import request as bytes_of
from running_service import Service

MOST_CONNECTIONS = 100


FIGURES: list[str] = []
"""What was seen, one sentence an attack."""


def pytest_configure(config):
    if release := config.getoption("--release"):
        running_service.WALLTIMED = release / ".venv" / "bin" / "walltimed"


def pytest_terminal_summary(terminalreporter):
    if FIGURES:
        terminalreporter.section("attacks")
        for figure in FIGURES:
            terminalreporter.write_line(figure)


@pytest.fixture(scope="session")
def is_long(request) -> bool:
    """Whether to attack as hard as the audit did."""
    return request.config.getoption("--long")


@pytest.fixture
def tell(request):
    """Keeps a sentence for the end."""

    def keep(sentence: str) -> None:
        FIGURES.append(f"{request.node.name}: {sentence}")

    return keep


@pytest.fixture(scope="session")
def attacked(tmp_path_factory) -> Iterator[Service]:
    """A service as it is shipped, but for its bound on connections."""
    file = tmp_path_factory.mktemp("attacked") / "walltimed.sqlite3"
    bound = ("env", f"WALLTIMED_MAX_CONNECTIONS={MOST_CONNECTIONS}")
    with Service(f"sqlite:///{file}", wrapper=bound) as service:
        yield service


@pytest.fixture
def fresh_url(tmp_path) -> str:
    """A history of nobody else's, which does not exist yet."""
    return f"sqlite:///{tmp_path / 'walltimed.sqlite3'}"


class Wait(NamedTuple):
    """How long an answer took.

    Attributes:
        worked: processor seconds that the service used meanwhile, for whatever it did instead.
        passed: seconds by the clock, which depend on what else the machine does.
    """

    worked: float
    passed: float


class Pulse:
    """How long another caller waits for `/health/live` meanwhile.

    Args:
        service: that is asked.

    Attributes:
        count: how often the question was answered.
    """

    def __init__(self, service: Service) -> None:
        self.count = 0
        self._service = service
        self._waits = Wait(0.0, 0.0)
        self._asked_at: Wait | None = None

    @property
    def waits(self) -> Wait:
        """The longest of each kind, that for a question without an answer yet included."""
        if (asked_at := self._asked_at) is None:
            return self._waits
        waits = (now - before for now, before in zip(self._now(), asked_at, strict=True))
        return Wait(*map(max, self._waits, waits))

    @property
    def longest(self) -> float:
        """The longest wait in processor seconds of the service: it was busy with the attack."""
        return self.waits.worked

    def ask(self) -> None:
        """Ask once."""
        self._asked_at = self._now()
        (answer,) = answers_to(self._service.socket, bytes_of("GET", "/health/live"))
        assert answer.status == 200
        self._waits, self._asked_at = self.waits, None
        self.count += 1

    def _now(self) -> Wait:
        return Wait(processor_seconds(self._service.process.pid), time.monotonic())


def processor_seconds(pid: int) -> float:
    """What a process has used of processors so far."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def pulse_of(service: Service) -> Iterator[Pulse]:
    """Ask again and again while an attack goes on."""
    pulse, over = Pulse(service), threading.Event()

    def ask() -> None:
        while not over.is_set():
            pulse.ask()
            time.sleep(0.01)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield pulse
    finally:
        over.set()
        thread.join()


@pytest.fixture
def pulse(attacked, tell) -> Iterator[Pulse]:
    """Another caller's waits during the test."""
    with pulse_of(attacked) as pulse:
        yield pulse
    worked, passed = pulse.waits
    tell(f"others asked {pulse.count} times and waited for {worked:.2f} s of work, {passed:.3f} s")
    assert passed < BUSY_SECONDS, "the service stood still"
