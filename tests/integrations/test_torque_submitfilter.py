"""Torque's submit filter as qsub runs it: script in, script out, exit code 0."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fake_service import (
    GARBAGE,
    WRONG_LENGTHS,
    fake_service,
    prediction,
)

from predictors.facts import script_hash_of

FILTER = Path(__file__).parents[2] / "integrations" / "pbs" / "torque_submitfilter.py"
SCRIPT = b"#!/bin/sh\n#PBS -N relax -l nodes=2:ppn=4,walltime=01:00:00\n./relax \xff\n#PBS -q x\n"


def submit(tmp_path, service, script=SCRIPT, *arguments, **config):
    file = tmp_path / "submitfilter.json"
    patient = service.patience("budget_seconds")
    file.write_text(json.dumps({"port": service.port} | patient | config))
    done = subprocess.run(
        [sys.executable, "-S", "-E", FILTER, *arguments],
        input=script,
        capture_output=True,
        check=False,
        env={"WALLTIMED_SUBMITFILTER": str(file), "LOGNAME": "carol", "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0
    return done.stdout, done.stderr.decode()


def answered(tmp_path, answer, *script_and_words, **config):
    """What became of a submission that the service answers so: the script, and what was said."""
    with fake_service(answer, hangs_up=True) as service:
        return submit(tmp_path, service, *script_and_words, **config)


def test_the_script_passes_and_the_user_is_told(tmp_path):
    with fake_service(prediction(), hangs_up=True) as service:
        script, told = submit(
            tmp_path, service, SCRIPT, "-q", "batch", "-A", "zeolite", facts=False
        )
    assert script == SCRIPT
    numbers = "likely 5 min, range 1 min to 30 min (90%), requested 60 min"
    assert told == f"walltimed: {numbers}\n"
    assert service.requests == [
        {
            "cluster": "default",
            "user": "carol",
            "project": "zeolite",
            "queue": "batch",
            "application": "relax",
            "requested_walltime": 3600,
            "requested_processors": 8,
        }
    ]


def test_the_command_line_wins_over_the_script(tmp_path):
    with fake_service(prediction(), hangs_up=True) as service:
        submit(tmp_path, service, SCRIPT, "-lwalltime=2:00:00", "-N", "other")
    assert service.requests[0]["requested_walltime"] == 7200
    assert service.requests[0]["application"] == "other"
    assert service.requests[0]["requested_processors"] == 8
    assert "queue" not in service.requests[0], "what follows a command is no directive"


def asked(tmp_path, *arguments, script=b"./relax\n", **config):
    """What the service is asked about a job."""
    with fake_service(prediction(), hangs_up=True) as service:
        submit(tmp_path, service, script, *arguments, **config)
    return service.requests[0]


def test_the_filter_tells_what_it_sees_of_a_job(tmp_path):
    script = b"#PBS -l nodes=2:ppn=8:fast,qos=high\n./relax 12 # fast\n"
    told = asked(tmp_path, "-d", "/home/carol/1\x01", script=script)
    found = {name: told[name] for name in ("work_dir", "constraint", "qos", "script_hash")}
    assert found == {
        "work_dir": "/home/carol/1?",
        "constraint": "2:ppn=8:fast",
        "qos": "high",
        "script_hash": script_hash_of(script),
    }
    assert asked(tmp_path, "-I", script=b"")["interactive"] is True


def test_a_job_that_asks_for_nothing_is_one_of_a_day_on_one_core(tmp_path):
    assert asked(tmp_path, facts=False) == {
        "cluster": "default",
        "user": "carol",
        "requested_walltime": 86400,
        "requested_processors": 1,
    }


@pytest.mark.parametrize(
    ("nodes", "cores"),
    [("0", 1), ("hosta:ppn=2+3", 5), ("2:ppn=4+1", 9), ("2u-a:ppn=2+3#shared", 5)],
)
def test_cores_are_counted_over_all_nodes(tmp_path, nodes, cores):
    assert asked(tmp_path, "-l", f"nodes={nodes}")["requested_processors"] == cores


def test_a_walltime_may_have_days(tmp_path):
    walltime = asked(tmp_path, "-l", "walltime=1:02:03:04")["requested_walltime"]
    assert walltime == 86400 + 2 * 3600 + 3 * 60 + 4


def test_directives_are_read_as_qsub_reads_them(tmp_path):
    script = b"#PBS-N relax\n\n#PBS -A zeolite # -A silica\n./relax\n"
    found = asked(tmp_path, "-", "job.sh", "-q", "batch", script=script)
    assert (found["application"], found["project"], found["queue"]) == ("relax", "zeolite", "batch")


def test_the_token_goes_along(tmp_path):
    (tmp_path / "token").write_text("wt_1_secret\n")
    with fake_service(prediction(), hangs_up=True) as service:
        submit(tmp_path, service, token_file=str(tmp_path / "token"))
    assert "Authorization: Bearer wt_1_secret\r\n" in service.headers[0]
    assert re.search(
        r"User-Agent: torque_submitfilter\.py/[0-9.]+ \([a-z]+\)\r\n", service.headers[0]
    )


@pytest.mark.parametrize(
    "answer",
    [{"predicted_walltime": 3600}, {"basis": {"jobs": 0, "reason": "cold-start"}}],
)
def test_without_anything_to_say_it_is_silent(tmp_path, answer):
    assert answered(tmp_path, prediction(**answer))[1] == ""


@pytest.mark.parametrize(
    ("interval", "told"),
    [
        ((0, 7199, 0.9), "range 0 s to 2.0 h (90%),"),
        ((60, 1e9, 0.95), "(95%),"),
        ((60, 1800, 1.1), ""),
    ],
)
def test_a_range_is_told_as_it_is(tmp_path, interval, told):
    lower, upper, coverage = interval
    answer = prediction(interval={"lower": lower, "upper": upper, "coverage": coverage})
    said = answered(tmp_path, answer)[1]
    assert told in said
    assert bool(said) is bool(told)


def test_it_is_said_whose_runs_a_prediction_rests_on(tmp_path):
    others = prediction(basis={"jobs": 5, "reason": "others"})
    assert "of other users" in answered(tmp_path, others)[1]
    young = answered(tmp_path, prediction(basis={"jobs": 5, "reason": "young-cluster"}))[1]
    assert "range" not in young


ASK = """
import signal, sys, torque_submitfilter as filter
config = dict(filter.DEFAULTS, port=int(sys.argv[1]), budget_seconds=20)
answer = filter.ask({}, config)
print(filter.DEFAULTS["budget_seconds"], answer["predicted_walltime"])
print(signal.getitimer(signal.ITIMER_REAL))
"""


def test_the_budget_is_for_the_question_alone():
    """An alarm that goes off later would cut the script that is passed on."""
    with fake_service(prediction(), hangs_up=True) as service:
        done = subprocess.run(
            [sys.executable, "-S", "-B", "-c", ASK, str(service.port)],
            cwd=FILTER.parent,
            capture_output=True,
            text=True,
            check=True,
        )
    assert done.stdout == "0.2 421.5\n(0.0, 0.0)\n"


DEFAULT = {"set_default": True}


def test_a_walltime_stands_before_a_script_that_names_no_shell(tmp_path):
    interval = {"lower": 1.0, "upper": 61.0, "coverage": 0.9}
    answer = prediction(predicted_walltime=2, interval=interval)
    passed, _ = answered(tmp_path, answer, b"./relax\n", **DEFAULT)
    assert passed == b"#PBS -l walltime=00:01:32\n./relax\n"


def test_no_limit_rests_on_runs_that_lasted_next_to_nothing(tmp_path):
    interval = {"lower": 0.0, "upper": 60.0, "coverage": 0.9}
    answer = prediction(predicted_walltime=30, interval=interval)
    passed, _ = answered(tmp_path, answer, b"./relax\n", **DEFAULT)
    assert passed == b"./relax\n"


@pytest.mark.parametrize(
    ("config", "interval", "line"),
    [
        ({}, {"upper": 1800.5, "coverage": 0.9}, None),
        (DEFAULT, {"upper": 1800.5, "coverage": 0.9}, b"#PBS -l walltime=00:45:01\n"),
        (DEFAULT, {"upper": 1800.5, "coverage": 0.8}, None),
        (DEFAULT, {"upper": 1800.5}, None),
        (DEFAULT, {"upper": 10, "coverage": 0.9}, b"walltime=00:10:33\n"),  # 421.5 s predicted
        (DEFAULT | {"limit_margin": 0.1}, {"upper": 900, "coverage": 0.9}, b"walltime=00:15:00\n"),
        (DEFAULT, None, None),
        (DEFAULT | {"assumed_walltime": 600}, {"upper": 1800, "coverage": 1}, b"=00:10:00\n"),
    ],
)
def test_a_job_without_a_walltime_gets_one_only_where_the_site_wants_it(
    tmp_path, config, interval, line
):
    script = b"#!/bin/sh\n./relax\n"
    passed, _ = answered(tmp_path, prediction(interval=interval), script, **config)
    if line is None:
        assert passed == script
    else:
        assert passed.startswith(b"#!/bin/sh\n#PBS")
        assert line in passed


def test_a_few_runs_of_the_user_set_no_walltime(tmp_path):
    answer = prediction(basis={"jobs": 4, "reason": "history"})
    assert (
        answered(tmp_path, answer, b"#!/bin/sh\n./relax\n", **DEFAULT)[0] == b"#!/bin/sh\n./relax\n"
    )


def test_too_little_history_sets_no_walltime_and_tells_no_range(tmp_path):
    answer = prediction(basis={"jobs": 5, "reason": "young-cluster"})
    passed, _ = answered(tmp_path, answer, b"#!/bin/sh\n./relax\n", **DEFAULT)
    _, told = answered(tmp_path, answer)
    assert passed == b"#!/bin/sh\n./relax\n"
    assert "likely 5 min" in told
    assert "range" not in told


def test_a_walltime_that_was_given_is_never_replaced(tmp_path):
    passed, _ = answered(tmp_path, prediction(), SCRIPT, set_default=True)
    assert passed == SCRIPT


SURE = {"lower": 1.0, "upper": 1800.5, "coverage": 0.9}
NO_NUMBERS = [-5, 0, float("nan"), float("inf"), -float("inf"), "300", True, [300], None, 10**400]
NO_LIMITS = [
    *(prediction(predicted_walltime=each, interval=SURE) for each in (*NO_NUMBERS, 1e9 + 1)),
    *(prediction(interval=SURE | {"upper": each}) for each in (*NO_NUMBERS, 1e9 + 1)),
    *(prediction(interval=SURE | {"coverage": each}) for each in (*NO_NUMBERS, 1.1)),
    *(prediction(interval=each) for each in ([1, 2], "wide", 7, {}, {"coverage": 0.9})),
    *GARBAGE.values(),
    *WRONG_LENGTHS.values(),
]


@pytest.mark.parametrize("answer", NO_LIMITS, ids=range(len(NO_LIMITS)))
def test_an_answer_that_makes_no_sense_sets_no_limit(tmp_path, answer):
    passed, _ = answered(tmp_path, answer, b"./relax\n", **DEFAULT)
    assert passed == b"./relax\n"


@pytest.mark.parametrize("name", ["limit_margin", "assumed_walltime"])
@pytest.mark.parametrize("value", [-1, 0, "2", None])
def test_a_setting_that_makes_no_sense_sets_no_limit(tmp_path, name, value):
    passed, _ = answered(tmp_path, prediction(), b"./relax\n", **DEFAULT, **{name: value})
    assert passed == b"./relax\n"


def test_without_a_configuration_the_script_passes(tmp_path):
    done = subprocess.run(
        [sys.executable, FILTER],
        input=SCRIPT,
        capture_output=True,
        check=True,
        env={"WALLTIMED_SUBMITFILTER": str(tmp_path / "none")},
    )
    assert (done.stdout, done.stderr) == (SCRIPT, b"")


def test_the_switch_lets_every_script_pass(tmp_path, monkeypatch):
    off, copy = tmp_path / "walltimed.off", tmp_path / "filter.py"
    copy.write_text(FILTER.read_text().replace("/etc/walltimed/walltimed.off", str(off)))
    monkeypatch.setitem(globals(), "FILTER", copy)
    assert answered(tmp_path, prediction())[1].startswith("walltimed: likely")
    off.write_text("")
    assert answered(tmp_path, prediction(), b"./relax\n", set_default=True) == (b"./relax\n", "")


LIKE = "of your last 9 jobs like this one were ended at their limit; this one's is 01:00:00"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"like_hits": 6, "like_runs": 9, "longer_walltime": 21_600.0},
            f"6 {LIKE}; ask for 06:00:00, or save its state before",
        ),
        (
            {"like_hits": 0, "like_runs": 0, "longer_walltime": None},
            (
                "such a job is ended at its limit of 01:00:00 with a probability of 72%; save its "
                "state before"
            ),
        ),
        (
            {"like_hits": 6, "like_runs": 9, "longer_walltime": 3000.0},
            f"6 {LIKE}; save its state before",
        ),
    ],
)
def test_a_job_that_will_probably_be_cut_is_told_so(tmp_path, changes, told):
    cut = {"limit_warning": True, "limit_probability": 0.72} | changes
    script, line = answered(tmp_path, prediction(**cut))
    assert (script, line) == (SCRIPT, f"walltimed: {told}\n")


@pytest.mark.parametrize(
    "changes",
    [
        {"like_hits": "6", "like_runs": 9},
        {"like_hits": 6, "like_runs": 9, "longer_walltime": [1]},
        {"limit_probability": None},
        {"limit_probability": 1.5},
    ],
)
def test_a_warning_of_nonsense_is_not_said(tmp_path, changes):
    cut = {"limit_warning": True, "limit_probability": 0.72, "longer_walltime": None} | changes
    assert answered(tmp_path, prediction(**cut)) == (SCRIPT, "")
