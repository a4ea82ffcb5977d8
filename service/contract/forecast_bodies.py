"""The JSON of a queue to be played forward."""

from typing import Annotated, Literal

from msgspec.structs import replace
from pydantic import FailFast, Field

from predictors.jobs import DEFAULT_CLUSTER, LONGEST, MOST_MEMORY, Submission
from service.contract.bodies import RequestBody, SubmissionBody
from service.contract.fields import (
    LIVE_POLICIES,
    Complaint,
    Duration,
    JobId,
    Kibibytes,
    OneOf,
    PositiveDuration,
    Processors,
    Text,
    Time,
    Whole,
)
from service.contract.fields import Method as MethodName
from simulator.engine.corrections import CORRECTION_NUMBERS
from simulator.engine.policies.conservative import COMPRESSIONS
from simulator.engine.policies.pinning import PINNED
from simulator.engine.queue_orders import ORDERS
from simulator.shared_nodes.formulas import REMAINING_TIMES, USED_CPU_TIMES
from simulator.shared_nodes.jobs import SHORTEST_EXECUTION
from simulator.shared_nodes.policies import CPU_LIMIT, PARALLEL_MPL, SHARED_POLICIES

MOST_SAMPLES = 200

ExecutionTime = Annotated[float, Field(ge=SHORTEST_EXECUTION, le=LONGEST)]
CpuShare = Annotated[float, Field(ge=0.001, le=1, allow_inf_nan=False)]


Policy = Annotated[str, OneOf((*LIVE_POLICIES, "fcfs-pinned", *SHARED_POLICIES))]
Order = Annotated[str, OneOf(tuple(ORDERS))]
Compression = Annotated[str, OneOf(tuple(COMPRESSIONS))]
Pinned = Annotated[str, OneOf(tuple(PINNED))]
CorrectionName = Annotated[str, OneOf(tuple(CORRECTION_NUMBERS))]
RemainingTimeName = Annotated[str, OneOf(tuple(REMAINING_TIMES))]
CpuTimeName = Annotated[str, OneOf(tuple(USED_CPU_TIMES))]


class NodeBody(RequestBody):
    """A node; its local load matters on shared nodes only."""

    name: Text
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

    processors: Processors


class NodesBody(RequestBody):
    """A machine of named nodes, which the policies of shared nodes need."""

    nodes: Annotated[list[NodeBody], FailFast(), Field(min_length=1)]
    parallel_mpl: Annotated[int, Whole(1, 64)] = Field(
        PARALLEL_MPL, description="Most parallel tasks of a shared node; 1 under basic."
    )
    cpu_limit: Annotated[float, Field(ge=0.01, le=10_000, allow_inf_nan=False)] = Field(
        CPU_LIMIT,
        description="Most CPUs wanted of a shared node, local users' included, with a new task.",
    )


MachineBody = Annotated[
    PoolBody | NodesBody, Complaint("Input should be a number of processors or a list of nodes")
]


class QueuedJobBody(SubmissionBody):
    """A waiting job.

    On shared nodes `requested_processors` is its number of tasks, one to a node.
    """

    job_id: JobId
    submit_time: Time
    requested_processors: Processors = Field(1, description="Cores.")
    predicted_walltime: PositiveDuration | None = Field(
        None, description="Prediction at the job's submission; default: predicted now."
    )
    execution_time: ExecutionTime | None = Field(
        None,
        description="Shared nodes: seconds in isolation; default: as predicted.",
    )
    cpu_share: CpuShare | None = Field(
        None,
        description="Shared nodes: share of a CPU that each task uses in isolation; default: 1.",
    )

    def within(self, cluster: str) -> Submission:
        """The domain's word for it, as a job of the queue's cluster."""
        return replace(self.submission(0.0), cluster=cluster)


class RunningJobBody(QueuedJobBody):
    """A running job."""

    start_time: Time
    nodes: list[Text] | None = Field(
        None, description="Nodes of the job; required on shared nodes."
    )
    used_cpu_time: Duration | None = Field(
        None, description="Shared nodes: CPU seconds that each task has used."
    )


class ForecastRequest(RequestBody):
    """A queue as the resource manager sees it, and the rules of its scheduler."""

    cluster: Text = Field(DEFAULT_CLUSTER, description="Cluster whose history predicts the jobs.")
    now: Time | None = Field(None, description="Default: the service's clock.")
    method: MethodName | None = Field(
        None, description="Method that predicts; default: the service's."
    )
    machine: MachineBody
    policy: Policy
    plans_by: Literal["requests", "predictions"] = Field(
        "requests", description="Runtimes that the scheduler assumes; jobs end as predicted."
    )
    order: Order = "fcfs"
    depth: Annotated[int, Whole(1, 2**31)] = Field(1, description="Reservations under EASY.")
    compression: Compression = "start-order"
    correction: CorrectionName = "double"
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
