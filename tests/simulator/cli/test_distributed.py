"""Commands on a real Dask scheduler with two workers."""

import json

import pytest
from dask_cluster import cluster
from workloads import synthetic

pytestmark = [pytest.mark.acceptance, pytest.mark.cold, pytest.mark.lengthy(20)]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The address of a scheduler with two workers, as ``--distributed`` takes it."""
    distributed = pytest.importorskip("distributed")
    with cluster(tmp_path_factory.mktemp("dask"), workers=2) as address:
        with distributed.Client(address, timeout=60, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
        yield f"dask:{address}"


@pytest.fixture
def log(tmp_path):
    return synthetic(tmp_path / "log.swf.gz", jobs=200, seed=5)


def test_a_backtest_finds_the_same_on_two_workers(walltimed, log, address, tmp_path):
    arguments = ("backtest", log, "-m", "last-two", "--shake", 2, "--json")
    table = tmp_path / "jobs.csv"
    code, here, complaint = walltimed(*arguments, "--processes", 1, "-o", table)
    assert code == 0, complaint
    written = table.read_text()
    code, there, complaint = walltimed(*arguments, "--distributed", address, "-o", table)
    assert code == 0, complaint
    assert there == here
    assert table.read_text() == written


def test_simulations_are_the_same_on_two_workers(walltimed, log, address):
    arguments = ("simulate", log, "--policy", "easy,conservative", "--estimates", "last-two",
                 "--shake", 60, "--repeat", 3, "--json")  # fmt: skip
    found = []
    for way in (("--processes", 1), ("--distributed", address)):
        code, printed, complaint = walltimed(*arguments, *way)
        assert code == 0, complaint
        simulations = json.loads(printed)["simulations"]
        found.append([{**each, "seconds": 0.0} for each in simulations])
    assert found[0] == found[1]
