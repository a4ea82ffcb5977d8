"""Bodies that are bad, encoded, ambiguous or never come to an end."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from statistics import median

import pytest
from patience import BUSY_SECONDS
from raw_http import answers_to, connection, request
from running_service import Service, eventually, run_walltimed

LONGEST_WAIT = 2.0
"""Processor seconds that an attack may cost another caller; it was minutes once."""

LONGEST_WAIT_FOR_A_BODY = 4.0
"""The same for a body that is looked at in one piece; it was 20 s once."""

LARGEST = 8 << 20
"""Bytes of a body that is read."""

JSON = "content-type: application/json"


@pytest.mark.parametrize(
    ("call", "piece"),
    [
        ("GET /health/live", b"a"),
        ("POST /login", b"a"),
        ("POST /v1/predictions", b"a"),
        ("POST /v1/completions", b"\n"),
        ("PUT /v1/clusters/c/snapshot", b"a" * 40),
    ],
)
def test_ten_bodies_of_many_pieces_hold_nobody_up(attacked, tell, is_long, call, piece):
    with flooded(attacked, call, piece):
        waits = waits_of_another(attacked, seconds=8.0 if is_long else 2.0)
    tell(f"others waited {median(waits):.3f} s, at most {max(waits):.3f} s")
    assert median(waits) <= (0.05 if is_long else 0.2 * BUSY_SECONDS)


@pytest.mark.parametrize("is_closed", [False, True])
def test_bodies_of_small_chunks_hold_nobody_up_at_any_call(fresh_url, tell, is_long, is_closed):
    with Service(fresh_url) as service:
        paths = service.client.get("/openapi.json").json()["paths"]
        calls = [f"{method.upper()} {path}" for path in paths for method in paths[path]]
        if is_closed:
            assert (
                run_walltimed("token", "issue", "a", "-s", "read", "-d", fresh_url).returncode == 0
            )
            eventually(lambda: service.client.get("/v1/methods").status_code == 401)
        worst = 0.0
        for call in calls:
            with flooded(service, call.replace("{", "").replace("}", ""), b"a"):
                waits = waits_of_another(service, seconds=2.0 if is_long else 0.3)
            worst = max(worst, median(waits))
            assert median(waits) <= (0.05 if is_long else 0.2 * BUSY_SECONDS), call
    tell(f"others waited {worst:.3f} s in the median, beside the worst of {len(calls)} calls")


@contextmanager
def flooded(service, call: str, piece: bytes) -> Iterator[None]:
    """Post bodies without an end in such chunks, over ten connections, meanwhile."""
    head = request(*call.split(), "transfer-encoding: chunked", JSON)
    chunks = b"%x\r\n%b\r\n" % (len(piece), piece) * max(1, 65536 // len(piece))
    over = threading.Event()

    def flood() -> None:
        while not over.is_set():
            with suppress(OSError), connection(service.socket) as opened:
                opened.sendall(head)
                while not over.is_set():
                    opened.sendall(chunks)

    threads = [threading.Thread(target=flood) for _ in range(10)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def waits_of_another(service, seconds: float) -> list[float]:
    """Seconds of each answer to another caller meanwhile."""
    waits, ends = [], time.monotonic() + seconds
    while (began := time.monotonic()) < ends:
        (answer,) = answers_to(service.socket, request("GET", "/health/live"))
        assert answer.status == 200
        waits.append(time.monotonic() - began)
        time.sleep(0.01)
    return waits


def nonsense(kind: str, size: int) -> bytes:
    """A body of ``size`` bytes."""
    if kind == "unknown fields":
        return b"{" + b",".join(b'"k%d": 1' % n for n in range(size // 14)) + b"}"
    head, piece, tail = {
        "empty objects": (b'{"submissions": [', b"{},", b"{}]}"),
        "a list that nobody wants": (b'{"jobs": [', b"{},", b"{}]}"),
        "numbers": (b"[", b"1,", b"1]"),
        "a long text": (b'{"method": "', b"a", b'"}'),
    }[kind]
    return head + piece * ((size - len(head) - len(tail)) // len(piece)) + tail


@pytest.mark.parametrize(
    "kind",
    ["unknown fields", "empty objects", "a list that nobody wants", "numbers", "a long text"],
)
@pytest.mark.parametrize("path", ["/v1/predictions", "/v1/predictions/batch", "/v1/completions"])
def test_a_large_body_of_nonsense_holds_nobody_up_for_long(attacked, pulse, is_long, path, kind):
    body = nonsense(kind, LARGEST if is_long else LARGEST // 4)
    (answer,) = answers_to(attacked.socket, request("POST", path, JSON, body=body))
    assert answer.status in {413, 422}
    assert pulse.longest < (LONGEST_WAIT_FOR_A_BODY if is_long else LONGEST_WAIT)


def test_a_large_accounting_log_holds_nobody_up_for_long(attacked, pulse, is_long):
    line = b"11/14/2023 22:14:20;E;%d.hill;user=carol start=1700000000 end=1700000060\n"
    body = b"".join(line % job for job in range((LARGEST if is_long else LARGEST // 4) // 80))
    kind = "content-type: text/x-pbs-accounting"
    sent = request("POST", "/v1/adapters/pbs/accounting", kind, body=body)
    (answer,) = answers_to(attacked.socket, sent)
    assert answer.status == 200
    assert pulse.longest < LONGEST_WAIT


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate", "x-nonsense", "identity, gzip"])
@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/v1/predictions", JSON),
        ("/v1/completions", JSON),
        ("/v1/adapters/slurm/jobcomp", JSON),
        ("/v1/adapters/pbs/accounting", "content-type: text/x-pbs-accounting"),
    ],
)
def test_an_encoded_body_is_refused_on_every_path(attacked, path, kind, encoding):
    sent = request("POST", path, kind, f"content-encoding: {encoding}", body=b"\x1f\x8b{}")
    (answer,) = answers_to(attacked.socket, sent)
    assert (answer.status, answer.error) == (415, "EncodedBodyError")
    assert answer.headers["accept-encoding"] == "identity"
