"""docs/papers.md shows the design clause by clause: its commands print the lines beside them."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from service.cli import app

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "papers.md").read_text("utf-8")
LOG = ROOT.parent / "shared" / "traces" / "SDSC-SP2-1998-4.2-cln.swf.gz"


def played() -> dict[str, list[str]]:
    """The page's lines about LOG by their command, but for the one that starts a service."""
    found: dict[str, list[str]] = {}
    command = ""
    for row in re.findall(r"^\| .* \|$", PAGE, re.MULTILINE):
        _clause, shown, line = (cell.strip().strip("`") for cell in row.strip("|").split(" | "))
        command = command if shown == "the same" else shown
        if re.match(r"walltimed (replay|simulate) LOG .", command):
            found.setdefault(command, []).append(line)
    return found


@pytest.mark.skipif(not LOG.exists(), reason="needs the real traces of ../shared/traces")
@pytest.mark.parametrize("command", played())
def test_a_command_of_the_page_prints_the_lines_beside_it(command, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    words = shlex.split(command.replace("LOG", str(LOG)))[1:]
    result = CliRunner().invoke(app, [*words, "--limit", "2000", "--processes", "1"])
    assert result.exit_code == 0, result.output
    printed = [" ".join(line.split()) for line in result.stdout.splitlines()]
    for line in played()[command]:
        assert any(each.startswith(line) for each in printed), (line, printed)


def test_every_command_of_the_papers_and_of_the_simulator_is_typed():
    assert len(played()) == 7
    assert sum(map(len, played().values())) == 9
