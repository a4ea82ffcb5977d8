"""A real slurmdbd: the runs that slurmctld lost come from Slurm's accounts, each of them once."""

import json
import signal
import subprocess

import private_slurm
import pytest
import slurm_accounting
from private_slurm import ROOT
from running_service import WALLTIMED, eventually
from slurm_site import CLUSTER, SlurmSite

REASON = private_slurm.reason_to_skip() or slurm_accounting.reason_to_skip(ROOT)
pytestmark = [
    pytest.mark.lengthy(20),
    pytest.mark.acceptance,
    pytest.mark.skipif(REASON is not None, reason=REASON or ""),
]


def test_runs_that_a_killed_slurmctld_never_sent_are_found_in_its_accounts():
    with SlurmSite(keeps_accounts=True, mode="observe", pause_seconds=1) as site:
        known = site.slurm.sbatch("-t", "5")
        site.await_runs(known)
        site.end_service(signal.SIGKILL)
        lost = [site.slurm.sbatch("-J", name, "-t", "7", script="sleep 1") for name in ("a", "b")]
        site.slurm.await_end(*lost)
        eventually(lambda: accounted(site) >= {known, *lost})
        site.slurm.lose_controller()
        site.start_service()
        assert set(site.runs()) == {str(known)}
        assert reconciled(site) == {"accepted": 2, "duplicates": 1, "left_out": {}, "doubts": {}}
        assert reconciled(site) == {"accepted": 0, "duplicates": 3, "left_out": {}, "doubts": {}}
        runs = site.runs()
    assert [runs[str(job)][0].submission.application for job in lost] == ["a", "b"]
    assert {runs[str(job)][0].submission.cluster for job in (known, *lost)} == {CLUSTER}
    assert all(runs[str(job)][0].submission.requested_walltime == 420 for job in lost)
    assert all(1 <= runs[str(job)][0].runtime <= 60 for job in lost)


def accounted(site):
    """The jobs that have ended, by sacct."""
    ended = ("-s", "CD", "-S", "now-1days", "-E", "now")
    printed = site.slurm.run("sacct", "-X", "-n", "-P", "-o", "JobID", *ended)
    return {int(job) for job in printed.split()}


def reconciled(site):
    done = subprocess.run(
        [WALLTIMED, "reconcile", "--days", "1", "--database-url", site.url, "--json"],
        env=site.slurm.environment, cwd=site.directory, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {name: value for name, value in json.loads(done.stdout).items() if name != "schema"}
