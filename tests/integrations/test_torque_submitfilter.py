"""Torque's submit filter as qsub runs it: script in, script out, exit code 0."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fake_service import GARBAGE, fake_service, prediction

FILTER = Path(__file__).parents[2] / "integrations" / "pbs" / "torque_submitfilter.py"
SCRIPT = b"#!/bin/sh\n#PBS -N relax -l nodes=2:ppn=4,walltime=01:00:00\n./relax \xff\n#PBS -q x\n"


def submit(tmp_path, service, script=SCRIPT, *arguments, **config):
    file = tmp_path / "submitfilter.json"
    patient = service.patience("budget_seconds")
    file.write_text(json.dumps({"port": service.port} | patient | config))
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-S", "-E", FILTER, *arguments],
        input=script,
        capture_output=True,
        check=False,
        env={"WALLTIMED_SUBMITFILTER": str(file), "LOGNAME": "carol", "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0
    return done.stdout, done.stderr.decode(), time.monotonic() - began


def test_the_script_passes_and_the_user_is_told(tmp_path):
    with fake_service(prediction(), hangs_up=True) as service:
        script, told, _ = submit(tmp_path, service, SCRIPT, "-q", "batch", "-A", "zeolite")
    assert script == SCRIPT
    assert told == ("walltimed: jobs like this one ran about 00:07:02; this one may run 01:00:00\n")
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


DEFAULT = {"set_default": True}


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
    with fake_service(prediction(interval=interval), hangs_up=True) as service:
        passed, _, _ = submit(tmp_path, service, script, **config)
    if line is None:
        assert passed == script
    else:
        assert passed.startswith(b"#!/bin/sh\n#PBS")
        assert line in passed


def test_a_walltime_that_was_given_is_never_replaced(tmp_path):
    with fake_service(prediction(), hangs_up=True) as service:
        passed, _, _ = submit(tmp_path, service, SCRIPT, set_default=True)
    assert passed == SCRIPT


@pytest.mark.parametrize("answer", [None, *list(GARBAGE.values())[:6]])
def test_a_service_that_is_not_well_changes_nothing(tmp_path, answer):
    with fake_service(answer, hangs_up=answer is not None) as service:
        passed, told, seconds = submit(tmp_path, service)
    assert (passed, told) == (SCRIPT, "")
    assert seconds < 2


def test_without_a_configuration_the_script_passes(tmp_path):
    done = subprocess.run(
        [sys.executable, FILTER],
        input=SCRIPT,
        capture_output=True,
        check=True,
        env={"WALLTIMED_SUBMITFILTER": str(tmp_path / "none")},
    )
    assert (done.stdout, done.stderr) == (SCRIPT, b"")
