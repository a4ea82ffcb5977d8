"""A service that starts answers from its whole history, or says that it has not read it."""

import signal

import httpx
import pytest
from asgi_client import InProcess, run_of
from running_service import Service

pytestmark = [pytest.mark.lengthy(20), pytest.mark.acceptance, pytest.mark.timeout(600)]

USERS = [f"user-{number}" for number in range(40)]
ROUNDS = 10


def answer(service: Service, user: str) -> tuple[float, str] | None:
    """Prediction and reason through a new connection; None while no worker takes any."""
    with service.connection():
        try:
            asked = service.client.post(
                "/v1/predictions", json={"user": user, "requested_walltime": 3600.0}
            )
        except httpx.TransportError:
            return None
    assert asked.status_code == 200, asked.text
    return asked.json()["predicted_walltime"], asked.json()["basis"]["reason"]


def test_two_workers_that_start_never_answer_from_a_part_of_the_history(sqlite_url, tell):
    with InProcess(sqlite_url) as earlier:
        earlier.complete(
            *(run_of(f"{user}-{each}", user=user, runtime=600.0 + place)
              for each in range(20) for place, user in enumerate(USERS))
        )  # fmt: skip
    starting = Service(sqlite_url, "--workers", "2")
    told = []
    try:
        assert starting.process.stdout.readline().startswith("walltimed listens on")
        while not (told and starting.is_ready()):  # from the first connection that is taken
            told.append((USERS[0], answer(starting, USERS[0])))
        told += [(user, answer(starting, user)) for _ in range(ROUNDS) for user in USERS]
        assert starting.end(signal.SIGTERM) == 0
    finally:
        starting.__exit__()
    known = {user: (600.0 + place, "history") for place, user in enumerate(USERS)}
    wrong = [
        (user, got) for user, got in told if got not in {None, (3600.0, "starting"), known[user]}
    ]
    assert not wrong, wrong[:5]
    reasons = [got[1] for _, got in told if got]
    tell(f"{reasons.count('starting')} of {len(reasons)} answers were those of a start")
    assert told[-1][1] == known[USERS[-1]]
