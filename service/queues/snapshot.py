"""A queue as its resource manager shows it: the machine, and the jobs that run or wait."""

from enum import StrEnum

from msgspec import Struct

from predictors.jobs import Submission


class JobState(StrEnum):
    """Where a job is. One that is held waits for somebody or something, and not for its turn."""

    RUNNING = "running"
    WAITING = "waiting"
    HELD = "held"


class Pool(Struct, frozen=True, kw_only=True):
    """Processors that serve some queues, and no other pool's.

    Attributes:
        processors: how many can run jobs.
        queues: names of the queues; those that no pool names are served by the first.
    """

    processors: int
    queues: tuple[str, ...] = ()


class LiveJob(Struct, frozen=True, kw_only=True, gc=False):
    """A job that runs or waits.

    Attributes:
        submission: as it is; the job id is known.
        state: where it is.
        start_time: Unix seconds; None before the start.
        reason: why it waits, in the resource manager's word.
    """

    submission: Submission
    state: JobState
    start_time: float | None = None
    reason: str | None = None

    @property
    def job_id(self) -> str:
        """The resource manager's name for it."""
        return self.submission.job_id or ""

    @property
    def processors(self) -> int:
        """How many it takes; one, if it does not say."""
        return self.submission.requested_processors or 1


class Rules(Struct, frozen=True, kw_only=True):
    """How the scheduler serves the queue.

    Attributes:
        policy: a name of the simulator.
        plans_by: ``requests`` or ``predictions``: the runtimes that the scheduler assumes.
        order: a name of the simulator; fcfs is the order of the list.
        depth: reservations under EASY.
    """

    policy: str = "easy"
    plans_by: str = "requests"
    order: str = "fcfs"
    depth: int = 1


class QueueSnapshot(Struct, frozen=True, kw_only=True):
    """A cluster at one moment.

    Attributes:
        cluster: its name.
        taken_at: Unix seconds.
        rules: of its scheduler.
        pools: of its machine, at least one.
        jobs: those that run, then those that wait in the order in which they are served.
    """

    cluster: str
    taken_at: float
    rules: Rules
    pools: tuple[Pool, ...]
    jobs: tuple[LiveJob, ...]
