import asyncio
import re
import time
from base64 import b64encode
from pathlib import Path

import pytest
from asgi_client import NOW, InProcess, run_of
from msgspec.structs import replace

from service.auth import MOST_CACHED_HEADERS, Guard, Scope, token_text
from service.errors import ForbiddenError, MissingTokenError
from service.store import open_store
from service.worker import worker

API = Path(__file__).parents[3] / "docs" / "api.md"
JOB = {"requested_walltime": 60}
QUEUE = {"pools": [{"processors": 4}]}
CALLS = [
    ("POST", "/v1/predictions", JOB),
    ("POST", "/v1/predictions/batch", {"submissions": [JOB]}),
    ("POST", "/v1/predictions/extend", JOB | {"predicted_walltime": 6, "elapsed": 7}),
    ("POST", "/v1/completions", run_of("2")),
    ("GET", "/v1/methods", None),
    ("GET", "/v1/users/ada/accuracy", None),
    ("GET", "/v1/accuracy-groups", None),
    ("POST", "/v1/priorities", {"jobs": []}),
    ("POST", "/v1/forecasts", {"machine": {"processors": 4}, "policy": "easy", "samples": 0}),
    ("PUT", "/v1/clusters/ada/snapshot", QUEUE),
    ("GET", "/v1/clusters", None),
    ("GET", "/v1/clusters/ada/snapshot", None),
    ("GET", "/v1/clusters/ada/at-risk", None),
    ("POST", "/v1/clusters/ada/longer-limits", {"jobs": []}),
    ("GET", "/v1/clusters/ada/jobs/ada", None),
    ("POST", "/v1/clusters/ada/what-if", {"submission": JOB}),
    ("GET", "/v1/ended-jobs/ada", None),
    ("GET", "/v1/waits", None),
    ("GET", "/v1/reports/requests", None),
    ("GET", "/v1/reports/users", None),
    ("POST", "/v1/adapters/slurm/jobcomp", {}),
    ("POST", "/v1/adapters/pbs/accounting", b""),
    ("GET", "/v1/tunings", None),
    ("GET", "/v1/tunings/ada", None),
    ("GET", "/metrics", None),
    ("GET", "/openapi.json", None),
]
ANY_TOKEN = frozenset(Scope)


def documented_scopes():
    """The scopes that open each call, as the table of docs/api.md has them."""
    rows = re.findall(r"^\| \[?`(\w+ /\S+)`[^|]*\| ([^|]+) \|", API.read_text(), re.MULTILINE)
    return {
        call: ANY_TOKEN if scopes == "any token" else frozenset(re.findall(r"`(\w+)`", scopes))
        for call, scopes in rows
        if scopes != "none"
    }


DOCUMENTED = documented_scopes()


def template_of(method, path):
    """The call as the documentation names it."""
    return next(
        call
        for call in DOCUMENTED
        if re.fullmatch(re.sub("{[^}]*}", "ada", call), f"{method} {path.partition('?')[0]}")
    )


def sent(body):
    """JSON, but for the one call that takes lines of text."""
    if isinstance(body, bytes):
        return {"content": body, "headers": {"content-type": "text/x-pbs-accounting"}}
    return {"json": body}


@pytest.fixture(scope="module")
def tokens_service(lasting_url):
    """A service with history, and a token of each scope."""
    with InProcess(lasting_url()) as service:
        service.complete(run_of("1"))
        service.tokens = {
            scope: service.issue(f"for {scope}", scope, user="ada" if scope == "self" else None)
            for scope in Scope
        }
        yield service


@pytest.fixture
def guarded(tokens_service):
    """That service, called without a token until the test sets one."""
    tokens_service.token = None
    return tokens_service


@pytest.mark.parametrize(("method", "path", "body"), CALLS)
def test_each_call_takes_the_scopes_that_the_table_in_the_docs_says(guarded, method, path, body):
    needed = DOCUMENTED[template_of(method, path)]
    for scope, token in guarded.tokens.items():
        guarded.token = token
        answer = guarded.request(method, path, **sent(body))
        allowed = scope in {*needed, "admin"}
        expected = {200, 202, 404, 409} if allowed else {403}
        assert answer.status_code in expected, (scope, answer.text)
        if not allowed:
            assert answer.json()["error"] == "ForbiddenError"
            assert all(each in answer.json()["detail"] for each in needed)


def test_the_table_in_the_docs_has_every_call(guarded):
    guarded.token = guarded.tokens["admin"]
    paths = guarded.get("/openapi.json").json()["paths"]
    served = {
        f"{method.upper()} {path}"
        for path, operations in paths.items()
        for method in operations
        if not path.startswith("/health/")
    }
    assert served | {"GET /openapi.json"} == DOCUMENTED.keys()
    assert {template_of(*call[:2]) for call in CALLS} == DOCUMENTED.keys()


@pytest.mark.parametrize(("method", "path", "body"), CALLS)
def test_no_call_goes_without_a_token_once_there_is_one(guarded, method, path, body):
    answer = guarded.request(method, path, **sent(body))
    assert answer.status_code == 401
    assert answer.json()["error"] == "MissingTokenError"
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", ["/health/live", "/health/ready"])
def test_health_is_open(guarded, path):
    assert guarded.get(path).status_code == 200


def test_paths_that_do_not_exist_say_so_to_token_bearers_only(guarded):
    assert guarded.get("/v1/secrets").status_code == 401
    guarded.token = guarded.tokens["predict"]
    assert guarded.get("/v1/secrets").status_code == 404


def test_without_tokens_loopback_is_open(service):
    assert service.get("/metrics").status_code == 200


def test_beyond_loopback_a_token_is_needed_even_if_there_is_none(serve, sqlite_url):
    service = serve(sqlite_url, host="0.0.0.0")
    assert service.get("/metrics").status_code == 401


def test_beyond_loopback_can_be_declared_insecure(serve, sqlite_url):
    service = serve(sqlite_url, host="0.0.0.0", allow_unauthenticated=True)
    assert service.get("/metrics").status_code == 200


def test_tokens_issued_and_revoked_elsewhere_count_soon(service):
    token, text = service.worker.store.tokens.issue("filter", ["predict"], NOW)
    service.wait_until(lambda: service.get("/metrics").status_code == 401)
    service.worker.store.tokens.issue("other", ["predict"], NOW)
    service.token = text
    service.wait_until(lambda: service.get("/metrics").status_code == 200)
    service.worker.store.tokens.revoke(token.token_id, NOW)
    service.wait_until(lambda: service.get("/metrics").status_code == 401)


@pytest.fixture
def no_housekeeping(monkeypatch):
    """No reads of tokens but those for callers."""
    monkeypatch.setattr(worker, "HOUSEKEEPING_SECONDS", 3600.0)


@pytest.mark.usefixtures("no_housekeeping")
def test_a_token_counts_in_every_worker_as_soon_as_it_is_issued(serve, store_url, opening):
    services = [serve(store_url), serve(store_url)]
    tokens = opening(store_url).tokens
    for service in services:
        service.issue("first", "predict")
    for name in ("filter", "other filter", "third filter"):  # the last read was just now
        _, text = tokens.issue(name, [Scope.PREDICT], NOW)
        for service in services:
            service.token = text
            assert service.get("/metrics").status_code == 200


def at_once(service, calls):
    """The statuses of calls that are made together."""

    async def together():
        head = {"authorization": f"Bearer {service.token}"}
        made = (service._client.get("/metrics", headers=head) for _ in range(calls))
        return [answer.status_code for answer in await asyncio.gather(*made)]

    return service.run(together())


@pytest.mark.usefixtures("no_housekeeping")
def test_calls_that_come_together_with_a_new_token_are_all_admitted(service):
    service.issue("first", "predict")
    _, service.token = service.worker.store.tokens.issue("filter", [Scope.PREDICT], NOW)
    assert at_once(service, 20) == [200] * 20


@pytest.mark.usefixtures("no_housekeeping")
def test_a_flood_of_wrong_tokens_reads_the_store_ten_times_a_second_at_most(service, monkeypatch):
    service.issue("first", "predict")
    tokens, reads = service.worker.store.tokens, []
    read_all = tokens.read_all
    monkeypatch.setattr(tokens, "read_all", lambda: [reads.append(1), read_all()][1])
    service.token = "wt_1_x"
    began = time.monotonic()
    for _ in range(3):
        assert at_once(service, 100) == [401] * 100
    assert 1 <= len(reads) <= 1 + (time.monotonic() - began) / worker.TOKENS_ANEW_SECONDS


@pytest.fixture
def guard(sqlite_url):
    """A guard that knows one token for predictions, and its text."""
    store = open_store(sqlite_url)
    token, text = store.tokens.issue("filter", [Scope.PREDICT], NOW)
    store.close()
    guard = Guard(always=False)
    guard.update([token])
    return guard, text


@pytest.mark.parametrize(
    "forge",
    [
        lambda text: text,
        lambda text: f"Basic {text}",
        lambda text: f"Bearer {text}x",
        lambda text: f"Bearer {text[:-1]}",
        lambda text: f"Bearer {text.upper()}",
        lambda text: f"Bearer {text.rpartition('_')[0]}_",
        lambda text: f"Bearer {text.rpartition('_')[0]}",
        lambda text: f"Bearer xx{text[2:]}",
        lambda _text: "Bearer wt__",
        lambda _text: "Bearer \xff\x00",
        lambda _text: "",
    ],
)
def test_a_forged_token_is_refused(guard, forge):
    knows, text = guard
    with pytest.raises(MissingTokenError):
        knows.admit(forge(text).encode("latin-1"), {Scope.PREDICT})


@pytest.mark.parametrize("always", [True, False])
def test_before_it_knows_any_token_a_guard_is_as_closed_as_it_was_told_to_be(always):
    knows = Guard(always=always)
    assert knows.is_open is not always
    assert knows.find("wt_1_x") is None
    assert knows.bearer_of("1") is None


@pytest.mark.parametrize(
    ("header", "text"),
    [
        (b"Basic d2FsbHRpbWVkOnd0XzFfeA==", "wt_1_x"),  # walltimed:wt_1_x
        (b"Basic d2Fsb!HRpbWVkOnd0XzFfeA==", ""),
        (b"Basic  d2FsbHRpbWVkOnd0XzFfeA== ", "wt_1_x"),
        (b"Digest d2FsbHRpbWVkOnd0XzFfeA==", ""),
    ],
)
def test_a_token_is_the_password_of_any_user(header, text):
    assert token_text(header) == text


@pytest.mark.parametrize("kind", ["Bearer", "bearer", "BEARER"])
def test_the_right_token_is_admitted(guard, kind):
    knows, text = guard
    knows.admit(f"{kind} {text}".encode(), {Scope.PREDICT})
    with pytest.raises(ForbiddenError):
        knows.admit(f"{kind} {text}".encode(), {Scope.INGEST})


def test_a_header_that_was_good_is_good_until_its_token_is_revoked(guard):
    knows, text = guard
    header = f"Bearer {text}".encode()
    [(token, _)] = knows._tokens.values()
    for _ in range(2):
        assert knows.admit(header, {Scope.PREDICT}).scopes == {Scope.PREDICT}
    knows.update([replace(token, scopes=frozenset({Scope.INGEST}))])
    with pytest.raises(ForbiddenError):
        knows.admit(header, {Scope.PREDICT})
    knows.update([replace(token, revoked_at=NOW)])
    with pytest.raises(MissingTokenError):
        knows.admit(header, {Scope.PREDICT})


def test_only_good_headers_are_remembered_and_not_for_ever(guard):
    knows, text = guard
    with pytest.raises(MissingTokenError):
        knows.admit(f"Bearer {text}x".encode(), {Scope.PREDICT})
    assert not knows._callers
    remembered = []
    for user in range(MOST_CACHED_HEADERS + 1):
        credentials = b64encode(f"{user}:{text}".encode())
        knows.admit(b"Basic " + credentials, {Scope.PREDICT})
        remembered.append(len(knows._callers))
    assert remembered == [*range(1, 1_001), 1]


def test_no_token_and_no_payload_is_logged(sqlite_url, capfd):
    with InProcess(sqlite_url) as service:
        service.token = service.issue("all", "admin")
        service.predict(user="confidential")
        service.post("/v1/completions", run_of("2", user="confidential"))
        service.post("/v1/predictions", {"confidential": service.token})
    logged = "".join(capfd.readouterr())
    assert "ready" in logged
    assert "confidential" not in logged
    assert service.token.rpartition("_")[2] not in logged
