"""What the service starts does not grow with the processors of its host (simulated)."""

import re
from collections.abc import Iterator
from pathlib import Path
from threading import Barrier, Thread

import httpx
import pytest
from running_service import Service, completion

pytestmark = [pytest.mark.acceptance, pytest.mark.cold, pytest.mark.lengthy(30)]

UNIT = Path(__file__).parents[2] / "deploy" / "systemd" / "walltimed.service"

CALLERS, CALLS = 24, 12

PATHS = ("/", "/users", "/accuracy", "/metrics", "/v1/methods", "/v1/reports/users", "/tuning")

MANY_CORES = """
import multiprocessing, os
os.cpu_count = multiprocessing.cpu_count = lambda: {cores}
os.sched_getaffinity = lambda process: set(range({cores}))
"""


def family(process: int) -> Iterator[int]:
    """A process and all that it has started, except what ends meanwhile."""
    yield process
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            continue
        for child in children:
            yield from family(int(child))


def tasks(process: int) -> int:
    """The threads of a process and of all that it has started, as TasksMax counts them."""
    found = 0
    for each in family(process):
        try:
            found += len([*Path(f"/proc/{each}/task").iterdir()])
        except OSError:
            continue
    return found


def most_tasks(service: Service) -> int:
    """The most tasks at a time while many callers ask for pages and reports at once."""
    begin = Barrier(CALLERS)

    def call() -> None:
        transport = httpx.HTTPTransport(uds=str(service.socket))
        with httpx.Client(transport=transport, base_url="http://here", timeout=60.0) as client:
            begin.wait()
            for place in range(CALLS):
                client.get(PATHS[place % len(PATHS)])

    callers = [Thread(target=call) for _ in range(CALLERS)]
    for caller in callers:
        caller.start()
    found = 0
    while any(caller.is_alive() for caller in callers):
        found = max(found, tasks(service.process.pid))
        callers[-1].join(0.01)
    return found


@pytest.mark.parametrize(
    "cores", [*(pytest.param(each, marks=pytest.mark.long) for each in (64, 128)), 256]
)
def test_the_unit_s_tasks_are_enough_on_many_cores(sqlite_url, tmp_path, monkeypatch, cores, tell):
    (tmp_path / "sitecustomize.py").write_text(MANY_CORES.format(cores=cores))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (allowed,) = re.findall(r"^TasksMax=(\d+)$", UNIT.read_text(), flags=re.MULTILINE)
    with Service(sqlite_url, "--workers", "2") as service:
        service.complete(*(completion(each) for each in range(300))).raise_for_status()
        found = most_tasks(service)
    tell(f"{found} tasks on {cores} cores with two workers, {allowed} are allowed")
    assert 5 < found <= int(allowed)
