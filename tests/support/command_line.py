"""The command ``walltimed`` inside the test process."""

import re
import sys

import pytest
from command_schemas import check_printed

from service.cli import main
from simulator.reports.tables import TERMINAL

RULE = re.compile(r"-+(  +-+)+")


def check_tables(printed):
    """Tables of text fit a terminal."""
    lines = printed.splitlines()
    for place, line in enumerate(lines):
        if RULE.fullmatch(line):
            end = next((n for n in range(place, len(lines)) if not lines[n].strip()), len(lines))
            assert max(map(len, lines[max(0, place - 1) : end])) <= TERMINAL


@pytest.fixture
def walltimed(monkeypatch, capsys, tmp_path):
    """Runs the command; gives its exit code, what it printed and what it complained of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["walltimed", *map(str, arguments)])
        capsys.readouterr()  # what fixtures have logged
        with pytest.raises(SystemExit) as end:
            main()
        printed = capsys.readouterr()
        code = end.value.code or 0
        if "--json" in arguments and printed.out:
            check_printed(arguments, code, printed.out)
        if "--wide" not in arguments:
            check_tables(printed.out)
        return code, printed.out, printed.err

    return run


@pytest.fixture
def refused(walltimed):
    """Runs a command line that is to be refused; gives what it complained of, in one line."""

    def run(*arguments: object) -> str:
        code, _, complaint = walltimed(*arguments)
        assert code == 2, complaint
        return " ".join(complaint.split())

    return run
