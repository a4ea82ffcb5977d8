"""Callers who are named by MUNGE, with a real munged."""

import os
import pwd
import signal
import time
from unittest.mock import patch

import private_munge
import pytest
from asgi_client import NOW, InProcess, run_of
from patience import BUSY_SECONDS, eventually

from service import auth
from service.auth import Scope
from terminal import munge

pytestmark = pytest.mark.skipif(
    bool(private_munge.REASON_TO_SKIP), reason=str(private_munge.REASON_TO_SKIP)
)
ME = pwd.getpwuid(os.getuid()).pw_name
NOBODY = pwd.getpwnam("nobody")
JOB = {"requested_walltime": 3600}


@pytest.fixture(scope="module")
def munged():
    with private_munge.PrivateMunge() as munged:
        yield munged


@pytest.fixture(scope="module")
def site(lasting_url, munged):
    """A service with runs of this process's user and of ada, which asks for tokens."""
    with InProcess(lasting_url(), munge_socket=munged.socket) as service:
        for user in (ME, "ada"):
            service.complete(
                *(run_of(f"{user}-{n}", user=user, end_time=NOW + n) for n in range(9))
            )
        service.admin = service.issue("admin", Scope.ADMIN)
        yield service


def call(site, credential, method="GET", path="/v1/reports/requests?since=0", **options):
    return site.request(method, path, headers={"authorization": f"Munge {credential}"}, **options)


def users_told(answer):
    assert answer.status_code == 200, answer.text
    return {row["user"] for row in answer.json()["applications"]}


def test_a_credential_is_as_good_as_a_token_of_scope_self(site, munged):
    answer = call(site, munge.encode(munged.socket))
    assert users_told(answer) == {ME}
    assert answer.json()["everybody"] is None
    path = "/v1/reports/requests?since=0&user=ada"
    assert call(site, munge.encode(munged.socket), path=path).status_code == 403
    assert call(site, munge.encode(munged.socket), path="/v1/users/ada/accuracy").status_code == 403
    ingested = call(site, munge.encode(munged.socket), "POST", "/v1/completions", json=run_of("x"))
    assert ingested.status_code == 403


def test_the_scheme_is_written_in_any_case(site, munged):
    headers = {"authorization": f"mUNGE {munge.encode(munged.socket)}"}
    assert site.request("GET", "/v1/methods", headers=headers).status_code == 200


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to be another user")
def test_the_user_is_the_one_who_made_the_credential(site, munged):
    asked = call(
        site, munged.credential(user=NOBODY.pw_uid), "POST", "/v1/predictions",
        json=JOB | {"user": ME},
    )  # fmt: skip
    assert asked.status_code == 403
    own = {"user": NOBODY.pw_name, **JOB}
    for body in (JOB, own):
        credential = munged.credential(user=NOBODY.pw_uid)
        answer = call(site, credential, "POST", "/v1/predictions", json=body).json()
        assert answer["basis"]["jobs"] == 0


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to be another user")
def test_a_user_whom_the_host_does_not_know_is_refused(site, munged):
    answer = call(site, munged.credential(user=54_321))
    assert (answer.status_code, answer.json()["detail"]) == (
        401,
        "The service's host knows no user 54321.",
    )


def test_a_prediction_for_oneself_rests_on_ones_own_runs_and_is_not_recorded(site, munged):
    with patch.object(type(site.worker.recorder), "later") as recorded:
        answer = call(site, munge.encode(munged.socket), "POST", "/v1/predictions", json=JOB)
        assert not recorded.called
        site.token = site.admin
        site.predict(user=ME)
        assert recorded.called
        site.token = None
    assert answer.json()["basis"]["jobs"] == 5
    assert answer.json()["predicted_walltime"] == 900


def test_tokens_stay_good_beside_credentials(site):
    site.token = site.admin
    assert users_told(site.get("/v1/reports/requests", since=0, user="ada")) == {"ada"}
    site.token = None


def test_without_libmunge_the_error_says_so(munged, monkeypatch):
    munge.load_library.cache_clear()
    monkeypatch.setattr(munge, "LIBRARY", "libnowhere.so.2")
    with pytest.raises(munge.MungeUnavailableError, match="not installed"):
        munge.encode(munged.socket)


def refused(site, credential):
    answer = call(site, credential)
    assert answer.status_code == 401, answer.text
    assert answer.json()["error"] == "MissingTokenError"
    return answer.json()["detail"]


def test_a_replayed_credential_is_refused(site, munged):
    credential = munge.encode(munged.socket)
    assert users_told(call(site, credential)) == {ME}
    for _ in range(3):
        assert refused(site, credential) == "The MUNGE credential is refused: it was used before."


def test_an_expired_credential_is_refused(site, munged):
    credential, made = munged.credential("--ttl=1"), time.time()
    eventually(lambda: time.time() > made + 3)
    assert refused(site, credential) == "The MUNGE credential is refused: it is expired."


def test_a_credential_of_another_cluster_is_refused(site):
    with private_munge.PrivateMunge() as foreign:
        credential = munge.encode(foreign.socket)
    assert refused(site, credential) == "The MUNGE credential is refused: it is not valid."


@pytest.mark.parametrize("payload", ["", "slurm", "walltimed ", "walltimed\0"])
def test_a_credential_for_another_service_is_refused(site, munged, payload):
    if "\0" in payload:
        file = munged.directory / "payload"
        file.write_text(payload)
        credential = munged.credential(f"--input={file}")
    else:
        credential = munged.credential(payload=payload)
    assert "made for another service" in refused(site, credential)


def test_a_credential_that_only_another_user_may_decode_is_refused(site, munged):
    credential = munged.credential(f"--restrict-uid={os.getuid() + 1}")
    assert "for another user to decode" in refused(site, credential)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: "",
        lambda _: "MUNGE::",
        lambda _: "MUNGE:" + "A" * 5_000 + ":",
        lambda _: "MUNGE:" + "A" * 4_096 + ":",
        lambda _: "\xff\x00 MUNGE",
        lambda text: text[:-1],
        lambda text: text[6:],
        lambda text: text + text,
        lambda text: f"{text[:40]}{'B' if text[40] == 'A' else 'A'}{text[41:]}",
        lambda text: text.replace("MUNGE:", "MUNGE:A"),
        lambda text: text[:60] + ":",
        lambda text: text.lower(),
    ],
)
def test_garbage_is_refused(site, munged, spoil):
    credential = spoil(munge.encode(munged.socket)).encode("latin-1")
    headers = [(b"authorization", b"Munge " + credential)]
    answer = site.run(site._client.request("GET", "/v1/methods", headers=headers))
    assert answer.status_code == 401, answer.text


def test_a_munged_that_hangs_holds_up_nobody_else(site, munged, monkeypatch):
    monkeypatch.setattr(auth, "MUNGE_SECONDS", 0.5)
    credentials = [munge.encode(munged.socket) for _ in range(5)]
    munged.process.send_signal(signal.SIGSTOP)
    try:
        began = time.monotonic()
        answers = [call(site, credential) for credential in credentials]
        assert time.monotonic() - began < 5 * 0.5 + BUSY_SECONDS
        assert {(a.status_code, a.json()["error"]) for a in answers} == {(503, "MungeTooLongError")}
        site.token = site.admin
        assert site.get("/v1/methods").status_code == 200
        site.token = None
    finally:
        munged.process.send_signal(signal.SIGCONT)
    eventually(lambda: call(site, munge.encode(munged.socket)).status_code == 200)


@pytest.mark.parametrize("socket", [None, "/nonexistent/munge.socket"])
def test_without_a_munged_the_answer_says_that_a_token_is_needed(munged, serve, sqlite_url, socket):
    service = serve(sqlite_url, host="0.0.0.0", munge_socket=socket)
    assert refused(service, munge.encode(munged.socket)) == (
        "The service takes no MUNGE credentials; it needs a token."
    )


def test_a_socket_without_a_munged_is_answered_503(munged, serve, sqlite_url):
    dead = munged.directory / "dead"
    dead.touch()
    with pytest.raises(munge.MungeUnavailableError):
        munge.encode(dead)
    service = serve(sqlite_url, host="0.0.0.0", munge_socket=dead)
    assert call(service, munge.encode(munged.socket)).status_code == 503
