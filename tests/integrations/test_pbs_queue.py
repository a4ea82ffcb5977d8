"""The follower of PBS's queue, on what a real OpenPBS printed."""

import json
import os
import threading
import time
from functools import partial
from pathlib import Path

import pytest
import site_scripts
from asgi_client import InProcess
from fake_service import fake_service, http
from odd_logs import VALUES as ODD_VALUES
from site_scripts import Looks

from service.contract.queue_bodies import QueueBody

CAPTURED = Path(__file__).parents[1] / "data" / "pbs" / "openpbs-23.06.06"
SUBMITTED = 1795332369.0  # Sun Nov 22 07:26:09 2026 UTC


@pytest.fixture
def program(monkeypatch):
    """The script as a module, on a machine whose clock is UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield site_scripts.loaded(site_scripts.FOLLOWER)
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def follower(program):
    """Its part for the queue."""
    return program.walltimed_queue


@pytest.fixture
def options(program, tmp_path):
    """Options with stand-ins for the two commands, which print what the real ones printed."""
    for name in ("qstat", "pbsnodes"):
        command = tmp_path / name
        command.write_text(f"#!/bin/sh\nexec cat {CAPTURED / name}.json\n")
        command.chmod(0o755)
    words = ["--once", "--qstat", str(tmp_path / "qstat"), "--pbsnodes", str(tmp_path / "pbsnodes")]
    return program.parsed([*words, "--cluster", "hill"])


def prints(command, text):
    """Let a stand-in print this."""
    file = Path(command).with_suffix(".json")
    file.write_text(text)
    Path(command).write_text(f"#!/bin/sh\nexec cat {file}\n")


def captured(name):
    return json.loads((CAPTURED / f"{name}.json").read_text())


def test_jobs_are_read_as_the_service_takes_them(follower):
    jobs = follower.queue_of(captured("qstat"))
    (running,) = jobs["running"]
    assert running == {
        "job_id": "0.pbsnode",
        "submit_time": SUBMITTED - 8,
        "start_time": SUBMITTED - 8,
        "requested_walltime": 600,
        "requested_processors": 2,
        "user": "alice",
        "group": "alice",
        "queue": "workq",
        "application": "train_model",
    }
    waiting = {job["job_id"]: job for job in jobs["waiting"]}
    assert waiting["1.pbsnode"]["requested_memory"] == 200 * 1024
    assert waiting["1.pbsnode"]["reason"] == "Not Running: Not enough free nodes available"
    assert {job_id for job_id, job in waiting.items() if job["held"]} == {"2.pbsnode", "5.pbsnode"}
    year = 365 * 24 * 3600
    assert waiting["4.pbsnode"]["requested_walltime"] == year, "it has no limit"


def test_a_value_of_which_the_quotes_are_escaped_is_named(follower, capsys):
    text = '{\n "A":{\n  "B":"say "yes"",\n  "C":,\n  "D":1\n }\n}'
    assert follower.document_in(text, "qstat") == {"A": {"B": 'say "yes"', "C": "", "D": 1}}
    assert capsys.readouterr().err == 'qstat: quotes in the value of "B": are escaped\n'


@pytest.mark.parametrize(
    ("comment", "held"),
    [
        ("Not Running: User has reached server max_run limit", True),
        ("Not Running: would exceed queue workq's per-user limit", True),
        ("Job would exceed the limit of resource ncpus of group g", True),
        ("Not Running: Not enough free nodes available", False),
    ],
)
def test_a_job_that_waits_for_a_limit_is_held(follower, comment, held):
    shown = captured("qstat")
    shown["Jobs"]["1.pbsnode"]["comment"] = comment
    jobs = {job["job_id"]: job for job in follower.queue_of(shown)["waiting"]}
    assert (jobs["1.pbsnode"]["held"], jobs["1.pbsnode"]["reason"]) == (held, comment)


def test_the_start_that_pbs_plans_is_handed_over(follower):
    """A top job has it; the form is that of a real OpenPBS 23.06.06."""
    shown = captured("qstat")
    shown["Jobs"]["1.pbsnode"]["estimated"] = {
        "exec_vnode": "(n1:ncpus=1)", "start_time": "Sun Nov 22 08:26:09 2026"
    }  # fmt: skip
    shown["Jobs"]["4.pbsnode"]["estimated"] = {"start_time": "soon"}
    jobs = {job["job_id"]: job for job in follower.queue_of(shown)["waiting"]}
    assert jobs["1.pbsnode"]["scheduler_start"] == SUBMITTED + 3600
    assert all("scheduler_start" not in job for key, job in jobs.items() if key != "1.pbsnode")


def a_node(processors, sharing="default_shared", **others):
    return {"resources_available": {"ncpus": processors}, "sharing": sharing, **others}


def a_job(place, cores, **others):
    return {
        "ctime": "Sun Nov 22 07:26:09 2026", "job_state": "Q", "queue": "workq",
        "Resource_List": {"ncpus": cores, "nodect": 2, "place": place, "mem": "64mb"}, **others,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("sharing", "place", "cores", "taken"),
    [
        ("default_shared", "free", 5, 5),
        ("default_shared", "excl", 5, 8),
        ("default_shared", "pack:exclhost", 3, 8),
        ("default_shared", "scatter:excl", 2, 16),
        ("default_shared", "free", 9, 9),
        ("default_shared", "free:excl", 9, 16),
        ("default_excl", "free", 5, 8),
        ("default_excl", "pack:shared", 5, 5),
        ("force_exclhost", "pack:shared", 5, 8),
        ("ignore_excl", 7, 5, 5),
    ],
)
def test_a_waiting_job_that_shares_no_node_takes_whole_ones(follower, sharing, place, cores, taken):
    nodes = {"nodes": {"a": a_node(8, sharing), "b": a_node(8, sharing), "c": a_node(64, sharing)}}
    body = follower.body_of({"Jobs": {"1.hill": a_job(place, cores)}}, nodes, SUBMITTED, 1)
    (job,) = body["waiting"]
    assert job["requested_processors"] == taken
    assert job["requested_memory"] * taken == pytest.approx(64 * 1024), "the same in all"


def test_a_running_job_takes_the_nodes_that_it_got(follower):
    nodes = {"nodes": {"a": a_node(8), "b": a_node(64), "c": a_node(8)}}
    vnodes = "(a:ncpus=1:mem=32768kb+b:ncpus=1)+(gone:ncpus=1)"
    running = {"job_state": "R", "stime": "Sun Nov 22 07:27:09 2026", "exec_vnode": vnodes}
    jobs = {"1.hill": a_job("scatter:excl", 3, **running), "2.hill": a_job("free", 3, **running)}
    body = follower.body_of({"Jobs": jobs}, nodes, SUBMITTED, 1)
    assert [job["requested_processors"] for job in body["running"]] == [72, 3]


def test_gpus_of_jobs_and_what_each_of_a_node_stands_for_are_handed_over(follower):
    nodes = {"a": a_node(8), "b": a_node(64), "c": a_node(64), "d": a_node(16, queue="gpuq")}
    for node, gpus in (("a", "none"), ("b", "4"), ("c", "4"), ("d", 99)):
        nodes[node]["resources_available"]["ngpus"] = gpus
    jobs = {f"{n}.hill": a_job("free", 2) for n in range(4)}
    for n, gpus in enumerate(("2", -1, "1e30", "x")):
        jobs[f"{n}.hill"]["Resource_List"]["ngpus"] = gpus
    body = follower.body_of({"Jobs": jobs}, {"nodes": nodes}, SUBMITTED, 1)
    assert body["queue_nodes"] == [{"queue": None, "processors": 64, "per_gpu": 16}]
    assert [each.get("gpus") for each in body["waiting"]] == [2, None, 2**31 - 1, None]
    QueueBody.model_validate_json(json.dumps(body))


def test_what_is_mended_keeps_its_meaning(follower):
    text = '{\n "A":005,\n "B":"x\\\\y\\n\\,",\n "C":-2,\n "D":{\n  "E":+7\n }\n}'
    shown = follower.document_in(text, "qstat")
    assert shown == {"A": "005", "B": "x\\y\n,", "C": -2, "D": {"E": "+7"}}


VALUES = (
    "005",
    "0x1A",
    ".5",
    "12.",
    "1e",
    "+7",
    "-3.5e+7",
    "-",
    "--1",
    "nan",
    "Infinity",
    "True",
    "None",
    "",
    " ",
    ",",
    "a b",
    "/home/alice",
    "$HOME",
    "a:b",
    "[1,2",
    "]",
    "1,2",
    """'single'""",
)
"""Values of variables that PBS before 23.06 prints without quotes, as if they were numbers."""

TEXTS = (
    "it\\'s",
    "a\\,b",
    "\\users",
    "C:\\temp\\new",
    "\\",
    "\\\\",
    "\\u12",
    "\\x1b[0m",
    'say "yes"',
    'say "yes", "no"',
    '"',
    '""',
    'x","y":{"z',
    'a"}}}}',
    '{"Jobs":{',
    '{"a": 1}',
    '{\n    "a": 1\n}',
    '{\n            "job_state": "F",\n        "1.pbsnode": 1\n}',
    '() {  if [ "$1" = "a" ]; then\n eval x;\n fi\n}',
    '() {  echo "a"\n}',
    "a\nb",
    'a\n"b"\n',
    "\x00\x07\t\r",
    "ünïcode-名 \ud83d\ude00 \ufffd",
    "/* ",
    "#",
    '"' * 5000,
)
"""Values that it prints within quotes, as they are."""

BROKEN = [*VALUES, *(f'"{text}"' for text in TEXTS)]


def as_text(shown):
    """What `qstat -f` or `pbsnodes -a` prints of a document, without JSON."""
    lines = []
    for kind, mark in (("Jobs", "Job Id: "), ("nodes", "")):
        for record, attributes in shown.get(kind, {}).items():
            lines.append(f"{mark}{record}")
            for key, value in attributes.items():
                members = value.items() if isinstance(value, dict) else [("", value)]
                lines += [f"    {key}{'.' * bool(m)}{m} = {v}" for m, v in members]
            lines.append("")
    return "\n".join(lines)


def prints_both(command, shown, broken):
    """Let a stand-in print broken JSON, and its text."""
    prints(command, broken)
    file = Path(command).with_suffix(".txt")
    file.write_text(as_text(shown))
    json_of = Path(command).with_suffix(".json")
    Path(command).write_text(
        f'#!/bin/sh\ncase "$*" in *json*) cat {json_of};; *) cat {file};; esac\n'
    )


def with_member(name, place, value):
    """Return what a command printed, with a member in its first job or node, as PBS prints it."""
    whole = captured(name)
    kind = "Jobs" if name == "qstat" else "nodes"
    first = next(iter(whole[kind]))
    inner = {place: {"FIRST": "1", "ODD": 0, "LAST": "2"}} if place else {"ODD": 0}
    whole[kind][first] |= inner
    return json.dumps(whole, indent=4).replace('"ODD": 0', f'"ODD":{value}', 1)


@pytest.mark.parametrize("place", ["Variable_List", ""])
@pytest.mark.parametrize("value", BROKEN)
def test_a_member_of_one_job_hides_no_job(follower, value, place):
    whole = captured("qstat")
    printed = with_member("qstat", place, value)
    for text in ("", as_text(whole)):
        found = follower.document_in(printed, "qstat", partial(follower.records_in, text))
        assert follower.queue_of(found) == follower.queue_of(whole)


@pytest.mark.parametrize("value", BROKEN)
def test_a_comment_of_one_node_hides_no_node(follower, value):
    whole = captured("pbsnodes")
    printed = with_member("pbsnodes", "", value)
    for text in ("", as_text(whole)):
        found = follower.document_in(printed, "pbsnodes", partial(follower.records_in, text))
        assert follower.sizes_of(found) == follower.sizes_of(whole)


def test_a_value_that_breaks_the_json_lets_the_command_be_read_without(follower, options, capsys):
    whole = captured("qstat")
    first = next(iter(whole["Jobs"]))
    broken = with_member("qstat", "Variable_List", "[1,2")
    whole["Jobs"][first]["Variable_List"] = {"ODD": "[1,2"}
    prints_both(options.qstat, whole, broken)
    taken = follower.snapshot(options)
    expected = follower.queue_of(whole)
    assert (taken["running"], taken["waiting"]) == (expected["running"], expected["waiting"])
    told = capsys.readouterr().err
    assert f"{options.qstat} printed what is no JSON" in told
    assert '"ODD":[1,2' in told


def test_a_value_of_several_lines_that_is_left_out_is_named(follower, capsys):
    printed = with_member("qstat", "Variable_List", '"{\n"x": "1",\n}"')
    assert len(follower.document_in(printed, "qstat")["Jobs"]) == len(captured("qstat")["Jobs"])
    assert 'qstat: the value of "ODD" is broken and left out' in capsys.readouterr().err


@pytest.mark.parametrize(
    "before",
    [
        "qstat: warning: the server is busy\n",
        "VMa: \n        Req'd  Req'd   Elap\nJob ID   Username  S Time\n2000.VMa amehm5  R 25:26\n",
        "Welcome to hill {mind the queue}\n\n",
        "\ufeff",
        "\n\n   ",
    ],
)
def test_text_before_the_json_is_passed_over(follower, before):
    printed = before + json.dumps(captured("qstat"), indent=4)
    assert follower.document_in(printed, "qstat") == captured("qstat")


def test_jobs_that_pbs_18_prints_each_in_a_table_of_its_own_are_all_read(follower):
    jobs = {"7.hill": job(), "8.hill": job()}
    apart = (
        "{" + ", ".join(f'"Jobs": {json.dumps({key: each})}' for key, each in jobs.items()) + "}"
    )
    assert follower.document_in(apart, "qstat") == {"Jobs": jobs}
    again = json.dumps({"Jobs": jobs}, indent=4).replace(
        '    "8.hill"', '    "Jobs": {\n        "8.hill"'
    )
    assert follower.queue_of(follower.document_in(again, "qstat")) == follower.queue_of(
        {"Jobs": jobs}
    )


@pytest.mark.parametrize(
    "odd",
    [{"Jobs": []}, {"Jobs": {"7.hill": "x"}}, {"Jobs": {"7.hill": None}}, {"Jobs": None}, {}],
)
def test_what_is_no_table_of_jobs_is_no_job(follower, odd):
    assert follower.queue_of(odd) == {"running": [], "waiting": []}
    nodes = {"nodes": {"a": 1, "b": {"resources_available": "x", "state": "free"}}}
    assert follower.pools_of(nodes) == []


@pytest.mark.parametrize("text", ["[]", "7", '"x"', "null", "", "{", "}", "Job Id: 7.hill"])
def test_what_is_no_document_is_refused(follower, text):
    with pytest.raises(ValueError, match="qstat printed what is no JSON"):
        follower.document_in(text, "qstat", partial(follower.records_in, text))


def test_json_that_is_cut_short_is_read_from_the_text(follower, options, capsys):
    whole = captured("qstat")
    prints_both(options.qstat, whole, json.dumps(whole, indent=4)[:-200])
    assert follower.snapshot(options)["running"] == follower.queue_of(whole)["running"]
    assert "it is read without" in capsys.readouterr().err


def test_what_is_no_json_is_said_to_be_none(follower):
    with pytest.raises(ValueError, match="qstat printed what is no JSON"):
        follower.document_in("Req'd Memory", "qstat")


def test_the_tasks_of_an_array_wait_and_the_array_itself_does_not(follower):
    jobs = follower.queue_of(captured("qstat"))
    found = [job["job_id"] for job in jobs["waiting"] if job["application"] == "sweep"]
    assert found == [f"3[{task}].pbsnode" for task in range(1, 6)]


WHEN = "Sun Nov 22 07:26:09 2026"


def job(state="Q", **shown):
    """A job as qstat shows it."""
    return {"job_state": state, "ctime": WHEN, "Job_Owner": "ghost@login1"} | shown


def read(follower, **shown):
    """What is made of one job that waits."""
    (found,) = follower.queue_of({"Jobs": {"7.hill": job(**shown)}})["waiting"]
    return found


def test_the_tasks_of_an_array_with_a_limit_wait_for_one_another(follower):
    comment = "Not Running: Number of concurrent running subjobs limit reached"
    jobs = {
        "7[].hill": job("B", max_run_subjobs=2),
        "7[1].hill": job("R", stime=WHEN),
        "7[2].hill": job(comment=comment),
        "8[].hill": job("B"),
        "8[1].hill": job(comment=comment),
    }
    found = follower.queue_of({"Jobs": jobs})
    assert [(each["array"], each["array_limit"]) for each in found["running"]] == [("7[].hill", 2)]
    limits = {each["job_id"]: (each["held"], each.get("array_limit")) for each in found["waiting"]}
    assert limits == {"7[2].hill": (False, 2), "8[1].hill": (True, None)}


def test_a_job_that_asks_for_nothing_has_one_core_and_no_limit(follower):
    assert read(follower) == {
        "job_id": "7.hill",
        "submit_time": SUBMITTED,
        "requested_walltime": follower.NO_LIMIT,
        "requested_processors": 1,
        "user": "ghost",
        "held": False,
    }
    assert read(follower, Resource_List={"ncpus": 0})["requested_processors"] == 1


@pytest.mark.parametrize(
    ("mark", "named"),
    [
        ("3f-1", "3f-1"),
        ("3f-2.3f-1", "3f-2"),
        ("a b", None),
        (7, "7"),
        ("x" * 65, None),
        ("", None),
    ],
)
def test_the_prediction_that_the_hook_noted_is_named(follower, mark, named):
    found = read(follower, Resource_List={"walltimed_prediction": mark})
    assert found.get("prediction_id") == named


def test_the_memory_is_that_of_one_core(follower):
    asked = read(follower, Resource_List={"ncpus": 4, "mem": "8gb", "walltime": "01:02:03"})
    assert (asked["requested_processors"], asked["requested_memory"]) == (4, 2 * 1024**2)
    assert asked["requested_walltime"] == 3723


@pytest.mark.parametrize(
    ("written", "kibibytes"),
    [
        ("2048", 2),
        ("2048b", 2),
        ("3kb", 3),
        ("3MB", 3 * 1024),
        ("3gb", 3 * 1024**2),
        ("3tb", 3 * 1024**3),
        ("much", None),
        (None, None),
    ],
)
def test_sizes_are_read_in_every_unit(follower, written, kibibytes):
    assert follower.kibibytes(written) == kibibytes


def test_whom_a_job_runs_as_is_its_user_and_the_account_stands_in_for_the_project(follower):
    named = read(follower, euser="ada", Account_Name="zeolite", project="_pbs_project_default")
    assert (named["user"], named["project"]) == ("ada", "zeolite")
    assert read(follower, Account_Name="zeolite", project="silica")["project"] == "silica"
    assert read(follower, Account_Name="zeolite")["project"] == "zeolite"


@pytest.mark.parametrize(
    "asked",
    [{"walltime": "300000:00:00"}, {"mem": "10000000tb"}, {"ncpus": 2**31}],
)
def test_a_job_that_asks_for_more_than_there_is_keeps_the_queue_from_nobody(follower, asked):
    body = follower.queue_of({"Jobs": {"7.hill": job(Resource_List=asked), "8.hill": job()}})
    taken = QueueBody.model_validate_json(json.dumps(body | {"pools": [{"processors": 1}]}))
    assert [each.job_id for each in taken.waiting] == ["7.hill", "8.hill"]


def test_a_name_is_cut_and_made_harmless(follower):
    assert read(follower, Job_Name="a\n" + "x" * 300)["application"] == "a?" + "x" * 253


@pytest.mark.parametrize("shown", [{"job_state": "F"}, {"job_state": "R"}, {"ctime": "soon"}])
def test_what_neither_runs_nor_waits_is_in_no_queue(follower, shown):
    """A run whose start cannot be read is left out rather than said to wait."""
    jobs = {"7.hill": job(**shown), "8[].hill": job(), "9.hill": job()}
    found = follower.queue_of({"Jobs": jobs})
    assert found["running"] == []
    assert [each["job_id"] for each in found["waiting"]] == ["9.hill"]


def test_a_job_that_ran_before_and_waits_again_waits(follower):
    jobs = {"7.hill": job("Q", stime=WHEN), "8.hill": job("R", stime=WHEN)}
    found = follower.queue_of({"Jobs": jobs})
    assert [each["job_id"] for each in found["running"]] == ["8.hill"]
    assert [each["job_id"] for each in found["waiting"]] == ["7.hill"]


def test_jobs_wait_by_priority_and_then_by_age(follower):
    later = "Sun Nov 22 08:26:09 2026"
    jobs = {
        "1.hill": job(ctime=later),
        "2.hill": job(),
        "3.hill": job(),
        "4.hill": job(ctime=later, Priority=5),
        "5.hill": job(ctime=later, Priority=-5),
    }
    waiting = follower.queue_of({"Jobs": jobs})["waiting"]
    assert [each["job_id"][0] for each in waiting] == ["4", "2", "3", "1", "5"]


def test_a_queue_of_which_no_node_is_up_has_no_pool(follower):
    nodes = {
        "n1": {"state": "free", "resources_available": {"ncpus": 1}},
        "n2": {"state": "down", "queue": "big", "resources_available": {"ncpus": 8}},
        "n3": {"state": "free", "queue": "long", "resources_available": {"ncpus": 1}},
        "n4": {"state": "free", "queue": "long", "resources_available": {"ncpus": 2}},
    }
    assert follower.pools_of({"nodes": nodes}) == [
        {"processors": 1, "queues": []},
        {"processors": 3, "queues": ["long"]},
    ]


def test_nodes_that_are_down_count_for_nothing_but_what_runs_on_them(follower):
    nodes = captured("pbsnodes")
    assert follower.pools_of(nodes) == [{"processors": 2, "queues": []}]
    nodes["nodes"]["pbsnode"]["state"] = "offline"
    nodes["nodes"]["n2"] = {
        "state": "down,offline",
        "resources_available": {"ncpus": 8},
    }
    nodes["nodes"]["n3"] = {
        "state": "free",
        "queue": "big",
        "resources_available": {"ncpus": 64},
    }
    assert follower.pools_of(nodes) == [
        {"processors": 2, "queues": []},
        {"processors": 64, "queues": ["big"]},
    ]


def test_commands_are_found_where_pbs_says_that_it_is(program, follower, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PBS_CONF_FILE", str(tmp_path / "pbs.conf"))
    assert follower.program("qstat") == "qstat"
    (tmp_path / "pbs.conf").write_text("# PBS\nPBS_HOME=/var/spool/pbs\nPBS_EXEC=/opt/hill\n")
    assert program.parsed([]).qstat == "/opt/hill/bin/qstat"
    (tmp_path / "qstat").write_text("#!/bin/sh\n")
    (tmp_path / "qstat").chmod(0o755)
    assert program.parsed([]).qstat == str(tmp_path / "qstat")
    assert program.parsed([]).pbsnodes == "/opt/hill/bin/pbsnodes"


def test_the_service_takes_what_is_handed_over(follower, options, sqlite_url, monkeypatch, capsys):
    with InProcess(sqlite_url) as service:

        def urlopen(request, timeout):
            del timeout
            answer = service.request(
                request.method,
                "/v1/clusters/hill/snapshot",
                content=request.data,
                headers={"content-type": request.headers["Content-type"]},
            )
            assert answer.status_code == 202, answer.text
            return open(os.devnull)  # noqa: PTH123 - closed by the caller

        monkeypatch.setattr(follower.urllib.request, "urlopen", urlopen)
        assert follower.follow(options, threading.Event()) == 0
        shown = service.get("/v1/clusters/hill/snapshot").json()
    printed = capsys.readouterr()
    assert printed.out.endswith("\n1 running, 9 waiting\n")
    assert "handed over again" not in printed.err, "nothing was wrong"
    assert shown["totals"]["running"] == {"jobs": 1, "processors": 2}
    assert shown["totals"]["waiting"]["jobs"] == 7
    assert shown["totals"]["held"]["jobs"] == 2


def test_what_is_wrong_is_told_and_ends_a_single_look(follower, options, capsys):
    options.qstat = "/nowhere/qstat"
    assert follower.follow(options, threading.Event()) == 1
    assert "will try again: " in capsys.readouterr().err


def test_what_a_command_complains_of_is_told_but_not_without_end(
    follower, options, tmp_path, capsys
):
    refusing = tmp_path / "refusing"
    refusing.write_text(f"#!/bin/sh\necho {'x' * 400} >&2\nexit 1\n")
    refusing.chmod(0o755)
    options.qstat = str(refusing)
    assert follower.follow(options, threading.Event()) == 1
    assert capsys.readouterr().err.endswith(f"failed: {'x' * 300}\n")


def test_a_machine_without_processors_is_not_handed_over(follower, options, tmp_path, capsys):
    (tmp_path / "pbsnodes").write_text("#!/bin/sh\necho '{}'\n")
    assert follower.follow(options, threading.Event()) == 1
    assert "pbsnodes" in capsys.readouterr().err


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_token_is_told_with_what_to_do(follower, options, status):
    refused = follower.urllib.error.HTTPError("http://x", status, "No", {}, None)
    told = follower.advice_about(refused, options)
    assert "without a token" in told
    assert "--scope ingest" in told
    options.token_file = "/etc/token"
    assert "refuses /etc/token" in follower.advice_about(refused, options)
    refused.close()


def test_the_queue_goes_to_the_clusters_own_address_with_the_token(follower, options, tmp_path):
    (tmp_path / "token").write_text("wt_1_secret\n")
    options.token_file, options.cluster = str(tmp_path / "token"), "a/b"
    with fake_service(http(202, b"{}"), hangs_up=True) as service:
        options.url = f"{service.url}/"
        assert follower.follow(options, threading.Event()) == 0
    assert service.headers[0].startswith("PUT /v1/clusters/a%2Fb/snapshot HTTP/1.1\r\n")
    assert "Authorization: Bearer wt_1_secret\r\n" in service.headers[0]
    (sent,) = service.requests
    assert (sent["policy"], sent["depth"], len(sent["waiting"])) == ("easy", 1, 9)


def test_trouble_is_told_once_and_waited_for_ever_longer_up_to_five_minutes(
    follower, options, capsys
):
    options.once = False
    with fake_service(http(503, b"{}"), hangs_up=True) as service:
        options.url = service.url

        def recover(look):
            if look == 4:
                service.answer = http(202, b"{}")

        looks = Looks(6, recover)
        assert follower.follow(options, looks) == 0
    assert looks.waits == [120, 240, 300, 300, 60, 60]
    told = capsys.readouterr().err.splitlines()
    assert told == [
        "will try again: HTTP Error 503: Whatever",
        "the queue is handed over again",
    ]


@pytest.mark.parametrize(
    ("bound", "unbound", "held"),
    [("down", "free", {"big"}), ("free", "down", {"workq"}), ("free", "free", set())],
)
def test_a_job_whose_nodes_are_all_down_waits_for_them(follower, options, bound, unbound, held):
    jobs = {f"{n}.hill": job(queue=queue) for n, queue in enumerate(("big", "workq"))}
    prints(options.qstat, json.dumps({"Jobs": jobs}))
    nodes = {
        "n1": {"state": bound, "queue": "big", "resources_available": {"ncpus": 8}},
        "n2": {"state": unbound, "resources_available": {"ncpus": 8}},
    }
    prints(options.pbsnodes, json.dumps({"nodes": nodes}))
    waiting = follower.snapshot(options)["waiting"]
    assert {job["queue"] for job in waiting if job["held"]} == held


def test_one_look_reports_the_runs_and_hands_the_queue_over(program, options, tmp_path):
    log = tmp_path / "accounting"
    log.mkdir()
    (log / "20310203").write_text("02/03/2031 04:15:06;E;1.hill;user=carol\n")
    words = ["--directory", log, "--state", tmp_path / "state.json", "--since", "20310203"]
    words += ["--qstat", options.qstat, "--pbsnodes", options.pbsnodes, "--once"]
    with fake_service(http(200, b"{}", "Content-Type: application/json"), hangs_up=True) as service:
        assert program.main([*map(str, words), "--url", service.url]) == 0
    called = sorted(head.split()[1].partition("?")[0] for head in service.headers)
    assert called == ["/v1/adapters/pbs/accounting", "/v1/clusters/default/snapshot"]


ODD = (*ODD_VALUES, "Infinity", "-inf", None, [], {}, ["x"], True, -1, 1.5, [["x"]], "x" * 5000)
RESOURCES = ("ncpus", "mem", "walltime", "select", "walltimed_prediction")


def taken(body, **pools):
    """The queue as the service takes it."""
    return QueueBody.model_validate_json(
        json.dumps({"pools": [{"processors": 1}], **body, **pools})
    )


@pytest.mark.parametrize("field", [*captured("qstat")["Jobs"]["1.pbsnode"], "stime", *RESOURCES])
def test_no_odd_value_of_one_job_keeps_the_others_from_being_handed_over(follower, field):
    whole = captured("qstat")["Jobs"]["1.pbsnode"] | {"stime": WHEN}
    for value in ODD:
        asked = whole["Resource_List"] | {field: value}
        odd = whole | ({"Resource_List": asked} if field in RESOURCES else {field: value})
        for state in ("Q", "R"):
            jobs = {"1.hill": {"job_state": state} | odd, "2.hill": whole}
            found = taken(follower.queue_of({"Jobs": jobs}))
            assert "2.hill" in {job.job_id for job in found.waiting}, value


@pytest.mark.parametrize("value", ["", "x" * 400, "\n", "1\u2028", "7[].hill"])
def test_a_job_without_an_id_that_the_service_takes_is_left_out(follower, value):
    body = follower.queue_of({"Jobs": {value: job(), "8.hill": job()}})
    assert [each.job_id for each in taken(body).waiting] == ["8.hill"]


@pytest.mark.parametrize("field", [*next(iter(captured("pbsnodes")["nodes"].values())), "ncpus"])
def test_no_odd_value_of_one_node_keeps_the_others_from_being_counted(follower, field):
    (whole,) = captured("pbsnodes")["nodes"].values()
    for value in ODD:
        odd = whole | {field: value}
        if field == "ncpus":
            odd = whole | {"resources_available": {"ncpus": value}}
        pools = follower.pools_of({"nodes": {"a": odd, "b": whole | {"queue": "long"}}})
        assert taken({}, pools=pools).pools[-1].processors == 2, value


def late_job(walltime="01:00:00", queue="long"):
    """A running job that was started 55 minutes ago."""
    started = time.strftime("%a %b %d %H:%M:%S %Y", time.gmtime(time.time() - 3300))
    asked = {"walltime": walltime, "ncpus": 1}
    times = {"ctime": started, "stime": started}
    return {"job_state": "R", "queue": queue, "Resource_List": asked} | times


@pytest.fixture
def extending(options, tmp_path):
    """Options of a site that extends jobs of long, which has a largest walltime."""
    shown = {
        "Jobs": {"1.hill": late_job(), "2.hill": late_job(queue="short")},
        "Queue": {"long": {"resources_max": {"walltime": "01:30:00"}}},
        "Server": {"hill": {"resources_max": {"walltime": "24:00:00"}}},
    }
    prints(options.qstat, json.dumps(shown))
    qalter = tmp_path / "qalter"
    qalter.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path / "altered"}\n')
    qalter.chmod(0o755)
    options.extend, options.qalter = ["long"], str(qalter)
    options.extended = str(tmp_path / "extended.json")
    return options


def limits(walltime, job="1.hill"):
    answer = {"limits": [{"job_id": job, "walltime": walltime}]}
    return http(200, json.dumps(answer).encode())


def altered(tmp_path):
    file = tmp_path / "altered"
    return file.read_text().splitlines() if file.exists() else []


def test_the_walltime_of_a_late_job_of_the_queue_is_extended_once(
    follower, extending, tmp_path, capsys
):
    with fake_service(limits(5400.0), hangs_up=True) as service:
        extending.url = service.url
        assert follower.follow(extending, threading.Event()) == 0
        assert follower.follow(extending, threading.Event()) == 0
    assert altered(tmp_path) == ["-l walltime=5400 1.hill"]
    assert "1.hill: walltime extended from 3600 to 5400 s" in capsys.readouterr().out
    asked = [each for each in service.requests if "jobs" in each]
    bound = {"job_id": "1.hill", "most": 5400.0}
    assert asked == [{"jobs": [bound], "delay": 0.0, "used": 0.8}], "at most that of the queue"
    assert json.loads(Path(extending.extended).read_text()) == {"1.hill": 3600}


@pytest.mark.parametrize(
    "answer",
    [limits(None), limits(5401.0), limits(3600.0), limits(1e300), limits(5400.0, "2.hill")],
)
def test_what_is_not_granted_or_beyond_the_bound_is_not_set(follower, extending, tmp_path, answer):
    with fake_service(answer, hangs_up=True) as service:
        extending.url = service.url
        assert follower.follow(extending, threading.Event()) == 0
    assert altered(tmp_path) == []


@pytest.mark.parametrize(
    "answer", [http(200, b"{}"), http(200, b"x"), http(200, b"[1]"), http(200, b'{"limits": [1]}')]
)
def test_an_answer_that_is_none_extends_nothing_and_is_told(
    follower, extending, tmp_path, answer, capsys
):
    with fake_service(answer, hangs_up=True) as service:
        extending.url = service.url
        assert follower.follow(extending, threading.Event()) == 1
    assert altered(tmp_path) == []
    assert "will try again" in capsys.readouterr().err


def test_a_job_that_cannot_be_noted_is_not_extended(follower, extending, tmp_path):
    extending.extended = str(tmp_path / "missing" / "extended.json")
    with fake_service(limits(5400.0), hangs_up=True) as service:
        extending.url = service.url
        assert follower.follow(extending, threading.Event()) == 1
    assert altered(tmp_path) == []


def test_without_the_option_no_walltime_is_asked_for(follower, extending, tmp_path):
    extending.extend = []
    with fake_service(limits(5400.0), hangs_up=True) as service:
        extending.url = service.url
        assert follower.follow(extending, threading.Event()) == 0
    assert len(service.requests) == 1
    assert altered(tmp_path) == []


def test_a_value_that_looks_like_an_attribute_breaks_no_record(follower):
    text = """Job Id: 7.hill
    Resource_List = x
    Resource_List.ncpus = 4
    ctime = Sun Nov 22 07:26:09 2026
    job_state = Q
"""
    (found,) = follower.queue_of(follower.records_in(text))["waiting"]
    assert (found["job_id"], found["requested_processors"]) == ("7.hill", 1)
