"""One log, one source of estimates: its plays under every policy and profile, shaken again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from simulator.reports.backtest.repetitions import SHAKE_SECONDS
from simulator.scheduling.estimates import REQUESTED, Estimates, JobEstimates
from simulator.scheduling.measures import bounded_slowdown
from simulator.scheduling.semantics import PROFILES, Semantics
from simulator.scheduling.simulate import simulate
from simulator.scheduling.workload import Workload, first_jobs, prepare
from simulator.traces.cleaning import NoJobError
from simulator.traces.shake import shaken
from simulator.traces.swf import read_swf
from simulator.traces.trace import Trace

POLICIES = ("easy", "easy-sjbf")
TODAY = ("easy", "regular")
"""Policy and profile that gains are counted against, by requests."""

ASKED = Semantics(
    estimated_order=False, estimated_backfilling=False, estimated_running=False, guarded=True
)
"""Rules of the schedule in which methods are asked: EASY by requests."""


class Repetition(NamedTuple):
    """Mean wait, mean bounded slowdown and longest wait of one play; times in seconds."""

    wait: float
    slowdown: float
    longest: float


PolicyProfile = tuple[str, str]
"""A policy and a profile."""

PlaysByRules = Mapping[PolicyProfile, Sequence[Repetition]]
"""Of the log itself, then of its shaken copies."""


class SourcePart(NamedTuple):
    """One source of estimates on one log.

    Attributes:
        trace: path of the log.
        limit: jobs after cleaning, or all.
        estimates: as ``Estimates.named`` reads them.
        shakes: number of shaken copies.
        log: what the log is called in tables and pictures.
    """

    trace: str
    limit: int | None
    estimates: str
    shakes: int
    log: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOutcome:
    """Result of one source of estimates on one log."""

    jobs: int
    plays: PlaysByRules


def play(part: SourcePart) -> SourceOutcome:
    """Play the log and its shaken copies under all rules.

    The method is asked once about each job, in a schedule of EASY by requests, when it knows what
    had ended there. All plays take over these answers, so that they differ by rules alone.

    Raises:
        NoJobError: the log has no job that can be simulated.
    """
    trace = first_jobs(_log(part.trace), part.limit)
    log_estimates = answers(trace, part.estimates)
    if not log_estimates.estimate.any():
        raise NoJobError(Path(part.trace).name, "simulated", prepare(trace).counts)
    plays: dict[PolicyProfile, list[Repetition]] = {}
    jobs = 0
    for repetition in range(part.shakes + 1):
        copy = shaken(trace, SHAKE_SECONDS, repetition) if repetition else trace
        workload = prepare(copy)
        jobs = len(workload)
        estimates = Estimates(
            part.estimates, known=lambda each: _of_jobs(trace, log_estimates, each)
        )
        for policy, profile in rules_of(part.estimates):
            semantics = Semantics.adjusted(profile, policy=policy)
            plays.setdefault((policy, profile), []).append(
                _measured(workload, semantics, estimates)
            )
    return SourceOutcome(jobs=jobs, plays=plays)


@lru_cache(1)
def _log(path: str) -> Trace:
    return read_swf(path)


def answers(trace: Trace, estimates: str) -> JobEstimates:
    """Estimates of each line of the log; 0 for a line that cannot be simulated."""
    workload = prepare(trace)
    source = Estimates.named(estimates)
    found = source.beforehand(workload) or simulate(workload, ASKED, source).job_estimates
    lines = np.zeros((len(JobEstimates._fields), len(trace)), np.int64)
    lines[:, _places(trace, workload)] = found
    return JobEstimates._make(lines)


def _of_jobs(trace: Trace, log_estimates: JobEstimates, workload: Workload) -> JobEstimates:
    places = _places(trace, workload)
    return JobEstimates._make(column[places] for column in log_estimates)


def _places(trace: Trace, workload: Workload) -> Any:
    return np.searchsorted(trace.line, workload.trace.line)


def rules_of(estimates: str) -> Sequence[PolicyProfile]:
    """The rules to play; by requests all profiles are the same."""
    profiles = [TODAY[1]] if estimates == REQUESTED else list(PROFILES)
    return list(product(POLICIES, profiles))


def _measured(workload: Workload, semantics: Semantics, estimates: Estimates) -> Repetition:
    wait = simulate(workload, semantics, estimates).wait
    return Repetition(
        wait=float(wait.mean()),
        slowdown=float(bounded_slowdown(wait, workload.runtime).mean()),
        longest=float(wait.max()),
    )
