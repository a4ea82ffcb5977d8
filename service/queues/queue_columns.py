"""Live jobs as the columns that the simulator plays, one set for each pool of processors.

Nothing that a resource manager shows is refused: a pool is at least as large as what runs on it,
and a job that can never fit is left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from service.queues.estimate import Estimate
from service.queues.live_machine import pool_of
from service.queues.snapshot import JobState, LiveJob, QueueSnapshot, Rules
from simulator.engine.state import whole_seconds
from simulator.scheduling.forecast import QueuedJobs, Snapshot, running_runtime
from simulator.scheduling.futures import Ladders
from simulator.scheduling.semantics import Semantics

CORRECTION = "double"
"""What is assumed of a running job that has outlived its prediction."""


NOBODY = -1
"""The number of an owner who has no job in a pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolQueue:
    """What runs on one pool and waits for it.

    Attributes:
        queue: as the simulator takes it.
        running: places of its running jobs in the list of all jobs.
        waiting: places of its waiting jobs.
        ladders: of the running and of the waiting jobs.
    """

    queue: Snapshot
    running: Sequence[int]
    waiting: Sequence[int]
    ladders: Ladders

    def __len__(self) -> int:
        return len(self.running) + len(self.waiting)


def pool_queues(snapshot: QueueSnapshot, estimates: Sequence[Estimate]) -> list[PoolQueue]:
    """The queue of every pool, in the order of the pools.

    Args:
        snapshot: the cluster.
        estimates: of its jobs, one for each.
    """
    running: list[list[int]] = [[] for _ in snapshot.pools]
    waiting: list[list[int]] = [[] for _ in snapshot.pools]
    for place, job in enumerate(snapshot.jobs):
        pool = pool_of(snapshot.pools, job.submission.queue)
        if job.state is JobState.RUNNING:
            running[pool].append(place)
        elif job.state is JobState.WAITING and fits(snapshot, pool, job):
            waiting[pool].append(place)
    owners: dict[str, int] = {}
    return [
        _pool_queue(snapshot, estimates, pool, (running[pool], waiting[pool]), owners)
        for pool in range(len(snapshot.pools))
    ]


def fits(snapshot: QueueSnapshot, pool: int, job: LiveJob) -> bool:
    """Whether a pool can ever run a job."""
    return job.processors <= snapshot.pools[pool].processors


def semantics_of(rules: Rules) -> Semantics:
    """The rules as the simulator takes them."""
    by_predictions = rules.plans_by == "predictions"
    return Semantics(
        policy=rules.policy,
        order=rules.order,
        depth=rules.depth,
        correction=CORRECTION,
        estimated_order=by_predictions,
        estimated_backfilling=by_predictions,
        estimated_running=by_predictions,
    )


def _pool_queue(
    snapshot: QueueSnapshot,
    estimates: Sequence[Estimate],
    pool: int,
    places: tuple[list[int], list[int]],
    owners: dict[str, int],
) -> PoolQueue:
    jobs = [[snapshot.jobs[place] for place in kind] for kind in places]
    said = [[estimates[place] for place in kind] for kind in places]
    elapsed = [_age(snapshot.taken_at, job.start_time) for job in jobs[0]]
    waited = [_age(snapshot.taken_at, job.submission.submit_time) for job in jobs[1]]
    runtimes = [
        running_runtime(estimate.runtime, job.submission.requested_walltime, age, CORRECTION)
        for job, estimate, age in zip(jobs[0], said[0], elapsed, strict=True)
    ]
    used = sum(job.processors for job in jobs[0])
    return PoolQueue(
        queue=Snapshot(
            processors=max(used, snapshot.pools[pool].processors),
            running=columns(jobs[0], said[0], elapsed, owners, runtimes),
            waiting=columns(jobs[1], said[1], waited, owners),
        ),
        running=places[0],
        waiting=places[1],
        ladders=([each.ladder for each in said[0]], [each.ladder for each in said[1]]),
    )


def columns(
    jobs: Sequence[LiveJob],
    estimates: Sequence[Estimate],
    ages: Sequence[int],
    owners: dict[str, int],
    runtimes: Sequence[int] | None = None,
) -> QueuedJobs:
    """Jobs with their predicted runtimes; ``owners`` numbers those whose jobs they are."""
    predicted = [whole_seconds(estimate.runtime) for estimate in estimates]
    return QueuedJobs(
        processors=np.array([job.processors for job in jobs], np.int64),
        request=np.array([ceil(job.submission.requested_walltime) for job in jobs], np.int64),
        estimate=np.array(predicted, np.int64),
        runtime=np.array(predicted if runtimes is None else runtimes, np.int64),
        age=np.array(ages, np.int64),
        priority=np.array([estimate.priority for estimate in estimates], np.float64),
        owner=np.array([owners.setdefault(owner_of(job), len(owners)) for job in jobs], np.int64),
    )


def number_of(user: str | None, pool: PoolQueue, jobs: Sequence[LiveJob]) -> int:
    """The number of a user among the owners of a pool's jobs, which are some of ``jobs``."""
    kinds = ((pool.running, pool.queue.running), (pool.waiting, pool.queue.waiting))
    for places, queued in kinds if user is not None else ():
        for row, place in enumerate(places):
            if jobs[place].submission.user == user:
                return int(queued.owner[row])
    return NOBODY


def owner_of(job: LiveJob) -> str:
    """The job's user; a job without a user is its own owner."""
    user = job.submission.user
    return f"job {job.job_id}" if user is None else f"user {user}"


def _age(now: float, since: float | None) -> int:
    return max(0, int(now - (now if since is None else since)))
