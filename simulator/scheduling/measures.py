"""The measures of a schedule, each with its formula and source.

A job has submit, start and end in seconds, the wait w = start - submit, the runtime
r = end - start, and p processors. Averages are over all jobs, and 0 without any job.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predictors.accuracy_groups import aged_priority
from simulator.scheduling.simulate import Schedule
from simulator.traces.trace import Reals

Durations = NDArray[Any]
"""Seconds, as whole numbers or floats, by job."""

SHORTEST_RUN = 10.0
"""Seconds. The slowdown of a shorter job says more about the job than about the scheduler."""


def response(wait: Durations, runtime: Durations) -> Durations:
    """The time from submission to end: w + r."""
    return wait + runtime


def slowdown(wait: Durations, runtime: Durations) -> Reals:
    """(w + r) / r (Tang et al., section 6.1)."""
    return np.asarray((wait + runtime) / runtime)


def bounded_slowdown(wait: Durations, runtime: Durations) -> Reals:
    """max(1, (w + r) / max(r, 10 s)) (Feitelson 2001; Xu et al., section 3.3)."""
    return np.maximum(1.0, (wait + runtime) / np.maximum(runtime, SHORTEST_RUN))


def weighted_wait(wait: Durations, priority: Reals) -> float:
    """Sum of w P / sum of P, with P the priority of a job at its start (Tang et al., Eq 4)."""
    greatest = float(np.max(priority, initial=0.0))
    if greatest <= 0:
        return 0.0
    share = priority / greatest  # the sum of aged priorities may exceed the largest float
    return float(np.sum(wait * share) / np.sum(share))


def start_priority(schedule: Schedule) -> Reals:
    """The priority P of each job at its start, which depends on the order of the queue.

    Under WFP it is Eq 5 of Tang et al. with the request, (w / request)^3 p. Under PSP it is the
    priority of the group, aged under PSP+aging (Rocchetti et al., Eq 1). Otherwise it is the wait.
    """
    wait = schedule.wait.astype(float)
    request = schedule.workload.request
    match schedule.semantics.order:
        case "wfp":
            return np.asarray((wait / request) ** 3 * schedule.workload.processors)
        case "psp":
            return schedule.priority
        case "psp-aging":
            jobs = zip(schedule.priority, wait, request, strict=True)
            return np.array([aged_priority(*map(float, job)) for job in jobs])
    return wait


def makespan(submit: Durations, end: Durations) -> float:
    """Last end - first submission."""
    return float(end.max() - submit.min()) if len(end) else 0.0


def utilisation(submit: Durations, end: Durations, work: Durations, processors: int) -> float:
    """Processor time used: sum of p r / (processors of the machine x makespan)."""
    span = makespan(submit, end)
    return float(work.sum()) / (processors * span) if span > 0 else 0.0


def idle_while_waiting(
    submit: Durations, start: Durations, end: Durations, processors: Durations, size: int
) -> float:
    """Processor seconds that are idle while at least one job waits for its start.

    Args:
        processors: the processors that each job takes.
        size: processors of the machine.
    """
    times = np.concatenate([submit, start, end])
    order = np.argsort(times, kind="stable")
    nothing = np.zeros(len(submit), np.int8)
    one = np.ones(len(submit), np.int8)
    waiting = np.cumsum(np.concatenate([one, -one, nothing])[order]) > 0
    idle = size - np.cumsum(np.concatenate([nothing, processors, -processors])[order])
    spans = np.diff(times[order])
    return float(np.sum(idle[:-1] * spans, where=waiting[:-1]))


def wait_error(promise: Durations, start: Durations) -> Durations:
    """|predicted wait - w|, predicted when the job arrived (Klusáček & Soysal, section 4.1)."""
    return np.asarray(np.abs(promise - start))


def node_notice(nodes_since: Durations, start: Durations) -> Durations:
    """T_node: start - time of the last change of the nodes (Klusáček & Soysal, section 4.2)."""
    return start - nodes_since


def turnaround_deviation(predicted: Durations, actual: Durations) -> Reals:
    """Deviation of w + r: 100 |predicted - actual| / actual, in percent (Hanzich et al., 4)."""
    return np.asarray(100.0 * np.abs(predicted - actual) / actual)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """The measures of a schedule; None where the policy does not define a measure.

    Attributes:
        wait: mean, in seconds; so are all other times without another unit or statistic.
        backfilled: share of jobs that were started past a waiting one (Klusáček & Soysal, Fig. 5).
        planned_into_gap: share of jobs that were planned, when they arrived, before the planned
            start of another waiting job: the other reading of the same figure.
        wait_error: of the wait predicted at arrival; and its median.
        node_notice: T_node; and the share of jobs for which it is above 0.
        turnaround_deviation: in percent, of the turnaround predicted at arrival.
        corrected: share of jobs that outlived an estimate.
    """

    jobs: int
    wait: float
    median_wait: float
    response: float
    slowdown: float
    bounded_slowdown: float
    weighted_wait: float
    backfilled: float
    planned_into_gap: float | None
    utilisation: float
    makespan: float
    corrected: float
    wait_error: float | None
    median_wait_error: float | None
    turnaround_deviation: float | None
    node_notice: float | None
    node_notice_share: float | None


def measure(schedule: Schedule) -> Measures:
    """Compute all measures of a schedule."""
    workload = schedule.workload
    wait, runtime = schedule.wait, workload.runtime
    promised = schedule.semantics.makes_promises
    error = wait_error(schedule.promise, schedule.start) if promised else None
    notice = (
        node_notice(schedule.nodes_since, schedule.start)
        if schedule.semantics.names_nodes
        else None
    )
    return Measures(
        jobs=len(workload),
        wait=_mean(wait),
        median_wait=_median(wait),
        response=_mean(response(wait, runtime)),
        slowdown=_mean(slowdown(wait, runtime)),
        bounded_slowdown=_mean(bounded_slowdown(wait, runtime)),
        weighted_wait=weighted_wait(wait, start_priority(schedule)),
        backfilled=_mean(schedule.backfilled),
        planned_into_gap=_mean(schedule.in_gap) if promised else None,
        utilisation=utilisation(
            workload.submit,
            schedule.end,
            workload.processors * runtime,
            workload.processors_of_machine,
        ),
        makespan=makespan(workload.submit, schedule.end),
        corrected=_mean(schedule.corrections > 0),
        wait_error=None if error is None else _mean(error),
        median_wait_error=None if error is None else _median(error),
        turnaround_deviation=_mean(_promised_deviation(schedule)) if promised else None,
        node_notice=None if notice is None else _mean(notice),
        node_notice_share=None if notice is None else _mean(notice > 0),
    )


def _promised_deviation(schedule: Schedule) -> Reals:
    """Deviations of the turnarounds that follow from planned start and estimate at arrival."""
    submit = schedule.workload.submit
    return turnaround_deviation(
        schedule.promise + schedule.estimate - submit, schedule.end - submit
    )


def _mean(values: Any) -> float:
    return float(np.mean(values)) if len(values) else 0.0


def _median(values: Any) -> float:
    return float(np.median(values)) if len(values) else 0.0
