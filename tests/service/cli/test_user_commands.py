"""The commands of users, against a service that serves on a socket."""

import csv
import getpass
import io
import json
import time

import pytest
from private_munge import REASON_TO_SKIP, PrivateMunge
from running_service import Service, eventually

from service.cli.queue import late_note, show_risks, start_cell, starts, unplanned_note
from service.cli.report import cut_lines, extension_lines
from service.store import open_store
from terminal.prediction_words import alike_words, limit_words
from terminal.words import moment

JOB_SCRIPT = """#!/bin/sh
#SBATCH -J solve -t 1-00:00:00 -n 2 -p short
./solve
"""


def run_of(number, *, user, runtime, request=86400.0, **facts):
    ended = time.time() - 600.0 - 60 * number
    return {
        "job_id": f"{user}-{number}",
        "cluster": "hill",
        "user": user,
        **facts,
        "queue": "short",
        "project": "physics",
        "application": "solve",
        "requested_walltime": request,
        "requested_processors": 2,
        "submit_time": ended - runtime - 300,
        "start_time": ended - runtime,
        "end_time": ended,
        "status": "completed",
    }


def job(job_id, user, processors, request, **fields):
    asked = {"requested_walltime": request, "requested_processors": processors}
    named = {"user": user, "queue": "short", "application": "solve"}
    return {"job_id": job_id, "submit_time": time.time() - 60, **asked, **named, **fields}


@pytest.fixture(scope="module")
def munged():
    """A munged that service and commands use; None where there is none."""
    if REASON_TO_SKIP:
        yield None
        return
    with PrivateMunge() as munged, pytest.MonkeyPatch.context() as patch:
        patch.setenv("WALLTIMED_MUNGE_SOCKET", str(munged.socket))
        yield munged


@pytest.fixture(scope="module")
def site(lasting_url, munged):  # noqa: ARG001 - sets the environment
    """A service with a history of two users and a queue, and its store."""
    url = lasting_url()
    with Service(url) as service:
        runs = [run_of(n, user="ada", runtime=1800.0 + n) for n in range(300)]
        runs += [
            run_of(n, user="bob", runtime=60.0 + n, script_hash=f"of kind {n // 5}")
            for n in range(10)
        ]
        in_order = sorted(runs, key=lambda run: run["end_time"])  # late ones are learned later
        assert service.complete(*in_order).is_success
        queue = {
            "pools": [{"processors": 4, "queues": ["short"]}],
            "running": [job("1", "bob", 3, 7200.0, start_time=time.time() - 30)],
            "waiting": [job("2", "bob", 4, 3600.0), job("3", "ada", 1, 600.0)],
        }
        assert service.client.put("/v1/clusters/hill/snapshot", json=queue).is_success
        eventually(
            lambda: service.client.get("/v1/clusters/hill/snapshot").json()["forecast_at"],
            seconds=120,
        )
        service.url = url
        yield service


@pytest.fixture
def call(site, walltimed, monkeypatch, tmp_path):
    """Runs a command of a user that the service serves, on a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("WALLTIMED_URL", f"unix:{site.socket}")
    return walltimed


def fits(text):
    return all(len(line) <= 80 for line in text.splitlines())


def test_ask_tells_what_a_script_would_come_to(call, tmp_path):
    script = tmp_path / "job.sh"
    script.write_text(JOB_SCRIPT)
    code, told, _ = call("ask", script, "--user", "ada")
    assert code == 0
    assert "likely       " in told
    assert "range        " in told
    assert "by max-usage" in told.split("predicted")[1]
    assert "earlier run" in told
    assert "of similar runs ended" in told
    assert "1% likely to end there" in told.split("at limit")[1]
    assert told.count("with ") == 2, "the request as written, and the one that would do"
    assert "with 1-00:00:00" in told
    assert fits(told)
    assert not call("ask", "--user", "ada")[1], "no walltime was named"


def test_ask_takes_options_over_the_script_and_answers_machines(call, tmp_path):
    script = tmp_path / "job.sh"
    script.write_text(JOB_SCRIPT)
    code, told, _ = call("ask", script, "--user", "ada", "--time", "30", "--cpus", "5", "--json")
    assert code == 0
    answer = json.loads(told)
    assert answer["as_written"]["requested_walltime"] == 1800.0
    assert answer["as_written"]["obstacle"] == "too-large"


def test_queue_reads_like_squeue(call):
    code, told, _ = call("queue")
    assert code == 0
    heading, *rows, totals = told.splitlines()
    assert heading.split() == ["JOBID", "USER", "QUEUE", "NAME", "ST", "CPUS", "LIMIT", "START",
                               "END"]  # fmt: skip
    assert [row.split()[:5] for row in rows] == [
        ["1", "bob", "short", "solve", "R"],
        ["2", "bob", "short", "solve", "PD"],
        ["3", "ada", "short", "solve", "PD"],
    ]
    assert "1 running, 2 waiting, 0 held" in totals
    assert fits(told)
    assert len(call("queue", "--user", "ada")[1].splitlines()) == 3
    assert json.loads(call("queue", "--json")[1])["matching"] == 3


def late(usual_wait, **fields):
    job = {"start_time": None, "is_planned": False, "reason": None, "usual_wait": usual_wait}
    return job | fields


@pytest.mark.parametrize(
    ("job", "cell"),
    [
        (late(None), "unplanned"),
        (late(None, is_planned=True, reason="Dependency"), "Dependency"),
        (late(None, is_planned=True), "-"),
        (late(None, start_time=5.0), moment(5.0, 0.0) + "*"),
        (late(None, start_time=5.0, is_planned=True), moment(5.0, 0.0)),
    ],
)
def test_a_job_without_a_forecast_start_shows_why(job, cell):
    assert start_cell(job, 0.0) == cell


def test_the_mark_of_a_start_that_is_not_planned_yet_is_explained():
    assert late_note([late(None), late(None, is_planned=True, start_time=5.0)]) is None
    assert late_note([late(None, start_time=5.0)]) == "* the scheduler has not planned it yet"
    assert unplanned_note([late(None, start_time=5.0)]) is None
    told = starts(late(None, start_time=5.0, start_interval=None), 0.0)
    assert told.endswith("; the scheduler has not planned it yet")


def test_jobs_that_are_not_planned_yet_are_told_how_long_such_jobs_waited():
    assert unplanned_note([late(None, is_planned=True)]) is None
    assert "waited" not in unplanned_note([late(None)])
    assert "waited 10 min or less" in unplanned_note([late(600.0), late(None)])
    assert "waited 10 min to 2.0 h or less" in unplanned_note([late(7200.0), late(600.0)])


def test_queue_tells_one_job_at_length(call):
    code, told, _ = call("queue", "2")
    assert code == 0
    assert "2 solve: waiting, number 1" in told
    assert "starts" in told
    assert fits(told)
    assert call("queue", "4711")[0] == 1
    (detail,) = json.loads(call("queue", "2", "--json")[1])["jobs"]
    assert detail["job"]["job_id"] == "2"


def test_queue_lists_running_jobs_at_risk(call, capsys):
    code, told, _ = call("queue", "--at-risk")
    assert (code, told.split()[:3]) == (0, ["0", "running", "jobs"])
    assert fits(told)
    assert json.loads(call("queue", "--at-risk", "--json")[1])["jobs"] == []
    assert call("queue", "--at-risk", "--user", "ada")[0] == 2
    show_risks(
        {
            "now": 7200.0,
            "taken_at": 7200.0,
            "is_old": False,
            "used": 0.8,
            "probability": 0.6,
            "jobs": [
                {
                    "job_id": "7",
                    "user": "ada",
                    "application": "solve",
                    "requested_processors": 4,
                    "requested_walltime": 3600.0,
                    "limit_time": 7500.0,
                    "limit": LIMIT,
                }
            ],
        }
    )
    shown = " ".join(capsys.readouterr().out.split())
    assert "7 solve (ada, 4 cpus)" in shown
    assert "after 1:00:00" in shown
    assert "62% likely to end there; 6 of the last 9 like it did" in shown
    assert "1 running job that used 80% of the limit will end there" in shown


def test_queue_tells_of_a_job_that_has_ended(call):
    code, told, _ = call("queue", "ada-7", "2")
    assert code == 0
    assert "ada-7 solve: ended" in told
    assert "requested  1-00:00:00" in told
    assert "predicted  no prediction was recorded" in told
    assert "ran        30 min, after a wait of 5 min" in told
    assert "2 solve: waiting" in told
    assert fits(told)
    (ended, _) = json.loads(call("queue", "ada-7", "2", "--json")[1])["jobs"]
    assert ended["runs"][0]["user"] == "ada"


@pytest.mark.parametrize(
    ("shared", "words"),
    [
        (["script_hash", "work_dir", "input_bytes"], "; alike in script, work dir, input bytes"),
        ([], ""),
        (None, ""),
    ],
)
def test_ask_names_the_facts_that_made_a_run_alike(shared, words):
    assert alike_words({"job_id": "7", "shared": shared}) == words
    assert alike_words({"job_id": "7"}) == ""


def test_report_tells_hours_and_a_request_that_would_do(call):
    code, told, _ = call("report", "--user", "ada")
    assert code == 0
    heads = [
        "JOB",
        "RUNS",
        "REQ",
        "h",
        "USED",
        "h",
        "%",
        "WAIT",
        "h",
        "EXCESS",
        "USUAL",
        "SUGGESTED",
    ]
    assert told.splitlines()[2].split() == heads
    row = told.splitlines()[3].split()
    assert row[:2] == ["solve", "300"]
    assert row[-2:] == ["1-00:00:00", "0:35:00"]
    assert fits(told)
    assert "SUGGESTED a shorter one" in " ".join(told.split()), "words are explained"
    assert "--since 365d" in call("report", "--user", "nobody")[1]
    assert "'nobody'" in call("report", "--user", "nobody")[2]
    assert call("report", "--user", "ada", "--since", "1h")[2] == ""


def test_report_for_a_spreadsheet_and_a_machine(call):
    (row,) = csv.DictReader(io.StringIO(call("report", "--user", "ada", "--csv")[1]))
    assert (row["application"], row["runs"], row["suggested_request"]) == ("solve", "300", "2100.0")
    assert json.loads(call("report", "--user", "ada", "--json")[1])["own"]["runs"] == 300
    assert "solve" in call("report", "--account", "physics")[1]
    assert call("report", "--csv", "--json")[0] == 2


def test_report_tells_scripts_of_one_job_name_apart(call):
    code, told, _ = call("report", "--user", "bob", "--by", "script")
    assert code == 0
    rows = [line.split() for line in told.splitlines() if line.startswith("solve ~")]
    assert [row[2] for row in rows] == ["5", "5"]
    assert rows[0][1] != rows[1][1]
    assert fits(told)
    assert "~ begins the hash of a script" in " ".join(told.split())
    apart = json.loads(call("report", "--user", "bob", "--by", "script", "--json")[1])
    assert {row["script"][:5] for row in apart["applications"]} == {row[1] for row in rows}
    assert {row["newest_job"] for row in apart["applications"]} == {"bob-0", "bob-5"}
    together = json.loads(call("report", "--user", "bob", "--json")[1])["applications"]
    assert [(row["script"], row["runs"]) for row in together] == [(None, 10)]
    assert call("report", "--by", "mood")[0] == 2


def test_report_lists_users_with_most_to_gain(call):
    code, told, _ = call("report", "--everybody")
    assert code == 0
    assert [line.split()[0] for line in told.splitlines()[3:5]] == ["ada", "bob"]
    assert "SAVABLE the processor hours" in told
    assert fits(told)


LIMIT = {
    "probability": 0.62,
    "reason": "history",
    "like_runs": 9,
    "like_hits": 6,
    "longer_walltime": 21_600.0,
}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"like_runs": 2, "like_hits": 1},
            "62% likely to end there; 1 of the last 2 like it did; ",
        ),
        ({"longer_walltime": 3600.0}, "; 9 of 10 would end within 1:00:00"),
        ({"longer_walltime": None, "like_hits": 0}, "62% likely to end there"),
        ({"reason": "chain"}, "goes on where a job like it was cut"),
        ({"probability": None}, "not known"),
    ],
)
def test_the_probability_of_a_cut_is_told_with_a_request_that_would_do(changes, words):
    assert words in limit_words(LIMIT | changes)


def test_report_tells_which_limits_were_extended_and_what_that_did():
    job = {"user": "ada", "queue": None, "runtime": 5400.0}
    job |= {"requested_walltime": 3600.0, "extended_to": 7200.0}
    hours = {"saved": 6.0, "cut": 0.0}
    extended = [
        job | {"job_id": str(number), "effect": effect, "saved_hours": hours[effect]}
        for number, effect in enumerate(["saved", "cut"] * 6)
    ]
    (empty, *lines) = extension_lines({"extensions": extended})
    assert empty == ""
    assert " ".join(lines[:2]).startswith(
        "12 limits extended while a job ran: 6 saved the job (36 processor hours), 0 not needed, "
        "6 cut later"
    )
    assert len(lines) == 2 + 1 + 10, "the last ten"
    assert lines[-2].split() == ["8", "ada", "-", "1:00:00", "2:00:00", "1:30:00", "saved"]
    assert fits("\n".join(lines))
    assert extension_lines({"extensions": []}) == []


def test_report_tells_where_hours_ended_at_limits():
    rows = [
        {"user": "ada", "cut_off": 2, "cut_hours": 30.0},
        {"user": "bob", "cut_off": 0, "cut_hours": 0.0},
        {"user": None, "cut_off": 1, "cut_hours": 70.0},
    ]
    queues = [{"queue": "short", "cut_off": 3, "cut_hours": 100.0}]
    (empty, *lines) = cut_lines({"users": rows, "queues": queues})
    assert empty == ""
    assert " ".join(lines) == (
        "3 runs ended at their limit, after 100 processor hours: "
        "by user - 70 h, ada 30 h; by queue short 100 h."
    )
    assert cut_lines({"users": rows[1:2], "queues": []}) == []


def test_a_line_that_names_no_walltime_is_named(walltimed, tmp_path):
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\n#SBATCH --time=oops\n./solve\n")
    code, _, complained = walltimed("ask", script)
    assert code == 2
    assert "--time=oops in line 2 is no walltime" in complained


def test_lines_for_qsub_begin_as_option_or_environment_say(walltimed, tmp_path, monkeypatch):
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\n#PBS -l walltime=1:00\n#LAB -l walltime=oops\n")
    assert "walltime=oops in line 3" in walltimed("ask", script, "-C", "#LAB")[2]
    monkeypatch.setenv("PBS_DPREFIX", "#LAB")
    assert "walltime=oops in line 3" in walltimed("ask", script)[2]
    monkeypatch.setenv("PBS_DPREFIX", "#OTHER")
    assert "Neither the script nor --time" in walltimed("ask", script)[2]


def test_a_token_of_ones_own_is_enough_for_all_of_them(site, call, tmp_path, monkeypatch):
    store = open_store(site.url)
    secret = store.tokens.issue("ada's", ["self"], 0.0, user="ada")[1]
    store.close()
    token = tmp_path / "walltimed" / "token"
    token.parent.mkdir()
    token.write_text(secret)
    eventually(lambda: site.client.get("/v1/clusters").status_code == 401)
    with monkeypatch.context() as without:
        without.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
        without.setenv("WALLTIMED_MUNGE_SOCKET", str(tmp_path / "none"))
        assert "Ask your centre for a token" in call("queue")[2]
    try:
        assert len(call("queue")[1].splitlines()) == 3
        assert call("ask", "--time", "60", "--user", "ada")[0] == 0
        assert call("ask", "--time", "60", "--user", "bob")[0] == 1
        assert call("report", "--user", "ada")[0] == 0
        assert call("report", "--user", "bob")[0] == 1
        assert "Only your own runs" in call("report", "--everybody")[2]
        listed = call("report", "--everybody")[1].splitlines()[3:]
        assert [line.split()[0] for line in listed[: listed.index("")]] == ["ada"]
    finally:
        store = open_store(site.url)
        store.tokens.forget_all()
        store.close()
        eventually(lambda: site.client.get("/v1/clusters").is_success)


@pytest.mark.skipif(bool(REASON_TO_SKIP), reason=str(REASON_TO_SKIP))
def test_munge_is_enough_for_all_of_them_without_a_token(site, call):
    store = open_store(site.url)
    store.tokens.issue("filter", ["predict"], 0.0)
    store.close()
    eventually(lambda: site.client.get("/v1/clusters").status_code == 401)
    try:
        assert len(call("queue")[1].splitlines()) == 2, "none of the jobs is this user's"
        assert call("ask", "--time", "60")[0] == 0
        assert call("ask", "--time", "60", "--user", "bob")[0] == 1
        assert call("report")[0] == 0
        code, told, complained = call("report", "--user", "ada")
        assert (code, told) == (1, "")
        assert "403" in complained
        assert getpass.getuser() not in complained
    finally:
        store = open_store(site.url)
        store.tokens.forget_all()
        store.close()
        eventually(lambda: site.client.get("/v1/clusters").is_success)


@pytest.mark.skipif(bool(REASON_TO_SKIP), reason=str(REASON_TO_SKIP))
def test_a_munged_that_is_away_is_told_and_a_service_without_tokens_is_still_asked(
    call, monkeypatch, tmp_path
):
    dead = tmp_path / "socket"
    dead.touch()
    monkeypatch.setenv("WALLTIMED_MUNGE_SOCKET", str(dead))
    code, told, complained = call("queue")
    assert code == 0
    assert "1 running" in told
    assert "You are not named to the service: munged at" in complained
