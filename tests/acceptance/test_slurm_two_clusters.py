"""Two clusters and one service on real Slurms: their histories and scores stay apart."""

import getpass

import pytest
from private_slurm import PrivateSlurm, reason_to_skip
from running_service import eventually
from slurm_site import CLUSTER, SlurmSite

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(reason_to_skip() is not None, reason=reason_to_skip() or ""),
]
SECOND = "second"


def basis(site, cluster):
    job = {"user": getpass.getuser(), "cluster": cluster, "requested_walltime": 300}
    return site.client.post("/v1/predictions", json=job).json()["basis"]


def scored(site, cluster):
    methods = site.client.get("/v1/methods", params={"cluster": cluster}).json()["methods"]
    return {method["score"]["jobs"] if method["score"] else 0 for method in methods}


def test_two_clusters_on_one_service_have_a_history_each():
    with SlurmSite(mode="observe") as site:
        base = f"http://walltimed:unused@127.0.0.1:{site.port}"
        jobcomp = f"{base}/v1/adapters/slurm/jobcomp?cluster={SECOND}"
        with PrivateSlurm(site.scripts, jobcomp, cluster=SECOND) as second:
            ours = site.slurm.sbatch("-t", "5", "-J", "ours")
            site.await_runs(ours)
            eventually(lambda: basis(site, CLUSTER)["jobs"] == 1)
            assert basis(site, SECOND) == {"jobs": 0, "reason": "cold-start"}
            # Both count their jobs from 1: the same job id, and another job.
            theirs = [second.sbatch("-t", "5", "-J", f"theirs{place}") for place in range(2)]
            assert ours in theirs
            eventually(lambda: basis(site, SECOND)["jobs"] == 2, seconds=60)
            assert basis(site, CLUSTER)["jobs"] == 1
            assert second.job(theirs[0])["AdminComment"].startswith("wtp=")
            eventually(lambda: scored(site, SECOND) == {2}, seconds=60)
            assert scored(site, CLUSTER) == {1}
        named = {
            (run.submission.cluster, run.submission.application)
            for runs in site.runs().values()
            for run in runs
        }
    assert named == {(CLUSTER, "ours"), (SECOND, "theirs0"), (SECOND, "theirs1")}
