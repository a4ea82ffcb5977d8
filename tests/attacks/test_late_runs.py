"""Runs that are reported days late delay nobody, and count in every process before long."""

from random import Random

import httpx
import pytest
from patience import eventually
from running_service import Service, completion

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(600)]

RUNS, LATE = 1_500, 1_000
METHODS = ("attention", "auto", "forest", "knn", "least-cost", "max-usage", "percentile")
START = 1_700_000_000.0


def run(number: int) -> dict:
    """A run of one of seven users, a minute after the one before."""
    seconds = 300.0 + number * 37 % 900
    end = START + 60.0 * number
    times = {"submit_time": end - seconds, "start_time": end - seconds, "end_time": end}
    return completion(number, user=f"u{number % 7}", runtime=seconds) | times


def told(service: Service) -> list[dict]:
    """What every method answers the users, and a stranger, a day later."""
    answers = []
    for method in METHODS:
        for user in ("u0", "u3", "u6", "stranger"):
            job = {"user": user, "requested_walltime": 3600.0, "submit_time": START + 200_000.0}
            answer = service.client.post("/v1/predictions", json=job | {"method": method})
            assert answer.status_code == httpx.codes.OK, answer.text
            answers.append({**answer.json(), "prediction_id": None})
    return answers


def lag(service: Service) -> int:
    return service.client.get("/health/ready").json()["lag"]


def test_late_runs_count_in_every_process_as_if_they_had_come_in_time(tmp_path):
    early = [run(each) for each in (*range(200), *range(200 + LATE, RUNS))]
    late = [run(each) for each in range(200, 200 + LATE)]
    Random(1).shuffle(late)
    url, other = (f"sqlite:///{tmp_path}/{name}.sqlite3" for name in ("late", "in-time"))
    with Service(other) as in_time:
        in_time.complete(*(run(each) for each in range(RUNS)))
        wanted = told(in_time)
    with Service(url, "--workers", "2") as service:
        assert service.complete(*early).json()["accepted"] == len(early)
        assert service.complete(*late).json()["accepted"] == LATE
        answers = []
        for _ in range(6):  # whichever worker takes the connection
            with service.connection():
                eventually(lambda: lag(service) == 0, seconds=120)
                answers.append(told(service))
    with Service(url) as restarted:
        answers.append(told(restarted))
    assert all(each == wanted for each in answers)
