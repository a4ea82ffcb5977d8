"""Further facts of a submission: from the call to the disk, and away again."""

from pathlib import Path

import pytest
from asgi_client import NOW, run_of
from sqlalchemy import text

from predictors.facts import MOST_FEATURES
from service.store import Erasure, open_store

SECRETS = ("zirconia", "wolfram", "beryllium", "tellurium", "osmium")
FACTS = {
    "work_dir": "/home/zirconia/run12",
    "script_hash": "0123456789ab",
    "submit_line": "sbatch --time=60 wolfram.sh 12",
    "qos": "beryllium",
    "nodes": 2,
    "gpus": 8,
    "gpu_type": "tellurium",
    "array_size": 16,
    "constraint": "tellurium&ib",
    "dependency": "afterok:1234567",
    "submit_host": "osmium-login",
    "interactive": True,
    "features": {"rule": "osmium", "size": 3.5},
}


def job(**fields):
    return {"user": "ada", "queue": "batch", "requested_walltime": 3600.0, **fields}


def runs_in(url):
    store = open_store(url)
    runs = list(store.past_runs.exported(None, 0.0, 1e11))
    store.close()
    return runs


def rows_in(url, table):
    store = open_store(url)
    with store._database.reading() as connection:
        rows = connection.execute(text(f"SELECT facts FROM {table}")).scalars().all()
    store.close()
    return rows


@pytest.fixture
def key(tmp_path):
    file = tmp_path / "key"
    file.write_bytes(b"0123456789abcdef0123456789abcdef")
    file.chmod(0o640)
    return file


def bytes_of(url):
    file = Path(url.removeprefix("sqlite:///"))
    return b"".join(part.read_bytes() for part in file.parent.glob(f"{file.name}*"))


@pytest.mark.parametrize("has_key", [False, True])
def test_facts_are_stored_with_numbers_and_without_a_readable_text(serve, sqlite_url, key, has_key):
    service = serve(sqlite_url, **({"pseudonym_key_file": key} if has_key else {}))
    service.complete(run_of("1", **job(), **FACTS))
    (run,) = runs_in(sqlite_url)
    facts = run.submission.facts
    assert (facts.nodes, facts.gpus, facts.array_size) == (2, 8, 16)
    assert facts.features["size"] == 3.5
    assert run.interactive
    stored = bytes_of(sqlite_url)
    for secret in SECRETS:
        assert secret.encode() not in stored
    assert b"1234567" not in stored


def test_two_keys_give_one_directory_two_hashes(serve, tmp_path, key):
    hashes = set()
    for number, content in enumerate((b"a" * 32, b"b" * 32)):
        key.write_bytes(content)
        url = f"sqlite:///{tmp_path / f'{number}.sqlite3'}"
        store = open_store(url)
        store.upgrade()
        store.close()
        serve(url, pseudonym_key_file=key).complete(run_of("1", **job(), **FACTS))
        hashes |= {run.submission.facts.work_dir for run in runs_in(url)}
    assert len(hashes) == 2


def test_what_the_filter_saw_is_learned_with_the_run_that_ends(serve, sqlite_url):
    service = serve(sqlite_url)
    service.predict(**job(submit_time=NOW), **FACTS)
    later = {"qos": "other", "work_dir": "/elsewhere"}
    ended = {"start_time": NOW + 5, "end_time": NOW + 65, "runtime": 60.0, "submit_time": NOW}
    service.complete(run_of("1", **job() | ended, **later))
    service.complete(run_of("2", **job() | ended, **FACTS))
    one, two = sorted(runs_in(sqlite_url), key=lambda run: run.submission.job_id)
    assert one.submission.facts == two.submission.facts


def test_a_job_without_facts_stores_none(serve, sqlite_url):
    service = serve(sqlite_url)
    service.predict(**job(submit_time=NOW))
    service.complete(run_of("1", **job()), run_of("2", **job(features={}, interactive=False)))
    assert [run.submission.facts for run in runs_in(sqlite_url)] == [None, None]
    assert {*rows_in(sqlite_url, "completions"), *rows_in(sqlite_url, "predictions")} == {None}


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"gpus": -1}, "gpus"),
        ({"gpus": 1.5}, "gpus"),
        ({"nodes": 0}, "nodes"),
        ({"array_size": "4"}, "array_size"),
        ({"work_dir": ""}, "work_dir"),
        ({"work_dir": "/a\nb"}, "work_dir"),
        ({"submit_line": "x" * 4097}, "submit_line"),
        ({"script_hash": 7}, "script_hash"),
        ({"interactive": "yes"}, "interactive"),
        ({"features": [1]}, "features"),
        ({"features": {"size": True}}, "features.size"),
        ({"features": {"size": 1e16}}, "features.size"),
        ({"features": {"size": "x\x00"}}, "features.size"),
        ({"features": {"": 1}}, "features"),
        ({"features": {str(n): n for n in range(MOST_FEATURES + 1)}}, "features"),
        ({"gpu": 1}, "gpu"),
    ],
)
def test_a_bad_fact_is_refused_by_name(service, fields, named):
    answer = service.post("/v1/predictions", job() | fields)
    assert answer.status_code == 422
    assert answer.json()["field"].startswith(named)


def test_facts_go_with_their_user(serve, sqlite_url):
    service = serve(sqlite_url)
    service.predict(**job(submit_time=NOW), **FACTS)
    service.complete(run_of("1", **job(), **FACTS))
    store = open_store(sqlite_url)
    store.erasures.erase(Erasure(users=frozenset({"ada"})), NOW)
    store.close()
    assert rows_in(sqlite_url, "completions") == rows_in(sqlite_url, "predictions") == []
