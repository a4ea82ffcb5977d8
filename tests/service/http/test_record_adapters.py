"""What resource managers send unasked: answered 200 whatever it holds, stored before it is."""

import asyncio
import json
import threading
from base64 import b64encode
from datetime import UTC
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from service.adapters.runs import Doubt
from service.operations import completing
from service.operations.completing import Adapting
from service.store import StoreUnavailableError, open_store

DATA = Path(__file__).parents[2] / "data"
CASES = {
    case["case"]: case["document"]
    for case in map(json.loads, (DATA / "slurm" / "jobcomp.jsonl").read_text("utf-8").splitlines())
}
RECORDS = (DATA / "pbs" / "accounting.txt").read_bytes()
JOBCOMP = "/v1/adapters/slurm/jobcomp"
ACCOUNTING = "/v1/adapters/pbs/accounting"
PBS = "text/x-pbs-accounting; charset=utf-8"


def learned(service, cluster="hill"):
    """What is predicted for an hour's request, submitted after all runs of the documents."""
    asked = service.predict(user="carol", cluster=cluster, submit_time=1927870000)
    return asked["predicted_walltime"]


def test_a_document_is_stored_and_learned_from_and_counts_once(service):
    first = service.post(JOBCOMP, CASES["ordinary"])
    again = service.post(JOBCOMP, CASES["ordinary"])
    assert (first.status_code, again.status_code) == (200, 200)
    doubts = {Doubt.FUTURE: 1}  # the documents are of 2031
    assert first.json() == {"accepted": 1, "duplicates": 0, "skipped": {}, "doubts": doubts}
    assert again.json() == {"accepted": 0, "duplicates": 1, "skipped": {}, "doubts": doubts}
    assert service.metric("walltimed_doubted_records_total", reason=Doubt.FUTURE.value) == 2
    service.wait_until(lambda: learned(service) == 600)


@pytest.mark.parametrize("case", CASES)
def test_every_document_is_answered_200(service, case):
    answer = service.post(JOBCOMP, CASES[case])
    assert answer.status_code == 200
    told = answer.json()
    assert told["accepted"] + sum(told["skipped"].values()) == 1


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff\x00", b"9" * 5000])
def test_what_is_no_document_is_answered_200_too(service, body):
    answer = service.send(JOBCOMP, body)
    assert answer.status_code == 200
    reason = "not a record of this format"
    assert answer.json()["skipped"] == {reason: 1}
    assert service.metric("walltimed_skipped_records_total", reason=reason) == 1


def test_an_unknown_state_is_logged_once_and_its_runs_are_not_stored(service):
    reason = "in a state that this version does not know"
    with capture_logs() as logged:
        for job in (1, 2):
            document = CASES["ordinary"] | {"jobid": job, "state": "TELEPORTED"}
            answer = service.post(JOBCOMP, document)
            assert answer.json() == {
                "accepted": 0,
                "duplicates": 0,
                "skipped": {reason: 1},
                "doubts": {},
            }
    assert [each["state"] for each in logged if "state" in each] == ["TELEPORTED"]


def test_a_time_in_a_form_that_is_not_known_is_logged_once_for_its_field(service):
    with capture_logs() as logged:
        for job in (1, 2):
            document = CASES["ordinary"] | {"jobid": job, "@start": f"Fri 0{job}/03/24, 10:00"}
            skipped = service.post(JOBCOMP, document).json()["skipped"]
            assert skipped == {"a time is written in no form that is known": 1}
    named = [(each["field"], each["value"]) for each in logged if "field" in each]
    assert named == [("@start", "Fri 01/03/24, 10:00")]


def test_a_document_that_is_too_large_is_not_sent_for_ever(serve, sqlite_url):
    service = serve(sqlite_url, max_body_bytes=1024)
    document = CASES["ordinary"] | {"script": "#" * 5000}
    answer = service.post(JOBCOMP, document)
    assert (answer.status_code, answer.json()["accepted"]) == (200, 0)
    assert answer.json()["skipped"] == {"larger than any record": 1}


def test_the_cluster_can_be_said_in_the_url(service):
    service.request("POST", f"{JOBCOMP}?cluster=dale", json=CASES["ordinary"])
    service.wait_until(lambda: learned(service, "dale") == 600)


def test_the_prediction_noted_in_the_job_is_scored(service):
    asked = service.predict(user="carol", cluster="hill", submit_time=1927857600)
    document = CASES["ordinary"] | {"admin_comment": f"wtp={asked['prediction_id']}"}
    service.post(JOBCOMP, document)
    scored = service.get("/v1/methods", cluster="hill").json()["methods"]
    assert all(method["score"]["jobs"] == 1 for method in scored)


def test_the_job_script_is_neither_stored_nor_logged(service, sqlite_url, caplog):
    for document in CASES.values():
        service.post(JOBCOMP, document)
    database = Path(sqlite_url.removeprefix("sqlite:///"))
    for file in database.parent.glob(f"{database.name}*"):
        assert b"SECRET" not in file.read_bytes()
    assert "SECRET" not in caplog.text


def test_a_store_that_is_away_makes_slurm_send_again(service, monkeypatch):
    async def unavailable(_reports):
        raise StoreUnavailableError("The database is away.")

    monkeypatch.setattr(service.worker.writer, "acknowledged", unavailable)
    answer = service.post(JOBCOMP, CASES["ordinary"])
    assert (answer.status_code, answer.json()["error"]) == (503, "StoreUnavailableError")
    assert service.post(JOBCOMP, CASES["unlimited"]).status_code == 200


def test_a_store_that_hangs_does_not_hang_slurm(service, monkeypatch):
    async def hung(_reports):
        await asyncio.Event().wait()

    monkeypatch.setattr(completing, "PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(service.worker.writer, "acknowledged", hung)
    assert service.post(JOBCOMP, CASES["ordinary"]).status_code == 503


def test_a_run_that_is_durable_after_its_sender_gave_up_counts_as_accepted(service, monkeypatch):
    monkeypatch.setattr(completing, "PATIENCE_SECONDS", 0.05)
    write, may_write = service.worker.store.write, threading.Event()

    def slow(*arguments):
        assert may_write.wait(30.0)
        return write(*arguments)

    monkeypatch.setattr(service.worker.store, "write", slow)
    assert service.post(JOBCOMP, CASES["ordinary"]).status_code == 503
    may_write.set()
    service.wait_until(lambda: learned(service) == 600)
    assert service.metric("walltimed_completions_total", result="accepted") == 1


def test_accounting_records_are_stored_and_the_others_counted(service):
    answer = service.send(f"{ACCOUNTING}?cluster=hill", RECORDS, PBS)
    assert answer.status_code == 200
    assert answer.json()["accepted"] == 8
    assert answer.json()["skipped"]["a record of another kind"] == 4
    again = service.send(f"{ACCOUNTING}?cluster=hill", RECORDS, PBS)
    assert (again.json()["accepted"], again.json()["duplicates"]) == (0, 8)


def ended(job):
    """A record of a run of a minute."""
    times = f"ctime=1700000000 start=1700000000 end={1700000060 + job}"
    return f"11/14/2023 22:14:20;E;{job}.hill;user=carol {times} Resource_List.walltime=01:00:00\n"


def test_others_get_their_turn_while_a_long_log_is_read(service):
    """It was parsed in one piece: 8 MiB held everybody up for seconds."""
    turns = 0

    async def count_turns():
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.run_coroutine_threadsafe(count_turns(), service._loop)
    while not turns:
        pass
    body = b"11/14/2023 22:14:20;Q;1.hill;queue=batch\n" * 40_000
    adapting_ = Adapting(service.worker)
    before = turns
    try:
        answer = service.run(adapting_.pbs_records(body, "hill", UTC))
        taken = turns - before
    finally:
        counting.cancel()
    assert answer.skipped == {"a record of another kind": 40_000}
    assert taken > len(body) / completing.LINES_BYTES / 2


def test_a_long_log_is_stored_in_groups_and_each_run_once(service, monkeypatch):
    body = "".join(map(ended, range(2500))).encode()
    stored = []
    acknowledged = service.worker.writer.acknowledged

    async def noted(reports):
        stored.append(len(reports))
        if len(stored) == 2:
            raise StoreUnavailableError("Away.")
        return await acknowledged(reports)

    monkeypatch.setattr(service.worker.writer, "acknowledged", noted)
    monkeypatch.setattr(completing, "PATIENCE_SECONDS", 60.0)  # the machine may be busy
    assert service.send(f"{ACCOUNTING}?cluster=hill", body, PBS).status_code == 503
    again = service.send(f"{ACCOUNTING}?cluster=hill", body, PBS).json()
    assert (again["accepted"], again["duplicates"]) == (1500, 1000)
    assert stored == [1000, 1000, 1000, 1000, 500]


def test_a_rerun_is_dated_in_the_servers_zone(service, sqlite_url):
    record = next(line for line in RECORDS.splitlines() if b";R;" in line)
    answer = service.request(
        "POST",
        ACCOUNTING,
        params={"utc_offset": "-0500"},
        content=record,
        headers={"content-type": PBS},
    )
    assert answer.json()["accepted"] == 1
    store = open_store(sqlite_url)
    reader = store.reader()
    (completion,) = reader.read(10)
    reader.close()
    store.close()
    assert completion.end_time == 1927858506 + 5 * 3600


@pytest.mark.parametrize("offset", ["0200", "+25:00", "+2400", "east"])
def test_an_offset_that_is_none_is_refused(service, offset):
    answer = service.request(
        "POST",
        ACCOUNTING,
        params={"utc_offset": offset},
        content=RECORDS,
        headers={"content-type": PBS},
    )
    assert (answer.status_code, answer.json()["field"]) == (422, "utc_offset")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_what_a_web_page_could_send_unasked_is_refused(service, kind):
    assert service.send(ACCOUNTING, RECORDS, kind).status_code == 415
    assert service.send(JOBCOMP, json.dumps(CASES["ordinary"]).encode(), kind).status_code == 415


@pytest.mark.parametrize(("password", "status"), [("right", 200), ("wt_1_wrong", 401), ("", 401)])
def test_slurm_sends_its_token_as_a_password(serve, sqlite_url, password, status):
    store = open_store(sqlite_url)
    store.upgrade()
    _, secret = store.tokens.issue("slurm", ["ingest"], 0.0)
    store.close()
    service = serve(sqlite_url)
    given = secret if password == "right" else password
    header = b64encode(f"walltimed:{given}".encode()).decode()
    answer = service.post(JOBCOMP, CASES["ordinary"], headers={"authorization": f"Basic {header}"})
    assert answer.status_code == status
