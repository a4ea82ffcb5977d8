"""Longer limits of running jobs that will probably be cut, where the site allows them."""

from collections.abc import Iterable, Mapping
from math import inf

from msgspec import Struct

from service.slurm_updater.squeue import QueuedJob
from terminal.words import MINUTE

OPT_IN = "walltimed=extend"
"""Jobs with this in their comment may be extended, where the site heeds comments."""

MARK = "wtx="
"""Begins the mark of an extended job in AdminComment; its limit before follows, in minutes."""


class ExtensionRules(Struct, frozen=True, kw_only=True):
    """The jobs whose limits may be extended, and by how much.

    Attributes:
        partitions: whose running jobs may be extended.
        by_comment: whether jobs with ``OPT_IN`` in their comment may be, too.
        share: most that is added, as a share of the limit.
        machine: most that is added, in seconds of the whole machine.
        delay: most seconds by which a planned start of another job may move later.
        used: share of its limit from which on a job is looked at.
    """

    partitions: frozenset[str] = frozenset()
    by_comment: bool = False
    share: float = 3.0
    machine: float = 240.0
    delay: float = 0.0
    used: float = 0.8

    def concern(self, job: QueuedJob, now: float) -> bool:
        """Return whether a job runs, is opted in, is late, and was not extended before.

        A component of a heterogeneous job is never extended alone, and a job whose AdminComment
        cannot be written back has no place for the mark.
        """
        is_in = job.submission.queue in self.partitions
        is_in = is_in or (self.by_comment and OPT_IN in job.comment)
        if not is_in or job.started is None or job.admin_comment is None or "+" in job.target:
            return False
        is_late = now - job.started >= self.used * job.submission.requested_walltime
        return is_late and not is_extended(job)

    def most(self, job: QueuedJob, longest: Mapping[str, float], until: float) -> int:
        """Return the largest limit that a job may get, in minutes.

        Args:
            job: that runs.
            longest: largest limits of partitions, in seconds.
            until: Unix seconds at which the job must have ended.
        """
        limit = job.submission.requested_walltime
        bounds = (
            limit * (1 + self.share),
            longest.get(job.submission.queue or "", inf),
            until - (job.started or 0.0),
        )
        return int(min(bounds) // MINUTE)


def is_extended(job: QueuedJob) -> bool:
    """Return whether a job's limit was extended before."""
    return any(part.startswith(MARK) for part in (job.admin_comment or "").split(";"))


def extension_of(job: QueuedJob, minutes: int) -> dict[str, str]:
    """Return the changes that extend a job's limit, by scontrol's names, and mark the job."""
    parts = [job.admin_comment] if job.admin_comment else []
    comment = ";".join([*parts, f"{MARK}{job.limit}"])
    return {"TimeLimit": str(minutes), "AdminComment": comment}


def next_start(starts: Iterable[float], now: float) -> float:
    """Return the start of the next reservation in Unix seconds; infinity without one."""
    return min((start for start in starts if start > now), default=inf)
