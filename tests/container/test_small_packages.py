"""The packages for controllers, .deb and .rpm: built, installed, used, upgraded and removed.

In a copy of this machine that ends with each test: an overlay over its root, in a namespace.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LARGEST = 200_000  # bytes

COPY = """
mount -t tmpfs tmpfs "$0"
mkdir "$0/upper" "$0/work" "$0/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$0/upper,workdir=$0/work" "$0/root"
mount --rbind /dev "$0/root/dev"
mount -t proc proc "$0/root/proc"
mkdir -p "$0/root/packages" "$0/root/etc/slurm"
mount --bind "$1" "$0/root/packages"
exec chroot "$0/root" sh -euc "$2"
"""
"""Ends with its process, and with it all that a command has changed."""

DEB = {
    "install": "dpkg --force-depends -i /packages/{name}_*.deb",
    "upgrade": "dpkg --force-depends -i /packages/{name}_*.deb",
    "remove": "dpkg --purge {name}",
}
RPM = {
    "install": "rpm --install --nodeps /packages/{name}-*.rpm",
    "upgrade": "rpm --upgrade --force --nodeps /packages/{name}-*.rpm",
    "remove": "rpm --erase {name}",
}
PROGRAMS = {
    "walltimed-slurm": "/usr/share/walltimed/slurm/walltimed_forwarder.py",
    "walltimed-pbs": "/usr/share/walltimed/pbs/walltimed_pbs.py",
}

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for namespaces"),
    pytest.mark.skipif(
        not (shutil.which("dpkg-deb") and shutil.which("rpmbuild")),
        reason="needs dpkg-deb and rpmbuild (Debian: packages dpkg-dev and rpm)",
    ),
]


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    directory = tmp_path_factory.mktemp("packages")
    subprocess.run([ROOT / "deploy" / "build-controllers.sh", directory], check=True)
    return directory


def in_a_copy(packages, directory, *commands):
    """What commands print in a copy of this machine, errors included."""
    done = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--propagation", "private", "sh", "-euc", COPY,
         directory, packages, "\n".join(commands)],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_each_is_small_and_needs_no_processor_of_a_kind(packages):
    built = sorted(packages.iterdir())
    assert [each.name for each in built] == [
        "walltimed-pbs-0.2.0-1.noarch.rpm",
        "walltimed-pbs_0.2.0_all.deb",
        "walltimed-slurm-0.2.0-1.noarch.rpm",
        "walltimed-slurm_0.2.0_all.deb",
    ]
    for each in built:
        print(f"\n{each.name}: {each.stat().st_size / 1000:.0f} kB")
        assert each.stat().st_size < LARGEST


@pytest.mark.parametrize("kind", [DEB, RPM], ids=["deb", "rpm"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_installed_used_upgraded_and_removed(packages, tmp_path, name, kind):
    tools = {step: command.format(name=name) for step, command in kind.items()}
    said = in_a_copy(
        packages,
        tmp_path,
        tools["install"],
        f"{PROGRAMS[name]} --help",
        "stat --format 'state of %U, mode %a' /var/lib/walltimed",
        tools["upgrade"],
        f"{PROGRAMS[name]} --help > /dev/null && echo upgraded",
        tools["remove"],
        f"test ! -e {PROGRAMS[name]} && echo gone",
    )
    assert "--url" in said
    assert "state of walltimed, mode 750" in said
    assert "upgraded\n" in said
    assert "gone\n" in said
    assert "still" not in said


@pytest.mark.parametrize("kind", [DEB, RPM], ids=["deb", "rpm"])
def test_a_removal_names_the_lines_that_slurm_conf_still_has(packages, tmp_path, kind):
    tools = {step: command.format(name="walltimed-slurm") for step, command in kind.items()}
    location = "JobCompLoc=http://127.0.0.1:8581/v1/adapters/slurm/jobcomp?cluster=hill"
    said = in_a_copy(
        packages,
        tmp_path,
        tools["install"],
        f"printf '%s\\n' JobSubmitPlugins=lua '{location}' > /etc/slurm/slurm.conf",
        tools["upgrade"],
        "echo THEN",
        tools["remove"],
    )
    assert "still" not in said.partition("THEN")[0]
    assert "/etc/slurm/slurm.conf still sends completions here" in said
    assert f"    {location}\n" in said
    assert "    JobSubmitPlugins=lua\n" in said
