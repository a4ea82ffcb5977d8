"""That what makes tests quick is in force: it rests on private parts of other projects."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import shared_adapters
from running_service import Service
from warm_starts import OwnTemplate, Template

from service.http.app import create_app
from service.settings import Settings


def command_line(process: int) -> str:
    return Path(f"/proc/{process}/cmdline").read_text("utf-8").replace("\0", " ")


@pytest.mark.acceptance
def test_a_service_is_forked_from_the_process_that_has_loaded_it(pytestconfig, sqlite_url):
    if pytestconfig.getoption("--long"):
        pytest.skip("--long starts a new interpreter for each process")
    with Service(sqlite_url) as service:
        assert "warm_template.py" in command_line(service.process.pid)
        assert service.predict("ada") == 3600.0


@pytest.mark.acceptance
@pytest.mark.cold
def test_what_is_marked_cold_is_a_new_interpreter(sqlite_url):
    with Service(sqlite_url) as service:
        assert "serve --database-url" in command_line(service.process.pid)


def test_a_template_that_still_loads_when_the_tests_end_is_killed():
    door, inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    template = OwnTemplate()
    template._template = Template(door)
    template._process = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    with inner:
        template.close()
    assert template._process.returncode == -signal.SIGKILL


def test_applications_share_what_pydantic_makes_of_their_types():
    shared_adapters.install()
    create_app(Settings(config=None, database_url="sqlite:///never-opened"))
    made = len(shared_adapters.ADAPTERS)
    assert made
    create_app(Settings(config=None, database_url="sqlite:///never-opened"))
    assert len(shared_adapters.ADAPTERS) == made
