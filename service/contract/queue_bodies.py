"""The JSON of a queue as it is handed over, and of a job that is not in it yet."""

from typing import Annotated, Literal

from msgspec.structs import replace
from pydantic import FailFast, Field

from predictors.jobs import Submission
from service.contract.bodies import RequestBody
from service.contract.fields import (
    LIVE_POLICIES,
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
from service.contract.forecast_bodies import Order
from service.queues.snapshot import JobState, LiveJob, Pool, Rules

MOST_POOLS = 1000
MOST_VARIANTS = 8
MOST_JOBS_SHOWN = 100_000

DedicatedPolicy = Annotated[str, OneOf(LIVE_POLICIES)]


class UnsubmittedJobBody(RequestBody):
    """A job that is in no queue yet. Only `requested_walltime` is required."""

    requested_walltime: PositiveDuration = Field(description="Seconds.")
    requested_processors: Processors = Field(1, description="Cores.")
    requested_memory: Kibibytes | None = Field(None, description="KiB per processor.")
    user: Text | None = Field(
        None, description="A token of scope self stands for its own user, and for no other."
    )
    group: Text | None = None
    project: Text | None = Field(None, description="Slurm account, PBS project.")
    queue: Text | None = Field(None, description="Slurm partition.")
    application: Text | None = Field(None, description="Job name or executable.")

    def submission(self, cluster: str, now: float) -> Submission:
        """The domain's word for it."""
        return Submission(
            requested_walltime=self.requested_walltime,
            submit_time=now,
            cluster=cluster,
            user=self.user,
            group=self.group,
            project=self.project,
            queue=self.queue,
            application=self.application,
            requested_processors=self.requested_processors,
            requested_memory=self.requested_memory,
        )


class LiveJobBody(UnsubmittedJobBody):
    """A job of the queue."""

    job_id: JobId
    submit_time: Time

    def asked(self, cluster: str) -> Submission:
        """The submission as it was."""
        asked = self.submission(cluster, unix_seconds(self.submit_time))
        return replace(asked, job_id=str(self.job_id))


class LiveRunningBody(LiveJobBody):
    """A running job."""

    start_time: Time

    def live(self, cluster: str) -> LiveJob:
        """The domain's word for it."""
        return LiveJob(
            submission=self.asked(cluster),
            state=JobState.RUNNING,
            start_time=unix_seconds(self.start_time),
        )


class LiveWaitingBody(LiveJobBody):
    """A waiting job."""

    held: bool = Field(
        default=False, description="Whether it waits for something else than its turn."
    )
    reason: Text | None = Field(
        None, description="Why it waits, in the resource manager's word, such as Dependency."
    )

    def live(self, cluster: str) -> LiveJob:
        """The domain's word for it."""
        return LiveJob(
            submission=self.asked(cluster),
            state=JobState.HELD if self.held else JobState.WAITING,
            reason=self.reason,
        )


class QueuePoolBody(RequestBody):
    """Processors that serve these queues, and nothing else does."""

    processors: Processors = Field(description="Those that can run jobs.")
    queues: list[Text] = Field(
        [], description="Queues that they serve; a queue that none names is served by the first."
    )

    def pool(self) -> Pool:
        """The domain's word for it."""
        return Pool(processors=self.processors, queues=tuple(self.queues))


class QueueBody(RequestBody):
    """The queue and the machine of a cluster as its resource manager shows them."""

    taken_at: Time | None = Field(None, description="Default: the service's clock.")
    pools: Annotated[list[QueuePoolBody], Field(min_length=1, max_length=MOST_POOLS)] = Field(
        description="The machine: one pool, or several that share no processors."
    )
    policy: DedicatedPolicy = "easy"
    plans_by: Literal["requests", "predictions"] = Field(
        "requests", description="Runtimes that the scheduler assumes."
    )
    order: Order = Field("fcfs", description="fcfs is the order of `waiting`.")
    depth: Annotated[int, Whole(1, 2**31)] = Field(1, description="Reservations under EASY.")
    running: Annotated[list[LiveRunningBody], FailFast()] = Field([], description="In any order.")
    waiting: Annotated[list[LiveWaitingBody], FailFast()] = Field(
        [], description="In the order in which the scheduler serves them."
    )

    def rules(self) -> Rules:
        """The domain's word for how the scheduler works."""
        return Rules(policy=self.policy, plans_by=self.plans_by, order=self.order, depth=self.depth)


class VariantBody(RequestBody):
    """What would be asked for instead; what is left out stays as it is in the submission."""

    requested_walltime: PositiveDuration | None = Field(None, description="Seconds.")
    requested_processors: Processors | None = Field(None, description="Cores.")
    queue: Text | None = Field(None, description="Slurm partition.")


class WhatIfRequest(RequestBody):
    """A job that is not in the queue, and other ways to ask for it."""

    submission: UnsubmittedJobBody
    variants: Annotated[list[VariantBody], Field(max_length=MOST_VARIANTS)] = Field(
        [], description="Other requests for the same job."
    )
    share: Annotated[float, Field(ge=0.5, le=0.99, allow_inf_nan=False)] = Field(
        0.95, description="Share of the runs like it that the suggested request should hold."
    )
    method: Method | None = Field(None, description="The service's default, if it is left out.")
    explain: bool = Field(
        default=False, description="Whether the runs of the same user that weigh most are wanted."
    )


class QueueQuery(RequestBody):
    """Which jobs of a queue are shown."""

    user: Text | None = Field(None, description="Only this user's jobs.")
    queue: Text | None = Field(None, description="Only the jobs of this queue.")
    state: Literal["running", "waiting", "held"] | None = Field(
        None, description="Only the jobs in this state."
    )
    # A query has texts for numbers.
    limit: Annotated[int, Field(ge=0, le=MOST_JOBS_SHOWN, strict=False)] = Field(
        1000, description="Most jobs that are shown."
    )
    offset: Annotated[int, Field(ge=0, le=MOST_JOBS_SHOWN, strict=False)] = Field(
        0, description="Jobs that are left out before the first one shown."
    )
