"""Lists of commands import none of them; a command imports what it needs."""

import os
import subprocess
import sys

import pytest
from typer.main import get_command

from service.cli import Commands, app

HEAVY = ("numba", "numpy", "sqlalchemy", "fastapi", "pydantic_settings", "matplotlib", "msgspec")

LOOK = """
import sys
sys.argv = ["walltimed", *sys.argv[2:]]
from service.cli import main
try:
    main()
except SystemExit:
    pass
print("imported:", *sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


def imported(*arguments: str, **environment: str) -> set[str]:
    """The packages that a command line imports."""
    done = subprocess.run(
        [sys.executable, "-c", LOOK, "-", *arguments],
        env={"PATH": "", "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.splitlines()[-1].split()[1:])


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_what_only_tells_imports_nothing_heavy(option):
    assert not imported(option) & set(HEAVY)


def test_the_version_is_told_without_the_command_line():
    assert not imported("--version") & {"pydantic", "pydantic_core"}


def test_completing_a_command_imports_none():
    words = {"_WALLTIMED_COMPLETE": "complete_bash", "COMP_WORDS": "walltimed s", "COMP_CWORD": "1"}
    assert not imported(**words) & set(HEAVY)


@pytest.mark.parametrize("name", Commands.lazy)
def test_the_line_in_the_list_is_the_beginning_of_the_command_s_own_help(name):
    command = get_command(app).commands[name]
    assert command.name == name
    paragraph = command.help.split("\n\n", maxsplit=1)[0]
    assert " ".join(paragraph.split()) == Commands.lazy[name].summary()


@pytest.mark.parametrize("command", [[], ["serve"], ["token", "issue"]])
def test_the_short_option_for_help_says_the_same(command, capsys):
    said = []
    for option in ("--help", "-h"):
        with pytest.raises(SystemExit):
            app([*command, option])
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert "Usage: " in said[0]


def test_a_command_that_does_not_exist_is_refused_with_a_near_one(refused):
    assert "Did you mean" in refused("srve")


def test_help_shows_what_an_administrator_and_a_user_need(capsys):
    with pytest.raises(SystemExit):
        app(["--help"])
    shown = {line.split()[1] for line in capsys.readouterr().out.splitlines() if "│ " in line[:2]}
    hidden = {name for name, command in Commands.lazy.items() if command.hidden}
    listed = set(Commands.lazy) & shown
    assert listed == set(Commands.lazy) - hidden
    assert len(listed) <= 20
    assert not shown & {"--install-completion", "--show-completion"}


THREADS = """
import sys, types

def run(settings):
    import numpy
    from threadpoolctl import threadpool_info

    print([pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"])

sys.modules["service.http.server"] = types.SimpleNamespace(run=run, leave=lambda: None)
from service.cli import main
main()
"""


def test_a_service_has_no_threads_of_linear_algebra(tmp_path):
    """One for each processor, in several processes, passed the limit on tasks of the unit."""
    names = {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", THREADS, "serve", "-d", f"sqlite:///{tmp_path}/history.db"],
        env={name: value for name, value in os.environ.items() if name not in names},
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stdout.splitlines()[-1] == "[1]"
