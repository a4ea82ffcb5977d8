"""``walltimed tune``: rounds run by the command itself."""

import json
import signal
import subprocess
import sys

import pytest
from patience import eventually
from runs import a_run, reported
from typer.testing import CliRunner

from predictors.tuning.plan import TuningPlan
from service.cli import app, tune
from service.settings import Settings
from service.store import (
    Erasure,
    StoreUnavailableError,
    TuningLostError,
    TuningState,
    open_store,
)

PLAN = {"history": 100, "training": 500, "test": 200, "penalty": 0}
APPLICATIONS = {"a": 300.0, "b": 900.0, "c": 2700.0}


@pytest.fixture
def store(sqlite_url, monkeypatch):
    """A store with a history, which the command finds by itself."""
    monkeypatch.setenv("WALLTIMED_DATABASE_URL", sqlite_url)
    monkeypatch.setenv("WALLTIMED_TUNING_PLAN", json.dumps(PLAN))
    store = open_store(sqlite_url)
    runs = [
        a_run(str(number), start=3600.0 * number, runtime=runtime, application=application)
        for number, (application, runtime) in enumerate(list(APPLICATIONS.items()) * 300)
    ]
    store.write([reported(*runs)])
    yield store
    store.close()


def run(*arguments):
    return CliRunner().invoke(app, ["tune", *arguments])


def test_it_prints_what_was_found_and_puts_it_in_force(store):
    result = run()
    assert result.exit_code == 0, result.output
    assert "adopted; " in result.stdout
    (done,) = store.tunings.of_cluster("default")
    assert (done.state, done.origin) == (TuningState.DONE, "command")
    in_force = store.tunings.in_force()["default"]["knn"].adoption
    assert "application" in in_force.parameters["template"]


def test_it_prints_json_for_machines_and_takes_the_plan_from_options(store):
    result = run("--json", "--penalty", "2", "--search", "genetic", "--seed", "7")
    found = json.loads(result.stdout)
    assert found["adopted"] is True
    assert len(found["costs"]) <= 100
    plan = store.tunings.of_cluster("default")[0].plan
    assert (plan.penalty, plan.search, plan.seed, plan.training) == (2.0, "genetic", 7, 500)


def test_too_short_a_history_a_senseless_plan_and_a_running_round_are_said(store):
    refused = run("--cluster", "other")
    assert str(refused.exception) == "Tuning needs 800 completions, there are 0."
    assert "search must be one of exhaustive, genetic" in str(run("--search", "luck").exception)
    asked = run("--penalty", "1e9")
    assert "penalty must be a number" in str(asked.exception)
    other = store.tunings.ask("default", TuningPlan(**PLAN), "request", 1.0)
    store.tunings.take(other.tuning_id, 2.0)
    assert "is running already" in str(run().exception)


def test_follow_runs_what_is_due_until_it_is_told_to_end(store):
    command = [sys.executable, "-m", "service.cli", "tune", "--follow"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr.readline().startswith("History: ")
            assert process.stderr.readline().startswith("Following the history")
            eventually(store.tunings.in_force, seconds=200)  # it runs when no other wants to
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
        finally:
            process.kill()
    assert store.tunings.of_cluster("default")[0].origin == "history"


class Looks:
    """Ends ``--follow`` at its third look, and remembers what was told meanwhile."""

    def __init__(self):
        self.looks = 0

    def __call__(self, _seconds):
        self.looks += 1
        if self.looks == 3:
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    "trouble",
    [
        StoreUnavailableError("The database cannot be used now: it restarts."),
        TuningLostError("The round was given to another process."),
        None,  # the history has become too short meanwhile
    ],
)
def test_follow_goes_on_after_a_round_that_failed(store, monkeypatch, capsys, trouble):
    asked = store.tunings.ask("default", TuningPlan(**PLAN), "request", 1.0)
    if trouble is None:
        store.erase(Erasure(before=1e12), 2.0)
    else:

        def fail(*_, **__):
            raise trouble

        monkeypatch.setattr("service.worker.tuning.rounds.run_round", fail)
    looks = Looks()
    monkeypatch.setattr(tune.time, "sleep", looks)
    monkeypatch.setattr(tune.os, "nice", lambda _: None)
    monkeypatch.setattr(tune.signal, "signal", lambda *_: None)
    tune.follow_rounds(store, Settings(), TuningPlan(**PLAN))
    assert looks.looks == 3
    assert "This will look again" in capsys.readouterr().err
    assert store.tunings.find(asked.tuning_id) is not None
