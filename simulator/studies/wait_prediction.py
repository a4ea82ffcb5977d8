"""Errors of waits that are forecast at arrival by requests, predictions and exact runtimes.

Two questions. What a user is told while the scheduler goes on planning by requests, as sites do
today; and what becomes of it when the scheduler plans by the same estimates (Klusáček & Soysal
2020, section 4.1 and Fig. 9).
"""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from simulator.replay.method_spec import usual_methods
from simulator.reports.tables import text_table
from simulator.scheduling.arrival_forecasts import ForecastWaits, waits_at_arrival
from simulator.scheduling.estimates import EXACT, REQUESTED, Estimates
from simulator.scheduling.semantics import Semantics
from simulator.studies.study import Played, Study, StudyError, Takes, workload_of

POLICIES = ("easy", "conservative")

METHODS = tuple(method for method in usual_methods() if method != REQUESTED)
"""Estimate, where no others are asked for."""

ARRIVALS_PER_INTERVAL = 10
"""An interval costs as much as its samples: not every job has to have one."""

REQUESTS, ESTIMATES = "requests", "estimates"
"""What the scheduler plans by."""


class Case(NamedTuple):
    """One simulation of a log.

    Attributes:
        trace: a file.
        limit: jobs after cleaning, or all.
        policy: of the scheduler.
        plans_by: ``REQUESTS`` or ``ESTIMATES``.
        estimates: that the forecasts go by.
        samples: futures that intervals come from; 0 is none.
    """

    trace: str
    limit: int | None
    policy: str
    plans_by: str
    estimates: str
    samples: int = 0


class WaitErrors(NamedTuple):
    """Absolute errors of predicted waits in seconds.

    Attributes:
        jobs: of the log.
        queued: jobs that waited, or were told that they would.
        median: over ``queued``.
        mean: over ``queued``.
        early: share of ``queued`` that started later than they were told.
        asked: jobs of ``queued`` that were told an interval as well.
        within: share of ``asked`` that started within it.
    """

    jobs: int
    queued: int
    median: float
    mean: float
    early: float
    asked: int = 0
    within: float = 0.0


def runs(
    paths: Sequence[Path],
    limit: int | None,
    *,
    method: Sequence[str] = (),
    policy: Sequence[str] = (),
    samples: int = 0,
) -> list[Case]:
    """Every simulation; with requests as estimates the two ways to plan are one.

    Args:
        paths: of the logs.
        limit: jobs of each after cleaning, or all.
        method: methods that estimate; by default ``METHODS``.
        policy: of the scheduler; by default all of ``POLICIES``.
        samples: futures that intervals come from.

    Raises:
        StudyError: a policy is not one of ``POLICIES``, or a method is unknown.
    """
    if unknown := set(policy) - set(POLICIES):
        raise StudyError(f"There is no policy {min(unknown)} here.")
    try:
        for each in method:
            Estimates.named(each)
    except ValueError as error:
        raise StudyError(str(error)) from error
    sources = [REQUESTED, *(method or METHODS), EXACT]
    return [
        Case(str(path), limit, policy, plans_by, estimates, samples)
        for path, policy, plans_by, estimates in product(
            paths, policy or POLICIES, (REQUESTS, ESTIMATES), sources
        )
        if (plans_by, estimates) != (ESTIMATES, REQUESTED)
    ]


def wait_errors(case: Case) -> WaitErrors:
    """Simulate a log, and compare what jobs are told with what comes."""
    workload = workload_of(case.trace, case.limit)
    acts = case.plans_by == ESTIMATES
    semantics = Semantics(
        policy=case.policy,
        estimated_order=acts,
        estimated_backfilling=acts,
        estimated_running=acts,
    )
    estimates = Estimates.named(case.estimates)
    return compare(
        waits_at_arrival(
            workload, semantics, estimates, samples=case.samples, every=ARRIVALS_PER_INTERVAL
        )
    )


def compare(waits: ForecastWaits) -> WaitErrors:
    """The errors of predicted waits."""
    queued = (waits.predicted > 0) | (waits.actual > 0)
    error = (waits.predicted - waits.actual)[queued]
    asked = queued & (waits.lower >= 0)
    within = (waits.lower <= waits.actual) & (waits.actual <= waits.upper)
    return WaitErrors(
        jobs=len(waits.actual),
        queued=int(queued.sum()),
        median=float(np.median(np.abs(error))) if len(error) else 0.0,
        mean=float(np.mean(np.abs(error))) if len(error) else 0.0,
        early=float(np.mean(error < 0)) if len(error) else 0.0,
        asked=int(asked.sum()),
        within=float(within[asked].mean()) if asked.any() else 0.0,
    )


def tables(played: Played) -> str:
    """A line for each case; the ratio is of the median by requests to this one."""
    by_requests = {
        (case.trace, case.policy): errors.median
        for case, errors in played
        if case.estimates == REQUESTED
    }
    rows = [
        [
            Path(case.trace).name.split("-cln")[0].removesuffix(".swf.gz"),
            case.policy,
            case.plans_by,
            case.estimates,
            f"{errors.jobs:,}",
            f"{errors.queued:,}",
            f"{errors.median:,.0f}",
            _times(by_requests[case.trace, case.policy], errors.median),
            f"{errors.mean:,.0f}",
            f"{errors.early:.1%}",
            f"{errors.within:.1%}" if errors.asked else "-",
        ]
        for case, errors in played
    ]
    heads = ("log", "policy", "plans by", "told by", "jobs", "queued", "median s", "better")
    return text_table((*heads, "mean s", "later than told", "in interval"), rows)


def records(played: Played) -> list[dict[str, Any]]:
    """Every case with its errors."""
    return [{**case._asdict(), **errors._asdict()} for case, errors in played]


def _times(by_requests: float, median: float) -> str:
    return f"{by_requests / median:.2f} x" if median else "exact"


STUDY = Study(
    title="Waits told at arrival, by requests, predictions and exact runtimes",
    takes=Takes.TRACES,
    simulates=True,
    runs=runs,
    play=wait_errors,
    tables=tables,
    records=records,
)
