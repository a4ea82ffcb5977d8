"""Measures the parts of an answer in process, beside an empty FastAPI endpoint in process.

    .venv/bin/python benchmarks/answer_parts.py [--history 20000] [--jobs 100] [--rounds 40]

Each of many different jobs is asked about in every round. Of each, the least time of the rounds
counts, which other work on the machine changes little; printed is their mean. What the server and
the sockets take is the same for both, and left out.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import msgspec
from harness import (
    CLUSTER,
    SECONDS_BETWEEN_ENDS,
    START,
    body_of,
    history,
    prepared,
    submission_of,
)
from msgspec.structs import replace
from ordinary_app import application

from predictors.auto import Auto
from predictors.base import USUAL
from predictors.jobs import Submission
from predictors.tuning.forest_learning import learned_anew
from service.auth import EVERYBODY
from service.contract.bodies import PredictionRequest
from service.contract.fields import msgspec_first
from service.http.app import create_app
from service.http.json_calls import WHOLE, to_json
from service.operations.predicting import Predicting
from service.settings import Settings
from service.store import RecordedPrediction
from service.worker.prediction_recorder import AnsweredPrediction, PredictionRecorder
from service.worker.worker import Worker

BATCH = 64
"""Predictions that are stored in one transaction."""

Item = TypeVar("Item")


def say(name: str, microseconds: float) -> None:
    """Print a row."""
    print(f"{name:60} {microseconds:7.1f}", flush=True)


def least(work: Callable[[Item], object], items: Sequence[Item], rounds: int) -> float:
    """Return the mean of the items' least microseconds."""
    found = [float("inf")] * len(items)
    for _ in range(rounds):
        for place, item in enumerate(items):
            began = time.perf_counter()
            work(item)
            found[place] = min(found[place], time.perf_counter() - began)
    return 1e6 * sum(found) / len(found)


async def least_answer(
    app: Callable[..., Awaitable[None]],
    head: Mapping[str, Any],
    bodies: Sequence[bytes],
    rounds: int,
) -> float:
    """Return the mean of the least microseconds in which an application answers each body."""

    async def send(_: Any) -> None:
        pass

    found = [float("inf")] * len(bodies)
    for _ in range(rounds):
        for place, body in enumerate(bodies):
            message = {"type": "http.request", "body": body, "more_body": False}

            async def receive(message: dict[str, Any] = message) -> dict[str, Any]:
                return message

            began = time.perf_counter()
            await app(dict(head), receive, send)
            found[place] = min(found[place], time.perf_counter() - began)
            await asyncio.sleep(0)
    return 1e6 * sum(found) / len(found)


def head_of(token: str) -> dict[str, Any]:
    """Return the head of a submit filter's request."""
    return {
        "type": "http",
        "method": "POST",
        "path": "/v1/predictions",
        "raw_path": b"/v1/predictions",
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "http_version": "1.1",
        "headers": [
            (b"host", b"walltimed"),
            (b"content-type", b"application/json"),
            (b"authorization", b"Bearer " + token.encode()),
        ],
    }


async def measure(file: Path, token: str, jobs: Sequence[Submission], rounds: int) -> None:
    """Print what an answer takes, its parts, and the empty endpoint."""
    head = head_of(token)
    plain = [msgspec.json.encode(body_of(job)) for job in jobs]
    app = create_app(Settings(database_url=f"sqlite:///{file}", shadow_max_per_second=0.0))
    worker: Worker = app.state.worker
    async with app.router.lifespan_context(app):
        while not worker.follower.started:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.05)
        ours = head | {"extensions": {WHOLE: {}}}
        for method in ("auto", "attention", "max-usage"):
            bodies = [msgspec.json.encode(body_of(job) | {"method": method}) for job in jobs]
            say(f"answer by {method}", await least_answer(app, ours, bodies, rounds))
        measure_parts(worker, plain, jobs, rounds)
    say("answer of the empty endpoint", await least_answer(application(), head, plain, rounds))


def measure_parts(
    worker: Worker, bodies: Sequence[bytes], jobs: Sequence[Submission], rounds: int
) -> None:
    """Print the parts of an answer by auto, and what follows it."""
    decode = msgspec_first(PredictionRequest)
    decoded, predicting = [decode(body) for body in bodies], Predicting(worker)
    say("- decoding its body", least(decode, bodies, rounds))
    say("- predicting", least(lambda body: predicting.predict(body, EVERYBODY), decoded, rounds))
    state = worker.follower.state_of(CLUSTER)
    say("  - of it, auto", least(lambda job: state.ask("auto", job, USUAL), jobs, rounds))
    say("  - of it, the probability of a limit", least(state.limit_risk, jobs, rounds))
    answers = [predicting.predict(body, EVERYBODY) for body in decoded]
    say("- encoding the answer", least(to_json, answers, rounds))
    kept: list[RecordedPrediction] = []
    recorder = PredictionRecorder(record=kept.append, rate=0.0, clock=time.time)
    recorder.start(asyncio.get_running_loop())

    def record(job: Submission) -> None:
        recorder.later(
            AnsweredPrediction(
                method="auto",
                state=state,
                submission=job,
                question=USUAL,
                prediction=answered[job.job_id],
                prediction_id=str(len(kept)),
            )
        )
        recorder.flush()

    answered = {job.job_id: state.ask("auto", job, USUAL) for job in jobs}
    say("after it, recording without shadow predictions", least(record, jobs, rounds))
    store(worker, kept[:BATCH], rounds)


def store(worker: Worker, kept: Sequence[RecordedPrediction], rounds: int) -> None:
    """Print the processor time that storing a prediction takes; no processor waits for the disk."""
    numbers, least_seconds = count(), float("inf")
    for _ in range(10 * rounds):
        names = [replace(each, prediction_id=f"benchmark-{next(numbers)}") for each in kept]
        began = time.thread_time()
        worker.store.write([], names)
        least_seconds = min(least_seconds, time.thread_time() - began)
    say(f"after it, storing, in a transaction of {len(kept)}", 1e6 * least_seconds / len(kept))


def measure_auto(runs: int, jobs: Sequence[Submission], rounds: int) -> None:
    """Print what auto takes by itself, without and with a forest in force."""
    auto = Auto(every=0)
    for run in history(runs):
        auto.observe(run)
    say("auto without a forest", least(lambda job: auto.ask(job, USUAL), jobs, rounds))
    auto.renew(learned_anew(auto.forest))
    say("auto with a forest in force", least(lambda job: auto.ask(job, USUAL), jobs, rounds))


def main() -> None:
    """Print all rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--history", type=int, default=20_000, help="completions")
    parser.add_argument("--jobs", type=int, default=100, help="that are asked about")
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    chance, now = Random(1), START + options.history * SECONDS_BETWEEN_ENDS  # noqa: S311
    jobs = [submission_of(chance, f"s{job}", now + job) for job in range(options.jobs)]
    os.environ["WALLTIMED_TUNING"] = "off"
    print(f"least microseconds of {options.rounds} rounds, means of {len(jobs)} jobs")
    measure_auto(options.history, jobs, options.rounds)
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "walltimed.sqlite3"
        token = prepared(file, options.history)
        asyncio.run(measure(file, token, jobs, options.rounds))


if __name__ == "__main__":
    main()
