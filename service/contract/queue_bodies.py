"""The JSON of queues: handed over by a resource manager, or posted for one forecast."""

from typing import Annotated, Literal

from msgspec import convert
from msgspec.structs import replace
from pydantic import FailFast, Field

from predictors.jobs import DEFAULT_CLUSTER, LONGEST, MOST_MEMORY, Submission
from service.contract.bodies import AskedNodesBody, FactsBody, JobBody, RequestBody
from service.contract.fields import (
    LIVE_POLICIES,
    Duration,
    ErrorSentence,
    Gpus,
    JobId,
    Kibibytes,
    Method,
    OneOf,
    PositiveDuration,
    Processors,
    Text,
    Time,
    Whole,
    unix_seconds,
)
from service.live_queue.snapshot import JobState, LiveJob, Pool, SchedulerRules, SharedUse
from service.live_queue.taken_processors import QueueNodes
from simulator.engine.machine import CORRECTION_NUMBERS
from simulator.engine.policies.conservative import COMPRESSIONS
from simulator.engine.policies.pinning import PINNED
from simulator.engine.queue_orders import ORDERS
from simulator.shared_nodes.cluster import SHORTEST_EXECUTION
from simulator.shared_nodes.pace import REMAINING_TIMES, USED_CPU_TIMES
from simulator.shared_nodes.policies import CPU_LIMIT, PARALLEL_MPL, SHARED_POLICIES

MOST_POOLS = 1000
MOST_VARIANTS = 8
MOST_JOBS_SHOWN = 100_000
MOST_SAMPLES = 200

DedicatedPolicy = Annotated[str, OneOf(LIVE_POLICIES)]
PolicyName = Annotated[str, OneOf((*LIVE_POLICIES, "fcfs-pinned", *SHARED_POLICIES))]
OrderName = Annotated[str, OneOf(tuple(ORDERS))]
Compression = Annotated[str, OneOf(tuple(COMPRESSIONS))]
Pinned = Annotated[str, OneOf(tuple(PINNED))]
CorrectionName = Annotated[str, OneOf(tuple(CORRECTION_NUMBERS))]
RemainingTimeName = Annotated[str, OneOf(tuple(REMAINING_TIMES))]
CpuTimeName = Annotated[str, OneOf(tuple(USED_CPU_TIMES))]
ExecutionTime = Annotated[float, Field(ge=SHORTEST_EXECUTION, le=LONGEST)]
CpuShare = Annotated[float, Field(ge=0.001, le=1, allow_inf_nan=False)]


class UnsubmittedJobBody(JobBody):
    """The fields of a job that a queue needs."""

    requested_processors: Processors = Field(1, description="Cores.")
    user: Text | None = Field(
        None, description="A token of scope self stands for its own user, and for no other."
    )


class LiveJobBody(UnsubmittedJobBody):
    """A job of the queue."""

    job_id: JobId
    submit_time: Time
    prediction_id: Text | None = Field(
        None, description="Id of the prediction at its submission, whose facts count for the job."
    )
    array: Text | None = Field(None, description="Id of the array that the job is a task of.")
    array_limit: Annotated[int, Whole(1, 2**31)] | None = Field(
        None, description="Most tasks of the array that run at once; the others wait for these."
    )

    def submission(self, cluster: str) -> Submission:
        """Return the job as it was submitted."""
        return self.submitted(cluster, unix_seconds(self.submit_time), self.job_id)


class SnapshotJobBody(AskedNodesBody, LiveJobBody):
    """A job of a snapshot."""

    gpus: Gpus = Field(0, description="GPUs of the whole job; see `per_gpu` of `queue_nodes`.")


class LiveRunningBody(SnapshotJobBody):
    """A running job."""

    start_time: Time

    def live(self, cluster: str) -> LiveJob:
        """Return the job of a snapshot."""
        return LiveJob(
            submission=self.submission(cluster),
            state=JobState.RUNNING,
            start_time=unix_seconds(self.start_time),
            prediction_id=self.prediction_id,
            array=self.array,
            array_limit=self.array_limit,
        )


class LiveWaitingBody(SnapshotJobBody):
    """A waiting job."""

    held: bool = Field(
        default=False, description="Whether it waits for something else than its turn."
    )
    reason: Text | None = Field(
        None, description="Reason of the wait, in the resource manager's word, such as Dependency."
    )
    scheduler_start: Time | None = Field(
        None, description="Start that the scheduler plans itself, if it shows one."
    )

    def live(self, cluster: str) -> LiveJob:
        """Return the job of a snapshot."""
        return LiveJob(
            submission=self.submission(cluster),
            state=JobState.HELD if self.held else JobState.WAITING,
            reason=self.reason,
            prediction_id=self.prediction_id,
            array=self.array,
            array_limit=self.array_limit,
            scheduler_start=None
            if self.scheduler_start is None
            else unix_seconds(self.scheduler_start),
        )


class QueuePoolBody(RequestBody):
    """Processors that serve these queues alone."""

    processors: Processors = Field(description="Number of processors that can run jobs.")
    queues: list[Text] = Field(
        [], description="Queues that they serve; a queue that no pool names is served by the first."
    )

    def pool(self) -> Pool:
        """Return the pool of a snapshot."""
        return Pool(processors=self.processors, queues=tuple(self.queues))


class QueueNodesBody(RequestBody):
    """The nodes of a queue, as its jobs take them."""

    queue: Text | None = Field(
        None, description="Name of the queue; left out: every queue that has no nodes of its own."
    )
    processors: Processors = Field(description="Processors of one node.")
    unit: Processors = Field(
        1, description="Processors of the smallest part that a job gets, such as a core's threads."
    )
    whole: bool = Field(default=False, description="Whether every job takes whole nodes.")
    longest: PositiveDuration | None = Field(
        None, description="Largest limit of a job in seconds (MaxTime); left out: none."
    )
    per_gpu: Gpus = Field(
        0,
        description="Processors of a node for each of its GPUs: a job is played with at least so "
        "many for each GPU that it has.",
    )

    def nodes(self) -> QueueNodes:
        """Return the nodes of a snapshot, whose fields have the same names."""
        return convert(self, QueueNodes, from_attributes=True)


class SchedulerBody(RequestBody):
    """The rules of a scheduler, by which a queue is played."""

    plans_by: Literal["requests", "predictions"] = Field(
        "requests", description="Runtimes that the scheduler assumes; jobs end as predicted."
    )
    order: OrderName = Field("fcfs", description="fcfs is the order of `waiting`.")
    depth: Annotated[int, Whole(1, 2**31)] = Field(1, description="Reservations under EASY.")

    def rules(self) -> SchedulerRules:
        """Return the rules of a snapshot, whose fields have the same names."""
        return convert(self, SchedulerRules, from_attributes=True)


class QueueBody(SchedulerBody):
    """The queue and the machine of a cluster as its resource manager shows them."""

    taken_at: Time | None = Field(None, description="Default: the service's clock.")
    pools: Annotated[list[QueuePoolBody], Field(min_length=1, max_length=MOST_POOLS)] = Field(
        description="The machine: one pool, or several that share no processors."
    )
    queue_nodes: Annotated[list[QueueNodesBody], Field(max_length=MOST_POOLS)] = Field(
        [],
        description="Nodes of queues: waiting jobs, and jobs that are predicted, count with the "
        "processors that they will take there.",
    )
    policy: DedicatedPolicy = "easy"
    planning_depth: Annotated[int, Whole(1, 2**31)] | None = Field(
        None,
        description="Waiting jobs that the scheduler plans (Slurm's bf_max_job_test); jobs behind "
        "them have no forecast yet. Default: all.",
    )
    planning_window: Annotated[int, Whole(1, 2**31)] | None = Field(
        None,
        description="Seconds in which the scheduler plans starts (Slurm's bf_window); jobs that "
        "would start later are marked. Default: without end.",
    )
    running: Annotated[list[LiveRunningBody], FailFast()] = Field([], description="In any order.")
    waiting: Annotated[list[LiveWaitingBody], FailFast()] = Field(
        [], description="In the order in which the scheduler serves them."
    )


class NodeBody(RequestBody):
    """A node; its local load matters on shared nodes only."""

    name: Text = Field(description="Name of the node.")
    cores: Processors = Field(1, description="Cores of the node; 1 on shared nodes.")
    local_tasks: Annotated[int, Whole(0, 10_000)] = Field(
        0, description="Number of tasks of local users."
    )
    local_cpu: Annotated[float, Field(ge=0, le=10_000, allow_inf_nan=False)] = Field(
        0.0, description="CPUs that local users need."
    )
    memory: Kibibytes | None = Field(
        None, description="Shared nodes: KiB that the node has; tasks wait until theirs are left."
    )
    local_memory: Annotated[float, Field(ge=0, le=MOST_MEMORY, allow_inf_nan=False)] = Field(
        0.0, description="KiB of these that local users take."
    )


class PoolBody(RequestBody):
    """A machine whose processors are only counted."""

    processors: Processors = Field(description="Number of processors of the machine.")

    @property
    def nodes(self) -> list[NodeBody]:
        """Return no nodes."""
        return []


class NodesBody(RequestBody):
    """A machine of named nodes, which the policies of shared nodes need."""

    nodes: Annotated[list[NodeBody], FailFast(), Field(min_length=1)] = Field(
        description="The nodes."
    )
    parallel_mpl: Annotated[int, Whole(1, 64)] = Field(
        PARALLEL_MPL, description="Most parallel tasks of a shared node; 1 under basic."
    )
    cpu_limit: Annotated[float, Field(ge=0.01, le=10_000, allow_inf_nan=False)] = Field(
        CPU_LIMIT,
        description="Most CPUs wanted of a shared node, local users' included, with a new task.",
    )

    @property
    def processors(self) -> int:
        """Return the number of cores of all nodes."""
        return sum(node.cores for node in self.nodes)


MachineBody = Annotated[
    PoolBody | NodesBody, ErrorSentence("Input should be a number of processors or a list of nodes")
]


class QueuedJobBody(LiveJobBody):
    """A waiting job.

    On shared nodes `requested_processors` is its number of tasks, one to a node.
    """

    predicted_walltime: PositiveDuration | None = Field(
        None, description="Prediction at the job's submission; default: predicted now."
    )
    execution_time: ExecutionTime | None = Field(
        None, description="Shared nodes: seconds in isolation; default: as predicted."
    )
    cpu_share: CpuShare | None = Field(
        None,
        description="Shared nodes: share of a CPU that each task uses in isolation; default: 1.",
    )

    def live(self, cluster: str, *, is_shared: bool) -> LiveJob:
        """Return the job of a snapshot, without its nodes, on shared or on dedicated nodes."""
        share = 1.0 if self.cpu_share is None else self.cpu_share
        use = SharedUse(execution_time=self.execution_time, cpu_share=share)
        return LiveJob(
            submission=self.submission(cluster),
            state=JobState.WAITING,
            predicted_walltime=self.predicted_walltime,
            shared_use=use if is_shared else None,
            array=self.array,
            array_limit=self.array_limit,
        )


class RunningJobBody(QueuedJobBody):
    """A running job."""

    start_time: Time
    nodes: list[Text] | None = Field(
        None, description="Nodes of the job; required on shared nodes."
    )
    used_cpu_time: Duration | None = Field(
        None, description="Shared nodes: CPU seconds that each task has used."
    )

    def live(self, cluster: str, *, is_shared: bool) -> LiveJob:
        """Return the job of a snapshot, without its nodes, on shared or on dedicated nodes."""
        job = super().live(cluster, is_shared=is_shared)
        use = job.shared_use
        if use is not None:
            use = replace(use, used_cpu_time=self.used_cpu_time or 0.0)
        start = unix_seconds(self.start_time)
        return replace(job, state=JobState.RUNNING, start_time=start, shared_use=use)


class ForecastRequest(SchedulerBody):
    """A queue as the resource manager sees it, and the rules of its scheduler."""

    cluster: Text = Field(DEFAULT_CLUSTER, description="Cluster whose history predicts the jobs.")
    now: Time | None = Field(None, description="Default: the service's clock.")
    method: Method | None = Field(None, description="Method that predicts; default: the service's.")
    machine: MachineBody = Field(description="The processors, or the nodes, on which the jobs run.")
    policy: PolicyName
    compression: Compression = Field(
        "start-order",
        description="Order in which plans are made anew under conservative, when a job ends early.",
    )
    correction: CorrectionName = Field(
        "double", description="How the estimate of a job grows that outlived it."
    )
    pinning: Annotated[int, Whole(0, 10**9)] = Field(
        0, description="fcfs-pinned: seconds before the start in which a job keeps its nodes."
    )
    pinned: Pinned = Field("nodes", description="What pinned jobs keep; start: their start too.")
    remaining_time: RemainingTimeName = Field("cpu", description="Formula for shared nodes.")
    cpu_time: CpuTimeName = Field("cpu", description="Formula for shared nodes.")
    samples: Annotated[int, Whole(0, MOST_SAMPLES)] | None = Field(
        None, description="Number of futures for the intervals; default: the service's setting."
    )
    running: Annotated[list[RunningJobBody], FailFast()] = Field([], description="In any order.")
    waiting: Annotated[list[QueuedJobBody], FailFast()] = Field(
        [], description="In the order of their submission."
    )


class VariantBody(RequestBody):
    """Another request; a field that is left out stays as it is in the submission."""

    requested_walltime: PositiveDuration | None = Field(None, description="Seconds.")
    requested_processors: Processors | None = Field(None, description="Cores.")
    queue: Text | None = Field(None, description="Slurm partition.")


class UnqueuedJobBody(FactsBody, AskedNodesBody, UnsubmittedJobBody):
    """A job that is in no queue yet. Only `requested_walltime` is required."""


class WhatIfRequest(RequestBody):
    """A job that is not in the queue, and other requests for it."""

    submission: UnqueuedJobBody = Field(description="The job as it is written.")
    variants: Annotated[list[VariantBody], Field(max_length=MOST_VARIANTS)] = Field(
        [], description="Other requests for the same job."
    )
    share: Annotated[float, Field(ge=0.5, le=0.99, allow_inf_nan=False)] = Field(
        0.95, description="Share of the like runs that should end within the suggested request."
    )
    method: Method | None = Field(None, description="The service's default, if it is left out.")
    explain: bool = Field(
        default=False, description="Whether to answer the runs of the same user that weigh most."
    )


class AtRiskQuery(RequestBody):
    """The running jobs that are looked at."""

    used: Annotated[float, Field(ge=0, le=1, strict=False, allow_inf_nan=False)] = Field(
        0.8, description="Least share of their limits that they have run for."
    )
    probability: Annotated[float, Field(ge=0, le=1, strict=False, allow_inf_nan=False)] | None = (
        Field(
            None,
            description="Least probability of ending at the limit; default: the setting "
            "`running_warning_probability`.",
        )
    )


class QueueQuery(RequestBody):
    """The jobs of a queue to show."""

    user: Text | None = Field(None, description="Only this user's jobs.")
    queue: Text | None = Field(None, description="Only the jobs of this queue.")
    state: Literal["running", "waiting", "held"] | None = Field(
        None, description="Only the jobs in this state."
    )
    sort: Literal["running-first", "waiting-first", "start", "end", "processors"] = Field(
        "running-first", description="Order of the jobs; the largest number of processors first."
    )
    # A query has texts for numbers.
    limit: Annotated[int, Field(ge=0, le=MOST_JOBS_SHOWN, strict=False)] = Field(
        1000, description="Most jobs in the answer."
    )
    offset: Annotated[int, Field(ge=0, le=MOST_JOBS_SHOWN, strict=False)] = Field(
        0, description="Number of jobs that are skipped before the first one."
    )
