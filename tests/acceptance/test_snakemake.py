"""The recipe for Snakemake: a real Snakemake submits steps to a real Slurm."""

import getpass
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from private_slurm import reason_to_skip
from running_service import eventually
from slurm_site import SlurmSite

WORKFLOWS = Path(__file__).parents[2] / "integrations" / "workflows"
SNAKEMAKE = os.environ.get("WALLTIMED_TEST_SNAKEMAKE") or shutil.which("snakemake")

pytestmark = [
    pytest.mark.lengthy(90),
    pytest.mark.acceptance,
    pytest.mark.skipif(reason_to_skip() is not None, reason=reason_to_skip() or ""),
    pytest.mark.skipif(
        not SNAKEMAKE,
        reason="needs snakemake and snakemake-executor-plugin-slurm: WALLTIMED_TEST_SNAKEMAKE",
    ),
]

FALLBACK = 55
SIZES = {"small": 1_000, "large": 200_000}

RECIPE = re.search(
    r"^    from walltimed_step.*?(?=^In )",
    (WORKFLOWS / "walltimed_step.py").read_text(),
    re.DOTALL | re.MULTILINE,
)[0]
"""Import and resources as the file shows them."""

WORKFLOW = """\
{first}

rule all:
    input: {outputs}

rule align:
    input: "{{name}}.in"
    output: "{{name}}.out"
{resources}
    shell: "cp {{input}} {{output}}"
"""


def workflow():
    first, _, resources = RECIPE.partition("\n")
    outputs = ", ".join(f'"{name}.out"' for name in SIZES)
    resources = resources.replace("120", str(FALLBACK)).rstrip()
    return WORKFLOW.format(first=first.strip(), outputs=outputs, resources=resources)


def ended(number, now):
    """A run of a step of this user: a hundred bytes take a second."""
    size = 1_000 if number % 2 else 200_000
    seconds = size / 1_000
    return {
        "job_id": f"earlier-{number}",
        "cluster": "private",
        "user": getpass.getuser(),
        "queue": "short",
        "application": "align",
        "requested_walltime": 60.0 * FALLBACK,
        "requested_processors": 1,
        "submit_time": now - seconds,
        "start_time": now - seconds,
        "end_time": now,
        "status": "completed",
        "features": {"rule": "align", "input_bytes": size},
    }


@pytest.fixture(scope="module")
def site():
    """A site whose users have run such steps before."""
    site = SlurmSite(pause_seconds=1, budget_ms=2000)
    site.environment["WALLTIMED_METHOD"] = "least-cost"
    with site:
        now = time.time()
        runs = [ended(number, now - 60 * (300 - number)) for number in range(260)]
        assert site.client.post("/v1/completions", json={"completions": runs}).is_success
        yield site


def name_cluster(slurm):
    """Let commands find this Slurm without the variables that the plug-in takes from its jobs."""
    for name in ("sbatch", "scancel", "scontrol", "sinfo", "squeue", "srun"):
        command = slurm.directory / "bin" / name
        known = command.read_text().partition("exec ")[2] if command.exists() else ""
        known = known or f'{shutil.which(name)} "$@"\n'
        command.write_text(f"#!/bin/sh\nexport SLURM_CONF={slurm.conf}\nexec {known}")
        command.chmod(0o755)


def test_steps_get_walltimes_by_rule_and_input_and_are_learned(site):
    name_cluster(site.slurm)
    directory = site.slurm.directory / "workflow"
    directory.mkdir()
    (directory / "Snakefile").write_text(workflow())
    for name, size in SIZES.items():
        (directory / f"{name}.in").write_bytes(b"x" * size)
    done = subprocess.run(
        [SNAKEMAKE, "--executor", "slurm", "--slurm-status-command", "squeue", "--jobs", "2",
         "--latency-wait", "30",
         "--slurm-init-seconds-before-status-checks", "2", "--seconds-between-status-checks", "2",
         "--default-resources", "mem_mb=100", "slurm_partition=short", "slurm_account=none"],
        cwd=directory, capture_output=True, text=True, timeout=240, check=False,
        env=site.slurm.environment | {
            "PYTHONPATH": str(WORKFLOWS),
            "WALLTIMED_URL": f"http://127.0.0.1:{site.port}",
            "WALLTIMED_CLUSTER": "private",
            "HOME": str(directory),
        },
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert all((directory / f"{name}.out").exists() for name in SIZES)
    learned = eventually(lambda: steps_of(site), seconds=60)
    assert learned["small"] < learned["large"] < 60 * FALLBACK


def steps_of(site):
    """The requests of the steps that this Slurm ran and that were learned, by input; None before.

    They have rule and size as earlier steps have them.
    """
    runs = [run.submission for each in site.runs().values() for run in each]
    of_inputs = {float(size): name for name, size in SIZES.items()}
    asked = {
        of_inputs[job.facts.features["input_bytes"]]: job.requested_walltime
        for job in runs
        if job.application != "align" and job.facts and "rule" in job.facts.features
    }
    rules = {job.facts.features["rule"] for job in runs if job.facts and job.facts.features}
    assert len(rules) == 1
    return asked if len(asked) == len(SIZES) else None
