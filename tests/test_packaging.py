"""What is shipped holds what it needs: the wheel, the image's recipe, the composition."""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from service.cli import app
from service.http.server import GRACE_SECONDS

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PACKAGES = ("predictors", "terminal", "simulator", "service", "walltimed", "migrations")


NOT_INSTALLED = ("papers", "research", "benchmarks", "tests")
"""Folders of Python that stay in the clone."""

BUILD_SDIST = "from setuptools import build_meta; print(build_meta.build_sdist('..'))"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The files of the repository, and an environment that holds nothing but the wheel of them.

    The wheel is built from the sdist. What it depends on is found where these tests run.
    """
    directory = tmp_path_factory.mktemp("wheel")
    source = directory / "source"
    files = (*PACKAGES, *NOT_INSTALLED, "pyproject.toml", "README.md", "LICENSE")
    listed = run("git", "ls-files", *files, cwd=ROOT)
    for name in listed.splitlines():
        if (ROOT / name).exists():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    sdist = directory / run(sys.executable, "-c", BUILD_SDIST, cwd=source).splitlines()[-1]
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
        "--wheel-dir", directory, sdist, cwd=directory)  # fmt: skip
    (wheel,) = directory.glob("*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", directory / "empty")
    run(sys.executable, "-m", "pip", "--python", directory / "empty" / "bin" / "python",
        "install", "--quiet", "--no-deps", "--no-index", wheel)  # fmt: skip
    (site,) = directory.glob("empty/lib/python3*/site-packages")
    (site / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return source, site


def run(*command: object, **options: object) -> str:
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_holds_every_file_of_the_packages(installed):
    source, site = installed
    shipped = {path.relative_to(site) for path in site.rglob("*") if path.is_file()}
    kept = {path.relative_to(source) for name in PACKAGES for path in (source / name).rglob("*.*")}
    assert kept <= shipped, sorted(kept - shipped)


def test_the_wheel_holds_nothing_of_what_stays_in_the_clone(installed):
    source, site = installed
    assert all((source / name).exists() for name in NOT_INSTALLED)
    folders = {path.name for path in site.iterdir() if path.is_dir()}
    assert folders == {*PACKAGES, f"walltimed-{PROJECT['version']}.dist-info"}


def test_the_installed_wheel_makes_a_store(installed, tmp_path):
    _, site = installed
    walltimed = site.parents[2] / "bin" / "walltimed"
    environment = {"PATH": "", "STATE_DIRECTORY": str(tmp_path)}
    assert run(walltimed, "--version", env=environment).strip() == PROJECT["version"]
    printed = run(walltimed, "db", "upgrade", "--json", cwd=tmp_path, env=environment)
    assert '"migrations": "current"' in printed
    which = "import service; print(service.__file__)"
    ours = run(site.parents[2] / "bin" / "python", "-P", "-c", which, cwd=tmp_path, env=environment)
    assert ours.startswith(str(site))
    assert (tmp_path / "walltimed.sqlite3").exists()


@pytest.mark.acceptance
@pytest.mark.skipif(not shutil.which("pipx"), reason="needs pipx")
def test_pipx_installs_the_wheel_into_an_environment_of_its_own(installed, tmp_path):
    """With all that it depends on, from wherever pip takes packages here."""
    source, _ = installed
    (wheel,) = source.parent.glob("*.whl")
    places = {"PIPX_HOME": str(tmp_path / "home"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    environment = {**os.environ, **places, "STATE_DIRECTORY": str(tmp_path)}
    run("pipx", "install", "--python", sys.executable, wheel, env=environment)
    walltimed = tmp_path / "bin" / "walltimed"
    assert run(walltimed, "--version", env=environment).strip() == PROJECT["version"]
    assert "would start" in run(walltimed, "check-config", env=environment, cwd=tmp_path)


def test_the_base_of_the_image_is_pinned_by_digest():
    recipe = (ROOT / "Dockerfile").read_text()
    bases = re.findall(r"^FROM (\S+)", recipe, re.MULTILINE)
    assert set(bases) == {"${BASE}"}
    assert re.search(
        r"^ARG BASE=docker\.io/library/python:3\.11-slim@sha256:[0-9a-f]{64}$", recipe, re.MULTILINE
    )


def test_the_image_copies_every_package_and_what_the_build_reads():
    recipe = (ROOT / "Dockerfile").read_text()
    copied = {
        word for line in re.findall(r"^COPY (.*)$", recipe, re.MULTILINE) for word in line.split()
    }
    assert {*PACKAGES, "pyproject.toml", "README.md", "LICENSE"} <= copied
    assert re.search(r"^USER 10001:10001$", recipe, re.MULTILINE)
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert {f"!{name}" for name in PACKAGES} <= set(ignored)
    assert ignored[0] == "*"
    assert not {f"!{name}" for name in NOT_INSTALLED} & set(ignored)
    assert not {*NOT_INSTALLED, "."} & copied


def test_the_packages_are_built_from_the_packages_alone():
    recipe = (ROOT / "deploy" / "build-tree.sh").read_text()
    [copied] = re.findall(r'^cp -r (.*) "\$source"$', recipe, re.MULTILINE)
    assert set(copied.split()) == {*PACKAGES, "pyproject.toml", "README.md", "LICENSE"}


COMPOSITIONS = ["docker-compose.yml", "deploy/compose/postgresql.yml"]


def test_the_composition_migrates_once_before_it_serves():
    services = yaml.safe_load((ROOT / COMPOSITIONS[1]).read_text())["services"]
    assert services["walltimed"]["depends_on"] == {
        "migrate": {"condition": "service_completed_successfully"}
    }
    assert services["migrate"]["command"][:2] == ["db", "upgrade"]
    assert services["database"]["environment"]["POSTGRES_INITDB_ARGS"] == "--encoding=UTF8"
    assert services["migrate"]["environment"] == services["walltimed"]["environment"]


@pytest.mark.parametrize("file", COMPOSITIONS)
def test_every_container_of_ours_is_hardened_and_has_time_to_write_what_is_queued(file):
    composition = yaml.safe_load((ROOT / file).read_text())
    ours = [each for each in composition["services"].values() if each["image"] == "walltimed"]
    for service in ours:
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert int(service["stop_grace_period"].rstrip("s")) > GRACE_SECONDS
        volumes = {each.split(":")[0] for each in service["volumes"]}
        assert volumes <= set(composition["volumes"])
    assert ours


def test_the_image_the_manifests_and_the_changelog_are_of_one_version():
    version = PROJECT["version"]
    assert f"ARG VERSION={version}\n" in (ROOT / "Dockerfile").read_text()
    assert f"newTag: {version}\n" in (ROOT / "deploy/kubernetes/kustomization.yaml").read_text()
    assert f"walltimed:{version} " in (ROOT / "deploy/kubernetes/operator.yaml").read_text()
    assert f"\n## [{version}] - " in (ROOT / "CHANGELOG.md").read_text()


def test_requirements_are_pinned_by_hash_and_name_no_download_address():
    pin = re.compile(r"^[\w\[\]-]+==\S+(?: ; [^\\]+)? \\\n    --hash=sha256:", re.MULTILINE)
    for file in (ROOT / "requirements").glob("*.txt"):
        text = file.read_text()
        assert "://" not in text
        assert len(pin.findall(text)) == len(re.findall(r"^\w", text, re.MULTILINE)) > 0


@pytest.mark.parametrize(
    "file", ["slurm/walltimed.lua", "pbs/walltimed_hook.py", "pbs/torque_submitfilter.py"]
)
def test_every_submit_filter_names_this_release(file):
    text = (ROOT / "integrations" / file).read_text()
    names = rf"(%s|{re.escape(Path(file).name)})/{re.escape(PROJECT['version'])}\b"
    assert re.search(names, text)


@pytest.fixture(scope="module")
def manual():
    """The manual pages that the Debian package brings, by name."""
    return runpy.run_path(str(ROOT / "deploy/manual.py"))["pages"]()


def test_every_manual_page_tells_how_its_command_is_called(manual):
    for name, page in manual.items():
        called = page.partition(".SH SYNOPSIS\n.B ")[2].partition("\n")[0].replace("\\-", "-")
        program, *words = called.split()
        command = get_command(app)
        for word in words:
            command = command.commands[word]
        assert name == "-".join([program, *words])


def test_a_manual_page_names_the_option_that_turns_something_off(manual):
    assert "--no-hand-over" in manual["walltimed-slurm-updater"].replace("\\-", "-")


def test_the_bill_of_materials_names_every_package_that_serving_needs():
    requirements = ROOT / "requirements" / "runtime.txt"
    command = [sys.executable, ROOT / "deploy" / "sbom.py", requirements]
    bill = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert (bill["bomFormat"], bill["metadata"]["component"]["version"]) == (
        "CycloneDX",
        PROJECT["version"],
    )
    pinned = re.findall(r"^([\w.-]+)(?:\[\w+\])?==", requirements.read_text(), re.MULTILINE)
    assert [each["name"] for each in bill["components"]] == pinned
