"""Callers from another host's page, whom nobody has let in."""

import pytest
from raw_http import answers_to


def asked(path, *lines: str, method: str = "GET", target: str = "/v1/methods") -> int:
    """The status of a request with these header lines and no others."""
    head = [f"{method} {target} HTTP/1.1", "connection: close", *lines, "", ""]
    (answer,) = answers_to(path, "\r\n".join(head).encode("latin-1"))
    return answer.status


@pytest.mark.parametrize(
    "host",
    ["localhost", "LocalHost:8580", "127.0.0.1:8580", "127.1.2.3", "[::1]:8580", "walltimed"],
)
def test_names_of_this_machine_are_answered(attacked, host):
    assert asked(attacked.socket, f"host: {host}") == 200
    assert asked(attacked.socket, f"host: {host}", f"origin: http://{host}") == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8580", "localhost.evil.example", "127.0.0.1.evil.example", "",
     "192.0.2.1", "[2001:db8::1]", "localhost@evil.example", "[::1", "\xff"],
)  # fmt: skip
@pytest.mark.parametrize("target", ["/v1/methods", "/metrics", "/health/ready", "/openapi.json"])
def test_a_page_that_rebinds_its_name_reads_nothing(attacked, host, target):
    assert asked(attacked.socket, f"host: {host}", target=target) == 403
    assert asked(attacked.socket, "host: localhost", f"origin: http://{host}") == 403


@pytest.mark.parametrize("origin", ["null", "http://evil.example", "file://", ""])
def test_a_page_of_another_host_writes_nothing(attacked, origin):
    lines = ("host: localhost", f"origin: {origin}", "content-length: 0")
    assert asked(attacked.socket, *lines, method="POST", target="/v1/completions") == 403
