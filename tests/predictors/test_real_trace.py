"""Predictions on a real log against an independent computation: lists, scans, no state."""

import heapq
from itertools import islice
from pathlib import Path

import pytest
from msgspec.structs import replace

from predictors.jobs import Completion
from predictors.registry import create
from simulator.traces.cleaning import REPLAY_RULES, clean
from simulator.traces.completions import completions
from simulator.traces.swf import read_swf

TRACE = Path(__file__).parents[3] / "shared/traces/CTC-SP2-1996-3.1-cln.swf.gz"
JOBS = 10_000
DAY = 86400

pytestmark = [
    pytest.mark.traces,
    pytest.mark.skipif(not TRACE.exists(), reason=f"the real traces are not in {TRACE.parent}"),
]


@pytest.fixture(scope="module")
def jobs() -> list[Completion]:
    """The first jobs of the log; the executable stands in for the project that SWF lacks."""
    trace, _ = clean(read_swf(TRACE), REPLAY_RULES)
    found = [
        replace(run, submission=replace(run.submission, project=run.submission.application))
        for run in islice(completions(trace), JOBS)
    ]
    return sorted(found, key=lambda job: job.submission.submit_time)


def replayed(jobs, method, **parameters) -> list[float]:
    """What the predictor says of every job at its submission."""
    predictor = create(method, **parameters)
    running: list[tuple[float, int]] = []
    answers = []
    for place, job in enumerate(jobs):
        while running and running[0][0] <= job.submission.submit_time:
            predictor.observe(jobs[heapq.heappop(running)[1]])
        answers.append(predictor.predict(job.submission).predicted_walltime)
        heapq.heappush(running, (job.end_time, place))
    return answers


def scanned(jobs, similar, estimate) -> list[float]:
    """``estimate(job, history)`` of every job, with history all similar jobs that had ended."""
    groups: dict[tuple, list[tuple[float, int, Completion]]] = {}
    for place, job in enumerate(jobs):
        groups.setdefault(similar(job.submission), []).append((job.end_time, place, job))
    for group in groups.values():
        group.sort()
    answers = []
    for job in jobs:
        now, request = job.submission.submit_time, job.submission.requested_walltime
        history = [run for end, _, run in groups[similar(job.submission)] if end <= now]
        answers.append(min(request, max(1.0, estimate(job.submission, history))))
    return answers


def used(run: Completion) -> float:
    return min(1.0, run.runtime / run.submission.requested_walltime)


def test_max_usage_equals_a_scan_of_the_log(jobs):
    def estimate(job, history):
        return job.requested_walltime * max(map(used, history[-5:]), default=1)

    assert replayed(jobs, "max-usage") == scanned(jobs, lambda job: (job.user,), estimate)


def test_last_two_equals_a_scan_of_the_log(jobs):
    def estimate(job, history):
        if len(history) < 2:
            return job.requested_walltime
        return (history[-1].runtime + history[-2].runtime) / 2

    assert replayed(jobs, "last-two") == scanned(jobs, lambda job: (job.user,), estimate)


@pytest.mark.parametrize(
    ("similar", "scheme"),
    [
        (lambda job: (job.user,), ("user", 30, 85, 0.5)),
        (lambda job: (job.user,), ("user", None, 70, 0)),
        (lambda job: (job.user, job.project), ("double", 60, 50, 0)),
        (lambda job: (job.user, job.requested_walltime), ("user+walltime", 30, 95, 0.5)),
        (lambda job: (job.user, job.project, job.requested_walltime), ("triple", 365, 80, 0)),
    ],
)
def test_percentile_equals_a_scan_of_the_log(jobs, similar, scheme):
    key, days, percentile, lower_bound = scheme

    def estimate(job, history):
        since = job.submit_time - days * DAY if days else 0
        usages = sorted(used(run) for run in history if run.end_time >= since)
        if len(usages) < 10:
            return job.requested_walltime
        enough = (u for rank, u in enumerate(usages, 1) if 100 * rank >= percentile * len(usages))
        return job.requested_walltime * max(lower_bound, next(enough))

    expected = scanned(jobs, similar, estimate)
    assert expected != [job.submission.requested_walltime for job in jobs]
    parameters = {
        "key": key,
        "window_days": days,
        "percentile": percentile,
        "lower_bound": lower_bound,
    }
    assert replayed(jobs, "percentile", **parameters) == expected
