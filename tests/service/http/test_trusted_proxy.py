"""A proxy that names users to the pages: off by default, and believed from nowhere else."""

import asyncio
from types import SimpleNamespace

import pytest
from starlette.requests import Request
from structlog.testing import capture_logs

from service.auth import EVERYBODY, Caller
from service.errors import MalformedRequestError
from service.http.pages import COOKIE, Visitors
from service.http.trusted_proxy import LONGEST_NAME, TrustedProxy
from service.settings import Settings
from terminal.scopes import Scope

USER, GROUPS = "X-Remote-User", "X-Remote-Groups"
PROXY, STRANGER = "192.0.2.7", "192.0.2.8"
NAMED = {"proxy_user_header": USER, "proxy_addresses": [PROXY]}
GROUPED = {**NAMED, "proxy_groups_header": GROUPS, "proxy_read_groups": ["hpc-staff"]}
TOKEN = Caller(frozenset({Scope.READ}))


def asked(*headers, address=PROXY, cookie=None):
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    if cookie:
        raw.append((b"cookie", f"{COOKIE}={cookie}".encode()))
    client = None if address is None else (address, 1234)
    return Request({"type": "http", "headers": raw, "client": client})


def proxy(**settings):
    return TrustedProxy(Settings(**settings), lambda name: f"hidden-{name}")


def visitor(request, *, is_open=False, **settings):
    """The visitor of a page on a service with one session, of a token of scope read."""
    guard = SimpleNamespace(
        is_open=is_open,
        bearer_of=lambda found: (
            (SimpleNamespace(name="t", token_id="t1"), TOKEN) if found else None
        ),
    )
    sessions = SimpleNamespace(token_of=lambda text, _now: "t1" if text == "mine" else None)
    visitors = Visitors(
        guard,
        SimpleNamespace(sessions=sessions),
        None,
        clock=lambda: 0.0,
        seconds=60.0,
        proxy=proxy(**settings),
    )
    return asyncio.run(visitors.visitor(request))


def test_a_user_of_the_proxy_sees_what_is_their_own_under_their_pseudonym():
    found = visitor(asked((USER, " alice ")), **NAMED)
    assert found.caller == Caller(frozenset({Scope.SELF}), "hidden-alice")
    assert not found.is_logged_in, "no session of ours can be ended"


def test_by_default_no_header_counts():
    assert visitor(asked((USER, "alice"))) is None
    assert proxy().caller(asked((USER, "alice"))) is None


@pytest.mark.parametrize("address", [STRANGER, "::1", "testclient", None])
def test_a_header_from_elsewhere_is_ignored_and_logged_once(address):
    trusted = proxy(**NAMED)
    with capture_logs() as logged:
        for _ in range(3):
            assert trusted.caller(asked((USER, "alice"), address=address)) is None
    assert [each["header"] for each in logged] == [USER.lower()]


def test_a_network_and_the_unix_socket_can_be_named():
    named = {**NAMED, "proxy_addresses": ["192.0.2.0/24", "unix"]}
    for address in (PROXY, STRANGER, None):
        assert proxy(**named).caller(asked((USER, "alice"), address=address)) is not None
    assert proxy(**named).caller(asked((USER, "alice"), address="198.51.100.1")) is None


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        (["alice", "bob"], "two headers"),
        (["alice", "alice"], "two headers"),
        (["a" * (LONGEST_NAME + 1)], "longer than"),
        (["ali\x00ce"], "cannot be printed"),
        (["al\x7fice"], "cannot be printed"),
        (["alïce"], "cannot be printed"),
    ],
)
def test_a_header_that_is_no_name_is_refused(values, complaint):
    request = asked(*[(USER, value) for value in values])
    with pytest.raises(MalformedRequestError, match=complaint):
        visitor(request, **NAMED)


@pytest.mark.parametrize("value", ["", "  "])
def test_whom_the_proxy_does_not_name_has_to_log_in(value):
    assert visitor(asked((USER, value)), **NAMED) is None
    assert visitor(asked(), **NAMED) is None


@pytest.mark.parametrize(
    ("groups", "sees_all"),
    [("users,hpc-staff", True), ("hpc-staff-2", False), ("", False), ("x; hpc-staff", True)],
)
def test_a_named_group_sees_all_jobs_and_no_other(groups, sees_all):
    found = visitor(asked((USER, "alice"), (GROUPS, groups)), **GROUPED)
    assert found.sees_everybody is sees_all
    assert Scope.ADMIN not in found.caller.scopes


def test_groups_without_a_user_or_from_elsewhere_or_twice_are_nothing():
    assert visitor(asked((GROUPS, "hpc-staff")), **GROUPED) is None
    staff = ((USER, "alice"), (GROUPS, "hpc-staff"))
    assert visitor(asked(*staff, address=STRANGER), **GROUPED) is None
    with pytest.raises(MalformedRequestError, match="two headers"):
        visitor(asked(*staff, (GROUPS, "users")), **GROUPED)
    assert not visitor(asked(*staff), **NAMED).sees_everybody, "no group is named"


def test_a_session_of_a_token_counts_alone():
    assert visitor(asked((USER, "alice"), cookie="mine"), **NAMED).caller is TOKEN
    ended = visitor(asked((USER, "alice"), cookie="ended"), **NAMED)
    assert ended.caller.restricted_to == "hidden-alice"


def test_with_a_proxy_pages_are_open_to_nobody():
    assert visitor(asked(), is_open=True).caller is EVERYBODY
    assert visitor(asked(), is_open=True, **NAMED) is None


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"proxy_user_header": USER}, "proxy_addresses"),
        ({**NAMED, "proxy_read_groups": ["x"]}, "proxy_groups_header"),
        ({**NAMED, "proxy_addresses": ["proxy.example"]}, "proxy.example"),
        ({**NAMED, "proxy_user_header": "Cookie"}, "meaning of its own"),
        ({**NAMED, "proxy_user_header": "X Remote"}, "proxy_user_header"),
    ],
)
def test_settings_that_trust_nobody_in_particular_are_refused(settings, complaint):
    with pytest.raises(ValueError, match=complaint):
        Settings(**settings)


def test_the_header_is_for_pages_and_allows_no_call(serve, sqlite_url):
    service = serve(sqlite_url, proxy_user_header=USER, proxy_addresses=["127.0.0.1"])
    service.issue("x", "predict")
    named = {"headers": {USER: "alice"}}
    assert service.request("GET", "/v1/clusters", **named).status_code == 401
    page = service.request("GET", "/", **named)
    assert page.status_code == 200
    assert "My jobs" in page.text
    assert service.request("GET", "/").status_code == 303
