"""Simulates a workload: runs the scheduling loop with estimates and returns the schedule."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from simulator.engine import policies
from simulator.engine.loop import DONE, ESTIMATES_WANTED
from simulator.engine.pbs import pbs_loop as pbs
from simulator.engine.pbs.pbs_state import PbsState
from simulator.engine.slurm import slurm_loop as slurm
from simulator.engine.slurm.slurm_state import SlurmState
from simulator.engine.state import UNKNOWN, State, new_state
from simulator.replay.trace_replay import Answers
from simulator.scheduling.estimates import (
    AnyState,
    EstimateFeed,
    Estimates,
)
from simulator.scheduling.pbs_cluster import empty_server
from simulator.scheduling.semantics import PBS, SLURM, Semantics
from simulator.scheduling.slurm_cluster import empty_cluster
from simulator.scheduling.workload import EMPTY, Workload, WorkloadError
from simulator.traces.trace import Integers

PROGRESS_STEP = 2000
"""Number of submissions between two reports of progress."""

MOST_NODES = 2**24
"""Most nodes that can be named: they take 2 GB of memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A simulated schedule; columns have the workload's order, times are on the workload's clock.

    Attributes:
        estimate: the first estimate of each job, in seconds.
        length: by which an order by length went where it was not the estimate; else 0.
        corrections: number of estimates that each job outlived.
        backfilled: whether a job was started while a job ahead of it in the queue waited on.
        promise: the start that was first planned, or -1 under policies that do not plan.
        in_gap: this start was before the planned start of another waiting job.
        nodes_since: when a job's set of nodes was last changed, or -1 without named nodes.
        priority: priority of the job's accuracy group, for queue orders that use it.
        seconds: real time that the simulation took.
        answers: of the method that estimated; None unless they were kept.
    """

    workload: Workload
    semantics: Semantics
    estimates: str
    start: Integers
    estimate: Integers
    length: Integers
    corrections: Integers
    backfilled: NDArray[np.bool_]
    promise: Integers
    in_gap: NDArray[np.bool_]
    nodes_since: Integers
    priority: NDArray[np.float64]
    seconds: float
    answers: Answers | None = None

    @property
    def wait(self) -> Integers:
        """Seconds from submission to start."""
        return self.start - self.workload.submit

    @property
    def end(self) -> Integers:
        """The end time of each job."""
        return self.start + self.workload.runtime

    def card(self) -> dict[str, str]:
        """Return the rules in words, with the treatment of the input."""
        machine = f"{self.workload.processors_of_machine} processors"
        if self.workload.cores_per_node is not None:
            machine = (
                f"{self.workload.processors_of_machine} nodes of {self.workload.cores_per_node} "
                "processors, whole nodes to a job"
            )
        return {
            **self.semantics.card(self.workload.trace),
            "Estimates": f"{self.estimates}, cut to whole seconds, at least 1",
            "Machine": machine,
            "Overruns": self.workload.overrun,
        }


def simulate(
    workload: Workload,
    semantics: Semantics,
    estimates: Estimates,
    *,
    progress: Callable[[int], object] | None = None,
) -> Schedule:
    """Run a workload from an empty machine to its end.

    Args:
        estimates: the source of the scheduler's estimates.
        progress: called with the number of jobs that were just submitted.
    """
    warm_up(semantics)
    began = perf_counter()
    state = initial_state(workload, semantics)
    known = estimates.beforehand(workload)
    feed: EstimateFeed | None = None
    if known is None or semantics.needs_priorities:
        feed = EstimateFeed(state, workload, estimates, semantics)
    else:
        state.jobs["estimate"] = known
        if estimates.lengths is not None:
            state.jobs["length"] = np.minimum(estimates.lengths(workload), workload.request)
    for stopped in _stops(state, progress):
        if stopped == ESTIMATES_WANTED and feed:
            feed.give()
    schedule = _schedule(workload, semantics, estimates.name, state, perf_counter() - began)
    return replace(schedule, answers=feed.answers) if feed else schedule


def simulate_together(
    workloads: Sequence[Workload], semantics: Semantics, estimates: Estimates
) -> list[Schedule]:
    """Run the machines of one cluster, such as partitions that share no processor.

    Each machine has its own queue. The method learns from the runs of all of them, in the order
    of their ends: before it is asked at a second, it knows every run that had ended by then.

    Args:
        semantics: the rules, the same for all.
        estimates: the source of all schedulers' estimates.
    """
    alone = len(workloads) == 1
    if alone or not (estimates.player is not None or semantics.needs_priorities):
        return [simulate(each, semantics, estimates) for each in workloads]
    warm_up(semantics)
    began = perf_counter()
    states = [initial_state(workload, semantics) for workload in workloads]
    feeds: list[EstimateFeed] = []
    for state, workload in zip(states, workloads, strict=True):
        first = feeds[0] if feeds else None
        feeds.append(EstimateFeed(state, workload, estimates, semantics, beside=first))
    _play_together(states, feeds)
    seconds = perf_counter() - began
    return [
        replace(
            _schedule(workload, semantics, estimates.name, state, seconds), answers=feed.answers
        )
        for workload, state, feed in zip(workloads, states, feeds, strict=True)
    ]


def _play_together(states: Sequence[AnyState], feeds: Sequence[EstimateFeed]) -> None:
    """Advance the machine with the earliest submission, until all machines have ended."""
    stops = [_stops(state) for state in states]
    paused: list[tuple[int, int]] = []

    def advance(number: int) -> None:
        if any(stopped == ESTIMATES_WANTED for stopped in stops[number]):
            heappush(paused, (feeds[number].now, number))

    for number in range(len(feeds)):
        advance(number)
    while paused:
        now, number = heappop(paused)
        ended = [run for feed in feeds for run in feed.ended(now)]
        if ended:
            feeds[0].learn(sorted(ended, key=lambda run: run.end_time))
        feeds[number].answer()
        advance(number)


def run(state: AnyState) -> int:
    """Run a simulation until it stops."""
    if isinstance(state, SlurmState):
        return slurm.run(state)
    return pbs.run(state) if isinstance(state, PbsState) else policies.run(state)


def initial_state(workload: Workload, semantics: Semantics) -> AnyState:
    """Return the state of a simulation before the first submission, under any policy."""
    if semantics.policy == SLURM:
        return empty_cluster(workload, semantics)
    if semantics.policy == PBS:
        return empty_server(workload, semantics)
    return empty_machine(workload, semantics)


def empty_machine(workload: Workload, semantics: Semantics) -> State:
    """Return the state of a simulation before the first submission, under a policy of the engine.

    Raises:
        WorkloadError: the machine has more nodes than can be named.
    """
    nodes = workload.processors_of_machine
    if semantics.names_nodes and nodes > MOST_NODES:
        raise WorkloadError(
            f"{semantics.policy} plans on named nodes, at most {MOST_NODES:,}: {nodes:,} "
            "processors need --cores-per-node."
        )
    columns = ("submit", "processors", "runtime", "request")
    return new_state(
        {name: getattr(workload, name) for name in columns},
        processors=workload.processors_of_machine,
        rules=semantics.numbers(),
        named_nodes=semantics.names_nodes,
    )


def warm_up(semantics: Semantics = Semantics()) -> None:  # noqa: B008 - frozen
    """Compile the scheduling loop of a policy, or load it from the cache."""
    run(initial_state(EMPTY, semantics))


def _stops(state: AnyState, progress: Callable[[int], object] | None = None) -> Iterator[int]:
    """Run to the end; yield at each stop for estimates, and report progress."""
    submitted = state.clock["submitted"]
    pause_at = state.clock["pause_at"]
    reported = 0
    if progress:
        pause_at[0] = PROGRESS_STEP
    while (stopped := run(state)) != DONE:
        if stopped == slurm.STUCK and isinstance(state, SlurmState):
            raise WorkloadError(_stuck(state))
        yield stopped
        if progress and submitted[0] >= pause_at[0]:
            progress(int(submitted[0]) - reported)
            reported = int(submitted[0])
            pause_at[0] = reported + PROGRESS_STEP
    if progress:
        progress(int(submitted[0]) - reported)


def _stuck(state: SlurmState) -> str:
    """Return the sentence on a job that reservations leave no nodes or no time for."""
    job = state.jobs[state.queue[0]]
    return (
        f"A job of {job['processors']:,} processors and {job['limit'] / 3600:g} h never starts: "
        "reservations that come again leave its partition too few nodes for that long. Take them "
        "out of the configuration if they are newer than the log."
    )


def _schedule(
    workload: Workload, semantics: Semantics, estimates: str, state: AnyState, seconds: float
) -> Schedule:
    jobs = state.jobs
    assert not (jobs["start"] == UNKNOWN).any(), "every job of a finished simulation has started"  # noqa: S101
    return Schedule(
        workload=workload,
        semantics=semantics,
        estimates=estimates,
        start=jobs["start"].copy(),
        estimate=jobs["estimate"].copy(),
        length=jobs["length"].copy(),
        corrections=jobs["corrections"].copy(),
        backfilled=jobs["backfilled"] == 1,
        promise=jobs["promise"].copy(),
        in_gap=jobs["in_gap"] == 1,
        nodes_since=jobs["nodes_since"].copy(),
        priority=jobs["priority"].copy(),
        seconds=seconds,
    )
