"""A queue as its resource manager shows it: the machine, the scheduler's rules and the jobs."""

from collections import defaultdict
from collections.abc import Sequence
from enum import StrEnum
from typing import Literal

from msgspec import Struct

from predictors.jobs import Basis, Submission
from service.live_queue.taken_processors import QueueNodes

NoInterval = Literal["no-samples", "too-few-runs", "no-prediction", "no-time"]
"""Reason why a forecast has no intervals."""


class JobState(StrEnum):
    """The state of a job; a held job waits for something else than its turn."""

    RUNNING = "running"
    WAITING = "waiting"
    HELD = "held"


class Pool(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Processors that serve some queues (partitions) and are shared with no other pool.

    Attributes:
        processors: number of processors that can run jobs.
        queues: names of the queues; a queue that no pool names is served by the first pool.
        node_cores: cores of each node, where jobs take whole nodes that have names; else None.
    """

    processors: int
    queues: tuple[str, ...] = ()
    node_cores: int | None = None


class SharedUse(Struct, frozen=True, kw_only=True, gc=False):
    """The use of a CPU by each task of a job on shared nodes; times are seconds.

    Attributes:
        execution_time: runtime in isolation; None if the prediction stands for it.
        cpu_share: share of a CPU that a task uses in isolation, at most 1.
        used_cpu_time: CPU time that a task has used until now.
    """

    execution_time: float | None = None
    cpu_share: float = 1.0
    used_cpu_time: float = 0.0


class LiveJob(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A job that runs or waits.

    Attributes:
        submission: as it was submitted, with its job id.
        start_time: Unix seconds; None before the start.
        reason: reason of the wait, in the resource manager's word.
        predicted_walltime: prediction made at the submission, in seconds, if the caller sent one.
        prediction_id: of the prediction at the submission, where the resource manager keeps it.
        nodes: places of its nodes in the machine, from 0, where nodes have names.
        shared_use: its use of CPUs, on shared nodes.
        array: name of the array that it is a task of.
        array_limit: most tasks of that array that run at once.
        scheduler_start: start that the scheduler plans for a waiting job; None if it shows none.
        gpu_share: its GPUs as processors: those that its nodes have for each GPU.
    """

    submission: Submission
    state: JobState
    start_time: float | None = None
    reason: str | None = None
    predicted_walltime: float | None = None
    prediction_id: str | None = None
    nodes: tuple[int, ...] = ()
    shared_use: SharedUse | None = None
    array: str | None = None
    array_limit: int | None = None
    scheduler_start: float | None = None
    gpu_share: int = 0

    @property
    def job_id(self) -> str:
        """Return the job id, or an empty string."""
        return self.submission.job_id or ""

    @property
    def processors(self) -> int:
        """Return the processors that no other job has meanwhile; 1 by default.

        GPUs count as their share of a node: where they are short, processors are free.
        """
        return max(self.submission.requested_processors or 1, self.gpu_share)

    @property
    def owner(self) -> str:
        """Return a name for the user; a job without a user is its own owner."""
        user = self.submission.user
        return f"job {self.job_id}" if user is None else f"user {user}"


class SchedulerRules(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The rules by which the scheduler serves the queue, in the names of the simulator.

    Attributes:
        policy: of dedicated or of shared nodes.
        plans_by: runtimes that the scheduler assumes: ``requests`` or ``predictions``.
        order: order of the queue; ``fcfs`` is the order of the list.
        depth: number of reservations under EASY.
        planning_depth: number of waiting jobs that the scheduler plans; None is all of them.
        planning_window: seconds from now beyond which it plans no start; None is no bound.
        compression: treatment of the plan under conservative backfilling.
        correction: next estimate of a running job that has outlived its prediction.
        pinning: seconds before the start in which a job keeps its nodes, under ``fcfs-pinned``.
        pinned: ``nodes`` or ``start``: what such a job keeps.
        remaining_time: formula for a run's remaining time on shared nodes.
        cpu_time: formula for the CPU time of a run on shared nodes.
    """

    policy: str = "easy"
    plans_by: str = "requests"
    order: str = "fcfs"
    depth: int = 1
    planning_depth: int | None = None
    planning_window: int | None = None
    compression: str = "start-order"
    correction: str = "double"
    pinning: int = 0
    pinned: str = "nodes"
    remaining_time: str = "cpu"
    cpu_time: str = "cpu"


class QueueSnapshot(Struct, frozen=True, kw_only=True, weakref=True):
    """A cluster at one moment.

    Attributes:
        taken_at: when the resource manager showed it.
        pools: of its machine, at least one.
        jobs: running jobs, then waiting jobs in the order in which they are served.
        queue_nodes: nodes of queues, where they are known.
        changed_at: time of the last start or end that was reported since and is in it.
    """

    cluster: str
    taken_at: float
    rules: SchedulerRules
    pools: tuple[Pool, ...]
    jobs: tuple[LiveJob, ...]
    queue_nodes: tuple[QueueNodes, ...] = ()
    changed_at: float | None = None

    @property
    def now(self) -> float:
        """Return the time of the state of its jobs."""
        return self.taken_at if self.changed_at is None else self.changed_at

    def time_behind(self, job: LiveJob) -> float | None:
        """Return the seconds of its runtime that a running job has behind it; None if it waits.

        On shared nodes, except under ``hybrid``, they are the seconds that the job would have run
        alone for the CPU time that it has used.
        """
        if job.start_time is None:
            return None
        if job.shared_use is not None and self.rules.remaining_time != "hybrid":
            return job.shared_use.used_cpu_time / job.shared_use.cpu_share
        return max(0.0, self.now - job.start_time)


class RuntimeEstimate(Struct, frozen=True, gc=False):
    """The service's estimate of a job's runtime.

    Attributes:
        runtime: prediction in seconds, at most the request.
        priority: of the accuracy group of the job's user.
        quantiles: runtimes in seconds at the levels of the simulator's grid, by what has ended
            until now; None where the method gives no distribution.
        basis: of the prediction; None where the caller has predicted the job.
        is_predicted: whether the runtime is a prediction; else it is the request.
        likely: median runtime in seconds; None where it is not known.
    """

    runtime: float
    priority: float
    quantiles: Sequence[float] | None = None
    basis: Basis | None = None
    is_predicted: bool = True
    likely: float | None = None

    @property
    def expected(self) -> float:
        """Return the runtime of the expected future: the median, else the prediction."""
        return self.runtime if self.likely is None else self.likely


def pool_places(pools: Sequence[Pool]) -> defaultdict[str | None, int]:
    """Return the place of the pool that serves each queue; the first pool serves all others."""
    last_first = reversed([*enumerate(pools)])
    named: dict[str | None, int] = {
        queue: place for place, pool in last_first for queue in pool.queues
    }
    return defaultdict(int, named)
