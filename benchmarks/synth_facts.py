"""Gives the jobs of a synthetic trace further facts, by which their runtimes follow a known law.

Users, arrivals, sizes and requests are those of the trace. Each application has some scripts, and
each job an input size; an array has tasks of one script. Users often run the same script on the
same input again: without that, consecutive runs of a user would differ twice as much as in any of
eleven real logs (tests/test_synth_facts.py). The runtime of a job is

    median of its application in the trace * factor of its script * size ** EXPONENT * noise

for tasks of arrays divided by the logarithm of the number of tasks, and at most its request. Where
facts are noise, each job has the facts of another one instead, and the runtimes are the same.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import count

import numpy as np
from numpy.random import PCG64, Generator

from predictors.facts import Facts
from predictors.jobs import Completion, Status, Submission
from simulator.traces.trace import Trace

SCRIPTS = (0.25, 1.0, 4.0)
"""Factors of the scripts of an application."""

EXPONENT = 0.8
SPREAD_OF_SIZES = 1.0
"""Standard deviation of the logarithm of input sizes."""

NOISE = 0.1
"""Standard deviation of the logarithm of what is left of a runtime."""

REPEATED = 0.7
"""Share of jobs that run like the last one of their user and application."""

ARRAY_SHARE = 0.2
ARRAYS = (8, 64)
"""Share of jobs that are tasks of an array, and sizes of arrays."""


def runs_with_facts(trace: Trace, *, seed: int, are_noise: bool = False) -> list[Completion]:
    """Return the runs of the jobs of a trace, each with facts; waits are 0."""
    random = Generator(PCG64(seed))
    jobs = _jobs(trace, random)
    medians = _medians(trace)
    order = Generator(PCG64(seed + 1)).permutation(len(jobs))
    told = [jobs[place] for place in order] if are_noise else jobs
    return [
        _run(trace, place, jobs[place], told[place], medians, random) for place in range(len(jobs))
    ]


Drawn = tuple[int, float, int | None]
"""Number of the script, input size, and number of tasks of the array."""


def _jobs(trace: Trace, random: Generator) -> list[Drawn]:
    last: dict[tuple[int, int], Drawn] = {}
    found = []
    for key in zip(trace.user.tolist(), trace.executable.tolist(), strict=True):
        if key not in last or random.random() >= REPEATED:
            last[key] = _job(random)
        found.append(last[key])
    return found


def _job(random: Generator) -> Drawn:
    tasks = int(random.choice(ARRAYS)) if random.random() < ARRAY_SHARE else None
    return int(random.integers(len(SCRIPTS))), random.lognormal(0.0, SPREAD_OF_SIZES), tasks


def _medians(trace: Trace) -> dict[int, float]:
    runs = defaultdict(list)
    for executable, seconds in zip(trace.executable.tolist(), trace.run.tolist(), strict=True):
        runs[executable].append(seconds)
    return {executable: float(np.median(found)) for executable, found in runs.items()}


def _run(  # noqa: PLR0913, PLR0917 - one keyword for each part of the law
    trace: Trace,
    place: int,
    job: Drawn,
    told: Drawn,
    medians: dict[int, float],
    random: Generator,
) -> Completion:
    script, size, tasks = job
    executable, request = int(trace.executable[place]), float(trace.requested_time[place])
    seconds = medians[executable] * SCRIPTS[script] * size**EXPONENT * random.lognormal(0.0, NOISE)
    seconds = min(request, max(1.0, seconds / np.log(tasks) if tasks else seconds))
    submit = float(trace.submit[place])
    submission = Submission(
        requested_walltime=request,
        submit_time=submit,
        job_id=str(place),
        user=str(trace.user[place]),
        queue=str(trace.queue[place]),
        application=f"app{executable}",
        requested_processors=int(trace.requested_processors[place]),
        facts=Facts(
            script_hash=f"app{executable} {told[0]}",
            array_size=told[2],
            features={"input_size": round(told[1], 3)},
        ),
    )
    return Completion(
        submission=submission,
        start_time=submit,
        end_time=submit + seconds,
        runtime=seconds,
        status=Status.TIMEOUT if seconds >= request else Status.COMPLETED,
    )


def in_order(runs: list[Completion]) -> Iterator[tuple[bool, Completion]]:
    """Yield whether a run is submitted, and the run: at its submission and at its end."""
    number = count()
    events = [(run.end_time, 0, next(number), run) for run in runs]
    events += [(run.submission.submit_time, 1, next(number), run) for run in runs]
    return ((kind == 1, run) for _, kind, _, run in sorted(events, key=lambda each: each[:3]))
