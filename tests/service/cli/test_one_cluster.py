"""Commands and pages of users mean the same cluster where none is named."""

import time

import pytest
from pydantic import TypeAdapter, ValidationError
from running_service import Service, eventually

from service.cli.options import check_cluster
from service.contract.fields import Text
from service.operations.history_showing import usual_cluster
from terminal.console import CommandError


@pytest.mark.parametrize(
    ("names", "queued", "usual"),
    [
        ([], [], None),
        (["hill"], [], "hill"),
        (["dale", "hill"], [], None),
        (["dale", "hill"], ["hill"], "hill"),
        (["dale", "hill"], ["dale", "hill"], None),
    ],
)
def test_the_usual_cluster_is_the_only_one_or_the_only_one_with_a_queue(names, queued, usual):
    assert usual_cluster(names, queued) == usual


@pytest.fixture(scope="module")
def site(lasting_url):
    """A service of a site that hands no queue over: its filter asks and its runs come."""
    with Service(lasting_url()) as service:
        yield service


@pytest.fixture
def call(site, walltimed, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("WALLTIMED_URL", f"unix:{site.socket}")
    monkeypatch.setenv("WALLTIMED_MUNGE_SOCKET", str(tmp_path / "none"))
    return walltimed


def test_commands_and_pages_know_what_the_filter_was_told(site, call):
    job = {"cluster": "hill", "user": "alice", "job_id": "7", "requested_walltime": 1800}
    assert call("ask", "--time", "30", "--user", "alice")[0] == 0, "a fresh service may be asked"
    assert site.client.post("/v1/predictions", json=job).is_success
    eventually(lambda: site.client.get("/v1/clusters").json()["known"] == ["hill"])
    code, _, complained = call("ask", "--time", "30", "--cluster", "hil")
    assert code == 2
    assert "'hil'" in complained
    assert "name one of hill" in complained
    ended = time.time()
    run = {**job, "submit_time": ended - 90, "start_time": ended - 60, "end_time": ended}
    assert site.complete(run).is_success
    assert "1 earlier run" in call("ask", "--time", "30", "--user", "alice")[1]
    assert "ran " in call("queue", "7")[1]
    assert "on hill" in call("report", "--user", "alice")[1]
    code, _, complained = call("queue")
    assert code == 1
    assert "walltimed slurm-updater --mode off" in complained
    assert "walltimed slurm-updater --mode off" in call("queue", "8")[2]
    assert "walltimed slurm-updater --mode off" in site.client.get("/queue").text
    wrong = site.client.get("/queue?cluster=hil")
    assert wrong.status_code == 404
    assert "known are hill" in wrong.text
    assert 'aria-current="page"' not in wrong.text


@pytest.mark.parametrize(
    "name",
    ["", "a", "a" * 256, "a" * 257, "a b", "a\n", "\x1fb", "\u2028", "\udc80x", "\x9f", "\u00a0"],
)
def test_commands_take_the_names_of_clusters_that_the_api_takes(name):
    try:
        TypeAdapter(Text).validate_python(name)
    except ValidationError:
        with pytest.raises(CommandError, match="1 to 256 printable characters"):
            check_cluster(name)
    else:
        check_cluster(name)
