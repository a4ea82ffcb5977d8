"""Plug-ins of resource managers against a service that lies, streams, drips or says nothing."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pbs_stand_in
import pytest
from fake_service import (
    BAD_NAMES,
    BODILESS,
    GARBAGE,
    MOST_TAKEN,
    STREAMS,
    WRONG_LENGTHS,
    fake_service,
    full_backlog,
    prediction,
)
from patience import BUSY_SECONDS
from pbs_stand_in import QUEUEJOB, Duration, Event, Job, run_hook
from slurm_scripts import JOB, LUAS, UNSET, Site

SECONDS_PER_BYTE = 0.1
"""Of an answer that drops in: all of it takes far longer than a busy machine."""

NO_WALLTIMES = [-5, 0, float("nan"), float("inf"), "300", None, [300], 1e300]


class Done(NamedTuple):
    """What a plug-in did to a job.

    Attributes:
        is_accepted: whether the job passed.
        limits: what it set that a scheduler acts on.
        name: of the prediction that it noted down.
        seconds: that the submission waited for.
    """

    is_accepted: bool
    limits: object
    name: str | None
    seconds: float


def pbs_hook(tmp_path: Path, port: int) -> Done:
    """PBS's hook in the mode that sets a soft walltime."""
    job = Job(walltime=Duration("01:00:00"), ncpus=8, mem="16gb")
    run = run_hook(tmp_path, Event(QUEUEJOB, job), port=port, mode="soft")
    if hasattr(sys, "walltimed_silent_until"):  # the pause after a failure
        del sys.walltimed_silent_until
    wanted = run.resources
    return Done(
        run.verdict == "accepted",
        wanted["soft_walltime"],
        wanted["walltimed_prediction"],
        run.seconds,
    )


def torque_filter(tmp_path: Path, port: int) -> Done:
    """Torque's submit filter where the site wants default limits."""
    file = tmp_path / "submitfilter.json"
    file.write_text(json.dumps({"port": port, "set_default": True}))
    program = pbs_stand_in.HOOK.with_name("torque_submitfilter.py")
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-S", "-E", program],
        input=b"./relax\n",
        capture_output=True,
        check=False,
        env={"WALLTIMED_SUBMITFILTER": str(file), "LOGNAME": "carol", "PATH": "/usr/bin:/bin"},
    )
    limits = done.stdout.replace(b"./relax\n", b"") or None
    return Done(done.returncode == 0, limits, None, time.monotonic() - began)


def job_submit(tmp_path: Path, port: int) -> Done:
    """Slurm's job_submit.lua where the site wants default limits."""
    site = Site(tmp_path, LUAS[0])
    site.configure(port=port, mode="default-limit")
    (done,) = site.submit(JOB | {"time_limit": UNSET})
    limits = done.changes.get("time_limit") or done.changes.get("time_min")
    name = done.changes.get("admin_comment")
    return Done(done.result == 0, limits, name, done.seconds)


def cli_filter(tmp_path: Path, port: int) -> Done:
    """Slurm's cli_filter.lua, which sets nothing and advises the user."""
    site = Site(tmp_path, LUAS[0])
    site.configure("walltimed_cli_config.lua", port=port, mode="advise")
    options = {"time": "01:00:00", "job-name": "relax", "partition": "short", "ntasks": "2"}
    (done,) = site.submit(options, script="cli_filter.lua", environment={"USER": "carol"})
    return Done(done.result == 0, done.changes or done.told or None, None, done.seconds)


needs_lua = pytest.mark.skipif(not LUAS, reason="needs lua5.1, 5.3 or 5.4 with lua-socket")
EVERY = pytest.mark.parametrize(
    "plug_in",
    [
        pbs_hook,
        torque_filter,
        pytest.param(job_submit, marks=needs_lua),
        pytest.param(cli_filter, marks=needs_lua),
    ],
)

LIES = {**GARBAGE, **BODILESS, **WRONG_LENGTHS}


@EVERY
def test_lies_reject_nobody_and_set_nothing(tmp_path, tell, plug_in):
    slowest = 0.0
    for kind, answer in LIES.items():
        with fake_service(answer, hangs_up=kind in GARBAGE) as service:
            done = plug_in(tmp_path, service.port)
        assert (done.is_accepted, done.limits, done.name) == (True, None, None), kind
        slowest = max(slowest, done.seconds)
    tell(f"{len(LIES)} lies, {slowest:.2f} s at most")
    assert slowest < BUSY_SECONDS


@EVERY
def test_streams_are_cut_in_bytes_and_in_time(tmp_path, tell, plug_in):
    most, slowest = 0, 0.0
    for kind, (begins, goes_on) in STREAMS.items():
        with fake_service(begins, forever=goes_on) as service:
            done = plug_in(tmp_path, service.port)
        assert (done.is_accepted, done.limits, done.name) == (True, None, None), kind
        assert service.sent < MOST_TAKEN, kind
        most, slowest = max(most, service.sent), max(slowest, done.seconds)
    tell(f"{most / 1e6:.1f} MB and {slowest:.2f} s at most")
    assert slowest < BUSY_SECONDS


@EVERY
def test_silence_drops_and_full_queues_cost_the_budget(tmp_path, tell, plug_in):
    waits = {}
    with fake_service(None) as service:
        waits["silence"] = plug_in(tmp_path, service.port)
    with fake_service(prediction(), seconds_per_byte=SECONDS_PER_BYTE) as service:
        waits["drops"] = plug_in(tmp_path, service.port)
    with full_backlog() as port:
        waits["a full queue"] = plug_in(tmp_path, port)
    for kind, done in waits.items():
        assert (done.is_accepted, done.limits, done.name) == (True, None, None), kind
        assert done.seconds < BUSY_SECONDS, kind
    tell(", ".join(f"{kind}: {done.seconds:.2f} s" for kind, done in waits.items()))


@EVERY
@pytest.mark.parametrize("where", ["predicted_walltime", "upper"])
def test_what_is_no_walltime_sets_no_limit(tmp_path, plug_in, where):
    if where == "upper" and plug_in in (pbs_hook, cli_filter):
        pytest.skip("it sets nothing by an interval")
    for value in NO_WALLTIMES:
        upper = {"interval": {"lower": 1.0, "upper": value, "coverage": 0.9}}
        changes = {where: value} if where == "predicted_walltime" else upper
        with fake_service(prediction(**changes), hangs_up=True) as service:
            done = plug_in(tmp_path, service.port)
        assert (done.is_accepted, done.limits) == (True, None), value


@pytest.mark.parametrize("plug_in", [pbs_hook, pytest.param(job_submit, marks=needs_lua)])
def test_what_is_no_name_is_not_noted_down(tmp_path, plug_in):
    for name in BAD_NAMES:
        with fake_service(prediction(prediction_id=name), hangs_up=True) as service:
            done = plug_in(tmp_path, service.port)
        assert (done.is_accepted, done.name) == (True, None), name
