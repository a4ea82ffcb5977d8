"""Errors of wait forecasts made at submission, by source of runtimes.

    .venv/bin/python research/wait_prediction.py LOG... --method knn

The scheduler plans by requests, as sites do today, or by the estimates of the forecasts (Klusáček &
Soysal 2020, section 4.1 and Fig. 9). The wait of every job of a simulated log is forecast at its
arrival.
"""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from played_logs import Traces, log_parts, run_script

from predictors.memory.error_ratios import CAPACITY
from simulator.cli.options import Distributed, Processes
from simulator.engine.loop import DONE
from simulator.engine.policies import run
from simulator.engine.state import State
from simulator.replay.method_spec import usual_methods
from simulator.reports.tables import text_table
from simulator.scheduling.estimates import EXACT, REQUESTED, EstimateFeed, Estimates
from simulator.scheduling.forecast import (
    QueuedJobs,
    QueueQuantiles,
    Snapshot,
    forecast,
    other_futures,
    running_runtime,
)
from simulator.scheduling.parallel import in_parallel
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import empty_machine
from simulator.scheduling.workload import Workload, usable_workload
from simulator.traces.trace import Integers
from terminal.console import CommandError, ExitCode, out
from terminal.options import Limit


class ForecastWaits(NamedTuple):
    """Waits in seconds, in the order of the workload.

    Attributes:
        predicted: waits forecast at arrival.
        actual: waits in the simulation.
        lower: least wait of the sampled futures; -1 where there were none.
        upper: greatest wait of the sampled futures.
    """

    predicted: Integers
    actual: Integers
    lower: Integers
    upper: Integers


def waits_at_arrival(
    workload: Workload,
    semantics: Semantics,
    estimates: Estimates,
    *,
    samples: int = 0,
    every: int = 1,
) -> ForecastWaits:
    """Simulate a log, and play the queue forward whenever jobs arrive.

    The scheduler acts on estimates or requests as the semantics say. The forecasts always assume
    that jobs run for as long as estimated, with corrections of outlived estimates.

    Args:
        workload: the log.
        semantics: the rules.
        estimates: the estimates that the forecasts use.
        samples: number of futures from which each interval is computed.
        every: one arrival in ``every`` gets an interval.
    """
    state = empty_machine(workload, semantics)
    feed = EstimateFeed(state, workload, estimates, semantics)
    predicted, lower, upper = (np.full(len(workload), -1) for _ in range(3))
    owners = workload.trace.user
    arrivals = 0
    while run(state) != DONE:
        first, behind = int(state.clock["submitted"][0]), int(state.clock["wanted"][0])
        feed.give()
        shown = snapshot(state, behind, semantics, owners)
        new = slice(len(shown.waiting) - (behind - first), None)
        predicted[first:behind] = forecast(shown, semantics).start[new]
        if samples and arrivals % every == 0:
            quantiles = quantiles_of(feed, state, shown, behind)
            others = other_futures(shown, semantics, recent_ratios(state), samples, quantiles)
            starts = [other.start[new] for other in others]
            if starts:
                lower[first:behind] = np.min(starts, axis=0)
                upper[first:behind] = np.max(starts, axis=0)
        arrivals += 1
    return ForecastWaits(predicted, state.jobs["start"] - workload.submit, lower, upper)


def quantiles_of(feed: EstimateFeed, state: State, shown: Snapshot, behind: int) -> QueueQuantiles:
    """Return runtime quantiles of the jobs of a snapshot, by the method that estimates them."""
    running, waiting = jobs_of(state, behind)
    return feed.quantiles(running, shown.running.age), feed.quantiles(waiting)


def recent_ratios(state: State) -> list[float]:
    """Return runtime / estimate of the jobs that ended last, ascending."""
    finished = int(state.clock["finished"][0])
    ended = state.finished[max(0, finished - CAPACITY) : finished]
    ratios = state.jobs["runtime"][ended] / state.jobs["estimate"][ended]
    return sorted(ratios.tolist())


def snapshot(
    state: State, behind: int, semantics: Semantics, owners: Integers | None = None
) -> Snapshot:
    """Return the queue at the submission of the jobs before ``behind``.

    Waiting jobs are in the order of their submission. Without ``owners`` every job has an owner of
    its own.
    """
    owners = np.arange(len(state.jobs)) if owners is None else owners
    running, waiting = jobs_of(state, behind)
    return Snapshot(
        processors=int(state.clock["free"][0] + state.jobs["processors"][running].sum()),
        running=_running(state, running, semantics, owners),
        waiting=_waiting(state, waiting, owners),
    )


def jobs_of(state: State, behind: int) -> tuple[Integers, Integers]:
    """Return running jobs in the order of their starts, and waiting jobs in that of submission."""
    clock = state.clock[0]
    running = state.running["job"][: clock["running"]]
    queued = np.sort(state.queue["job"][clock["head"] : clock["tail"]])
    arriving = np.arange(clock["submitted"], behind)
    return running[np.argsort(state.jobs["serial"][running])], np.concatenate([queued, arriving])


def _waiting(state: State, rows: Integers, owners: Integers) -> QueuedJobs:
    jobs = state.jobs[rows]
    waited = state.clock["now"][0] - jobs["submit"]
    return _columns(jobs, runtime=jobs["estimate"], age=waited, owner=owners[rows])


def _running(state: State, rows: Integers, semantics: Semantics, owners: Integers) -> QueuedJobs:
    jobs = state.jobs[rows]
    elapsed = state.clock["now"][0] - jobs["start"]
    runtime = jobs["estimate"].copy()
    for row in np.flatnonzero(runtime <= elapsed):
        estimate, request = float(jobs["estimate"][row]), float(jobs["request"][row])
        runtime[row] = running_runtime(estimate, request, int(elapsed[row]), semantics.correction)
    return _columns(jobs, runtime=runtime, age=elapsed, owner=owners[rows])


def _columns(jobs: Any, *, runtime: Integers, age: Integers, owner: Integers) -> QueuedJobs:
    return QueuedJobs(
        processors=jobs["processors"],
        request=jobs["request"],
        estimate=jobs["estimate"],
        runtime=runtime,
        age=age,
        priority=jobs["priority"],
        owner=owner,
        array=np.full(len(owner), -1),
        array_limit=np.zeros(len(owner), np.int64),
    )


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
        early: share of forecasts of ``queued`` that are earlier than the start.
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


def cases(
    paths: Sequence[Path],
    limit: int | None,
    *,
    methods: Sequence[str] = (),
    policies: Sequence[str] = (),
    samples: int = 0,
) -> list[Case]:
    """Return every simulation; with requests as estimates the two ways to plan are one.

    Args:
        paths: of the logs.
        limit: jobs of each after cleaning, or all.
        methods: methods that estimate; by default ``METHODS``.
        policies: of the scheduler; by default all of ``POLICIES``.
        samples: futures that intervals come from.

    Raises:
        CommandError: a policy is not one of ``POLICIES``, or a method is unknown.
    """
    if unknown := set(policies) - set(POLICIES):
        raise CommandError(f"There is no policy {min(unknown)} here.", ExitCode.USAGE)
    try:
        for each in methods:
            Estimates.named(each)
    except ValueError as error:
        raise CommandError(str(error), ExitCode.USAGE) from error
    sources = [REQUESTED, *(methods or METHODS), EXACT]
    return [
        Case(part.trace, limit, policy, plans_by, estimates, samples)
        for part, policy, plans_by, estimates in product(
            log_parts(paths, limit), policies or POLICIES, (REQUESTS, ESTIMATES), sources
        )
        if (plans_by, estimates) != (ESTIMATES, REQUESTED)
    ]


def wait_errors(case: Case) -> WaitErrors:
    """Simulate a log, and compare forecast with simulated waits."""
    workload = usable_workload(case.trace, case.limit)
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
    """Return the errors of predicted waits."""
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


def table(played: Sequence[tuple[Case, WaitErrors]]) -> str:
    """Return a line for each case; the ratio is of the median by requests to this one."""
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


def _times(by_requests: float, median: float) -> str:
    return f"{by_requests / median:.2f} x" if median else "exact"


def main(  # noqa: PLR0913 - options of a command
    traces: Traces,
    *,
    method: Annotated[list[str], typer.Option("--method", "-m", help="Method, such as knn.")] = [],  # noqa: B006 - typer copies it
    policy: Annotated[
        list[str], typer.Option("--policy", "-p", help="easy or conservative; default: both.")
    ] = [],  # noqa: B006 - see above
    samples: Annotated[
        int, typer.Option(min=0, help="Futures for the intervals of one job in ten.")
    ] = 0,
    limit: Limit = None,
    processes: Processes = None,
    distributed: Distributed = None,
) -> None:
    """Forecast every job's wait when it arrives, by requests, predictions and exact runtimes.

    For example: python research/wait_prediction.py *.swf.gz --limit 20000 --method knn
    """
    wanted = cases(traces, limit, methods=method, policies=policy, samples=samples)
    found = in_parallel(wait_errors, wanted, processes=processes, distributed=distributed)
    out.print(table(list(zip(wanted, found, strict=True))), markup=False, soft_wrap=True, end="")


if __name__ == "__main__":
    run_script(main)
