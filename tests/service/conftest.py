"""Services and commands inside the test process."""

import logging
import re
import shutil
import sys
from contextlib import ExitStack

import pytest
import structlog
from asgi_client import InProcess
from command_schemas import check_printed

from service.cli import main
from simulator.reports.tables import TERMINAL


@pytest.fixture
def serve():
    """Starts services; they stop at the end of the test, or by leaving a ``with`` block."""
    with ExitStack() as stack:

        def start(url, **options):
            return stack.enter_context(InProcess(url, **options))

        yield start


@pytest.fixture
def service(serve, sqlite_url):
    """A service on an empty SQLite store."""
    return serve(sqlite_url)


@pytest.fixture(scope="session")
def unchanged(tmp_path_factory, sqlite_template):
    """A service that is shared by tests that change nothing in it."""
    file = shutil.copy(sqlite_template, tmp_path_factory.mktemp("unchanged") / "walltimed.sqlite3")
    with InProcess(f"sqlite:///{file}") as service:
        yield service


@pytest.fixture(autouse=True)
def own_logging():
    """Whatever is configured of logging ends with the test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


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
