"""The page about the first hour is true: its commands are run in its order, on one history.

What installs something is replayed elsewhere: `make demo` by `tests/acceptance/test_demo.py`, the
wheel by `tests/test_packaging.py`. Commands run in this process, which has everything imported;
the service and what asks it run in a shell.
"""

import os
import re
import shlex
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from running_service import WALLTIMED

pytestmark = pytest.mark.lengthy(20)

PAGE = (Path(__file__).parents[3] / "docs" / "first-hour.md").read_text("utf-8")
STEPS = re.findall(r"^```console\n\$ (.*)\n((?:(?!```).*\n)+)```$", PAGE, re.MULTILINE)
TILL_IT_LISTENS = "> told 2> log & until [ -s told ]; do sleep 0.1; done; cat told"
END = "-- the step has ended --"


def pattern_of(printed: str) -> str:
    """What may be printed: any numbers, and anything for each ``…``."""
    text = re.escape(printed.strip()).replace("…", ".*")
    return re.sub(r"\d+(?:,\d+)*(?:\\\.\d+)*", r"[\\d.,]+", text)


class Shell:
    """A shell that goes on from step to step."""

    def __init__(self, directory: Path, port: str) -> None:
        self._port = port
        environment = {
            "PATH": f"{WALLTIMED.parent}:{os.environ['PATH']}",
            "HOME": str(directory),
            "STATE_DIRECTORY": str(directory),
            "WALLTIMED_CONFIG": "",
            "WALLTIMED_PORT": port,
        }
        self._process = subprocess.Popen(
            ["bash", "--norc", "-m"], cwd=directory, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def run(self, command: str) -> str:
        """What a command prints; what one in the background prints until it listens."""
        here = command.replace("8580", self._port)
        if here.endswith("&"):
            here = f"{here[:-1]} {TILL_IT_LISTENS}"
        self._process.stdin.write(f"{here}\necho; echo '{END}'\n")
        self._process.stdin.flush()
        lines = iter(self._process.stdout.readline, f"{END}\n")
        return "".join(lines).strip()

    def end(self) -> None:
        """End what still runs, and the shell."""
        self._process.stdin.write("kill $(jobs -p) 2> /dev/null; wait; exit\n")
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


@pytest.fixture
def shell(tmp_path):
    """With a port of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    (tmp_path / "benchmarks").symlink_to(Path(__file__).parents[3] / "benchmarks")
    shell = Shell(tmp_path, port)
    shell.run(":")  # what it says of having no terminal belongs to no step
    yield shell
    shell.end()


def test_every_example_of_the_page_is_a_step():
    assert len(STEPS) == PAGE.count("```console") > 8


def test_numbers_may_differ_and_words_may_not():
    assert re.fullmatch(pattern_of("2,000 jobs over 80.6 days"), "1,234,567 jobs over 3 days")
    assert not re.fullmatch(pattern_of("2,000 jobs over 80.6 days"), "2,000 runs over 80.6 days")


@pytest.mark.acceptance
@pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")
def test_the_first_hour_goes_as_its_page_says(walltimed, shell, monkeypatch):
    monkeypatch.setenv("WALLTIMED_CONFIG", "")
    assert walltimed("warm-up")[0] == 0  # as the first section does
    for command, printed in STEPS:
        if command.startswith("walltimed ") and not command.endswith("&"):
            _, out, err = walltimed(*shlex.split(command)[1:])
            said = [(out + err).strip(), (err + out).strip()]
        else:
            said = [shell.run(command)]
        if command.startswith("export "):
            monkeypatch.setenv("WALLTIMED_DATABASE_URL", said[0])
        expected = re.compile(pattern_of(printed), re.DOTALL)
        assert any(map(expected.fullmatch, said)), f"{command}\n{said[0]}"
