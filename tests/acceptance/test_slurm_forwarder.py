"""The recommended way on a real Slurm: completions come with a token that Slurm does not know."""

import signal

import pytest
from private_slurm import reason_to_skip
from running_service import eventually
from slurm_site import SlurmSite

pytestmark = [
    pytest.mark.lengthy(40),
    pytest.mark.acceptance,
    pytest.mark.skipif(reason_to_skip() is not None, reason=reason_to_skip() or ""),
]
RESENT_AFTER = 75  # Slurm sends again every 30 s


def test_runs_arrive_through_the_forwarder_and_no_secret_is_seen_in_slurm():
    with SlurmSite(forwards=True, mode="observe", pause_seconds=1) as site:
        first = site.slurm.sbatch("-t", "5")
        site.await_runs(first)
        site.end_service(signal.SIGKILL)
        away = site.slurm.sbatch("-t", "5")
        site.slurm.await_end(away)
        eventually(lambda: "documents wait in slurmctld" in log_of(site))
        site.start_service()
        eventually(lambda: "wtp=" in site.slurm.job(site.slurm.sbatch("-t", "5"))["AdminComment"])
        site.await_runs(first, away, seconds=RESENT_AFTER)
        seen = site.slurm.run("scontrol", "show", "config") + site.slurm.log() + log_of(site)
    for scope, token in site.tokens.items():
        assert token not in seen, scope


def log_of(site):
    return (site.directory / "forwarder.log").read_text()
