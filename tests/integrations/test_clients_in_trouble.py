"""What asks at a submission, against a service that hangs, babbles, errs or is gone.

Whatever comes back, the job passes unchanged, within the budget.
"""

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from fake_service import (
    BODILESS,
    GARBAGE,
    LARGEST_ANSWER,
    MOST_TAKEN,
    STREAMS,
    WRONG_LENGTHS,
    fake_service,
    full_backlog,
    padded,
    prediction,
)
from pbs_stand_in import QUEUEJOB, Duration, Event, Job, run_hook
from slurm_scripts import JOB, LUAS, Site

FILTER = Path(__file__).parents[2] / "integrations" / "pbs" / "torque_submitfilter.py"
SCRIPT = b"#!/bin/sh\n#PBS -l walltime=01:00:00\n./relax\n"
BUDGET, PATIENT = 0.2, 20.0
"""Seconds: the default, and a budget that no machine is too busy to tell from it."""


@dataclass
class Passed:
    """What a client made of a submission.

    Attributes:
        changed: whether it set or said anything about the job.
        complaints: its lines for the administrator.
        seconds: that it took.
    """

    changed: bool
    complaints: list[str]
    seconds: float


class Lua:
    """``job_submit.lua`` in a Lua."""

    def __init__(self, directory, lua):
        self.site = Site(directory, lua)

    def submit(self, port, budget=None, **config):
        patience = {} if budget is None else {"budget_ms": 1000 * budget}
        self.site.configure(port=port, mode="advise", **patience, **config)
        (done,) = self.site.submit(JOB)
        assert done.result == 0
        return Passed(bool(done.changes or done.told), done.errors, done.seconds)


class Hook:
    """The hook of PBS."""

    def __init__(self, directory):
        self.directory = directory

    def submit(self, port, budget=None, **config):
        patience = {} if budget is None else {"budget_seconds": min(budget, 9.0)}
        event = Event(QUEUEJOB, Job(walltime=Duration("01:00:00"), ncpus=8))
        run = run_hook(self.directory, event, port=port, mode="soft", **patience, **config)
        if hasattr(sys, "walltimed_silent_until"):
            del sys.walltimed_silent_until
        assert run.verdict == "accepted", "the alarm would have rejected it"
        is_set = run.resources["soft_walltime"] or run.resources["walltimed_prediction"]
        return Passed(is_set is not None, run.warnings, run.seconds)


class Filter:
    """The submit filter of Torque."""

    def __init__(self, directory):
        self.file = directory / "submitfilter.json"

    def submit(self, port, budget=None, **config):
        patience = {} if budget is None else {"budget_seconds": budget}
        self.file.write_text(json.dumps({"port": port} | patience | config))
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-S", "-E", FILTER],
            input=SCRIPT,
            capture_output=True,
            check=True,
            env={"WALLTIMED_SUBMITFILTER": str(self.file), "LOGNAME": "carol", "PATH": "/bin"},
        )
        assert done.stdout == SCRIPT
        return Passed(bool(done.stderr), [], time.monotonic() - began)


@pytest.fixture(params=[*LUAS, "pbs", "torque"])
def client(request, tmp_path):
    clients = {"pbs": Hook, "torque": Filter}
    if request.param in clients:
        return clients[request.param](tmp_path)
    return Lua(tmp_path, request.param)


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_changes_nothing(client, kind):
    with fake_service(GARBAGE[kind], hangs_up=True) as service:
        assert not client.submit(service.port).changed


@pytest.mark.parametrize("kind", WRONG_LENGTHS)
def test_an_answer_that_is_wrong_about_its_length_changes_nothing(client, kind):
    with fake_service(WRONG_LENGTHS[kind]) as service:
        assert not client.submit(service.port).changed


@pytest.mark.parametrize("kind", BODILESS)
def test_an_answer_without_a_body_is_not_waited_for(client, kind):
    with fake_service(BODILESS[kind]) as service:
        passed = client.submit(service.port, PATIENT)
    assert not passed.changed
    assert not any("timed out" in each or "timeout" in each for each in passed.complaints)
    assert passed.seconds < PATIENT


@pytest.mark.parametrize("kind", STREAMS)
def test_a_peer_that_never_stops_sending_is_hung_up_on(client, kind):
    begins, goes_on = STREAMS[kind]
    with fake_service(begins, forever=goes_on) as service:
        assert not client.submit(service.port, PATIENT).changed
    assert service.sent < MOST_TAKEN, "bounded in bytes, however much time there is"


@pytest.mark.parametrize(("more", "is_taken"), [(0, True), (1, False)])
def test_an_answer_has_at_most_64_kib(client, more, is_taken):
    with fake_service(padded(LARGEST_ANSWER + more), hangs_up=True) as service:
        assert client.submit(service.port, PATIENT).changed is is_taken


def test_an_answer_in_many_pieces_is_put_together(client):
    with fake_service(prediction(), seconds_per_byte=0.0005, hangs_up=True) as service:
        assert client.submit(service.port, PATIENT).changed


def test_a_service_that_hangs_or_trickles_costs_the_budget(client):
    answer = prediction()
    with fake_service(None) as service:
        hung = client.submit(service.port)
    with fake_service(answer, seconds_per_byte=0.02) as service:
        trickled = client.submit(service.port)
        assert service.sent < len(answer) / 2, "all of it takes forty budgets"
    for passed in (hung, trickled):
        assert not passed.changed
        assert BUDGET - 0.01 <= passed.seconds < PATIENT


def test_a_larger_budget_is_waited_for(client):
    with fake_service(None) as service:
        assert client.submit(service.port, 3.0).seconds >= 3.0 - 0.01


def test_a_connection_that_is_never_taken_costs_the_budget(client):
    with full_backlog() as port:
        passed = client.submit(port)
    assert not passed.changed
    assert passed.seconds < PATIENT


def test_a_service_that_is_gone_changes_nothing(client):
    with fake_service() as service:
        pass
    assert not client.submit(service.port).changed


def test_a_host_name_is_never_looked_up(client):
    with fake_service(prediction(), hangs_up=True) as service:
        assert not client.submit(service.port, host="localhost").changed
    assert service.requests == []
