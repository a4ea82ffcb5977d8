"""After `walltimed forget` the name is in no file of the store and in no running service."""

import sqlite3
import time
from pathlib import Path

import pytest
from asgi_client import NOW, InProcess, run_of
from msgspec import to_builtins
from msgspec.structs import replace
from runs import a_run, predicted, read_all, reported
from sqlalchemy import event, make_url

from predictors.methods.forest_trees import one_leaf
from predictors.registry import PREDICTORS
from predictors.tuning.plan import TuningPlan
from service.store import Adoption, Erasure, RoundOutcome, open_store

NAME = "carolina-secret"


def found_in(directory: Path) -> dict[str, int]:
    """How often the name is in each file."""
    content = {file.name: file.read_bytes() for file in directory.iterdir() if file.is_file()}
    return {name: text.count(NAME.encode()) for name, text in content.items() if text}


def cold(service) -> bool:
    return service.predict(user=NAME)["basis"]["reason"] == "cold-start"


@pytest.fixture
def quick(monkeypatch):
    """A service that looks often whether something was erased."""
    monkeypatch.setattr("service.worker.worker.HOUSEKEEPING_SECONDS", 0.05)


@pytest.mark.usefixtures("quick")
def test_running_services_forget_without_a_restart(serve, store_url, walltimed):
    services = [serve(store_url, record_predictions=False) for _ in range(2)]
    services[0].complete(*(run_of(str(n), user=NAME) for n in range(5)))
    services[0].complete(run_of("other", user="bob", runtime=60.0))
    for service in services:
        service.wait_until(lambda service=service: not cold(service))
    assert walltimed("forget", "--user", NAME, "--yes", "-d", store_url)[0] == 0
    for service in services:
        service.wait_until(lambda service=service: cold(service))
        assert service.get(f"/v1/users/{NAME}/accuracy").status_code == 404
        assert service.get("/v1/users/bob/accuracy").status_code == 200
    # And they go on learning, from the place in the log where they are.
    services[1].complete(run_of("later", user="bob", runtime=60.0))
    for service in services:
        service.wait_until(
            lambda service=service: service.get("/v1/users/bob/accuracy").json()["jobs"] == 2
        )


@pytest.mark.usefixtures("quick")
def test_no_file_of_the_store_holds_the_name(serve, sqlite_url, walltimed):
    """It was in the write-ahead log 25,595 times, before and after."""
    directory = Path(make_url(sqlite_url).database).parent
    service = serve(sqlite_url)
    for batch in range(20):
        service.complete(
            *(run_of(f"{batch}-{n}", user=NAME if n % 7 == 0 else f"u{n}") for n in range(200))
        )
        service.predict(user=NAME)
    service.wait_until(lambda: sum(found_in(directory).values()) > 500)
    code, said, _ = walltimed("forget", "--user", NAME, "--yes", "-d", sqlite_url)
    # Nothing comes after the count: no sentence says that anything is left.
    assert (code, said.splitlines()[-1][:13]) == (0, "580 runs and ")
    assert set(found_in(directory).values()) == {0}
    service.complete(run_of("later", user="bob"))
    assert set(found_in(directory).values()) == {0}


@pytest.mark.usefixtures("quick")
def test_what_methods_learned_of_a_forgotten_user_is_forgotten_too(serve, sqlite_url, walltimed):
    """Leaves of a forest, candidates of knn, sums of the choice: as if the runs had never been."""
    knn = {"knn": {"template": ["application"]}}
    service = serve(sqlite_url, predictors=knn)
    seconds = {NAME: 3000.0, "bob": 60.0, "carl": 600.0}
    service.complete(
        *(run_of(f"{user}-{n}", user=user, application="a", runtime=seconds[user] + n,
                 end_time=NOW + 60.0 * n) for n in range(90) for user in reversed(seconds))
    )  # fmt: skip
    leaf = Adoption(subject="forest", parameters=to_builtins(replace(one_leaf(), known=0.0)))
    store = service.worker.store
    plan = TuningPlan(history=50, training=100, test=100)
    tuning = store.tunings.begin("default", plan, "history", NOW)
    store.tunings.finish(tuning, RoundOutcome(knn=None, changes=[]), [leaf], NOW)
    service.wait_until(lambda: told(service)["forest", "bob"] != 3600.0)
    before = told(service)
    assert walltimed("forget", "--user", NAME, "--yes", "-d", sqlite_url)[0] == 0
    anew = told(serve(sqlite_url, predictors=knn))
    service.wait_until(lambda: told(service) == anew)
    changed = {method for method, user in anew if anew[method, user] != before[method, user]}
    assert changed >= {"attention", "auto", "forest", "knn", "least-cost"}


def told(service) -> dict[tuple[str, str], float]:
    """Predictions of each method for those who stay, and for a stranger."""
    job = {"application": "a", "submit_time": NOW + 86_400.0}
    return {
        (method, user): service.predict(user=user, method=method, **job)["predicted_walltime"]
        for method in (*PREDICTORS, "auto")
        for user in ("bob", "carl", "stranger")
    }


def test_a_prediction_that_waited_for_its_record_is_not_stored(store):
    """The answer came before the erasure, its record after."""
    store.erasures.erase(Erasure(users=frozenset({NAME})), now=1000.0)
    store.write(
        [],
        [
            predicted("before", a_run("1", user=NAME), recorded_at=999.9),
            predicted("a second", a_run("2", user="bob"), recorded_at=1001.0),
            predicted("after", a_run("3", user="bob"), recorded_at=1001.1),
        ],
    )
    assert store.erasures.count(Erasure(users=frozenset({NAME, "bob"}))).predictions == 1


@pytest.mark.usefixtures("quick")
def test_after_a_clock_was_set_back_predictions_are_recorded_as_ever(serve, sqlite_url, opening):
    """Were they not until the clock is past the erasure, that could be years."""
    service = serve(sqlite_url)
    store = opening(sqlite_url)
    store.erasures.erase(Erasure(users=frozenset({NAME})), now=time.time() + 1e8)
    known = service.worker.store.erasures.last()
    service.wait_until(lambda: service.worker.recorder.erasure == known)
    service.predict(user="ada")
    service.wait_until(
        lambda: store.erasures.count(Erasure(users=frozenset({"ada"}))).predictions == 1
    )


def test_what_was_recorded_in_the_knowledge_of_an_erasure_came_after_it(store):
    for now in (1000.0, 500.0):
        store.erasures.erase(Erasure(users=frozenset({NAME})), now=now)
    last = store.erasures.last()
    store.write(
        [],
        [
            predicted("knows both", a_run("1"), recorded_at=10.0, erasure=last),
            predicted("knows one, 2nd later", a_run("2"), recorded_at=400.0, erasure=last - 1),
            predicted("knows one, 2nd before", a_run("3"), recorded_at=502.0, erasure=last - 1),
            predicted("knows none", a_run("4"), recorded_at=502.0),
        ],
    )
    assert store.erasures.count(Erasure(users=frozenset({"ada"}))).predictions == 2


def test_the_tokens_of_who_is_forgotten_are_worthless_and_nameless(store):
    own, _ = store.tokens.issue(NAME, ["self"], now=1.0, user=NAME)
    other, _ = store.tokens.issue("bob", ["self"], now=2.0, user="bob")
    assert store.erasures.last() == 0
    store.erasures.erase(Erasure(users=frozenset({NAME})), now=3.0)
    forgotten, kept = store.tokens.read_all()
    assert (forgotten.token_id, forgotten.revoked_at) == (own.token_id, 3.0)
    assert NAME not in {forgotten.name, forgotten.user}
    assert kept == other
    assert store.erasures.last() > 0


def test_what_is_to_be_erased_has_to_be_said(store):
    with pytest.raises(ValueError, match="Nothing"):
        store.erasures.erase(Erasure(), now=1.0)


def test_what_is_just_as_old_as_the_limit_stays(store):
    runs = [a_run(str(end), start=end - 600.0) for end in (9_999.0, 10_000.0)]
    store.write(
        [reported(*runs)],
        [predicted(str(run.end_time), run, recorded_at=run.end_time) for run in runs],
    )
    erased = store.erasures.erase(Erasure(before=10_000.0), now=20_000.0)
    assert (erased.runs, erased.predictions) == (1, 1)
    assert [run.end_time for run in read_all(store.reader())] == [10_000.0]


def test_what_an_older_release_left_in_the_file_is_overwritten(sqlite_url, opening):
    """Free pages of a file that was written without secure_delete."""
    file = Path(make_url(sqlite_url).database)
    store = opening(sqlite_url)
    store.write([reported(*(a_run(str(n), user=NAME) for n in range(500)))])
    store.close()
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA secure_delete = off")
        connection.execute("DELETE FROM completions")
    connection.close()
    assert found_in(file.parent)[file.name] > 0
    store = opening(sqlite_url)
    store.erasures.erase(Erasure(users=frozenset({NAME})), now=1.0)
    assert store.erasures.scrub({NAME}) is None
    assert set(found_in(file.parent).values()) == {0}


def test_a_log_that_somebody_reads_is_not_emptied_and_that_is_told(sqlite_url, opening):
    store = opening(sqlite_url)
    impatient(store)
    store.write([reported(a_run("1", user=NAME))])
    reading = sqlite3.connect(make_url(sqlite_url).database)
    reading.execute("BEGIN")
    reading.execute("SELECT * FROM completions").fetchall()
    store.erasures.erase(Erasure(users=frozenset({NAME})), now=1.0)
    assert "run this again" in store.erasures.scrub({NAME})
    reading.close()
    assert store.erasures.scrub({NAME}) is None


def impatient(store) -> None:
    """Let the store wait for no lock."""

    @event.listens_for(store._database.engine, "connect")
    def _(connection, _record):
        connection.execute("PRAGMA busy_timeout = 1")


def test_a_name_within_another_text_is_told(sqlite_url, opening):
    store = opening(sqlite_url)
    store.write([reported(a_run("1", user=NAME), a_run("2", user=f"{NAME}-too"))])
    store.erasures.erase(Erasure(users=frozenset({NAME})), now=1.0)
    assert "contain the name" in store.erasures.scrub({NAME})
    assert [run.submission.user for run in read_all(store.reader())] == [f"{NAME}-too"]


def test_postgresql_s_own_remains_are_told(postgres_url, walltimed):
    store = open_store(postgres_url)
    store.write([reported(a_run("1", user=NAME))])
    store.close()
    said = walltimed("forget", "--user", NAME, "--yes", "-d", postgres_url)[1]
    assert "VACUUM FULL" in said


def test_a_service_that_was_away_learns_the_history_as_it_is(store_url, walltimed):
    with InProcess(store_url) as service:
        service.complete(run_of("1", user=NAME))
    walltimed("forget", "--user", NAME, "--yes", "-d", store_url)
    with InProcess(store_url) as service:
        assert cold(service)
