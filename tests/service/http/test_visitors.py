"""Who looks at a page, by the cookie of a session, and the form that opens one."""

import asyncio
from types import SimpleNamespace

import pytest
from starlette.requests import Request

from service.auth import Caller, Scope
from service.errors import BodyTooLargeError
from service.http.pages import COOKIE, Visitors, own_path, read_form
from service.web.frame import AnswerCache

CALLER = Caller(frozenset({Scope.READ}))


class House:
    """A browser with a session of the token `t1`, and what is asked of the store about it."""

    def __init__(self, name="page"):
        self.now, self.asked, self.token_id = 0.0, [], "t1"
        guard = SimpleNamespace(is_open=False, bearer_of=lambda _: (token, CALLER))
        token = SimpleNamespace(name=name, token_id="t1")
        store = SimpleNamespace(sessions=self)
        self.visitors = Visitors(guard, store, None, clock=lambda: self.now, seconds=60.0)

    def token_of(self, text, now):
        self.asked.append((text, now))
        return self.token_id

    def look(self, cookie="wanted"):
        headers = [(b"cookie", f"{COOKIE}={cookie}".encode())] if cookie else []
        request = Request({"type": "http", "headers": headers})
        return asyncio.run(self.visitors.visitor(request))


@pytest.fixture
def house():
    return House()


def test_every_look_asks_the_store_whether_the_session_is_valid(house):
    for house.now in (0.0, 1.9):
        assert house.look().caller is CALLER
    assert house.asked == [("wanted", 0.0), ("wanted", 1.9)]


def test_who_has_no_session_or_one_that_is_over_is_nobody(house):
    assert house.look(cookie="") is None
    assert house.asked == []
    house.token_id = None
    assert house.look() is None


@pytest.mark.parametrize(("name", "shown"), [("page", "page"), (None, "t1"), ("", "t1")])
def test_a_visitor_is_shown_the_name_of_their_token_or_its_number(name, shown):
    assert House(name).look().name == shown


def test_what_is_kept_of_answers_has_a_bound():
    cache = AnswerCache(most=10)
    for number in range(1000):
        cache.get(number, 60.0, lambda: None)
    assert len(cache._entries) <= 10


def read(*pieces):
    """The fields of a form that comes in these pieces."""
    left = list(pieces)

    async def receive():
        return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

    return asyncio.run(read_form(Request({"type": "http", "method": "POST"}, receive)))


def test_a_form_may_come_in_pieces_and_the_first_of_each_name_counts():
    assert read(b"token=wt_1", b"_x&to=%2Fqueue&to=/other") == {"token": "wt_1_x", "to": "/queue"}


def test_a_form_has_at_most_4096_bytes():
    assert read(b"a=" + b"x" * 4000, b"y" * 94) == {"a": "x" * 4000 + "y" * 94}
    with pytest.raises(BodyTooLargeError, match="4096"):
        read(b"a=" + b"x" * 4000, b"y" * 95)


def test_a_form_has_at_most_eight_fields():
    assert len(read(b"&".join(b"f%d=x" % number for number in range(8)))) == 8
    assert read(b"&".join(b"f%d=x" % number for number in range(9))) == {}


@pytest.mark.parametrize("to", ["/", "/queue?cluster=hill&state=running", "/user?name=a%2Fb"])
def test_a_link_to_one_of_our_pages_is_followed(to):
    assert own_path(to) == to


@pytest.mark.parametrize(
    "to",
    [
        "", "queue", "//evil.example", "///evil.example", "http://[", "https:///x", "javascript:x",
        "/\\evil.example", "/\t/evil.example", "/queue\n", "/a\x7f",
    ],
)  # fmt: skip
def test_a_link_to_anything_else_leads_to_the_first_page(to):
    assert own_path(to) == "/"
