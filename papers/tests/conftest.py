"""The command line of the studies, called as the shell calls it."""

import sys

import pytest

from papers.command_line import main


@pytest.fixture
def papers(monkeypatch, capsys, tmp_path):
    """Runs a command; gives its exit code, what it printed and what it complained of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["papers", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        printed = capsys.readouterr()
        return end.value.code or 0, printed.out, " ".join(printed.err.split())

    return run
