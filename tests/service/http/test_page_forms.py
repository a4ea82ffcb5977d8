"""The form that logs in."""

import asyncio

import pytest
from starlette.requests import Request

from service.errors import BodyTooLargeError
from service.http.page_forms import own_path, read_form


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
