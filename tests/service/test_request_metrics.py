"""Metrics as Prometheus is told them: submit filters that have asked, and what metrics mean."""

import os
import re
import subprocess
import sys

import pytest

from service import metrics
from service.metrics import MOST_FILTERS, MULTIPROCESS_DIRECTORY, Metrics


class Noted:
    """Requests at times of one's own choosing."""

    def __init__(self, monkeypatch) -> None:
        self.metrics = Metrics()
        self.requests = self.metrics.requests
        self.monkeypatch = monkeypatch

    def ask(self, agent: bytes, time: float) -> None:
        self.monkeypatch.setattr(metrics, "time", lambda: time)
        self.requests.asked_by(agent)

    @property
    def told(self) -> dict[str, float]:
        """When each filter last asked, by its name and release."""
        line = (
            r'filter_last_request_timestamp_seconds{filter="(.*)",mode="(.*)",release="(.*)"} (.*)'
        )
        found = re.findall(line, self.metrics.exposition().decode())
        return {
            " ".join(filter(None, [name, release, mode])): float(time)
            for name, mode, release, time in found
        }


@pytest.fixture
def noted(monkeypatch) -> Noted:
    return Noted(monkeypatch)


@pytest.mark.parametrize(
    ("time", "told"),
    [
        (1000.5, 1000.0),
        (1001.0, 1001.0),
        (1500.0, 1500.0),
        (999.5, 999.5),  # somebody has set the clock back
    ],
)
def test_a_filter_that_asks_again_is_noted_once_a_second(noted, time, told):
    noted.ask(b"walltimed.lua/1.2", 1000.0)
    noted.ask(b"walltimed.lua/1.2", time)
    assert noted.told == {"walltimed.lua 1.2": told}


def test_each_filter_and_release_is_noted_by_itself_and_one_without_a_name_as_unnamed(noted):
    noted.ask(b"walltimed.lua/1.2", 1000.0)
    noted.ask(b"walltimed_hook.py/1.2", 1000.25)
    noted.ask(b"torque_submitfilter.py/1.3", 1000.5)
    noted.ask(b"cli_filter.lua/1.3 (advise)", 1000.5)
    noted.ask(b"", 1000.75)
    assert noted.told == {
        "walltimed.lua 1.2": 1000.0,
        "walltimed_hook.py 1.2": 1000.25,
        "torque_submitfilter.py 1.3": 1000.5,
        "cli_filter.lua 1.3 advise": 1000.5,
        "unnamed": 1000.75,
    }


@pytest.mark.parametrize(
    "agent",
    [
        b"curl/8.5",
        b"walltimed.lua",
        b"walltimed.lua/",
        b"walltimed.lua/1 2",
        b"walltimed-lua/1",
        b"x walltimed.lua/1",
        b"walltimed.lua/" + b"1" * 33,
    ],
)
def test_who_names_itself_otherwise_is_no_filter(noted, agent):
    noted.ask(agent, 1000.0)
    assert noted.told == {}


def test_a_release_of_32_characters_is_one(noted):
    noted.ask(b"walltimed.lua/" + b"1" * 32, 1000.0)
    assert noted.told == {f"walltimed.lua {'1' * 32}": 1000.0}


def test_of_many_names_the_first_are_kept_and_go_on_being_noted(noted):
    for release in range(MOST_FILTERS + 1):
        noted.ask(b"walltimed.lua/%d" % release, 1000.0)
    noted.ask(b"walltimed.lua/0", 2000.0)
    noted.ask(b"", 2000.0)
    assert len(noted.told) == MOST_FILTERS == 32
    assert noted.told["walltimed.lua 0"] == 2000.0
    assert noted.told["walltimed.lua 31"] == 1000.0


def test_metrics_of_all_workers_say_the_same_of_themselves(tmp_path):
    """The client decides at its import whether processes share their numbers."""
    program = (
        "from service.metrics import Metrics\n"
        "metrics = Metrics()\n"
        "metrics.skipped({'a reason': 1})\n"
        "print(metrics.exposition().decode())"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, **shared},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for shared in ({}, {MULTIPROCESS_DIRECTORY: str(tmp_path)})
    ]
    alone, together = ({*re.findall("# HELP .*", text)} for text in printed)
    assert "# HELP walltimed_clusters Clusters with history." in together
    assert together <= alone
