"""Forecasts a posted queue: a live queue that is checked, played forward once and not stored."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace as with_values
from math import ceil

from msgspec.structs import replace

from predictors.jobs import Submission
from service.contract.bodies import method_of
from service.contract.fields import unix_seconds
from service.contract.queue_answers import ForecastAnswer, JobForecastAnswer
from service.contract.queue_bodies import (
    ForecastRequest,
    NodeBody,
    PoolBody,
    QueuedJobBody,
    RunningJobBody,
)
from service.errors import InvalidFieldError, SnapshotTooLargeError
from service.live_queue.forecast_record import ForecastPoint, bounds, running_point, waiting_point
from service.live_queue.playing import PoolForecast, play_pools, queue_columns
from service.live_queue.shared_nodes import SharedQueue, play_shared, shared_job
from service.live_queue.snapshot import (
    Pool,
    QueueSnapshot,
    RuntimeEstimate,
)
from service.worker.worker import Worker
from simulator.shared_nodes.cluster import Cluster, Node
from simulator.shared_nodes.policies import SHARED_POLICIES, SharedPolicy

NODES_PER_JOB = 100
"""Most nodes of a machine, per job that a forecast may have."""

MOST_PLACES = 10**7
"""Most processors of the machine and of all jobs, where each of them is named."""

NO_ROOM = "wants more CPU or memory than local users leave it on enough nodes"


class PostingQueues:
    """Plays posted queues forward, in other processes."""

    def __init__(self, worker: Worker) -> None:
        self._settings = worker.settings
        self._follower = worker.follower
        self._hide = worker.pseudonyms.submission
        self._estimates = worker.queues.estimates
        self._process = worker.forecasts.awaited
        self._clock = worker.clock

    async def forecast(self, body: ForecastRequest) -> ForecastAnswer:
        """Return the start and the end of every job of the queue.

        Raises:
            SnapshotTooLargeError: it has too many jobs.
            InvalidFieldError: no machine or no scheduler can be in such a state.
            ForecastsBusyError: too many forecasts are being made.
            ForecastTooLongError: it takes too long.
        """
        self._check_size(body)
        now = self._clock() if body.now is None else unix_seconds(body.now)
        method = method_of(body.method, self._settings.method)
        snapshot = posted_snapshot(body, now, self._hide)
        estimates = await self._estimates.estimate(snapshot, method=method)
        played = await self._play(body, snapshot, estimates)
        return ForecastAnswer(
            cluster=body.cluster,
            now=now,
            policy=body.policy,
            method=method,
            no_interval=played.no_interval,
            jobs=list(job_answers(body, snapshot, estimates, played)),
        )

    def _check_size(self, body: ForecastRequest) -> None:
        jobs, limit = [*body.running, *body.waiting], self._settings.forecast_jobs
        if len(jobs) > limit or len(body.machine.nodes) > NODES_PER_JOB * limit:
            raise SnapshotTooLargeError(f"A forecast takes at most {limit} jobs.")
        places = body.machine.processors + sum(job.requested_processors for job in jobs)
        if body.policy == "fcfs-pinned" and places > MOST_PLACES:
            raise SnapshotTooLargeError(
                "A forecast with pinned nodes takes at most 10^7 processors."
            )

    async def _play(
        self, body: ForecastRequest, snapshot: QueueSnapshot, estimates: Sequence[RuntimeEstimate]
    ) -> PoolForecast:
        ratios = self._follower.state_of(body.cluster).error_ratios.ascending()
        samples = self._settings.forecast_samples if body.samples is None else body.samples
        if body.policy in SHARED_POLICIES:
            queue = shared_queue(body, snapshot, estimates)
            return await self._process.run(play_shared, queue, ratios, samples)
        pools = queue_columns(snapshot, estimates).pools
        (played,) = await self._process.run(play_pools, pools, snapshot.rules, ratios, samples)
        return played


def posted_snapshot(
    body: ForecastRequest, now: float, hide: Callable[[Submission], Submission]
) -> QueueSnapshot:
    """Return the posted queue as if a resource manager had handed it over.

    Raises:
        InvalidFieldError: it is impossible; the error names the job and the field.
    """
    check_jobs(body, now)
    nodes, is_shared = running_nodes(body), body.policy in SHARED_POLICIES
    if not is_shared:
        check_processors(body, nodes)
    size = node_cores(body, nodes)
    places = [*nodes, *([()] * len(body.waiting))]
    jobs = [job.live(body.cluster, is_shared=is_shared) for _, job in job_paths(body)]
    return QueueSnapshot(
        cluster=body.cluster,
        taken_at=now,
        rules=body.rules(),
        pools=(Pool(processors=body.machine.processors, node_cores=size),),
        jobs=tuple(
            replace(job, submission=hide(job.submission), nodes=each)
            for job, each in zip(jobs, places, strict=True)
        ),
    )


def check_jobs(body: ForecastRequest, now: float) -> None:
    """Refuse jobs that are in the queue twice, and impossible times.

    Raises:
        InvalidFieldError: it names the job and the field.
    """
    if body.policy == "fcfs-pinned" and body.order != "fcfs":
        raise InvalidFieldError("fcfs-pinned serves the queue in the order fcfs.", "order")
    seen: set[str] = set()
    for path, job in job_paths(body):
        if str(job.job_id) in seen:
            raise InvalidFieldError(f"Job {job.job_id} is in the queue twice.", f"{path}.job_id")
        seen.add(str(job.job_id))
        submit = unix_seconds(job.submit_time)
        if submit > now:
            raise refused(path, job, "submit_time", "was submitted in the future")
        if isinstance(job, RunningJobBody):
            start = unix_seconds(job.start_time)
            if start > now:
                raise refused(path, job, "start_time", "was started in the future")
            if start < submit:
                raise refused(path, job, "start_time", "was started before it was submitted")


def running_nodes(body: ForecastRequest) -> list[tuple[int, ...]]:
    """Return the places of the nodes of the running jobs; none for a job that does not name them.

    Raises:
        InvalidFieldError: two nodes have one name, or a job names an unknown node or a node twice.
    """
    places: dict[str, int] = {}
    for number, node in enumerate(body.machine.nodes):
        if node.name in places:
            raise InvalidFieldError("Another node has this name.", f"machine.nodes.{number}.name")
        places[node.name] = number
    found = []
    for row, job in enumerate(body.running):
        names = job.nodes or []
        unknown = [name for name in names if name not in places]
        if unknown:
            raise refused(f"running.{row}", job, "nodes", f"runs on an unknown node {unknown[0]!r}")
        if len(set(names)) < len(names):
            raise refused(f"running.{row}", job, "nodes", "runs on one node twice")
        found.append(tuple(places[name] for name in names))
    return found


def check_processors(body: ForecastRequest, nodes: Sequence[tuple[int, ...]]) -> None:
    """Refuse jobs that do not fit on a dedicated machine.

    Raises:
        InvalidFieldError: it names the first job that does not fit, and the field.
    """
    total = free = body.machine.processors
    sizes = [node.cores for node in body.machine.nodes]
    cores = list(sizes)
    for row, (job, places) in enumerate(zip(body.running, nodes, strict=True)):
        path = f"running.{row}"
        free -= job.requested_processors
        if free < 0:
            raise refused(
                path, job, "requested_processors", "runs on more processors than were left"
            )
        # Its cores on each node are unknown: it may have filled its other nodes before.
        beyond = sum(sizes[place] for place in places) - job.requested_processors
        for place in places:
            cores[place] -= max(1, sizes[place] - beyond)
            if cores[place] < 0:
                raise refused(path, job, "nodes", "shares a core with another job")
    check_sizes(body, total)


def check_sizes(body: ForecastRequest, most: int) -> None:
    """Refuse waiting jobs that ask for more than ``most`` processors, or tasks on shared nodes."""
    for row, job in enumerate(body.waiting):
        if job.requested_processors > most:
            path = f"waiting.{row}"
            raise refused(path, job, "requested_processors", "is larger than the machine")


def node_cores(body: ForecastRequest, nodes: Sequence[tuple[int, ...]]) -> int | None:
    """Return the cores of each node, where jobs take whole nodes; else None.

    Raises:
        InvalidFieldError: nodes differ in size, or a running job does not have whole nodes.
    """
    if body.policy != "fcfs-pinned" or isinstance(body.machine, PoolBody):
        return None
    sizes = {node.cores for node in body.machine.nodes}
    if len(sizes) > 1:
        raise InvalidFieldError("Pinned jobs take nodes of one size.", "machine.nodes")
    size = sizes.pop()
    taken: set[int] = set()
    for row, (job, places) in enumerate(zip(body.running, nodes, strict=True)):
        if len(places) != ceil(job.requested_processors / size):
            complaint = "runs on another number of nodes than it needs"
            raise refused(f"running.{row}", job, "nodes", complaint)
        if not taken.isdisjoint(places):
            raise refused(f"running.{row}", job, "nodes", "shares a node with another job")
        taken.update(places)
    return size


def shared_queue(
    body: ForecastRequest, snapshot: QueueSnapshot, estimates: Sequence[RuntimeEstimate]
) -> SharedQueue:
    """Return the queue on its shared nodes.

    Raises:
        InvalidFieldError: the nodes are missing, or the jobs on them are impossible.
    """
    if isinstance(body.machine, PoolBody):
        raise InvalidFieldError("Policies of shared nodes need nodes.", "machine")
    nodes = [shared_node(number, node) for number, node in enumerate(body.machine.nodes)]
    mpl = 1 if body.policy == "basic" else body.machine.parallel_mpl
    policy = with_values(
        SHARED_POLICIES[body.policy], parallel_mpl=mpl, cpu_limit=body.machine.cpu_limit
    )
    check_tasks(body, snapshot, policy)
    check_sizes(body, len(nodes))
    idle, count = Cluster(nodes), len(body.running)
    rows = zip(body.waiting, snapshot.jobs[count:], estimates[count:], strict=True)
    for row, (job, live, estimate) in enumerate(rows):
        if not policy.can_ever_run(shared_job(live, estimate), idle):
            raise refused(f"waiting.{row}", job, "cpu_share", NO_ROOM)
    return SharedQueue(snapshot=snapshot, estimates=estimates, nodes=nodes, policy=policy)


def shared_node(number: int, node: NodeBody) -> Node:
    """Return a shared node with the load of local users."""
    return Node(
        number,
        local_tasks=node.local_tasks,
        local_cpu=node.local_cpu,
        memory=None if node.memory is None else int(node.memory),
        local_memory=ceil(node.local_memory),
    )


def check_tasks(body: ForecastRequest, snapshot: QueueSnapshot, policy: SharedPolicy) -> None:
    """Refuse running jobs that shared nodes cannot hold.

    Raises:
        InvalidFieldError: it names the job and the field.
    """
    running = list(zip(body.running, snapshot.jobs, strict=False))
    tasks = Counter(place for _, live in running for place in live.nodes)
    for row, (job, live) in enumerate(running):
        path = f"running.{row}"
        if len(live.nodes) != job.requested_processors:
            raise refused(path, job, "nodes", "runs on another number of nodes than it has tasks")
        if job.used_cpu_time is None:
            raise refused(path, job, "used_cpu_time", "has no used CPU time")
        if any(tasks[place] > policy.parallel_mpl for place in live.nodes):
            raise refused(path, job, "nodes", "shares a node with too many others")


def job_paths(body: ForecastRequest) -> Iterator[tuple[str, QueuedJobBody]]:
    """Yield all jobs with their paths in the body."""
    for field, jobs in (("running", body.running), ("waiting", body.waiting)):
        for row, job in enumerate(jobs):
            yield f"{field}.{row}", job


def refused(path: str, job: QueuedJobBody, field: str, complaint: str) -> InvalidFieldError:
    """Return the error for a field of a job."""
    return InvalidFieldError(f"Job {job.job_id} {complaint}.", f"{path}.{field}")


def job_answers(
    body: ForecastRequest,
    snapshot: QueueSnapshot,
    estimates: Sequence[RuntimeEstimate],
    played: PoolForecast,
) -> Iterator[JobForecastAnswer]:
    """Yield the forecasts of the jobs, in the order of the body."""
    now = snapshot.taken_at
    for row, job in enumerate(body.running):
        point = running_point(played, row, now, unix_seconds(job.start_time))
        yield job_answer(job, estimates[row], point, job.nodes)
    names = [node.name for node in body.machine.nodes]
    for row, waiting in enumerate(body.waiting):
        nodes = [names[place] for place in played.nodes[row]] if played.nodes and names else None
        estimate = estimates[len(body.running) + row]
        yield job_answer(waiting, estimate, waiting_point(played, row, now), nodes)


def job_answer(
    job: QueuedJobBody, estimate: RuntimeEstimate, point: ForecastPoint, nodes: list[str] | None
) -> JobForecastAnswer:
    """Return the forecast of one job."""
    submit = unix_seconds(job.submit_time)
    return JobForecastAnswer(
        job_id=job.job_id,
        state="running" if isinstance(job, RunningJobBody) else "waiting",
        basis=estimate.basis,
        predicted_walltime=round(point.end - point.start, 3),
        start_time=point.start,
        end_time=point.end,
        wait=round(point.start - submit, 3),
        turnaround=round(point.end - submit, 3),
        nodes=nodes,
        start_interval=bounds(point.start_interval),
        end_interval=bounds(point.end_interval),
    )
