"""Plays a queue forward with the simulator's engine, from a given state of the machine.

The idea is Algorithm 1 of Hanzich et al. 2005, the use Klusáček & Soysal 2020, section 4.1. The
state is what a resource manager shows: the running jobs with their starts, and the waiting jobs in
order. From there the engine plays the scheduler's rules to the end. It assumes that no further
jobs are submitted. Times are whole seconds from now on.

In other futures of the queue, jobs run longer or shorter than predicted. The runtime of a job is
drawn from its own distribution, or, where its method gives none, from the errors of recent
predictions. The range of the futures is the uncertainty of a forecast. In each future the jobs of
one owner are drawn at the same quantile: an owner who repeats a job repeats the error, and errors
that were drawn independently would cancel out along the queue.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from random import Random
from typing import Self

import numpy as np
from numpy.typing import NDArray

from predictors.correction import CORRECTIONS
from predictors.memory.error_ratios import sample
from simulator.engine.policies import run
from simulator.engine.state import EVENT, State, new_state, whole_seconds
from simulator.scheduling.semantics import Semantics
from simulator.traces.trace import Integers


class SnapshotError(ValueError):
    """The snapshot describes a state in which no machine can be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedJobs:
    """Columns of jobs that run or wait; durations are whole seconds.

    Attributes:
        estimate: the scheduler's first estimates.
        runtime: runtimes from start to end as they are played; more than ``age`` for running jobs.
        age: seconds since the start of a running job, or since the submission of a waiting job.
        priority: priorities of the accuracy groups, for queue orders that use them.
        owner: a number for the owner of each job: predictions of one owner's jobs err together.
        array: a number for the throttled array of each job; -1 for none.
        array_limit: most tasks of that array that run at once; 0 where it is not known.
    """

    processors: Integers
    request: Integers
    estimate: Integers
    runtime: Integers
    age: Integers
    priority: NDArray[np.float64]
    owner: Integers
    array: Integers
    array_limit: Integers

    def __len__(self) -> int:
        return len(self.processors)

    def __add__(self, others: Self) -> Self:
        """Return these jobs followed by the other jobs."""
        columns = {
            field.name: np.concatenate([getattr(self, field.name), getattr(others, field.name)])
            for field in fields(self)
        }
        return type(self)(**columns)

    def take(self, rows: Integers) -> Self:
        """Return some of the jobs, in this order."""
        return type(self)(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A machine and its queue at one moment.

    Attributes:
        processors: number of processors of the machine.
        running: running jobs in any order.
        waiting: waiting jobs in the order of submission, which decides ties of every queue order.
        running_nodes: places of the nodes of every running job, from 0, for policies that name
            nodes; without them the jobs that started first have the first nodes.
    """

    processors: int
    running: QueuedJobs
    waiting: QueuedJobs
    running_nodes: Sequence[Sequence[int]] | None = None

    def __post_init__(self) -> None:
        """Refuse an impossible state.

        Raises:
            SnapshotError: the running jobs do not fit, a waiting job can never fit, or a running
                job should have ended.
        """
        if self.running.processors.sum() > self.processors:
            raise SnapshotError("More processors are in use than the machine has.")
        if (self.waiting.processors > self.processors).any():
            raise SnapshotError("A waiting job is larger than the machine.")
        if (self.running.runtime <= self.running.age).any():
            raise SnapshotError("A running job should have ended.")

    def with_runtimes(self, running: Integers, waiting: Integers) -> Self:
        """Return a copy with other runtimes; the scheduler sees the same estimates."""
        return replace(
            self,
            running=replace(self.running, runtime=running),
            waiting=replace(self.waiting, runtime=waiting),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The result of playing a snapshot forward, in seconds from now.

    Attributes:
        nodes: places of the nodes of every waiting job, under policies that name nodes.
    """

    start: Integers
    end: Integers
    running_end: Integers
    nodes: Sequence[Sequence[int]] | None = None


def running_runtime(estimate: float, request: float, elapsed: int, correction: str) -> int:
    """Return the runtime, from start to end, assumed of a job that has run ``elapsed`` seconds.

    Args:
        estimate: the first estimate in seconds.
        request: the request in seconds; estimates are capped at the request.
        elapsed: seconds since the start of the job.
        correction: a name in ``predictors.correction.CORRECTIONS``.

    Returns:
        Whole seconds; at least one more than ``elapsed``, because the job still runs.
    """
    corrected = CORRECTIONS[correction](min(estimate, request), request, elapsed)
    return max(elapsed + 1, whole_seconds(corrected))


def forecast(snapshot: Snapshot, semantics: Semantics) -> Forecast:
    """Play a snapshot to its end.

    The play begins with one scheduling pass. Policies that keep a plan make it anew, in the order
    of the queue. The events of one second are always a ``batch``, also under other semantics,
    because their order within the second of the snapshot is not known.
    """
    state = _state(snapshot, replace(semantics, events="batch"))
    now = int(state.clock["now"][0])
    run(state)
    ended = state.jobs["start"] + state.jobs["runtime"] - now
    running = len(snapshot.running)
    running_end = np.empty(running, np.int64)
    running_end[_by_start(snapshot.running)] = ended[:running]
    return Forecast(
        start=state.jobs["start"][running:] - now,
        end=ended[running:],
        running_end=running_end,
        nodes=_nodes(state)[running:] if semantics.names_nodes else None,
    )


def _by_start(running: QueuedJobs) -> Integers:
    return np.argsort(-running.age, kind="stable")


def _state(snapshot: Snapshot, semantics: Semantics) -> State:
    """Build the engine's arrays; the clock starts at 0 with the oldest job."""
    running = snapshot.running.take(_by_start(snapshot.running))
    jobs = running + snapshot.waiting
    now = int(jobs.age.max(initial=0))
    columns = {
        "submit": now - jobs.age,
        "processors": jobs.processors,
        "runtime": jobs.runtime,
        "request": jobs.request,
    }
    state = new_state(
        columns,
        processors=snapshot.processors,
        rules=semantics.numbers(),
        named_nodes=semantics.names_nodes,
    )
    state.jobs["estimate"] = jobs.estimate
    state.jobs["priority"] = jobs.priority
    state.clock["now"] = now
    _let_run(state, len(running), semantics)
    _withhold(state, jobs, len(running))
    if semantics.names_nodes:
        _name_nodes(state, len(running), _flat_nodes(snapshot))
    return state


def _let_run(state: State, count: int, semantics: Semantics) -> None:
    """Let the first ``count`` jobs run since their submission, in the order of their starts."""
    clock, jobs = state.clock, state.jobs[:count]
    now = int(clock["now"][0])
    jobs["start"] = jobs["submit"]
    jobs["serial"] = np.arange(count)
    estimate = jobs["estimate"] if semantics.estimated_running else jobs["request"]
    jobs["expected_end"] = jobs["start"] + estimate
    end = jobs["start"] + jobs["runtime"]
    outlived = np.flatnonzero(jobs["expected_end"] < end)
    order = np.argsort(jobs["expected_end"], kind="stable")
    for name, column in (
        ("end", jobs["expected_end"]),
        ("processors", jobs["processors"]),
        ("job", jobs["serial"]),
    ):
        state.running[name][:count] = column[order]
    state.ends[:count] = _events(end, np.arange(count))
    # An estimate that was outlived before the snapshot is corrected in its first second.
    state.expiries[: len(outlived)] = _events(
        np.maximum(now, jobs["expected_end"][outlived]), outlived
    )
    clock["free"] -= jobs["processors"].sum()
    clock["submitted"] = clock["started"] = clock["running"] = clock["ends"] = count
    clock["expiries"] = len(outlived)
    clock["disturbed"] = 1  # plans know nothing of these jobs yet


def _withhold(state: State, jobs: QueuedJobs, running: int) -> None:
    """Withhold the tasks of throttled arrays beyond as many as may run at once."""
    for array in np.unique(jobs.array[(jobs.array_limit > 0) & (jobs.array >= 0)]):
        tasks = np.flatnonzero(jobs.array == array)
        room = int(jobs.array_limit[tasks].max()) - int((tasks < running).sum())
        waiting = tasks[tasks >= running]
        withheld = waiting[max(0, room) :]
        if not len(withheld):
            continue
        state.jobs["array"][tasks] = state.jobs["turn"][withheld[0]] = withheld[0] + 1
        state.jobs["room"][withheld[0]] = min(0, room)
        state.jobs["withheld"][withheld] = 1
        state.jobs["next_task"][withheld[:-1]] = withheld[1:] + 1


def _events(times: Integers, jobs: Integers) -> NDArray[np.void]:
    """Return the events as a heap; a sorted array is a heap."""
    events = np.zeros(len(times), EVENT)
    events["time"], events["serial"], events["job"] = times, jobs, jobs
    return np.sort(events, order=("time", "serial"))


def _flat_nodes(snapshot: Snapshot) -> Integers:
    """The nodes of the running jobs one after the other, in the order of their starts."""
    if snapshot.running_nodes is None:
        return np.arange(snapshot.running.processors.sum())
    in_order = [snapshot.running_nodes[row] for row in _by_start(snapshot.running)]
    return np.array([node for nodes in in_order for node in sorted(nodes)], dtype=np.int64)


def _name_nodes(state: State, count: int, nodes: Integers) -> None:
    """Let the first ``count`` jobs run on their nodes."""
    state.node_lists[: len(nodes)] = nodes
    state.nodes["job"][nodes] = np.repeat(np.arange(count), state.jobs["processors"][:count])


def _nodes(state: State) -> list[list[int]]:
    """The nodes of every job."""
    parts = np.split(state.node_lists, state.jobs["first_node"][1:])
    return [part.tolist() for part in parts][: len(state.jobs)]


STEPS = 20

QUANTILE_GRID = tuple((step + 0.5) / STEPS for step in range(STEPS))
"""Levels of the quantiles of a runtime distribution, each with the same probability mass."""

Quantiles = Sequence[float] | None
"""Runtimes in seconds at the levels of ``QUANTILE_GRID``; None where the method gives none."""

QueueQuantiles = tuple[Sequence[Quantiles], Sequence[Quantiles]]
"""Quantiles of the running jobs, and of the waiting jobs."""


def quantile_at(quantiles: Sequence[float], level: float) -> float:
    """Return the runtime at a level in [0, 1)."""
    return quantiles[int(level * STEPS)]


def median_of(quantiles: Sequence[float]) -> float:
    """Return the median runtime, between the two middle levels of ``QUANTILE_GRID``."""
    return (quantiles[STEPS // 2 - 1] + quantiles[STEPS // 2]) / 2


def other_futures(
    snapshot: Snapshot,
    semantics: Semantics,
    ratios: Sequence[float],
    samples: int,
    quantiles: QueueQuantiles | None = None,
) -> Iterator[Forecast]:
    """Play up to ``samples`` other futures; none if there are neither quantiles nor ratios.

    Args:
        snapshot: the snapshot, in which jobs run for as long as predicted.
        ratios: runtime / prediction of recent runs, ascending.
        samples: the number of futures that are played.
        quantiles: runtime quantiles of each job; the ratios are for jobs without.
    """
    if quantiles is None:
        quantiles = ([None] * len(snapshot.running), [None] * len(snapshot.waiting))
    can_vary = bool(ratios) or any(row is not None for kind in quantiles for row in kind)
    for seed in range(samples if can_vary else 0):
        random = Random(seed)  # noqa: S311 - repeatable
        yield forecast(varied(snapshot, ratios, quantiles, random), semantics)


def nominal_coverage(samples: int) -> float:
    """Return the probability that one more future lies within the range of ``samples`` futures."""
    return (samples - 1) / (samples + 1)


class OwnerLevels:
    """The level at which the jobs of each owner are drawn, in one future."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._known: dict[Hashable, float] = {}

    def of(self, owner: Hashable) -> float:
        """Return the level of an owner, in [0, 1)."""
        if owner not in self._known:
            self._known[owner] = self._random.random()
        return self._known[owner]


def varied(
    snapshot: Snapshot, ratios: Sequence[float], quantiles: QueueQuantiles, random: Random
) -> Snapshot:
    """Return a snapshot with the runtimes of another future; arguments as of ``other_futures``."""
    running, waiting = snapshot.running, snapshot.waiting
    levels = OwnerLevels(random)
    return snapshot.with_runtimes(
        _drawn(running, running.age, (ratios, quantiles[0]), levels),
        _drawn(waiting, np.zeros_like(waiting.age), (ratios, quantiles[1]), levels),
    )


def _drawn(
    jobs: QueuedJobs,
    elapsed: Integers,
    variety: tuple[Sequence[float], Sequence[Quantiles]],
    levels: OwnerLevels,
) -> Integers:
    """Draw a runtime for each job from its quantiles, else from the ratios of longer runs."""
    ratios, quantiles = variety
    drawn = jobs.runtime.copy()
    columns = (jobs.estimate, jobs.request, elapsed, jobs.owner)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for row, (estimate, request, passed, owner) in enumerate(rows):
        own, level = quantiles[row], levels.of(owner)
        if own is not None:
            drawn[row] = max(passed + 1, min(request, round(quantile_at(own, level))))
            continue
        ratio = sample(ratios, passed / estimate, level)
        if ratio is not None:
            drawn[row] = max(passed + 1, round(min(request, estimate * ratio)))
    return drawn
