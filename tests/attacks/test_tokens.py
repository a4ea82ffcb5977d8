"""Callers without a token, with a revoked one, and with one that allows something else."""

import json

from raw_http import answers_to, request
from running_service import Service, completion, eventually, run_walltimed

JSON = "content-type: application/json"
PREDICTION = json.dumps({"requested_walltime": 60}).encode()
COMPLETION = json.dumps(completion("1")).encode()


def status(service, path: str, body: bytes, *lines: str) -> int:
    """The status of a call with these header lines."""
    (answer,) = answers_to(service.socket, request("POST", path, JSON, *lines, body=body))
    return answer.status


def test_the_last_token_revoked_leaves_the_door_closed_until_a_command_opens_it(fresh_url):
    with Service(fresh_url) as service:
        issued = run_walltimed(
            "token", "issue", "leaked", "-s", "predict", "--json", "-d", fresh_url
        )
        token = json.loads(issued.stdout)
        own = f"authorization: Bearer {token['token']}"
        eventually(lambda: status(service, "/v1/predictions", PREDICTION) == 401)
        assert status(service, "/v1/predictions", PREDICTION, own) == 200
        assert status(service, "/v1/completions", COMPLETION, own) == 403
        revoked = run_walltimed("token", "revoke", token["id"], "-d", fresh_url)
        assert revoked.returncode == 0
        eventually(lambda: status(service, "/v1/predictions", PREDICTION, own) != 200)
        assert status(service, "/v1/predictions", PREDICTION, own) == 401
        assert status(service, "/v1/predictions", PREDICTION) == 401
        assert status(service, "/v1/completions", COMPLETION) == 401
        assert "every call is refused until another is issued" in revoked.stdout
        assert run_walltimed("token", "stop-requiring", "-d", fresh_url).returncode == 2
        assert status(service, "/v1/predictions", PREDICTION) == 401
        assert run_walltimed("token", "stop-requiring", "--yes", "-d", fresh_url).returncode == 0
        eventually(lambda: status(service, "/v1/predictions", PREDICTION) == 200)
