"""Users of a real Slurm who are named by MUNGE: sbatch tells them their numbers without a token."""

import getpass
import re
import subprocess
import time

import pytest
from private_slurm import reason_to_skip
from running_service import WALLTIMED, eventually
from slurm_site import CLUSTER, SlurmSite

pytestmark = [
    pytest.mark.lengthy(60),
    pytest.mark.acceptance,
    pytest.mark.skipif(reason_to_skip() is not None, reason=reason_to_skip() or ""),
]
RUNS = 250
"""Enough runs for a range."""


def run_of(number):
    end = time.time() - 60.0 * (RUNS + 1 - number)
    runtime = 300.0 + 10 * (number % 13)
    return {
        "job_id": f"h{number}",
        "cluster": CLUSTER,
        "user": getpass.getuser(),
        "requested_walltime": 1800.0,
        "submit_time": end - runtime - 5,
        "start_time": end - runtime,
        "end_time": end,
        "status": "completed",
    }


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A site that asks for tokens, whose filter at the command line has none."""
    command = tmp_path_factory.mktemp("munge") / "munge"
    site = SlurmSite(mode="advise", munge=str(command), budget_ms=5000)
    socket = site.slurm.directory / "munge" / "socket"
    command.write_text(f'#!/bin/sh\nexec munge --socket={socket} "$@"\n')
    command.chmod(0o755)
    site.munge_command = command
    site.environment |= {"WALLTIMED_MUNGE_SOCKET": str(socket), "WALLTIMED_METHOD": "least-cost"}
    with site:
        runs = [run_of(number) for number in range(RUNS)]
        assert site.client.post("/v1/completions", json={"completions": runs}).is_success
        issue = [WALLTIMED, "token", "issue", "portal", "-s", "read", "--database-url", site.url]
        subprocess.run(issue, check=True, capture_output=True)
        eventually(lambda: site.client.get("/v1/clusters").status_code == 401)
        yield site


def told_by_sbatch(site):
    return site.slurm.told("sbatch", "-t", "30", "--wrap", "true", "-o", "/dev/null")


def test_sbatch_names_its_user_by_munge_and_is_told_what_is_likely(site):
    told = told_by_sbatch(site)
    assert told.count("walltimed: ") == 1, "the filter in slurmctld has no token"
    duration = r"([\d.]+) (s|min)"
    pattern = rf"likely {duration}, range {duration} to {duration} \(90%\), requested 30 min"
    parts = re.search(pattern, told).groups()
    lengths = zip(parts[::2], parts[1::2], strict=True)
    likely, lower, upper = (float(each) * {"s": 1, "min": 60}[unit] for each, unit in lengths)
    assert lower <= likely <= upper <= 1800


def test_without_a_credential_sbatch_submits_the_job_and_tells_nothing(site):
    command = site.munge_command.read_text()
    site.munge_command.write_text("#!/bin/sh\nexit 1\n")
    try:
        assert "walltimed" not in told_by_sbatch(site)
    finally:
        site.munge_command.write_text(command)
