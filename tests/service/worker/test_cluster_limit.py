"""How many clusters a service takes completions of, and what it tells about one more."""

import json
import tracemalloc
from pathlib import Path

import pytest
from asgi_client import run_of
from runs import a_run, reported

from service.errors import TooManyClustersError
from service.metrics import Metrics
from service.settings import Settings
from service.store import open_store
from service.worker.live_state import LiveState
from service.worker.writer import PLACE_SECONDS, ClusterLimit

DATA = Path(__file__).parents[2] / "data"


def test_a_cluster_of_one_run_takes_some_kilobytes():
    """It took 3.7 MiB: 3,000 invented names were 11 GiB, and again after every restart."""
    live = LiveState(Settings(max_clusters=1000), Metrics())
    live.apply([a_run("1", cluster="first")])
    tracemalloc.start()
    live.apply(a_run("1", cluster=f"c{number}") for number in range(100))
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(live.names()) == 101
    assert taken / 100 < 60_000


def test_a_name_too_many_is_refused_and_costs_nobody_their_own(serve, sqlite_url):
    service = serve(sqlite_url, max_clusters=2)
    assert service.complete(run_of("1", cluster="a"), run_of("2", cluster="b"))["accepted"] == 2
    answer = service.post("/v1/completions", run_of("3", cluster="c"))
    assert answer.status_code == 422
    assert answer.json()["error"] == "TooManyClustersError"
    assert answer.json()["field"] == "cluster"
    for word in ("'c'", "2", "max_clusters", "walltimed forget --cluster"):
        assert word in answer.json()["detail"]
    assert service.complete(run_of("4", cluster="b"))["accepted"] == 1
    assert service.metric("walltimed_refused_clusters_total") == 1
    assert service.metric("walltimed_clusters") == 2


def test_one_batch_cannot_bring_more_names_than_there_is_room_for(serve, sqlite_url):
    service = serve(sqlite_url, max_clusters=4)
    batch = {"completions": [run_of(str(n), cluster=f"c{n}") for n in range(9)]}
    answer = service.post("/v1/completions", batch)
    assert (answer.status_code, answer.json()["field"]) == (422, "completions.4.cluster")
    assert service.worker.store.past_runs.clusters() == []


def test_a_resource_manager_s_record_is_answered_and_counted_by_its_reason(serve, sqlite_url):
    """Slurm sends again for ever what is not answered with 200."""
    service = serve(sqlite_url, max_clusters=1)
    service.complete(run_of("1", cluster="a"))
    record = (DATA / "slurm" / "jobcomp.jsonl").read_text("utf-8").splitlines()[0]
    document = json.loads(record)["document"]
    answer = service.post("/v1/adapters/slurm/jobcomp", document)
    assert answer.status_code == 200
    assert [*answer.json()["skipped"]] == [
        "of one cluster more than the setting max_clusters allows"
    ]
    assert service.metric("walltimed_refused_clusters_total") == 1


def test_a_history_of_more_clusters_serves_those_whose_runs_ended_last(store, store_url, serve):
    for number in range(6):
        runs = [a_run(str(end), cluster=f"c{number}", start=1e6 + end) for end in range(3)]
        store.write([reported(*runs)])
    store.write([reported(*(a_run("late", cluster=name, start=2e6) for name in ("c1", "c4")))])
    service = serve(store_url, max_clusters=2)
    assert service.worker.live.clusters == ["c1", "c4"]
    assert service.metric("walltimed_unserved_clusters") == 4
    refused = service.post("/v1/completions", run_of("9", cluster="c5"))
    assert refused.status_code == 422
    assert service.complete(run_of("9", cluster="c1"))["accepted"] == 1


def test_the_command_line_tells_what_to_do_about_too_many(walltimed, sqlite_url):
    store = open_store(sqlite_url)
    store.write([reported(*(a_run("1", cluster=f"c{n}") for n in range(65)))])
    store.close()
    code, said, _ = walltimed("check-config", "-d", sqlite_url)
    assert code == 0
    assert "holds 65 clusters" in said
    assert "raise the setting max_clusters to 65" in said
    assert "walltimed forget --cluster NAME" in said
    assert "holds 65 clusters" in walltimed("db", "check", "-d", sqlite_url)[1]


def test_an_import_brings_no_cluster_too_many(walltimed, sqlite_url, monkeypatch, tmp_path):
    monkeypatch.setenv("WALLTIMED_MAX_CLUSTERS", "1")
    trace = tmp_path / "trace.swf"
    trace.write_text("1 0 10 100 1 -1 -1 1 3600 -1 1 1 1 1 1 -1 -1 -1\n")
    assert walltimed("import", "-d", sqlite_url, "--cluster", "a", trace)[0] == 0
    code, _, said = walltimed("import", "-d", sqlite_url, "--cluster", "b", trace)
    assert code == 2
    assert "max_clusters" in said
    assert walltimed("import", "-d", sqlite_url, "--cluster", "a", trace)[0] == 0


def test_the_place_of_a_cluster_that_could_not_be_stored_is_free_again_after_a_while():
    now = 0.0
    known = {"a"}
    bound = ClusterLimit(lambda: known, 2, clock=lambda: now)
    bound.admit("b")
    bound.release()
    with pytest.raises(TooManyClustersError):
        bound.admit("c")
    now = PLACE_SECONDS + 1
    bound.release()
    bound.admit("c")
