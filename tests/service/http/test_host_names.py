"""The names under which a service without tokens answers."""

import pytest

from service.errors import ForbiddenError
from service.http.host_names import HostNames

NAMES = HostNames(["Portal.Example.org"])


@pytest.mark.parametrize(
    "host",
    [
        b"localhost", b"localhost:8580", b"walltimed", b"127.0.0.1:8580", b"127.8.8.8", b"[::1]:1",
        b"portal.example.org", b"PORTAL.example.org:443",
    ],
)  # fmt: skip
def test_loopback_and_the_names_of_the_setting_are_ours(host):
    NAMES.check(host, None)
    NAMES.check(b"localhost", b"http://" + host)


@pytest.mark.parametrize(
    "host",
    [b"evil.example", b"localhost.evil.example", b"192.0.2.1", b"[::1", b"\xff", b"", b":8580"],
)
def test_all_others_are_refused_as_a_host_and_as_whose_page_it_is(host):
    with pytest.raises(ForbiddenError, match="names of loopback"):
        NAMES.check(host, None)
    with pytest.raises(ForbiddenError, match="page of another host"):
        NAMES.check(b"localhost", b"http://" + host)


@pytest.mark.parametrize("origin", [b"null", b"localhost", b""])
def test_an_origin_that_names_no_host_is_refused(origin):
    with pytest.raises(ForbiddenError, match="page of another host"):
        NAMES.check(b"localhost", origin)


def test_a_request_without_a_host_is_refused():
    with pytest.raises(ForbiddenError, match="names of loopback"):
        NAMES.check(None, None)
