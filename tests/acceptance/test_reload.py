"""SIGHUP takes over changed settings and ends nothing."""

import json
import signal
from pathlib import Path

import pytest
from running_service import Service, completion, eventually

pytestmark = pytest.mark.acceptance


@pytest.fixture
def settings_file(tmp_path):
    file = tmp_path / "walltimed.toml"
    file.write_text('log_level = "warning"\nmax_batch = 2\n')
    return file


def records(service):
    lines = service.log.read_text().splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def batch_of_three(service):
    return service.complete(*(completion(n) for n in range(3)))


# Of one worker the process itself; of two they and who watches over them.
@pytest.mark.parametrize(("workers", "takers"), [("1", 1), ("2", 3)])
def test_limits_and_log_level_change_and_no_process_ends(
    sqlite_url, settings_file, workers, takers
):
    options = ("--workers", workers, "--config", str(settings_file))
    with Service(sqlite_url, *options) as service:
        assert batch_of_three(service).status_code == 422
        eventually(lambda: len(takers_of(service.process.pid)) == takers)
        children = children_of(service.process.pid)
        settings_file.write_text('log_level = "info"\nmax_batch = 3\nport = 1\n')
        service.process.send_signal(signal.SIGHUP)
        read_again = "settings were read again"
        eventually(
            lambda: sum(each["event"] == read_again for each in records(service)) == int(workers)
        )
        for _ in range(2 * int(workers)):
            with service.connection():
                assert batch_of_three(service).status_code == 200
        told = [each for each in records(service) if each["event"] == read_again]
        assert told[0]["changed"] == ["log_level", "max_batch"]
        waiting = [each for each in records(service) if "wait for a restart" in each["event"]]
        assert waiting[0]["settings"] == ["port"]
        assert children_of(service.process.pid) >= children
        assert service.process.poll() is None


def test_settings_that_are_refused_change_nothing(sqlite_url, settings_file):
    with Service(sqlite_url, "--config", str(settings_file)) as service:
        settings_file.write_text("max_batch = -7\n")
        service.process.send_signal(signal.SIGHUP)
        eventually(
            lambda: any("settings are refused" in each["event"] for each in records(service))
        )
        assert batch_of_three(service).status_code == 422
        assert service.predict("ada") == 3600


@pytest.mark.cold
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_hangup_before_the_service_is_ready_ends_nothing(sqlite_url, settings_file, workers):
    service = Service(sqlite_url, "--config", str(settings_file), "--workers", workers)
    assert service.process.stdout.readline()
    eventually(lambda: workers == "1" or len(children_of(service.process.pid)) > int(workers))
    children = children_of(service.process.pid)
    service.process.send_signal(signal.SIGHUP)
    eventually(service.is_ready, seconds=60)
    assert children_of(service.process.pid) >= children
    assert service.end(signal.SIGTERM) == 0
    service.process.stdout.close()
    service.client.close()


def children_of(process_id: int) -> set[int]:
    """The processes that this one has started and that are still there."""
    listed = Path(f"/proc/{process_id}/task/{process_id}/children").read_text(encoding="ascii")
    return {int(child) for child in listed.split()}


def takers_of(process_id: int) -> set[int]:
    """Which of a process and its children do something at SIGHUP by now."""
    family = {process_id, *children_of(process_id)}
    return {each for each in family if catches(each, signal.SIGHUP)}


def catches(process_id: int, number: signal.Signals) -> bool:
    """Whether a process has a handler of its own for a signal."""
    status = Path(f"/proc/{process_id}/status").read_text(encoding="ascii")
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)
