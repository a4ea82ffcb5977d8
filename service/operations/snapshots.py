"""A queue as it was sent becomes one that can be played, or is refused."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import TypeVar

import numpy as np

from predictors.jobs import DEFAULT_CLUSTER
from service.contract.fields import unix_seconds
from service.contract.forecast_bodies import (
    ForecastRequest,
    MachineBody,
    NodeBody,
    NodesBody,
    PoolBody,
    QueuedJobBody,
    RunningJobBody,
)
from service.errors import InvalidFieldError
from simulator.engine.state import whole_seconds
from simulator.scheduling.forecast import QueuedJobs, Snapshot, running_runtime
from simulator.shared_nodes.cluster import Cluster, Node
from simulator.shared_nodes.jobs import SHORTEST_EXECUTION, RunningJob, SharedJob
from simulator.shared_nodes.policies import SHARED_POLICIES, SharedPolicy
from simulator.traces.trace import Integers

AnyJob = TypeVar("AnyJob", bound=QueuedJobBody)

JobName = str | int


def check_queue(body: ForecastRequest, now: float) -> None:
    """Refuse what no queue can be.

    Raises:
        InvalidFieldError: it names the job and the field.
    """
    seen: set[str] = set()
    for path, job in [*_named("running", body.running), *_named("waiting", body.waiting)]:
        if str(job.job_id) in seen:
            raise InvalidFieldError(f"Job {job.job_id} is in the queue twice.", f"{path}.job_id")
        seen.add(str(job.job_id))
        if job.cluster not in {body.cluster, DEFAULT_CLUSTER}:
            raise _refusal(job, path, "cluster", "is of another cluster than the queue")
        if unix_seconds(job.submit_time) > now:
            raise _refusal(job, path, "submit_time", "was submitted in the future")
    for path, job in _named("running", body.running):
        start = unix_seconds(job.start_time)
        if start > now:
            raise _refusal(job, path, "start_time", "was started in the future")
        if start < unix_seconds(job.submit_time):
            raise _refusal(job, path, "start_time", "was started before it was submitted")


def processors_of(machine: MachineBody) -> int:
    """The number of processors and nodes."""
    if isinstance(machine, PoolBody):
        return machine.processors
    return sum(node.cores for node in machine.nodes)


def nodes_of(machine: MachineBody) -> list[NodeBody]:
    """The nodes, where they have names."""
    return [] if isinstance(machine, PoolBody) else machine.nodes


def check_room(body: ForecastRequest) -> None:
    """Refuse jobs that do not fit on a dedicated machine.

    Raises:
        InvalidFieldError: it names the first job that does not, and the field.
    """
    processors = processors_of(body.machine)
    numbers = node_numbers(body.machine)
    sizes = [node.cores for node in nodes_of(body.machine)]
    cores, free = list(sizes), processors
    for path, job in _named("running", body.running):
        free -= job.requested_processors
        if free < 0:
            raise _refusal(
                job, path, "requested_processors", "runs on more processors than were left"
            )
        on_nodes = numbers_of(job, path, numbers)
        # It may have filled the other nodes before: nobody says how many cores it has on each.
        beyond = sum(sizes[number] for number in on_nodes) - job.requested_processors
        for number in on_nodes:
            cores[number] -= max(1, sizes[number] - beyond)
            if cores[number] < 0:
                raise _refusal(job, path, "nodes", "shares a core with another job")
    for path, waiting in _named("waiting", body.waiting):
        if waiting.requested_processors > processors:
            raise _refusal(waiting, path, "requested_processors", "is larger than the machine")


def node_numbers(machine: MachineBody) -> dict[str, int]:
    """The places of the nodes by name.

    Raises:
        InvalidFieldError: two nodes have the same name.
    """
    numbers: dict[str, int] = {}
    for number, node in enumerate(nodes_of(machine)):
        if node.name in numbers:
            raise InvalidFieldError("Another node has this name.", f"machine.nodes.{number}.name")
        numbers[node.name] = number
    return numbers


def numbers_of(job: RunningJobBody, path: str, numbers: dict[str, int]) -> list[int]:
    """The places of the nodes of a job, if it says which they are."""
    unknown = [name for name in job.nodes or () if name not in numbers]
    if unknown:
        raise _refusal(job, path, "nodes", f"runs on a node {unknown[0]!r} that there is not")
    if len(set(job.nodes or ())) < len(job.nodes or ()):
        raise _refusal(job, path, "nodes", "runs on one node twice")
    return [numbers[name] for name in job.nodes or ()]


@dataclass(frozen=True, slots=True)
class JobEstimate:
    """What the service itself says of a job.

    Attributes:
        runtime: predicted at its submission, in seconds, at most the request.
        priority: of its user's accuracy group.
        ladder: runtimes at the levels ``LADDER``, in seconds, by what has ended until now; of a
            running job those of jobs that ran as long; None where the method tells none.
    """

    runtime: float
    priority: float
    ladder: Sequence[float] | None = None


JobEstimates = Mapping[JobName, JobEstimate]
"""The parts of the body, by job id."""


def dedicated(body: ForecastRequest, now: float, estimates: JobEstimates) -> Snapshot:
    """Columns for the engine, from a queue that ``check_queue`` has seen.

    Raises:
        InvalidFieldError: it does not fit on the machine.
    """
    check_room(body)

    def runtime(job: RunningJobBody, estimate: int, elapsed: int) -> int:
        return running_runtime(estimate, ceil(job.requested_walltime), elapsed, body.correction)

    elapsed = [int(now - unix_seconds(job.start_time)) for job in body.running]
    waited = [int(now - unix_seconds(job.submit_time)) for job in body.waiting]
    size = cores_of_a_node(body)
    everybody = dict.fromkeys(map(owner_of, (*body.running, *body.waiting)))
    owners = {owner: number for number, owner in enumerate(everybody)}
    running = _columns(body.running, elapsed, estimates, size, owners)
    remaining = map(runtime, body.running, running.estimate.tolist(), elapsed)
    return Snapshot(
        processors=processors_of(body.machine) // size,
        running=replace(running, runtime=_whole(list(remaining))),
        waiting=_columns(body.waiting, waited, estimates, size, owners),
        running_nodes=_running_nodes(body) if names_nodes(body) else None,
    )


def names_nodes(body: ForecastRequest) -> bool:
    """Whether jobs take whole nodes of a dedicated machine, which are forecast too."""
    return body.policy == "fcfs-pinned" and isinstance(body.machine, NodesBody)


def cores_of_a_node(body: ForecastRequest) -> int:
    """How many processors are taken at once: a whole node's, or one.

    Raises:
        InvalidFieldError: whole nodes are taken, but they differ in size.
    """
    if not names_nodes(body):
        return 1
    sizes = {node.cores for node in nodes_of(body.machine)}
    if len(sizes) > 1:
        raise InvalidFieldError("Pinned jobs take nodes of one size.", "machine.nodes")
    return sizes.pop()


def _running_nodes(body: ForecastRequest) -> list[list[int]]:
    """The places of the nodes of the running jobs, which have them to themselves."""
    numbers, size = node_numbers(body.machine), cores_of_a_node(body)
    taken: set[int] = set()
    found = []
    for path, job in _named("running", body.running):
        places = numbers_of(job, path, numbers)
        if len(places) != ceil(job.requested_processors / size):
            raise _refusal(job, path, "nodes", "runs on another number of nodes than it needs")
        if not taken.isdisjoint(places):
            raise _refusal(job, path, "nodes", "shares a node with another job")
        taken.update(places)
        found.append(places)
    return found


def owner_of(job: QueuedJobBody) -> str:
    """The job's user; a job without a user is its own owner."""
    return f"job {job.job_id}" if job.user is None else f"user {job.user}"


def _columns(
    jobs: Sequence[QueuedJobBody],
    ages: Sequence[int],
    estimates: JobEstimates,
    size: int,
    owners: Mapping[str, int],
) -> QueuedJobs:
    """The jobs with their predicted runtimes; ``size`` processors are taken at a time."""
    runtimes = _whole([whole_seconds(estimates[job.job_id].runtime) for job in jobs])
    return QueuedJobs(
        processors=_whole([ceil(job.requested_processors / size) for job in jobs]),
        request=_whole([ceil(job.requested_walltime) for job in jobs]),
        estimate=runtimes,
        runtime=runtimes,
        age=_whole(ages),
        priority=np.array([estimates[job.job_id].priority for job in jobs]),
        owner=_whole([owners[owner_of(job)] for job in jobs]),
    )


def _whole(values: Sequence[int]) -> Integers:
    return np.array(values, dtype=np.int64)


def shared(
    body: ForecastRequest, now: float, estimates: JobEstimates
) -> tuple[Cluster, list[SharedJob]]:
    """The cluster and the queue of a non-dedicated machine; as ``dedicated`` otherwise.

    Raises:
        InvalidFieldError: the nodes are missing, or what runs on them cannot be.
    """
    machine = body.machine
    if isinstance(machine, PoolBody):
        raise InvalidFieldError("Policies of shared nodes need nodes.", "machine")
    numbers, rules = node_numbers(machine), shared_rules(body)
    nodes = [
        Node(
            number,
            local_tasks=node.local_tasks,
            local_cpu=node.local_cpu,
            memory=None if node.memory is None else int(node.memory),
            local_memory=ceil(node.local_memory),
        )
        for number, node in enumerate(machine.nodes)
    ]
    runs = [
        _run(path, job, shared_job(job, estimates[job.job_id]), numbers, now)
        for path, job in _named("running", body.running)
    ]
    crowd = Counter(number for run in runs for number in run.nodes)
    for (path, job), run in zip(_named("running", body.running), runs, strict=True):
        if any(crowd[number] > rules.parallel_mpl for number in run.nodes):
            raise _refusal(job, path, "nodes", "shares a node with too many others")
    idle, waiting = Cluster(nodes), []
    for path, queued in _named("waiting", body.waiting):
        waiting.append(shared_job(queued, estimates[queued.job_id]))
        if queued.requested_processors > len(nodes):
            raise _refusal(queued, path, "requested_processors", "is larger than the machine")
        if not rules.can_ever_run(waiting[-1], idle):
            raise _refusal(queued, path, "cpu_share", NO_ROOM)
    return Cluster(nodes, runs), waiting


NO_ROOM = "wants more CPU or memory than local users leave it on enough nodes"


def shared_rules(body: ForecastRequest) -> SharedPolicy:
    """The policy of shared nodes, as the machine limits it."""
    policy = SHARED_POLICIES[body.policy]
    if isinstance(body.machine, PoolBody):
        return policy
    most = 1 if body.policy == "basic" else body.machine.parallel_mpl
    return replace(policy, parallel_mpl=most, cpu_limit=body.machine.cpu_limit)


def shared_job(job: QueuedJobBody, estimate: JobEstimate) -> SharedJob:
    """The job as it was characterised, by its prediction where it was not."""
    alone = job.execution_time or max(SHORTEST_EXECUTION, estimate.runtime)
    return SharedJob(
        job_id=str(job.job_id),
        tasks=job.requested_processors,
        execution_time=alone,
        cpu_share=1.0 if job.cpu_share is None else job.cpu_share,
        memory=ceil(job.requested_memory or 0),
        predicted_runtime=estimate.runtime,
        requested_walltime=job.requested_walltime,
    )


def _run(
    path: str, job: RunningJobBody, shared: SharedJob, numbers: dict[str, int], now: float
) -> RunningJob:
    places = numbers_of(job, path, numbers)
    if len(places) != job.requested_processors:
        raise _refusal(job, path, "nodes", "runs on another number of nodes than it has tasks")
    if job.used_cpu_time is None:
        raise _refusal(job, path, "used_cpu_time", "does not say what CPU time it has used")
    elapsed = now - unix_seconds(job.start_time)
    return RunningJob(job=shared, nodes=tuple(places), elapsed=elapsed, cpu_time=job.used_cpu_time)


def _named(kind: str, jobs: Sequence[AnyJob]) -> list[tuple[str, AnyJob]]:
    """The jobs with their paths in the body."""
    return [(f"{kind}.{place}", job) for place, job in enumerate(jobs)]


def _refusal(job: QueuedJobBody, path: str, field: str, complaint: str) -> InvalidFieldError:
    return InvalidFieldError(f"Job {job.job_id} {complaint}.", f"{path}.{field}")
