"""A disk that gets full in the middle of a round of tuning costs that round alone, and passes."""

import json

import pytest
from msgspec.structs import replace
from runs import a_run

from service.store import ReportedCompletion, open_store
from service.worker import tuning_rounds

PLAN = {"history": 100, "training": 500, "test": 200, "penalty": 0, "subjects": ["knn"]}
JOBS = 800


class Disk:
    """A quota: SQLite takes no page beyond it, as on a full disk."""

    def __init__(self, store) -> None:
        self._store = store

    def _pragma(self, pages: str) -> int:
        with self._store._database.reading() as connection:
            return connection.exec_driver_sql(f"PRAGMA {pages}").scalar_one()

    def fill(self) -> None:
        self._pragma(f"max_page_count = {self._pragma('page_count')}")

    def make_room(self) -> None:
        self._pragma("max_page_count = 1000000")


@pytest.fixture
def store(sqlite_url, monkeypatch):
    """A history that a round is due on; the process of rounds opens it too."""
    monkeypatch.setenv("WALLTIMED_DATABASE_URL", sqlite_url)
    monkeypatch.setenv("WALLTIMED_TUNING_PLAN", json.dumps(PLAN))
    opened = open_store(sqlite_url)
    runs = [
        a_run(str(n), start=600.0 * n, runtime=60.0 + 300.0 * (n % 3), application="abc"[n % 3])
        for n in range(JOBS)
    ]
    for _ in opened.store_reports(ReportedCompletion(completion=run) for run in runs):
        pass
    monkeypatch.setattr(tuning_rounds, "open_store", lambda *_, **__: opened)
    monkeypatch.setattr(opened, "close", lambda: None)
    return opened


def test_a_round_whose_end_finds_the_disk_full_runs_again_once_there_is_room(
    store, monkeypatch, capsys
):
    disk, tune, rounds = Disk(store), tuning_rounds.tune_cluster, []

    def tune_and_fill(*arguments):
        found = tune(*arguments)
        rounds.append(replace(found, changes=[*found.changes, *found.changes] * 200))
        disk.fill()
        return rounds[-1]

    monkeypatch.setattr(tuning_rounds, "tune_cluster", tune_and_fill)
    tuning_rounds.main()
    assert "a round of tuning was interrupted" in capsys.readouterr().err
    assert len(store.tunings.running()) == len(rounds) == 1
    disk.make_room()
    monkeypatch.setattr(tuning_rounds, "tune_cluster", tune)
    (interrupted,) = store.tunings.running()
    tuning_rounds.main()
    assert store.tunings.find(interrupted.tuning_id).state == "done"
    assert not store.tunings.running()
    assert store.past_runs.count() == JOBS
