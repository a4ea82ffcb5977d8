"""The commands of a site's daily life: checking settings, deleting what must go."""

import json
import math
import sqlite3
import time

import pytest
from runs import ended, reported

from predictors.base import Memory
from service.store import RecordedPrediction, open_store


@pytest.fixture
def walltimed(walltimed):
    """Runs the command with ``--json``; gives its exit code and what it printed."""

    def run(*arguments):
        code, printed, complaint = walltimed(*arguments, "--json")
        document = json.loads(printed)
        failed = isinstance(document, dict) and "error" in document
        return code, complaint if failed else document

    return run


@pytest.fixture
def history(store):
    """Two runs of two users, and an open prediction of each, on either database."""
    ends = (1.0e9, 1.7e9)
    runs = [
        ended(end, 60.0, waited=40.0, user=user, job_id=f"{user}{end}")
        for user in ("ada", "bob")
        for end in ends
    ]
    list(store.store_reports(reported(*runs)))
    predictions = [
        RecordedPrediction(
            prediction_id=run.submission.job_id,
            submission=run.submission,
            method="requested",
            predicted_walltime=3600,
            estimates={"requested": 3600},
            recorded_at=run.end_time,
        )
        for run in runs
    ]
    store.write([], predictions)
    return store


def users(store):
    reader, [runs] = store.past_runs.warm_start([Memory(window_seconds=math.inf)], 2e9)
    found = sorted((run.submission.user, run.end_time) for run in runs)
    reader.close()
    return found


def test_a_user_is_forgotten_and_nobody_else(walltimed, history, store_url):
    code, said = walltimed("forget", "--user", "ada", "-d", store_url, "--yes")
    assert (code, said["deleted"], said["predictions"]) == (0, 2, 2)
    assert users(history) == [("bob", 1.0e9), ("bob", 1.7e9)]
    assert history.drop_stale_predictions(2e9) == 2


def test_a_dry_run_says_what_would_go_and_deletes_nothing(walltimed, history, store_url):
    code, said = walltimed("forget", "--user", "ada", "-d", store_url, "--dry-run")
    assert (code, said["would_delete"], said["predictions"]) == (0, 2, 2)
    assert len(users(history)) == 4


def test_a_cluster_is_forgotten_with_its_scores(walltimed, history, store_url):
    code, said = walltimed("forget", "--cluster", "default", "-d", store_url, "--yes")
    assert (code, said["deleted"]) == (0, 4)
    assert history.past_runs.clusters() == []
    assert history.scores.of_methods("default") == []


def test_nothing_is_deleted_unasked(walltimed, history, store_url):
    """A test has no terminal: there is nobody to ask."""
    code, said = walltimed("forget", "--user", "ada", "-d", store_url)
    assert code == 2
    assert "--yes" in said
    assert len(users(history)) == 4


def test_a_person_at_a_terminal_is_asked(walltimed, history, store_url, monkeypatch):
    asked = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    for answer, left in ((False, 4), (True, 2)):
        monkeypatch.setattr(
            "typer.confirm", lambda *_, answer=answer, **__: asked.append(1) or answer
        )
        walltimed("forget", "--user", "ada", "-d", store_url)
        assert len(users(history)) == left
    assert len(asked) == 2


def test_what_is_old_is_forgotten(walltimed, history, store_url):
    days = str((time.time() - 1.5e9) / 86400)
    _, said = walltimed("forget", "--older-than-days", days, "-d", store_url, "--yes")
    assert said["deleted"] == 2
    assert users(history) == [("ada", 1.7e9), ("bob", 1.7e9)]
    assert history.drop_stale_predictions(2e9) == 2


def test_what_ended_after_a_date_is_forgotten(walltimed, history, store_url):
    _, said = walltimed("forget", "--after", "2020-01-01", "-d", store_url, "--yes")
    assert (said["deleted"], said["predictions"]) == (2, 2)
    assert users(history) == [("ada", 1.0e9), ("bob", 1.0e9)]


@pytest.mark.parametrize(("where", "deleted"), [((), 1), (("--cluster", "hill"), 0)])
def test_a_job_is_forgotten(walltimed, history, store_url, where, deleted):
    _, said = walltimed("forget", "--job", f"ada{1.0e9}", *where, "-d", store_url, "--yes")
    assert (said["deleted"], said["predictions"]) == (deleted, deleted)
    assert len(users(history)) == 4 - deleted


NOT_ONE = [
    (),
    ("--user", "ada", "--older-than-days", "9"),
    ("--cluster", "hill", "--after", "2020-01-01"),
    ("--after", "soon"),
]


@pytest.mark.parametrize("which", NOT_ONE)
def test_what_to_forget_must_be_said(walltimed, sqlite_url, which):
    assert walltimed("forget", *which, "-d", sqlite_url)[0] == 2


def test_good_settings_pass_and_nothing_is_made(walltimed, tmp_path):
    assert walltimed("check-config") == (0, {"schema": 1, "config": "good", "warnings": []})
    assert list(tmp_path.iterdir()) == []


def test_a_history_that_serve_would_refuse_is_found_on_sqlite(walltimed, sqlite_url):
    with sqlite3.connect(sqlite_url.removeprefix("sqlite:///")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'from_the_future'")
    connection.close()
    code, told = walltimed("check-config", "-d", sqlite_url)
    assert code == 1
    assert "from_the_future" in told


def test_a_place_where_no_history_can_be_made_is_found(walltimed, tmp_path):
    assert (
        walltimed("check-config", "-d", f"sqlite:///{tmp_path}/nowhere/walltimed.sqlite3")[0] == 4
    )


def test_listening_beyond_loopback_without_a_token_is_found(walltimed, monkeypatch, sqlite_url):
    monkeypatch.setenv("WALLTIMED_HOST", "0.0.0.0")
    for url in (sqlite_url, f"{sqlite_url}-not-made-yet"):
        code, told = walltimed("check-config", "-d", url)
        assert code == 2
        assert "needs a token" in told
    walltimed("token", "issue", "x", "--scope", "admin", "-d", sqlite_url)
    assert walltimed("check-config", "-d", sqlite_url)[0] == 0


def test_a_socket_that_cannot_be_made_is_found(walltimed, monkeypatch):
    monkeypatch.setenv("WALLTIMED_UNIX_SOCKET", "no/where.sock")
    code, told = walltimed("check-config")
    assert code == 2
    assert "no/where.sock" in told


def test_a_store_without_a_schema_is_found_on_postgresql(walltimed, postgres):
    url = postgres.create_database()
    assert walltimed("check-config", "-d", url)[0] == 1
    open_store(url).close()
    postgres.drop_database(url)
