"""Heads that never end, are too large, or ask for what is not there."""

import pytest
from raw_http import answers_to, connection, parse, read_all, request

LONGEST_WAIT = 2.0
"""Processor seconds that an attack may cost another caller; it was 10.5 s once."""


def flood(path, head: bytes, piece: bytes, total: int) -> tuple[int, list]:
    """Send ``piece`` after ``head`` again and again; how much was taken, and the answers."""
    taken = 0
    with connection(path) as opened:
        opened.sendall(head)
        try:
            while taken < total:
                opened.sendall(piece)
                taken += len(piece)
        except OSError:
            pass
        return taken, parse(read_all(opened))


CHUNKED = "host: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
ENDLESS = {
    "a header line": ("POST /v1/predictions HTTP/1.1\r\nhost: localhost\r\nx: ", b"a" * 65536),
    "header lines": ("GET /health/live HTTP/1.1\r\nhost: localhost\r\n", b"a: b\r\n" * 1000),
    "an address": ("GET /", b"a" * 65536),
    "blank lines": ("", b"\r\n" * 5000),
    "trailers": (f"GET /health/live HTTP/1.1\r\n{CHUNKED}1\r\nx\r\n0\r\nx: ", b"a" * 65536),
    "a chunk's extension": (f"GET /health/live HTTP/1.1\r\n{CHUNKED}1;x=", b"a" * 65536),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_what_never_ends_is_cut_and_nobody_else_waits(attacked, pulse, is_long, tell, what):
    head, piece = ENDLESS[what]
    total = 125_000_000 if is_long else 20_000_000
    taken, answers = flood(attacked.socket, head.encode(), piece, total)
    tell(f"cut after {taken / 1e6:.1f} MB")
    assert taken < 4_000_000, "the service went on reading"
    assert [answer.status for answer in answers][-1:] in ([431], [200]), answers
    assert pulse.longest < LONGEST_WAIT


def paths(attacked) -> dict[str, set[str]]:
    """Every path with the methods that it takes."""
    documented = attacked.client.get("/openapi.json").json()["paths"]
    found = {path: {verb.upper() for verb in verbs} for path, verbs in documented.items()}
    return {path.replace("{", "").replace("}", ""): verbs for path, verbs in found.items()}


def test_head_is_answered_at_once_on_every_path(attacked):
    for path, verbs in (paths(attacked) | {"/nowhere": set()}).items():
        with connection(attacked.socket) as opened:
            opened.settimeout(5)
            opened.sendall(request("HEAD", path))
            head, _, body = read_all(opened).partition(b"\r\n\r\n")
        assert body == b"", path
        if "GET" in verbs:
            (got,) = answers_to(attacked.socket, request("GET", path))
            assert head.startswith(b"HTTP/1.1 %d " % got.status), path
        else:
            assert head.startswith(b"HTTP/1.1 405 " if verbs else b"HTTP/1.1 404 "), path


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_a_wrong_method_is_told_the_right_ones(attacked, method):
    for path, verbs in paths(attacked).items():
        if method in verbs:
            continue
        (answer,) = answers_to(attacked.socket, request(method, path))
        allowed = verbs | ({"HEAD"} if "GET" in verbs else set())
        assert answer.status == 405, path
        assert set(answer.headers["allow"].split(", ")) == allowed, path


def test_trailers_are_no_headers(attacked):
    body = b"0\r\ncontent-encoding: gzip\r\n\r\n"
    sent = request("GET", "/health/live", "transfer-encoding: chunked") + body
    (answer,) = answers_to(attacked.socket, sent)
    assert answer.status == 200
