"""The bounds rest on insides of uvicorn and httptools; here it is seen if these change."""

import logging
from resource import RLIM_INFINITY

import pytest
from structlog.testing import capture_logs
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.errors import MalformedRequestError
from service.http import connections, rehearsal, server
from service.http.connections import BoundedProtocol
from service.http.rehearsal import NotAsSupposedError, rehearse
from service.logs import SparseLog
from service.settings import Settings


def test_the_installed_uvicorn_does_what_the_protocol_supposes(caplog):
    caplog.set_level(logging.DEBUG)
    rehearse(BoundedProtocol)
    told = [record for record in caplog.records if record.name != "asyncio"]
    assert told == [], "what it refuses in the rehearsal is nobody's business"
    assert server.protocol() is BoundedProtocol


def test_the_rehearsal_notices_a_protocol_without_bounds(monkeypatch):
    monkeypatch.setattr(rehearsal, "PATIENCE_SECONDS", 0.2)  # of what it waits for in vain
    with pytest.raises(NotAsSupposedError):
        rehearse(HttpToolsProtocol)


def test_the_rehearsal_delays_the_start_by_the_blink_of_an_eye():
    assert 0 < rehearsal.SHORT_SECONDS < 0.1


class Hangs(BoundedProtocol):
    """Looks at no clock."""

    def _look(self) -> None:
        pass


class HangsUp(BoundedProtocol):
    """Closes after each answer."""

    def on_response_complete(self) -> None:
        self.transport.close()


class LeavesOpen(BoundedProtocol):
    """Refuses, and goes on."""

    def _refuse(self, error: Exception) -> None:
        if not self._is_refused:
            self._is_refused = True
            self.transport.write(self._answer(error))


@pytest.mark.parametrize("kind", [Hangs, HangsUp, LeavesOpen])
def test_the_rehearsal_notices_a_protocol_that_closes_at_the_wrong_time(monkeypatch, kind):
    monkeypatch.setattr(rehearsal, "PATIENCE_SECONDS", 0.2)
    with pytest.raises(NotAsSupposedError):
        rehearse(kind)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LONGEST_HEAD", 10**9),
        ("MOST_HEADER_LINES", 10**9),
        ("too_large", lambda: MalformedRequestError("It is too large.")),
    ],
)
def test_the_rehearsal_notices_a_bound_that_does_not_hold(monkeypatch, name, value):
    monkeypatch.setattr(rehearsal, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(connections, name, value)
    with pytest.raises(NotAsSupposedError):
        rehearse(BoundedProtocol)


class OtherInsides(BoundedProtocol):
    """As if uvicorn had another name for what its parser calls."""

    def on_body(self, body: bytes) -> None:
        raise AttributeError(body)


def test_where_uvicorn_has_changed_plain_uvicorn_serves_and_the_log_says_so(monkeypatch):
    monkeypatch.setattr(server, "BoundedProtocol", OtherInsides)
    with capture_logs() as logged:
        assert server.protocol() is H11Protocol
    (record,) = logged
    assert record["event"].startswith("plain uvicorn serves")
    assert record["log_level"] == "error"


def test_plain_uvicorn_bounds_heads_and_connections_too():
    config = server.configuration(server.worker, Settings(max_connections=7))
    assert config.h11_max_incomplete_event_size == 1 << 16
    assert config.limit_concurrency == 8


def test_uvicorn_names_no_server_believes_no_proxy_and_logs_no_request():
    config = server.configuration(server.worker, Settings())
    assert (config.server_header, config.proxy_headers, config.access_log) == (False,) * 3
    assert (config.timeout_keep_alive, config.timeout_graceful_shutdown) == (75, 10)
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
    monkeypatch.setattr("service.logs.monotonic", lambda: next(now))
    sparse = SparseLog("it happened")
    with capture_logs() as logged:
        for _ in range(4):
            sparse.warn()
    assert [(record["event"], record["times"]) for record in logged] == [
        ("it happened", 1),
        ("it happened", 3),
    ]
