"""How the service starts, whom it lets in and how it ends."""

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from running_service import WALLTIMED, Service, completion, eventually

from service.worker.processes import LOWEST_PRIORITY

pytestmark = pytest.mark.acceptance


def walltimed(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(WALLTIMED), *arguments], capture_output=True, text=True, timeout=60, check=False,
        stdin=subprocess.DEVNULL, env={"PATH": "/usr/bin:/bin", **environment},
    )  # fmt: skip


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


def makers_of_pages(service: Service) -> list[int]:
    """The children of a service that have the lowest priority."""
    return [
        process_id
        for process_id, parent in parents().items()
        if parent == service.process.pid
        and os.getpriority(os.PRIO_PROCESS, process_id) == LOWEST_PRIORITY
    ]


def parents() -> dict[int, int]:
    """The parent of each process; of one that has ended and is not yet buried, 0."""
    found = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent, *_ = place.read_text().rpartition(")")[2].split()
            found[int(place.parent.name)] = 0 if state == "Z" else int(parent)
    return found


def test_pages_survive_their_process_which_delays_no_prediction_and_ends_with_the_service(
    sqlite_url,
):
    with Service(sqlite_url) as service:
        assert makers_of_pages(service) == []
        assert service.client.get("/queue").is_success
        (maker,) = makers_of_pages(service)
        os.kill(maker, signal.SIGKILL)
        assert service.client.get("/queue").is_success
        (maker,) = makers_of_pages(service)
        os.kill(maker, signal.SIGSTOP)
        with pytest.raises(httpx.ReadTimeout):
            service.client.get("/queue", timeout=0.2)
        assert service.predict("ada") == 3600.0
        os.kill(maker, signal.SIGCONT)
        service.end(signal.SIGKILL)
        eventually(lambda: parents().get(maker, 0) == 0)
