"""What is installed on a host: units that start real commands, scripts for old interpreters."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from service.cli import app
from service.http.server import OTHER_FILES
from service.settings import Settings

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
BUILD = DEPLOY / "service-package.sh"
UNITS = sorted((DEPLOY / "systemd").iterdir())
SERVICES = [unit for unit in UNITS if unit.suffix == ".service"]
SCRIPTS = sorted((ROOT / "integrations").glob("*/*.py"))
OLDEST_PYTHON = (3, 7)  # the oldest grammar that ast still tells apart


def lines(unit: Path, key: str) -> list[str]:
    pairs = (line.partition("=") for line in unit.read_text().splitlines())
    return [value for name, _, value in pairs if name == key]


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.name)
def test_every_unit_starts_something_that_exists(unit):
    (command,) = lines(unit, "ExecStart")
    program, *arguments = command.split()
    if program == "/usr/bin/walltimed":
        assert arguments[0] in get_command(app).commands
    else:
        assert program.startswith("/usr/share/walltimed/")
        script = ROOT / "integrations" / program.removeprefix("/usr/share/walltimed/")
        assert script.stat().st_mode & 0o111


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.name)
def test_every_unit_runs_as_nobody_important_and_sees_the_system_read_only(unit):
    assert lines(unit, "User") == ["walltimed"]
    gains_nothing = lines(unit, "NoNewPrivileges") == ["yes"]
    assert gains_nothing or lines(unit, "CapabilityBoundingSet") == ["CAP_NET_BIND_SERVICE"]
    assert lines(unit, "ProtectSystem") == ["strict"]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.name)
def test_every_unit_is_closed_as_far_as_its_program_allows(unit):
    words = ["systemd-analyze", "security", "--offline=true", "--no-pager", unit]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    (exposure,) = re.findall(r"Overall exposure level for .*: ([\d.]+)", done.stdout)
    starts_a_set_uid_program = unit.name == "walltimed-pbs.service"
    assert float(exposure) <= (6.0 if starts_a_set_uid_program else 2.0)


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.name)
def test_our_python_starts_no_thread_for_each_processor(unit):
    if lines(unit, "ExecStart")[0].startswith("/usr/bin/walltimed"):
        assert "OPENBLAS_NUM_THREADS=1" in lines(unit, "Environment")


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_understands_every_unit(unit):
    done = subprocess.run(
        ["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False
    )
    complaints = [
        line
        for line in done.stderr.splitlines()
        if unit.name in line and "is not executable" not in line
    ]
    assert not complaints


SHELL_SCRIPTS = [*sorted(DEPLOY.glob("*.sh")), DEPLOY / "walltimed", DEPLOY / "still-named"]


@pytest.mark.parametrize("script", SHELL_SCRIPTS, ids=lambda script: script.name)
def test_shell_scripts_parse(script):
    subprocess.run(["sh", "-n", script], check=True)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_scripts_for_hosts_keep_to_an_old_python(script):
    ast.parse(script.read_text(), feature_version=OLDEST_PYTHON)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_scripts_for_hosts_need_nothing_but_python(script):
    tree = ast.parse(script.read_text())
    imported = {
        name.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for name in node.names
    }
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    beside = {path.stem for path in script.parent.glob("*.py")}
    assert imported <= {"pbs", *beside, *sys.stdlib_module_names}


def test_no_unit_opens_the_directory_of_the_history_to_others():
    """systemd sets the mode anew at every start, and units that say none set it to 0755."""
    sharing = [unit for unit in SERVICES if lines(unit, "StateDirectory")]
    assert len(sharing) > 1
    assert {*map(tuple, (lines(unit, "StateDirectoryMode") for unit in sharing))} == {("0750",)}


def test_an_upgrade_asks_before_it_replaces_what_a_site_edits_in_its_place():
    """What a site edits is a file that dpkg keeps."""
    (written,) = re.findall(r"^kept='(.+)'$", BUILD.read_text(), re.MULTILINE)
    assert {"/etc/walltimed/pbs-hook.json", "/etc/walltimed/walltimed.toml"} <= {*written.split()}


def test_the_sites_settings_file_holds_defaults_only():
    text = (DEPLOY / "etc" / "walltimed.toml").read_text()
    assert all(not line or line.startswith("#") for line in text.splitlines())


def test_the_service_may_open_as_many_connections_as_it_takes_in_every_worker():
    (files,) = lines(DEPLOY / "systemd" / "walltimed.service", "LimitNOFILE")
    assert int(files) >= Settings().max_connections + OTHER_FILES
