"""What is installed only when asked for: serving does without, and an error names the extra."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from terminal.console import EXTRAS

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
TRACE = ROOT / "simulator" / "data" / "synthetic.swf.gz"

WITHOUT = """
import sys
from importlib.abc import MetaPathFinder

class NotInstalled(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {extras}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

from importlib import util
found = util.find_spec
util.find_spec = lambda name, *rest: None if name in {extras} else found(name, *rest)
sys.meta_path.insert(0, NotInstalled())
sys.argv = ["walltimed", *sys.argv[1:]]
from service.cli import main
main()
"""


def without_extras(*command: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A command line in an installation of what serving needs alone."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT.format(extras=sorted(EXTRAS)), *map(str, command)],
        cwd=cwd,
        env={"PATH": "", "HOME": str(cwd), "STATE_DIRECTORY": str(cwd), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_package_of_an_extra_is_known_to_the_errors():
    optional = PROJECT["optional-dependencies"]
    brought = {
        name: extra
        for extra, requirements in optional.items()
        for name in (each.partition(">")[0] for each in requirements)
    }
    assert brought == EXTRAS


def test_no_extra_is_needed_by_what_serving_installs():
    needed = {each.partition(">")[0].partition("[")[0] for each in PROJECT["dependencies"]}
    assert not needed & {*EXTRAS}


@pytest.mark.parametrize(
    "command",
    [
        ("check-config",),
        ("replay", TRACE, "--limit", "20", "--in-process", "-m", "last-two"),
        ("simulate", TRACE, "--limit", "20"),
        ("backtest", TRACE, "--limit", "20", "-m", "last-two", "--shake", "0"),
    ],
    ids=lambda command: command[0],
)
def test_what_draws_nothing_works_without_extras(command, tmp_path):
    done = without_extras(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (("backtest", TRACE, "-o", "page.html"), "reports"),
        (("replay", TRACE, "--report", "r"), "reports"),
        (("simulate", TRACE, "--report", "r"), "reports"),
    ],
    ids=lambda each: each if isinstance(each, str) else each[0],
)
def test_a_missing_extra_is_named_at_once(command, extra, tmp_path):
    done = without_extras(*command, cwd=tmp_path)
    assert done.returncode == 1
    assert f"(extra {extra})" in done.stderr
    assert "pip install " in done.stderr
    assert "walltimed[" not in done.stderr, "nothing of that name is ours on any index"
    assert "Traceback" not in done.stderr
    assert not [*tmp_path.iterdir()]
