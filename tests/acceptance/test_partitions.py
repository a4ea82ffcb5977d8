"""What ``walltimed backtest --partitions`` reads, said by a real Slurm and a real OpenPBS."""

import private_pbs
import private_slurm
import pytest

from simulator.traces.partitions import OTHER_QUEUES, read_partitions

pytestmark = pytest.mark.acceptance
NO_COMPLETIONS = {"JobCompType": "jobcomp/none", "JobCompLoc": None, "JobSubmitPlugins": None}


@pytest.fixture(scope="module")
def slurm():
    """Three nodes of eight processors: two of them share a partition, one has its own."""
    if reason := private_slurm.reason_to_skip():
        pytest.skip(reason)
    with private_slurm.PrivateSlurm([], "", nodes=3, settings=NO_COMPLETIONS) as slurm:
        slurm.run("scontrol", "create", "PartitionName=gpu", "Nodes=n2")
        slurm.run("scontrol", "update", "PartitionName=short", "Nodes=n0,n1")
        slurm.run("scontrol", "update", "PartitionName=long", "Nodes=n1")
        yield slurm


def partitions_by(printed, tmp_path):
    file = tmp_path / "partitions.json"
    file.write_text(printed)
    return {each.name: each.processors for each in read_partitions(file)}


def test_sinfo_says_which_partitions_share_nodes(slurm, tmp_path):
    found = partitions_by(slurm.run("sinfo", "--json"), tmp_path)
    assert found == {"long + short": 16, "gpu": 8}


def test_scontrol_says_which_partitions_share_nodes(slurm, tmp_path):
    if slurm.version.startswith("22.05"):
        pytest.skip("scontrol of Slurm 22.05 prints no JSON")
    found = partitions_by(slurm.run("scontrol", "show", "nodes", "--json"), tmp_path)
    assert found == {"long + short": 16, "gpu": 8}


def test_pbsnodes_says_which_queues_have_a_node(tmp_path):
    if reason := private_pbs.reason_to_skip():
        pytest.skip(reason)
    with private_pbs.PrivatePbs() as pbs:
        pbs.qmgr(f"set node {private_pbs.HOST} resources_available.ncpus = 12")
        printed = pbs.run("pbsnodes", "-a", "-F", "json")
        assert partitions_by(printed, tmp_path) == {OTHER_QUEUES: 12}
        pbs.qmgr(f"set node {private_pbs.HOST} queue = workq")
        printed = pbs.run("pbsnodes", "-a", "-F", "json")
        assert partitions_by(printed, tmp_path) == {"workq": 12}
