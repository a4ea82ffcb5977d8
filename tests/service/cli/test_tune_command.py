"""``walltimed tune``: rounds run by the command itself."""

import json

import pytest
from runs import a_run, reported
from typer.testing import CliRunner

from service.cli import app
from service.store import TuningState, open_store

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
    assert "parameters of knn: adopted" in result.stdout
    (done,) = store.tunings.of_cluster("default")
    assert (done.state, done.origin) == (TuningState.DONE, "command")
    in_force = store.tunings.active()["default"]["knn"]
    assert "application" in in_force.parameters["template"]


def test_it_prints_json_for_machines_and_takes_the_plan_of_the_settings(store, monkeypatch):
    plan = PLAN | {"penalty": 2, "seed": 7}
    monkeypatch.setenv("WALLTIMED_TUNING_PLAN", json.dumps(plan))
    result = run("--json")
    found = json.loads(result.stdout)
    assert found["adopted"] is True
    assert len(found["costs"]) <= 100
    plan = store.tunings.of_cluster("default")[0].plan
    assert (plan.penalty, plan.seed, plan.training) == (2.0, 7, 500)


def test_too_short_a_history_a_senseless_plan_and_a_running_round_are_said(store, monkeypatch):
    assert "800" in str(run("--cluster", "other").exception)
    with monkeypatch.context() as context:
        context.setenv("WALLTIMED_TUNING_PLAN", '{"search": "luck"}')
        assert "search is no part of a plan any more: the search is genetic" in str(run().exception)
    with store.tunings.lock():
        assert "Another process" in str(run().exception)
    assert store.tunings.of_cluster("default") == []


def test_a_timer_runs_the_rounds_that_are_due(store):
    result = run("--due")
    assert result.exit_code == 0, result.output
    assert "parameters of knn: adopted" in result.stdout
    (done,) = store.tunings.of_cluster("default")
    assert (done.state, done.origin) == (TuningState.DONE, "history")
    assert run("--due").stdout == "", "until enough jobs have ended"


def test_a_timer_leaves_rounds_to_the_process_that_runs_them(store):
    with store.tunings.lock():
        assert run("--due").stdout == ""
    assert store.tunings.of_cluster("default") == []
    assert run("--due").stdout


def test_an_interrupted_round_makes_room(store, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("service.worker.tuning_rounds.run_round", interrupt)
    assert run().exit_code != 0
    (failed,) = store.tunings.of_cluster("default")
    assert (failed.state, failed.origin) == (TuningState.FAILED, "command")
    assert "interrupted" in failed.error
