"""`walltimed doctor` on a set-up that works, and on one in which nearly everything is wrong."""

import json
import subprocess
import sys
import time

import pytest
from running_service import WALLTIMED, Service, eventually
from runs import a_run, predicted, reported

from service.cli import installed_version
from service.store import open_store

pytestmark = pytest.mark.acceptance

HOUR = 3600.0


def walltimed(*arguments):
    done = subprocess.run([WALLTIMED, *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def findings(*arguments):
    code, printed = walltimed("doctor", *arguments, "--json")
    return code, {(each["name"], each["cluster"]) for each in json.loads(printed)["findings"]}


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """A history in which nearly everything is wrong that can be."""
    url = f"sqlite:///{tmp_path_factory.mktemp('site') / 'history.sqlite3'}"
    store = open_store(url)
    store.upgrade()
    now = time.time()

    def runs_of(cluster, ago, jobs=6, **known):
        starts = [now - ago - 700 * job - 600 for job in range(jobs)]
        return [
            a_run(f"{cluster}{place}", start=start, cluster=cluster, application="a", **known)
            for place, start in enumerate(starts)
        ]

    def asked(runs):
        return [predicted(f"p-{run.submission.job_id}", run) for run in runs]

    works = runs_of("works", HOUR)
    twice = runs_of("twice", 5 * HOUR)
    store.write([reported(*works)], asked(works))
    store.write([[]], asked(runs_of("Hill", 4 * HOUR)))
    store.write([reported(*runs_of("hill", HOUR))])
    store.write([[]], asked(runs_of("unheard", 4 * HOUR)))
    store.write([reported(*twice)], asked(twice))
    store.write([reported(*runs_of("twice", 5 * HOUR + 2 * HOUR))])
    store.write([[]], asked(runs_of("moved", 4 * HOUR)))
    store.write([reported(*runs_of("moved", 3 * HOUR))])
    store.close()
    return url


@pytest.fixture(autouse=True)
def no_slurm(tmp_path, monkeypatch):
    """No command of a Slurm that happens to be installed."""
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A machine whose filter is to be in mode soft, and whose accounting lacks a run."""
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    (tmp_path / "walltimed_site.json").write_text('{"mode": "soft"}')
    monkeypatch.setenv("PBS_CONF_FILE", str(tmp_path / "pbs.conf"))
    (tmp_path / "pbs.conf").write_text(f"PBS_HOME={tmp_path}\n")
    accounting = tmp_path / "server_priv" / "accounting"
    accounting.mkdir(parents=True)
    records = [f"11/23/2026 00:00:00;E;works{job};user=ada\n" for job in range(5)]
    (accounting / time.strftime("%Y%m%d")).write_text("".join(records))


@pytest.mark.usefixtures("site")
def test_everything_that_is_wrong_is_told(url, tmp_path):
    ingest = walltimed("token", "issue", "x", "-s", "ingest", "-d", url)[1].split()[-1]
    (tmp_path / "token").write_text(ingest)
    with Service(url) as service:
        at = ("--url", f"unix:{service.socket}", "-d", url)
        with_token = (*at, "--token-file", str(tmp_path / "token"))
        old = {"User-Agent": "walltimed_hook.py/0.0.1"}
        job = {"user": "ada", "requested_walltime": 60, "cluster": "works"}
        assert service.client.post("/v1/predictions", json=job, headers=old).status_code == 401
        predict = walltimed("token", "issue", "y", "-s", "predict", "-d", url)[1].split()[-1]
        old["Authorization"] = f"Bearer {predict}"
        eventually(lambda: service.client.post("/v1/predictions", json=job, headers=old).is_success)
        observing = old | {"User-Agent": f"walltimed.lua/{installed_version()} (observe)"}
        assert service.client.post("/v1/predictions", json=job, headers=observing).is_success
        code, found = findings(*with_token)
        assert code == 1
        assert found == {
            ("other-filter", None),
            ("refused-calls", None),
            ("no-queue", None),
            ("other-mode", None),
            ("unknown-runs", "works"),
            ("two-names", "Hill"),
            ("no-predictions", "hill"),
            ("no-completions", "unheard"),
            ("wrong-zone", "twice"),
            ("wrong-zone", "moved"),
        }
        assert ("no-token", None) in findings(*at)[1]
        other = f"sqlite:///{tmp_path / 'other.sqlite3'}"
        assert walltimed("db", "upgrade", "-d", other)[0] == 0
        assert ("other-history", None) in findings(*at[:2], "-d", other)[1]
        sys.stdout.write(walltimed("doctor", *with_token)[1])
    assert ("no-service", None) in findings(*at)[1]


def test_a_site_where_all_fits_is_told_so(tmp_path):
    url = f"sqlite:///{tmp_path / 'history.sqlite3'}"
    with Service(url) as service:
        _, fresh = walltimed("doctor", "--url", f"unix:{service.socket}", "-d", url)
        assert "Not connected yet?" in fresh
        now = time.time()
        job = {"user": "ada", "requested_walltime": 60, "job_id": "1", "submit_time": now}
        headers = {"User-Agent": f"walltimed.lua/{installed_version()} (observe)"}
        assert service.client.post("/v1/predictions", json=job, headers=headers).is_success
        run = {**job, "start_time": now, "runtime": 0.5, "end_time": now + 0.5}
        assert service.complete(run).is_success
        code, printed = walltimed("doctor", "--url", f"unix:{service.socket}", "-d", url)
    assert code == 0, printed
    assert "1 predictions, 1 of them with their run; 1 runs" in printed
    assert f"walltimed.lua {installed_version()}, mode observe: asked" in printed
    assert printed.endswith("Nothing is wrong.\n")
