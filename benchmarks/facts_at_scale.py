"""Measures a long history with and without further facts: bytes a run, start, answers.

    .venv/bin/python benchmarks/facts_at_scale.py [--history 1000000] [--rounds 5]

With facts each run and each request has those of Slurm's filter: directory, script, command line,
QOS, nodes, host, and two features. Starts and answers of both histories take turns.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from itertools import cycle
from pathlib import Path
from random import Random
from statistics import median

import msgspec
from harness import (
    SECONDS_BETWEEN_ENDS,
    START,
    Ratios,
    Server,
    body_of,
    history,
    open_loop,
    post,
    submission_of,
    the_service,
)
from msgspec.structs import asdict, replace

from predictors.facts import Facts, hashed, unkeyed
from predictors.jobs import Completion, Submission
from service.store import ReportedCompletion, open_store

PER_SECOND = 200.0


def facts_of(job: Submission, chance: Random) -> Facts:
    """Return the facts that Slurm's filter would send for a job."""
    user, application, script = job.user, job.application, chance.randrange(3)
    return Facts(
        work_dir=f"/scratch/{user}/{application}/run_{chance.randrange(10_000)}",
        script_hash=f"{application} {script}",
        submit_line=f"sbatch {application}-{script}.sh --steps {chance.randrange(10_000)}",
        qos=chance.choice(("normal", "long")),
        nodes=max(1, (job.requested_processors or 1) // 64),
        submit_host=f"login{chance.randrange(4)}",
        features={"input_bytes": float(chance.randrange(10**9)), "rule": f"rule{script}"},
    )


def runs(jobs: int, *, with_facts: bool) -> Iterator[Completion]:
    """Return the runs of a history; with facts they are hashed, as they are stored."""
    chance = Random(2)  # noqa: S311 - no secrets here
    for run in history(jobs):
        if not with_facts:
            yield run
            continue
        facts = hashed(facts_of(run.submission, chance), unkeyed)
        yield replace(run, submission=replace(run.submission, facts=facts))


def prepared(file: Path, jobs: int, *, with_facts: bool) -> tuple[str, float]:
    """Store a history; return a token, and the bytes of each run at rest."""
    store = open_store(f"sqlite:///{file}")
    store.upgrade()
    reports = (ReportedCompletion(completion=run) for run in runs(jobs, with_facts=with_facts))
    for _ in store.store_reports(reports):
        pass
    _, token = store.tokens.issue("benchmark", ["admin"], time.time())
    store.close()
    return token, file.stat().st_size / jobs


def requests(after: int, token: str, *, with_facts: bool) -> list[bytes]:
    """Return submissions that follow the history."""
    chance, of_facts = Random(1), Random(3)  # noqa: S311 - no secrets here
    found = []
    for number in range(2000):
        now = START + after * SECONDS_BETWEEN_ENDS + number
        job = submission_of(chance, f"s{number}", now)
        facts = asdict(facts_of(job, of_facts)) if with_facts else {}
        body = body_of(job) | {name: value for name, value in facts.items() if value is not None}
        found.append(post("/v1/predictions", msgspec.json.encode(body), token=token))
    return found


def started(file: Path, stack: ExitStack) -> tuple[Server, float]:
    """Start a service on a history; return it, and the seconds until it was ready."""
    began = time.perf_counter()
    server = stack.enter_context(
        the_service(file, pinned=False, settings={"WALLTIMED_TUNING": "off"})
    )
    return server, time.perf_counter() - began


def main() -> None:
    """Print the table of both histories."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--history", type=int, default=1_000_000, help="runs")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    options = parser.parse_args()
    ratios, sides = Ratios(), (True, False)
    with tempfile.TemporaryDirectory() as directory:
        files = {side: Path(directory) / f"{side}.sqlite3" for side in sides}
        tokens, sizes = {}, {}
        for side in sides:
            tokens[side], sizes[side] = prepared(files[side], options.history, with_facts=side)
        ratios.add("bytes a run", sizes[True], sizes[False])
        todo = {
            side: cycle(requests(options.history, tokens[side], with_facts=side)) for side in sides
        }
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds}", flush=True)
            with ExitStack() as stack:
                start = partial(started, stack=stack)
                turns = sides if number % 2 else sides[::-1]
                services = {side: start(files[side]) for side in turns}
                ratios.add("start, s", services[True][1], services[False][1])
                measure(ratios, {side: each[0] for side, each in services.items()}, todo, options)
    print(
        f"{options.history:,} runs, medians of {options.rounds} rounds; load {os.getloadavg()[0]}"
    )
    print(ratios.table("with facts", "without"))
    more = median(one - other for one, other in ratios.rows["processor us an answer"])
    print(f"an answer takes {more:.0f} us of processor time more; goal 20, HTTP and recording too")


def measure(
    ratios: Ratios,
    services: Mapping[bool, Server],
    todo: Mapping[bool, Iterator[bytes]],
    options: argparse.Namespace,
) -> None:
    """Measure the answers of both services in turns; the first turn only warms them up."""
    for turn in range(2):
        found = {}
        for side, server in services.items():
            before = server.processor_seconds()
            times = open_loop(
                server.address, todo[side], per_second=PER_SECOND, seconds=options.seconds
            )
            used = server.processor_seconds() - before
            found[side] = times, 1e6 * used / len(times.seconds)
        if turn:
            (one, of_one), (other, of_other) = found[True], found[False]
            for percent in (50, 99):
                name = f"p{percent} of answers, ms"
                ratios.add(name, 1e3 * one.percentile(percent), 1e3 * other.percentile(percent))
            ratios.add("processor us an answer", of_one, of_other)


if __name__ == "__main__":
    main()
