"""Names that never reach the store, with every answer as it would be with them."""

import hashlib
import hmac
import json
import sys
from pathlib import Path

import pytest
from asgi_client import NOW, InProcess, run_of
from msgspec.structs import replace
from running_service import Service

from predictors.facts import Facts
from predictors.jobs import Completion, Submission
from predictors.methods.attention import Attention
from predictors.registry import PREDICTORS
from service.auth import PseudonymKeyError, Pseudonyms, read_pseudonyms
from service.cli import main
from service.http.app import create_app
from service.settings import Settings
from service.store import open_store

DATA = Path(__file__).parents[1] / "data"
NAMES = ("zebediah", "wheelwrights", "moonshot", "simulate-zebediah", "xanthippe")
KEY = b"0123456789abcdef0123456789abcdef"
DOCUMENT = {
    "jobid": 70, "username": "xanthippe", "groupname": "wheelwrights", "account": "moonshot",
    "job_name": "simulate-zebediah", "partition": "short", "state": "COMPLETED", "elapsed": 600,
    "time_limit": 3600, "total_nodes": 1, "total_cpus": 4, "@submit": "2023-11-01T00:00:00",
    "@start": "2023-11-01T00:01:00", "@end": "2023-11-01T00:11:00",
}  # fmt: skip
RECORD = (
    "11/01/2023 10:00:00;E;71.server;user=xanthippe group=wheelwrights project=moonshot "
    "jobname=simulate-zebediah queue=short ctime=1698830000 start=1698830060 end=1698830660 "
    "Resource_List.walltime=01:00:00 Exit_status=0"
)


@pytest.mark.parametrize("key", [None, KEY])
def test_texts_of_facts_are_forgotten_with_the_names(key):
    pseudonyms = Pseudonyms(key)
    job = Submission(
        requested_walltime=60.0, submit_time=0.0, facts=Facts(work_dir="/home/zebediah/moonshot")
    )
    first = pseudonyms.submission(job)
    assert first.facts.work_dir.startswith("~")
    assert pseudonyms._hash_of.cache_info().currsize == 1
    pseudonyms.forget()
    assert pseudonyms._hash_of.cache_info().currsize == 0
    assert pseudonyms.submission(job) == first


@pytest.fixture
def key(tmp_path):
    file = tmp_path / "key"
    file.write_bytes(KEY + b"\n")
    file.chmod(0o640)
    return file


NAMED = {"group": "wheelwrights", "project": "moonshot", "application": "simulate-zebediah"}


def job(user="zebediah", **fields):
    return {
        "user": user,
        **NAMED,
        "queue": "short",
        "requested_walltime": 3600.0,
        "submit_time": NOW,
        **fields,
    }


def conversation(service):
    """Every call that takes or gives a name, and what came of it."""
    runs = [
        run_of(f"{user}-{number}", **job(user) | {
            "submit_time": NOW - 9000 + number, "start_time": NOW - 8000 + number,
            "end_time": NOW - 8000 + number + seconds, "runtime": float(seconds)})
        for user, seconds in (("zebediah", 300), ("xanthippe", 2400))
        for number in range(12)
    ]  # fmt: skip
    for number, run in enumerate(runs):
        run["job_id"] = number
    answers = [service.complete(*runs)]
    answers.append(service.send("/v1/adapters/slurm/jobcomp", json.dumps(DOCUMENT)).json())
    answers.append(
        service.send("/v1/adapters/pbs/accounting", RECORD, "text/x-pbs-accounting").json()
    )
    answers.append(service.complete(run_of("n1", **job("xanthippe") | {"submit_time": NOW - 999})))
    for method in PREDICTORS:
        answers += [service.predict(**job(user), method=method) for user in ("zebediah", "nobody")]
    batch = {"submissions": [job("xanthippe"), job(None)]}
    answers += service.post("/v1/predictions/batch", batch).json()["predictions"]
    extension = {"requested_walltime": 3600, "predicted_walltime": 300, "elapsed": 400}
    answers.append(
        service.post("/v1/predictions/extend", extension | {"submission": job("xanthippe")}).json()
    )
    waiting = [
        {"job_id": user, "user": user, "requested_walltime": 3600, "submit_time": NOW - 900}
        for user in ("zebediah", "xanthippe", "nobody")
    ]
    answers.append(service.post("/v1/priorities", {"now": NOW, "jobs": waiting}).json())
    answers.append(service.get("/v1/users/zebediah/accuracy").json())
    answers.append(service.get("/v1/accuracy-groups").json())
    queue = {
        "now": NOW,
        "machine": {"processors": 4},
        "policy": "easy",
        "order": "psp",
        "samples": 0,
        "waiting": [job(user, job_id=user) for user in ("zebediah", "xanthippe")],
    }
    answers.append(service.post("/v1/forecasts", queue).json())
    ended = [
        run_of(len(user) + 1000, **job(user), start_time=NOW + 5, end_time=NOW + 605, runtime=600.0)
        for user in ("zebediah", "xanthippe")
    ]
    answers.append(service.complete(*(run | {"submit_time": NOW} for run in ended)))
    answers.append(service.get("/v1/methods").json())
    return [without_ids(answer) for answer in answers]


def without_ids(answer):
    return {name: value for name, value in answer.items() if name != "prediction_id"}


def bytes_of(url):
    file = Path(url.removeprefix("sqlite:///"))
    return b"".join(part.read_bytes() for part in file.parent.glob(f"{file.name}*"))


def test_every_answer_is_as_with_names_and_no_name_is_stored(serve, tmp_path, sqlite_url, key):
    hidden_url = f"sqlite:///{tmp_path / 'hidden.sqlite3'}"
    store = open_store(hidden_url)
    store.upgrade()
    store.close()
    plain = conversation(serve(sqlite_url))
    service = serve(hidden_url, pseudonym_key_file=key)
    hidden = conversation(service)
    assert hidden == plain
    assert hidden[-1]["methods"][0]["score"]["jobs"] >= 2, "predictions found their completions"
    metrics = service.get("/metrics").text
    stored = bytes_of(hidden_url)
    for name in NAMES:
        assert name.encode() in bytes_of(sqlite_url)
        assert name.encode() not in stored
        assert name not in metrics
    assert b"short" in stored


def test_a_restart_knows_everybody_and_another_key_nobody(sqlite_url, key):
    with InProcess(sqlite_url, pseudonym_key_file=key) as service:
        conversation(service)
    with InProcess(sqlite_url, pseudonym_key_file=key) as again:
        assert again.get("/v1/users/zebediah/accuracy").json()["user"] == "zebediah"
    key.write_bytes(KEY[::-1])
    with InProcess(sqlite_url, pseudonym_key_file=key) as changed:
        assert changed.get("/v1/users/zebediah/accuracy").status_code == 404
        assert changed.predict(**job())["basis"]["jobs"] == 0


def test_logs_name_nobody(sqlite_url, key, monkeypatch):
    """Not where a request is refused either, nor where an adapter finds no run."""
    monkeypatch.setenv("WALLTIMED_PSEUDONYM_KEY_FILE", str(key))
    monkeypatch.setenv("WALLTIMED_LOG_LEVEL", "debug")
    with Service(sqlite_url) as service:
        assert service.predict("zebediah", **NAMED) == 3600
        assert service.client.get("/v1/users/zebediah/accuracy").status_code == 404
        for path in ("/v1/completions", "/v1/adapters/slurm/jobcomp"):
            for body in ('{"username": "zebediah"', '{"user": "zebediah", "state": "moonshot"}'):
                service.client.post(
                    path, content=body, headers={"content-type": "application/json"}
                )
        log = service.log.read_text()
    assert "tell of no run" in log
    assert not [name for name in NAMES if name in log]


def test_the_pseudonym_is_a_keyed_hash_of_kind_and_name():
    names = Pseudonyms(KEY)
    expected = hmac.new(KEY, b"user\0ada", hashlib.sha256).hexdigest()[:32]
    assert names.user("ada") == expected
    hidden = names.submission(
        Submission(requested_walltime=1.0, submit_time=0.0, user="ada", group="ada", project="ada")
    )
    assert len({hidden.user, hidden.group, hidden.project}) == 3
    assert hidden.application is None
    assert names.user("caf\udce9") != names.user("caf\udce8")


def named(application, hide, at=1e7):
    return hide(
        Submission(requested_walltime=36000, submit_time=at, user="ada", application=application)
    )


def test_attention_leaves_the_digits_of_job_names_out_of_pseudonyms_too():
    answers = []
    for hide in (Pseudonyms(None).submission, Pseudonyms(KEY).submission):
        attention = Attention()
        for place in range(40):
            name, seconds = (f"step_{place}", 300.0) if place % 2 else (f"sim_{place}", 20_000.0)
            begin, end = 1e5 * place, 1e5 * place + seconds
            job = named(name, hide, begin)
            attention.observe(
                Completion(submission=job, start_time=begin, end_time=end, runtime=seconds)
            )
        jobs = [named(name, hide) for name in ("step_99", "sim_99", "step", "99", "step_", None)]
        answers.append([attention.predict(job).predicted_walltime for job in jobs])
    assert answers[0] == answers[1]
    assert answers[0][0] < 1000 < answers[0][1]


def test_pseudonyms_of_job_names_differ_where_the_names_do():
    hide = Pseudonyms(KEY).submission
    names = ["step_1", "step_2", "step_12", "step_", "step1", "sim_1", "1", "2", "12"]
    assert len({named(name, hide).application for name in names}) == len(names)


def test_what_is_remembered_of_names_has_a_bound():
    names = Pseudonyms(KEY)
    assert names.user.cache_info().maxsize is not None
    first = names.user("0")
    for number in range(70_000):
        names.user(str(number))
    assert names.user("0") == first
    assert names.user.cache_info().currsize < 70_000


def test_without_a_key_nothing_is_even_copied():
    submission = Submission(requested_walltime=1.0, submit_time=0.0, user="ada")
    assert read_pseudonyms(None).submission(submission) is submission
    assert Pseudonyms(KEY).submission(submission) == replace(
        submission, user=Pseudonyms(KEY).user("ada")
    )


@pytest.fixture
def bad_keys(tmp_path):
    short, open_to_all = tmp_path / "short", tmp_path / "open"
    short.write_bytes(KEY[:31] + b"\n")
    short.chmod(0o600)
    open_to_all.write_bytes(KEY)
    open_to_all.chmod(0o641)
    return {"missing": tmp_path / "missing", "short": short, "open": open_to_all}


@pytest.mark.parametrize(
    ("which", "told"),
    [("missing", "cannot be read"), ("short", "less than 32 bytes"), ("open", "everybody")],
)
def test_a_key_that_cannot_be_used_ends_every_command(bad_keys, which, told, monkeypatch, capsys):
    with pytest.raises(PseudonymKeyError, match=told):
        create_app(Settings(pseudonym_key_file=bad_keys[which]))
    monkeypatch.setenv("WALLTIMED_PSEUDONYM_KEY_FILE", str(bad_keys[which]))
    sacct = str(DATA / "slurm" / "sacct.txt")
    commands = [
        ["serve"],
        ["check-config"],
        ["forget", "--user", "ada"],
        ["import", sacct, "-f", "sacct"],
        ["reconcile", "--sacct", "true"],
    ]
    for command in commands:
        monkeypatch.setattr(sys, "argv", ["walltimed", *command])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 2, command
        assert told in " ".join(capsys.readouterr().err.split())


@pytest.fixture
def walltimed(monkeypatch, capsys, sqlite_url, key):
    """Runs the command with the key and ``--json``; gives what it printed."""
    monkeypatch.setenv("WALLTIMED_PSEUDONYM_KEY_FILE", str(key))

    def run(*arguments: str):
        argv = ["walltimed", *arguments, "--json", "-d", sqlite_url]
        monkeypatch.setattr(sys, "argv", argv)
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        assert not end.value.code
        return json.loads(capsys.readouterr().out)

    return run


@pytest.mark.parametrize(
    ("kind", "file", "user"),
    [("sacct", "slurm/sacct.txt", "carol"), ("pbs", "pbs/accounting.txt", "carol")],
)
def test_imports_hide_names_too_and_forgetting_takes_the_name(
    walltimed, sqlite_url, kind, file, user
):
    (report,) = walltimed("import", "-f", kind, str(DATA / file))["files"]
    assert report["accepted"] > 0
    stored = bytes_of(sqlite_url)
    assert user in (DATA / file).read_text("utf-8")
    assert user.encode() not in stored
    assert Pseudonyms(KEY).user(user).encode() in stored
    assert walltimed("forget", "--user", user, "--yes")["deleted"] > 0
    assert walltimed("forget", "--user", user, "--yes")["deleted"] == 0


def test_forgetting_finds_what_was_stored_before_there_was_a_key(walltimed, sqlite_url):
    with InProcess(sqlite_url) as service:
        service.complete(run_of(1, user="zebediah"))
    assert walltimed("forget", "--user", "zebediah", "--yes")["deleted"] == 1


def test_reconciling_hides_names_and_finds_what_is_known(walltimed, sqlite_url, tmp_path):
    rows = (DATA / "slurm" / "sacct.txt").read_text("utf-8").splitlines()
    (tmp_path / "rows").write_text("\n".join(rows) + "\n", "utf-8")
    command = tmp_path / "sacct"
    command.write_text(f"#!/bin/sh\ncat {tmp_path}/rows\n")
    command.chmod(0o755)
    first = walltimed("reconcile", "--sacct", str(command))
    assert first["accepted"] > 10
    assert b"carol" not in bytes_of(sqlite_url)
    again = walltimed("reconcile", "--sacct", str(command))
    assert (again["accepted"], again["duplicates"]) == (0, first["accepted"])
