"""What is shipped holds what it needs: the wheel, the image's recipe, the composition."""

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml

ROOT = Path(__file__).parent.parent
PACKAGES = ("predictors", "simulator", "service", "migrations")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A directory that holds what the wheel installs, built from the files of the repository."""
    directory = tmp_path_factory.mktemp("wheel")
    source = directory / "source"
    listed = run("git", "ls-files", *PACKAGES, "pyproject.toml", "README.md", "LICENSE", cwd=ROOT)
    for name in listed.splitlines():
        if (ROOT / name).exists():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
        "--wheel-dir", directory, source, cwd=directory)  # fmt: skip
    (wheel,) = directory.glob("*.whl")
    with ZipFile(wheel) as archive:
        archive.extractall(directory / "site")
    return source, directory / "site"


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


def test_the_installed_wheel_makes_a_store(installed, tmp_path):
    _, site = installed
    start = (
        "import service, sys; from service.cli import main;"
        "assert service.__file__.startswith(sys.argv.pop(1)); main()"
    )
    printed = run(sys.executable, "-P", "-c", start, site, "db", "upgrade", "--json",
                  cwd=tmp_path, env={"PYTHONPATH": str(site), "PATH": "",
                       "STATE_DIRECTORY": str(tmp_path)})  # fmt: skip
    assert '"schema": "current"' in printed
    assert (tmp_path / "walltimed.sqlite3").exists()


def test_the_image_copies_every_package_and_what_the_build_reads():
    recipe = (ROOT / "Dockerfile").read_text()
    copied = {
        word for line in re.findall(r"^COPY (.*)$", recipe, re.MULTILINE) for word in line.split()
    }
    assert {*PACKAGES, "pyproject.toml", "README.md", "LICENSE"} <= copied
    assert re.search(r"^USER walltimed$", recipe, re.MULTILINE)
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert {f"!{name}" for name in PACKAGES} <= set(ignored)


def test_the_composition_migrates_once_before_it_serves():
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    assert services["walltimed"]["depends_on"] == {
        "migrate": {"condition": "service_completed_successfully"}
    }
    assert services["migrate"]["command"] == ["db", "upgrade"]
    assert services["migrate"]["environment"] == services["walltimed"]["environment"]


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
    assert f"{Path(file).name}/{version('walltimed')}" in text
