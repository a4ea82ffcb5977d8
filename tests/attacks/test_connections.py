"""Connections that say nothing, and more of them than there is room for."""

import signal
import time
from contextlib import ExitStack

import pytest
from patience import BUSY_SECONDS
from raw_http import answers_to, connection, request
from running_service import Service, eventually

from service.http.connections import BoundedProtocol

pytestmark = pytest.mark.lengthy(25)

MOST_CONNECTIONS = 100

HALF_HEAD = b"POST /v1/predictions HTTP/1.1\r\nhost: local"
HALF_BODY = request(
    "POST", "/v1/predictions", "content-type: application/json", "content-length: 9"
)


def test_silent_connections_do_not_lock_others_out_for_long(attacked, tell):
    with ExitStack() as stack:
        for _ in range(MOST_CONNECTIONS):
            stack.enter_context(connection(attacked.socket))
        (refused,) = eventually(lambda: answers_to(attacked.socket, request("GET", "/health/live")))
        assert refused.status == 503
        assert refused.error == "TooManyConnectionsError"
        assert refused.headers["retry-after"] == "1"
        assert "as many as the service takes" in attacked.log.read_text()
        began = time.monotonic()
        limit = BoundedProtocol.head_seconds + BUSY_SECONDS
        answered = eventually(
            lambda: [a for a in answers_to(attacked.socket, request("GET", "/health/live"))
                     if a.status == 200],
            seconds=limit,
        )  # fmt: skip
        assert answered
        tell(f"others were locked out for {time.monotonic() - began:.1f} s")
    assert "did not come in time" in attacked.log.read_text()


def test_sigterm_waits_for_no_silent_connection(fresh_url, tell):
    with Service(fresh_url) as service, ExitStack() as stack:
        for said in (b"", HALF_HEAD, HALF_BODY + b"{") * 5:
            stack.enter_context(connection(service.socket)).sendall(said)
        eventually(lambda: service.client.get("/health/live").is_success)
        began = time.monotonic()
        assert service.end(signal.SIGTERM) == 0
        took = time.monotonic() - began
        log = service.log.read_text()
    tell(f"it ended after {took:.1f} s")
    assert "timeout graceful shutdown exceeded" not in log
    assert took < 9.0, "it waited for its grace of 10 s"
