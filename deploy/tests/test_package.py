"""The service's packages, .deb and .rpm: installed, started, used, upgraded and removed.

On a copy of this machine, or of the Debian in the directory WALLTIMED_CHROOT
(debootstrap --variant=minbase --include=python3 bookworm DIRECTORY), which ends with each test.
WALLTIMED_PACKAGES names a directory of packages that were built before, by `make release`.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import tomllib
from pathlib import Path

import httpx
import pytest
from machine_copy import (
    DEB,
    RPM,
    BootedCopy,
    MachineCopy,
    child_of,
    complaints_of,
    reason_to_skip,
)
from patience import BUSY_SECONDS, eventually

from predictors.compiled import COMPILING

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
NEXT_VERSION = f"{VERSION}.1"
ORIGINAL = Path(os.environ.get("WALLTIMED_CHROOT", "/"))
READY_SECONDS = 3.0
STARTING_SECONDS = 120.0
MEGABYTE = 1_000_000
WALLTIMED = "/usr/bin/walltimed"
BROUGHT = (
    WALLTIMED,
    "/opt/walltimed/bin/python",
    "/usr/share/man/man1/walltimed-serve.1.gz",
    "/usr/share/bash-completion/completions/walltimed",
    "/usr/lib/systemd/system/walltimed.service",
    "/usr/share/doc/walltimed/deployment.md",
)
UNIT = "walltimed.service"
SETTINGS = "/etc/walltimed/walltimed.toml"
HISTORY = "/var/lib/walltimed/walltimed.sqlite3"
CACHE = "/var/cache/walltimed"
RUN = {
    "job_id": "17",
    "user": "ada",
    "requested_walltime": 3600,
    "start_time": 1700000060,
    "end_time": 1700000960,
}

REASON = reason_to_skip()
if not (os.environ.get("WALLTIMED_TEST_CONTAINER") or os.environ.get("WALLTIMED_PACKAGES")):
    REASON = "builds for minutes from an index of packages: set WALLTIMED_TEST_CONTAINER"
pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(REASON is not None, reason=REASON or ""),
]


def build(script, directory, tree, **environment):
    command = [ROOT / "deploy" / script, directory]
    subprocess.run(command, check=True, env=os.environ | {"TREE": str(tree)} | environment)


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """The packages of this release and of the next, by kind; the next are not compressed."""
    directory = tmp_path_factory.mktemp("packages")
    tree, following = directory / "tree", directory / "next"
    following.mkdir()
    if given := os.environ.get("WALLTIMED_PACKAGES"):
        directory = Path(given)
        (package,) = directory.glob("walltimed_*.deb")
        subprocess.run(["dpkg-deb", "--extract", package, tree], check=True)
    else:
        subprocess.run([ROOT / "deploy" / "build-tree.sh", tree], check=True)
        build("build-deb.sh", directory, tree)
        build("build-rpm.sh", directory, tree)
    for script in ("build-deb.sh", "build-rpm.sh"):
        build(script, following, tree, PACKAGE_VERSION=NEXT_VERSION, COMPRESSION="none")
    return {
        kind: [only(each, name) for each in (directory, following)]
        for kind, name in ((DEB, "walltimed_*.deb"), (RPM, "walltimed-[0-9]*.rpm"))
    }


def only(directory, pattern):
    (found,) = directory.glob(pattern)
    return found


class InstalledService:
    """The service of the package, as its unit starts it; use it in a ``with`` block.

    Attributes:
        seconds: from its start until it was ready.
        processor_seconds: that its processes have used until then.
    """

    def __init__(self, machine):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{probe.getsockname()[1]}"
        places = (f"NUMBA_CACHE_DIR={CACHE}", f"STATE_DIRECTORY={Path(HISTORY).parent}")
        words = (WALLTIMED, "serve", "--port", self.url.rpartition(":")[2])
        # Ahead of what else the machine does: how soon it is ready is measured.
        first = ("chrt", "--fifo", "1")
        self.command = [*first, *machine.inside("env", *places, *words, user="walltimed")]

    def __enter__(self):
        began = time.monotonic()
        self.process = subprocess.Popen(
            self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        while not self.is_ready():
            assert self.process.poll() is None, self.process.stdout.read()
            assert time.monotonic() < began + STARTING_SECONDS
            time.sleep(0.02)
        self.seconds = time.monotonic() - began
        fields = Path(f"/proc/{child_of(self.process)}/stat").read_text().rpartition(")")[2].split()
        self.processor_seconds = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        return self

    def __exit__(self, *_):
        os.kill(child_of(self.process), signal.SIGTERM)
        self.log, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0

    def is_ready(self):
        try:
            return httpx.get(f"{self.url}/health/ready").is_success
        except httpx.TransportError:
            return False

    def post(self, path, body):
        return httpx.post(f"{self.url}{path}", json=body, timeout=30).json()


def check_files(machine):
    """Everything is there, for the service's user too, and python3 is not what it runs on."""
    machine.run("ls", *BROUGHT)
    # As on EL, where python3 is another one than the package's.
    machine.run("ln", "-sf", "/bin/false", "/usr/bin/python3")
    assert machine.run(WALLTIMED, "--version").strip() == VERSION
    assert "walltimed import" in machine.run(WALLTIMED, "import", "--help")
    warm = machine.run("env", "HOME=/nowhere", WALLTIMED, "warm-up", user="walltimed")
    assert "Everything was compiled already." in warm
    owners = machine.run("stat", "--format=%U %a", Path(HISTORY).parent, CACHE).splitlines()
    assert owners == ["walltimed 750", "walltimed 755"]


@pytest.mark.skipif(not shutil.which("rpmlint"), reason="needs rpmlint")
def test_rpmlint_says_nothing_but_what_is_listed(packages):
    assert complaints_of(packages[RPM][0]) == []


@pytest.mark.parametrize("kind", [DEB, RPM])
def test_it_is_installed_started_used_upgraded_and_removed(packages, tmp_path, kind):
    package, following = packages[kind]
    with MachineCopy(tmp_path, ORIGINAL) as machine:
        machine.install(package)
        check_files(machine)
        (size, *_), *_ = map(str.split, machine.run("du", "-sm", "/opt/walltimed").splitlines())
        with InstalledService(machine) as first:
            assert first.post("/v1/completions", RUN) == {"accepted": 1, "duplicates": 0}
            asked = {"user": "ada", "requested_walltime": 7200}
            assert first.post("/v1/predictions", asked)["basis"]["jobs"] == 1
        assert COMPILING not in first.log
        print(f"\n{package.name}: {package.stat().st_size / MEGABYTE:.0f} MB, installed {size} MiB")
        print(f"ready after {first.seconds:.2f} s, processor {first.processor_seconds:.2f} s")
        assert first.seconds < READY_SECONDS + BUSY_SECONDS

        machine.shell(f"echo 'method = \"max-usage\"' >> {SETTINGS}")
        machine.install(following)
        assert 'method = "max-usage"' in machine.run("cat", SETTINGS)
        with InstalledService(machine) as again:
            assert again.post("/v1/completions", RUN) == {"accepted": 0, "duplicates": 1}
            answer = again.post("/v1/predictions", asked)
            assert (answer["method"], answer["predicted_walltime"]) == ("max-usage", 1800.0)
        assert COMPILING not in again.log

        machine.remove("walltimed", kind)
        machine.shell(f"! ls -d /opt/walltimed {CACHE} {' '.join(BROUGHT)} 2> /dev/null")
        assert 'method = "max-usage"' in machine.shell(f"cat {SETTINGS}*")
        assert machine.run("stat", "--format=%U", HISTORY).strip() == "walltimed"


@pytest.mark.skipif(not shutil.which("systemd-nspawn"), reason="needs systemd-container")
@pytest.mark.parametrize("kind", [DEB, RPM])
def test_systemd_starts_restarts_and_ends_it_on_a_machine_of_its_own(packages, tmp_path, kind):
    package, following = packages[kind]
    with BootedCopy(tmp_path, ORIGINAL) as machine:

        def property_of(name):
            return machine.run("systemctl", "show", "--value", "--property", name, UNIT).strip()

        def call(path, body):
            words = ("curl", "--silent", "--show-error", "--json", json.dumps(body))
            return json.loads(machine.run(*words, f"localhost:8580{path}"))

        def serving():
            """The number of the process that serves; empty if there is none."""
            shown = machine.shell("curl --silent localhost:8580/health/ready || true")
            return property_of("MainPID") if '"ready"' in shown else ""

        machine.install(package)
        assert property_of("ActiveState") == "inactive", "the administrator starts it"
        machine.run("systemctl", "enable", "--quiet", "--now", UNIT)
        first = eventually(serving, seconds=STARTING_SECONDS)
        assert call("/v1/completions", RUN) == {"accepted": 1, "duplicates": 0}

        machine.run("systemctl", "kill", "--signal", "KILL", UNIT)
        eventually(lambda: serving() not in {"", first}, seconds=STARTING_SECONDS)
        assert int(property_of("NRestarts")) == 1

        second = serving()
        machine.install(following)
        eventually(lambda: serving() not in {"", second}, seconds=STARTING_SECONDS)
        assert call("/v1/completions", RUN) == {"accepted": 0, "duplicates": 1}
        journal = machine.run("journalctl", "--quiet", "--no-pager", "--unit", UNIT)
        assert journal.count("walltimed listens on") == 3
        assert COMPILING not in journal

        machine.remove("walltimed", kind)
        assert property_of("ActiveState") == "inactive"
        assert "walltimed" not in machine.run("systemctl", "list-unit-files", "--no-legend")
        assert machine.run("stat", "--format=%U", HISTORY).strip() == "walltimed"
