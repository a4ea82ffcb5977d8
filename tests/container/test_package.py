"""The Debian package: installed, started and removed in a chroot.

As root, once, and then as often as wanted:

    debootstrap --variant=minbase --include=python3,adduser bookworm DIRECTORY
    WALLTIMED_CHROOT=DIRECTORY pytest tests/container/test_package.py

WALLTIMED_DEB names a package that was built before.
"""

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

from predictors.compiled import COMPILING

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
CHROOT = os.environ.get("WALLTIMED_CHROOT")
STARTING_SECONDS = 120
MEGABYTE = 1_000_000
BROUGHT = (
    "usr/share/man/man1/walltimed-serve.1.gz",
    "usr/share/bash-completion/completions/walltimed",
    "usr/lib/systemd/system/walltimed.service",
    "usr/share/doc/walltimed/deployment.md",
)


MOUNTS = {"proc": "proc", "dev/shm": "tmpfs"}
"""What a machine has mounted, and a tree of files has not. Without the second no user but root may
start a process of multiprocessing."""

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not CHROOT, reason="needs a Debian in the directory WALLTIMED_CHROOT"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="needs dpkg-deb"),
]


def run(*command: object, check: bool = True) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def inside(*command: object, **options: bool) -> str:
    return run("chroot", CHROOT, *command, **options)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    if given := os.environ.get("WALLTIMED_DEB"):
        return Path(given)
    directory = tmp_path_factory.mktemp("deb")
    run(ROOT / "deploy" / "build-deb.sh", directory)
    (built,) = directory.glob("walltimed_*.deb")
    print(f"\npackage: {built.stat().st_size / MEGABYTE:.0f} MB")
    return built


@pytest.fixture
def installed(package):
    """Where the package is installed; removed for good at the end."""
    root = Path(CHROOT)
    shutil.copy(package, root / "walltimed.deb")
    missing = [place for place in MOUNTS if not os.path.ismount(root / place)]
    for place in missing:
        (root / place).mkdir(exist_ok=True)
        run("mount", "-t", MOUNTS[place], MOUNTS[place], root / place)
    try:
        inside("dpkg", "--install", "/walltimed.deb")
        yield root
    finally:
        inside("dpkg", "--purge", "walltimed", check=False)
        for place in missing:
            run("umount", root / place)
        (root / "walltimed.deb").unlink()


def test_the_package_is_installed_started_and_removed(installed):
    root = installed
    assert [name for name in BROUGHT if not (root / name).is_file()] == []
    assert inside("/usr/bin/walltimed", "--version").strip() == VERSION
    service_user = ("runuser", "-u", "walltimed", "--", "/usr/bin/walltimed", "warm-up")
    assert "Everything was compiled already." in inside(*service_user)
    unit = (root / "usr/lib/systemd/system/walltimed.service").read_text()
    assert "\nUser=walltimed\n" in unit
    assert "\nStateDirectory=walltimed\n" in unit

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # Before the unit's StateDirectory: a history may be imported first.
    state, cache = root / "var/lib/walltimed", root / "var/cache/walltimed"
    assert state.stat().st_uid == cache.stat().st_uid != 0
    began = time.monotonic()
    service = subprocess.Popen(
        ["chroot", "--userspec=walltimed:walltimed", CHROOT, "/usr/bin/env", "--ignore-environment",
         "NUMBA_CACHE_DIR=/var/cache/walltimed", "STATE_DIRECTORY=/var/lib/walltimed",
         "/usr/bin/walltimed", "serve", "--port", str(port)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        while not ready(port):
            assert service.poll() is None, service.stdout.read()
            assert time.monotonic() < began + STARTING_SECONDS
            time.sleep(0.2)
        print(f"\nready after {time.monotonic() - began:.1f} s")
    finally:
        service.send_signal(signal.SIGTERM)
        logged, _ = service.communicate(timeout=60)
    assert service.returncode == 0
    assert COMPILING not in logged
    assert (root / "var/lib/walltimed/walltimed.sqlite3").stat().st_uid != 0

    inside("dpkg", "--remove", "walltimed")
    assert [name for name in BROUGHT if (root / name).exists()] == []
    assert not (root / "opt/walltimed").exists()
    assert not (root / "var/cache/walltimed").exists()
    assert (root / "etc/walltimed/walltimed.toml").is_file()
    assert (root / "var/lib/walltimed/walltimed.sqlite3").is_file()


def ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health/ready").is_success
    except httpx.TransportError:
        return False
