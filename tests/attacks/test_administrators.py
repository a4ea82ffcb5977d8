"""Erasures, and what a service has started besides itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from running_service import Service, completion, eventually, run_walltimed
from sqlalchemy import make_url

NAME = "carolina-secret"


def file_of(url: str) -> Path:
    """The SQLite file."""
    return Path(make_url(url).database)


def children_of(process_id: int) -> str:
    """The numbers of the processes that this one has started."""
    return Path(f"/proc/{process_id}/task/{process_id}/children").read_text(encoding="ascii")


@pytest.fixture(scope="module")
def url(tmp_path_factory) -> str:
    """A history of this module."""
    return f"sqlite:///{tmp_path_factory.mktemp('served') / 'walltimed.sqlite3'}"


@pytest.fixture(scope="module")
def service(url) -> Iterator[Service]:
    """One service on it."""
    with Service(url) as service:
        yield service


def test_a_forgotten_name_is_in_no_file_and_in_no_memory(service, url):
    def found() -> int:
        files = file_of(url).parent.glob("walltimed.sqlite3*")
        return sum(file.read_bytes().count(NAME.encode()) for file in files)

    def basis() -> str:
        asked = {"user": NAME, "requested_walltime": 3600}
        return service.client.post("/v1/predictions", json=asked).json()["basis"]["reason"]

    service.complete(*(completion(n, user=NAME) for n in range(10))).raise_for_status()
    assert basis() == "history"
    eventually(found)
    forgotten = run_walltimed("forget", "--user", NAME, "--yes", "-d", url)
    assert forgotten.returncode == 0, forgotten.stderr
    assert found() == 0
    eventually(lambda: basis() == "cold-start", seconds=60)


def test_the_process_of_forecasts_starts_with_the_service(service):
    eventually(lambda: children_of(service.process.pid))
