"""The transcript of docs/slurm.md on a real Slurm, as an administrator and a user type it."""

import getpass
import re
from pathlib import Path

import private_machine
import private_slurm
import pytest
from private_machine import PrivateMachine
from private_slurm import PrivateSlurm
from running_service import eventually
from transcripts import first_steps

from service.store import open_store

REASON = private_slurm.reason_to_skip() or private_machine.reason_to_skip()
if Path("/") != private_slurm.ROOT:
    REASON = "runs on the Slurm of this machine"

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(REASON is not None, reason=REASON or ""),
]
UNCONNECTED = dict.fromkeys(("JobSubmitPlugins", "CliFilterPlugins", "JobCompType", "JobCompLoc"))
RESENT_AFTER = 75  # Slurm sends again every 30 s
ATTEMPTS = 15


@pytest.fixture
def site():
    """A Slurm that knows nothing of walltimed, and a service that knows no runs."""
    with (
        PrivateMachine() as machine,
        PrivateSlurm([], "", settings=UNCONNECTED, prefix=machine.inside()) as slurm,
    ):
        machine.run("mkdir", "-p", "/etc/slurm")
        machine.run("mount", "--bind", slurm.conf.parent, "/etc/slurm")
        machine.start_service()
        yield machine, slurm


def runs(machine):
    store = open_store(machine.url)
    try:
        return store.past_runs.count()
    finally:
        store.close()


def play(machine, slurm, step):
    """What a step prints; a user's waits until the jobs before have ended and were reported."""
    if step.command == "systemctl restart slurmctld":
        slurm.restart_controller()
        return ""
    if unit := re.fullmatch(r"systemctl enable --now (\S+)", step.command):
        machine.start_unit(unit.group(1))
        return ""
    if step.user == "root":
        return machine.run("bash", "-c", step.command)
    submitted = len(slurm.run("scontrol", "-o", "show", "jobs").split("JobId=")) - 1
    eventually(lambda: runs(machine) == submitted, seconds=RESENT_AFTER)
    return machine.run("bash", "-c", step.command, user=step.user)


def lines_of(text):
    """Lines without the numbers of jobs and seconds; this Slurm's user is who runs the tests."""
    text = text.replace(f"({getpass.getuser()} 0600", "(slurm 0600")
    return [re.sub(r"(batch job|likely) \d+", r"\1 N", line) for line in text.splitlines()]


CONF = Path("/etc/slurm/slurm.conf")


def check_the_way_back(machine, slurm):
    """The filter is off at once and on again without a restart; then the page's commands remove it.

    Another mode does not turn it on again.
    """

    def predicted():
        job = slurm.sbatch("-t", "30")
        return "wtp=" in slurm.job(job).get("AdminComment", "")

    assert predicted()
    assert "off: /etc/slurm/walltimed.lua" in machine.run("walltimed", "connect", "--off")
    assert not predicted()
    machine.run("walltimed", "connect", "slurm", "--mode", "observe")
    assert not predicted()
    machine.run("walltimed", "connect", "--on")
    eventually(predicted)

    machine.run("walltimed", "connect", "--off")
    lines = machine.run("cat", CONF).splitlines()
    kept = [line for line in lines if not line.startswith(("JobSubmitPlugins", "JobComp"))]
    assert len(lines) - len(kept) == 3
    machine.write(str(CONF), "\n".join(kept) + "\n")
    slurm.restart_controller()
    page = (private_machine.ROOT / "docs" / "slurm.md").read_text("utf-8")
    for command in re.findall(r"^rm .*$", page, re.MULTILINE):
        machine.run("bash", "-c", command)
    assert "walltimed" not in machine.run("ls", CONF.parent)
    assert machine.run("ls", "/etc/walltimed").split() == ["pbs-hook.json"]
    slurm.await_end(slurm.sbatch("-t", "30"))


def test_the_first_commands_lead_to_a_prediction_from_history_and_there_is_a_way_back(site):
    for step in first_steps("slurm.md"):
        printed, wanted = lines_of(play(*site, step)), lines_of("\n".join(step.printed))
        # On a busy machine an answer may come after the filter's 200 ms: then sbatch says less.
        for _ in range(ATTEMPTS if step.user != "root" else 0):
            if len(printed) >= len(wanted):
                break
            printed = lines_of(play(*site, step))
        assert printed == wanted, step.command
    check_the_way_back(*site)
