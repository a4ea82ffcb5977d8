"""What a newcomer sees first."""

import signal
import socket
import subprocess
from contextlib import closing

import httpx
import pytest
from running_service import WALLTIMED

pytestmark = [pytest.mark.acceptance, pytest.mark.cold]


@pytest.fixture
def usual_port_is_taken():
    """By us, unless it is by somebody else."""
    with closing(socket.socket()) as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 8580))
            taken.listen()
        except OSError:
            pass
        yield


@pytest.mark.usefixtures("usual_port_is_taken")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_demo_prints_a_table_serves_on_and_leaves_nothing_behind(tmp_path, number):
    process = subprocess.Popen(
        [str(WALLTIMED), "demo", "--limit", "100"], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        env={"TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    printed = ""
    while not printed.endswith("/\n"):
        line = process.stdout.readline()
        assert line, process.stderr.read()
        printed += line
    url = printed.split()[3].rstrip(",")
    for method in ("requested", "max-usage", "percentile", "knn", "last-two", "auto"):
        assert f"\n{method}" in printed
    assert f"curl -s {url}/v1/predictions" in printed
    assert httpx.get(f"{url}/", timeout=60).is_success, "the first page that is opened"
    methods = httpx.get(f"{url}/v1/methods").json()["methods"]
    assert all(0 < method["score"]["jobs"] <= 100 for method in methods)

    process.send_signal(number)
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 0
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/health/live")
