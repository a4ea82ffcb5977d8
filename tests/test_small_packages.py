"""The packages for controllers, .deb and .rpm: built, installed, used, upgraded and removed.

On a copy of this machine that ends with each test.
"""

import shutil
import subprocess
from pathlib import Path

import pytest
from machine_copy import DEB, RPM, MachineCopy, complaints_of, reason_to_skip

ROOT = Path(__file__).parents[1]
LARGEST = 200_000  # bytes
PROGRAMS = {
    "walltimed-slurm": "/usr/share/walltimed/slurm/walltimed_forwarder.py",
    "walltimed-pbs": "/usr/share/walltimed/pbs/walltimed_pbs.py",
}

REASON = reason_to_skip()
pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(REASON is not None, reason=REASON or ""),
]


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    directory = tmp_path_factory.mktemp("packages")
    subprocess.run([ROOT / "deploy" / "build-controllers.sh", directory], check=True)
    return directory


@pytest.fixture
def machine(tmp_path):
    with MachineCopy(tmp_path) as machine:
        yield machine


def test_each_is_small_and_needs_no_processor_of_a_kind(packages):
    built = sorted(packages.iterdir())
    assert [each.name for each in built] == [
        "walltimed-pbs-0.3.0-1.noarch.rpm",
        "walltimed-pbs_0.3.0_all.deb",
        "walltimed-slurm-0.3.0-1.noarch.rpm",
        "walltimed-slurm_0.3.0_all.deb",
    ]
    for each in built:
        print(f"\n{each.name}: {each.stat().st_size / 1000:.0f} kB")
        assert each.stat().st_size < LARGEST


@pytest.mark.skipif(not shutil.which("rpmlint"), reason="needs rpmlint")
def test_rpmlint_says_nothing_but_what_is_listed(packages):
    assert complaints_of(*packages.glob("*.rpm")) == []


@pytest.mark.parametrize("kind", [DEB, RPM])
@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_installed_used_upgraded_and_removed(packages, machine, name, kind):
    (package,) = packages.glob(f"{name}*.{kind}")
    for _ in ("installed", "upgraded"):
        machine.install(package)
        assert "--url" in machine.run(PROGRAMS[name], "--help")
    state = machine.run("stat", "--format", "%U, mode %a", "/var/lib/walltimed")
    assert state == "walltimed, mode 750\n"
    assert "still" not in machine.remove(name, kind)
    machine.run("test", "!", "-e", PROGRAMS[name])


@pytest.mark.parametrize("kind", [DEB, RPM])
def test_a_removal_names_the_lines_that_slurm_conf_still_has(packages, machine, kind):
    (package,) = packages.glob(f"walltimed-slurm*.{kind}")
    machine.install(package)
    lines = [
        "JobSubmitPlugins=lua",
        "JobCompLoc=http://127.0.0.1:8581/v1/adapters/slurm/jobcomp?cluster=hill",
    ]
    machine.shell(f"printf '%s\\n' '{lines[0]}' '{lines[1]}' > /etc/slurm/slurm.conf")
    assert "still" not in machine.install(package)
    said = machine.remove("walltimed-slurm", kind)
    assert "/etc/slurm/slurm.conf still sends completions here" in said
    for line in lines:
        assert f"    {line}\n" in said
