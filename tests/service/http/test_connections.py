"""How uvicorn is set up, and how often what callers can provoke is logged."""

from resource import RLIM_INFINITY

import pytest
from structlog.testing import capture_logs

from service.http import server
from service.settings import Settings
from terminal.logs import SparseLog


def test_connections_are_bounded_as_set():
    config = server.configuration(server.worker, Settings(max_connections=7))
    assert config.limit_concurrency == 8


def test_uvicorn_names_no_server_believes_no_proxy_and_logs_no_request():
    config = server.configuration(server.worker, Settings())
    assert (config.server_header, config.proxy_headers, config.access_log) == (False,) * 3
    assert (config.timeout_keep_alive, config.timeout_graceful_shutdown) == (
        75,
        server.GRACE_SECONDS,
    )
    assert (config.timeout_worker_healthcheck, config.backlog) == (60, 2048)


@pytest.mark.parametrize(("files", "is_told"), [(4224, False), (4223, True)])
def test_fewer_connections_than_set_are_told(monkeypatch, files, is_told):
    monkeypatch.setattr(server.resource, "getrlimit", lambda _: (files, files))
    with capture_logs() as logged:
        server.most_connections(Settings())
    assert [record["room"] for record in logged] == [4095] * is_told


@pytest.mark.parametrize(
    ("files", "expected"), [(1024, 896), (65536, 4096), (100, 1), (RLIM_INFINITY, 4096)]
)
def test_connections_leave_room_for_other_files(monkeypatch, files, expected):
    monkeypatch.setattr(server.resource, "getrlimit", lambda _: (files, files))
    assert server.most_connections(Settings()) == expected


def test_what_callers_can_provoke_is_logged_once_in_ten_seconds(monkeypatch):
    now = iter([100.0, 101.0, 105.0, 111.0])
    monkeypatch.setattr("terminal.logs.monotonic", lambda: next(now))
    sparse = SparseLog("it happened")
    with capture_logs() as logged:
        for _ in range(4):
            sparse.warn()
    assert [(record["event"], record["times"]) for record in logged] == [
        ("it happened", 1),
        ("it happened", 3),
    ]
