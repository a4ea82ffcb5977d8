"""Forecasts the wait of every job of a simulated log at its arrival.

Reference: D. Klusáček and M. Soysal, "Walltime Prediction and Its Impact on Job Scheduling
Performance and Predictability", 2020, section 4.1.
"""

from typing import Any, NamedTuple

import numpy as np

from predictors.memory.error_ratios import CAPACITY
from simulator.engine.loop import DONE
from simulator.engine.policies import run
from simulator.engine.state import State
from simulator.scheduling.estimates import EstimateFeed, Estimates
from simulator.scheduling.forecast import (
    QueuedJobs,
    QueueQuantiles,
    Snapshot,
    forecast,
    futures,
    running_runtime,
)
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import empty_machine
from simulator.scheduling.workload import Workload
from simulator.traces.trace import Integers


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
            others = futures(shown, semantics, recent_ratios(state), samples, quantiles)
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
    )
