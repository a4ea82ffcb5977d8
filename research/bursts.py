"""Make a log of bursts: users who submit hundreds of like jobs that run alike.

    .venv/bin/python research/bursts.py bursts.swf.gz [--jobs 20000] [--seed 1]

All jobs of a burst have the same user, application, request and processors, and nearly the same
runtime. Two bursts of one user differ in nothing but the runtime, which is drawn anew for every
burst, as where the input of a parameter study changes. Most users leave the request at the default
of the queue. The log is synthetic; no number in it was fitted to a real log.
"""

import gzip
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator, default_rng

USERS = 25
DEFAULT_REQUEST = 3 * 86_400
"""Seconds."""

DEFAULT_SHARE = 0.7
"""Share of users who leave the request at the default."""

JOBS_OF_BURST = (100, 600)
MEDIAN_RUNTIME, SPREAD_OF_BURSTS = 3_600.0, 1.5
"""Seconds, and standard deviation of the logarithm of the runtimes of bursts."""

SPREAD_IN_BURST = 0.05
"""Standard deviation of the logarithm of the runtimes in a burst."""

RUNTIMES_OF_SUBMISSION = (0.5, 8.0)
"""Duration of the submission of a burst, in runtimes of its jobs."""

MEAN_WAIT = 300.0
PAUSE = 3 * 3_600.0
"""Mean seconds between the beginnings of two bursts."""


@dataclass(frozen=True, slots=True)
class User:
    """A user, who always submits like jobs.

    Attributes:
        number: from 1 on.
        processors: of each job.
        request: seconds.
    """

    number: int
    processors: int
    request: int


def users(random: Generator) -> list[User]:
    """Draw the users of the cluster."""
    requests = (6 * 3_600, 12 * 3_600, 86_400, 2 * 86_400)
    return [
        User(
            number,
            int(random.choice((1, 4, 16))),
            DEFAULT_REQUEST if random.random() < DEFAULT_SHARE else int(random.choice(requests)),
        )
        for number in range(1, USERS + 1)
    ]


def burst(begin: float, user: User, random: Generator) -> Iterator[tuple[int, str]]:
    """Draw a burst: the submit time of each job, and the fields of its line after that time."""
    jobs = int(random.integers(*JOBS_OF_BURST))
    level = MEDIAN_RUNTIME * random.lognormal(0.0, SPREAD_OF_BURSTS)
    duration = level * random.uniform(*RUNTIMES_OF_SUBMISSION)
    for submit in np.sort(begin + random.uniform(0.0, duration, jobs)):
        wait = int(random.exponential(MEAN_WAIT))
        runtime = level * random.lognormal(0.0, SPREAD_IN_BURST)
        run = max(1, min(round(runtime), user.request))
        status = 1 if runtime <= user.request else 0
        size = user.processors
        request, number = user.request, user.number
        planned = f"{wait} {run} {size} -1 -1 {size} {request} -1"
        yield int(submit), f"{planned} {status} {number} -1 {number} 1 -1 -1 -1"


def jobs(count: int, seed: int) -> list[tuple[int, str]]:
    """Draw the first ``count`` jobs of a log, in order of their submit times."""
    random = default_rng(seed)
    people = users(random)
    activity = 1.0 / np.arange(1, USERS + 1)
    begin, drawn = 0.0, list[tuple[int, str]]()
    # Bursts that begin after the first ``count`` jobs add none of these.
    while sum(submit < begin for submit, _ in drawn) < count:
        user = people[int(random.choice(USERS, p=activity / activity.sum()))]
        drawn += burst(begin, user, random)
        begin += random.exponential(PAUSE)
    return sorted(drawn)[:count]


def main() -> None:
    """Write the log."""
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("log")
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with gzip.open(options.log, "wt", encoding="ascii") as file:
        file.write("; Version: 2.2\n; Computer: none, SYNTHETIC bursts\n; UnixStartTime: 0\n")
        file.write("; MaxProcs: 100000\n")
        for number, (submit, fields) in enumerate(jobs(options.jobs, options.seed), start=1):
            file.write(f"{number} {submit} {fields}\n")


if __name__ == "__main__":
    main()
