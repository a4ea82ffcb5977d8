"""How the service starts, whom it lets in and how it ends."""

import signal
import subprocess

import httpx
import pytest
from running_service import WALLTIMED, Service, completion, eventually

pytestmark = pytest.mark.acceptance


def walltimed(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(WALLTIMED), *arguments], capture_output=True, text=True, timeout=60, check=False,
        stdin=subprocess.DEVNULL, env={"PATH": "/usr/bin:/bin", **environment},
    )  # fmt: skip


def test_it_refuses_to_listen_beyond_loopback_while_no_token_exists(sqlite_url):
    refused = walltimed("serve", "--host", "0.0.0.0", "--port", "0", "-d", sqlite_url)
    assert refused.returncode == 2
    assert "token" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_an_unusable_database_is_one_sentence_and_its_own_exit_code(tmp_path):
    refused = walltimed("serve", "-d", f"postgresql+psycopg://nobody@/none?host={tmp_path}")
    assert refused.returncode == 4
    assert "Traceback" not in refused.stderr


def test_a_token_issued_beside_a_running_service_is_asked_for_within_seconds(store_url):
    with Service(store_url) as service:
        assert service.predict("ada") == 3600.0
        issued = walltimed("token", "issue", "filter", "--scope", "predict", "-d", store_url)
        assert issued.returncode == 0, issued.stderr
        secret = issued.stdout.splitlines()[-1]
        submission = {"requested_walltime": 60}

        def unauthorised() -> bool:
            answer = service.client.post("/v1/predictions", json=submission)
            return answer.status_code == httpx.codes.UNAUTHORIZED

        eventually(unauthorised)
        service.client.headers["Authorization"] = f"Bearer {secret}"
        assert service.client.post("/v1/predictions", json=submission).is_success
        assert service.complete(completion(1)).status_code == httpx.codes.FORBIDDEN


def test_sigterm_writes_what_is_queued_and_ends_well(store_url):
    with Service(store_url) as service:
        service.predict("ada", job_id="1", submit_time=1_700_000_000.0)
        assert service.end(signal.SIGTERM) == 0
    with Service(store_url) as service:
        service.complete(completion("1")).raise_for_status()
        methods = service.client.get("/v1/methods").json()["methods"]
        assert {method["score"]["jobs"] for method in methods} == {1}
