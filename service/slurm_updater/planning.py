"""What a job should have, and what has to be changed for that."""

import re
from enum import StrEnum
from math import ceil, log10

from msgspec import Struct

from service.adapters.slurm.fields import MINUTE, prediction_id_of
from service.slurm_updater.queue import QueuedJob

LARGEST_SITE_FACTOR = 2_147_483_645
"""What scontrol takes, either side of 0."""

STEPS = 100
"""Levels of site factors: with more of them jobs that are as good as equal are updated for ever."""

FULL_PRIORITY = 1e6
"""The priority by accuracy and aging that gets the largest site factor; it grows without end."""

LONGEST_MINUTES = 7 * 24 * 60
"""Jobs that are predicted to run longer get no site factor."""

_MARK = re.compile(r"wtm=(\d{1,9})")


class Mode(StrEnum):
    """How far a site goes; each includes the one before."""

    OFF = "off"
    OBSERVE = "observe"
    SOFT = "soft"


class Order(StrEnum):
    """What site factors put first."""

    NONE = "none"
    PSP = "psp"
    SHORTEST_FIRST = "shortest-first"


class Rules(Struct, frozen=True, kw_only=True):
    """What is to be kept right.

    Attributes:
        sets_time_min: whether Slurm and the site allow it.
        largest: the site factor of what comes first.
    """

    mode: Mode
    sets_time_min: bool
    order: Order
    largest: int


class Estimate(Struct, frozen=True, kw_only=True):
    """What the service says of a job.

    Attributes:
        predicted: seconds from its start to its end.
        prediction_id: None for a job that runs: the prediction at its submission counts.
        priority: by its user's accuracy and its wait.
    """

    predicted: float
    prediction_id: str | None = None
    priority: float | None = None


def changes_of(
    job: QueuedJob, estimate: Estimate, rules: Rules, site_factor: int | None
) -> dict[str, str]:
    """What to set in the job, by scontrol's names; nothing if all is right.

    ``site_factor`` is what it has; None if nobody knows.
    """
    changes: dict[str, str] = {}
    time_min = wanted_time_min(job, estimate, rules)
    if time_min != job.time_min:
        changes["TimeMin"] = str(time_min)
    comment = wanted_comment(job, estimate, rules, time_min)
    if comment != job.admin_comment and comment is not None:
        changes["AdminComment"] = comment
    factor = wanted_site_factor(job, estimate, rules)
    if factor is not None and factor != site_factor:
        changes["SiteFactor"] = str(factor)
    return changes


def owns_time_min(job: QueuedJob) -> bool:
    """Whether the job's TimeMin is ours to change: it has none, or the one that we noted down."""
    return job.time_min == 0 or job.time_min == _noted_minutes(job.admin_comment or "")


def wanted_time_min(job: QueuedJob, estimate: Estimate, rules: Rules) -> int:
    """Minutes, below the limit: Slurm refuses more. 0 is none, and takes back what we set."""
    if not owns_time_min(job) or job.admin_comment is None:
        return job.time_min
    minutes = max(1, ceil(estimate.predicted / MINUTE))
    return minutes if rules.sets_time_min and minutes < job.limit else 0


def wanted_comment(job: QueuedJob, estimate: Estimate, rules: Rules, time_min: int) -> str | None:
    """The comment with our marks; what others wrote stays as it is.

    ``wtp`` names the prediction, and stays: it was made at submission. ``wtm`` notes down the
    TimeMin that is ours.
    """
    found = job.admin_comment
    if found is None:
        return None
    parts = [part for part in found.split(";") if part and not _MARK.fullmatch(part)]
    is_noted = prediction_id_of(found) is not None
    if rules.mode is not Mode.OFF and not is_noted and estimate.prediction_id:
        parts.append(f"wtp={estimate.prediction_id}")
    if time_min and owns_time_min(job):
        parts.append(f"wtm={time_min}")
    written = ";".join(parts)
    return found if written == ";".join(part for part in found.split(";") if part) else written


def wanted_site_factor(job: QueuedJob, estimate: Estimate, rules: Rules) -> int | None:
    """In [0, largest]; None if it is not ours, or no longer matters."""
    if rules.order is Order.NONE or job.started is not None:
        return None
    if rules.order is Order.PSP:
        if estimate.priority is None:
            return None
        share = log10(max(1.0, estimate.priority)) / log10(FULL_PRIORITY)
    else:
        minutes = max(1.0, estimate.predicted / MINUTE)
        share = 1.0 - log10(minutes) / log10(LONGEST_MINUTES)
    step = int(min(1.0, max(0.0, share)) * STEPS)
    return rules.largest * step // STEPS


def _noted_minutes(comment: str) -> int | None:
    found = (_MARK.fullmatch(part) for part in comment.split(";"))
    return next((int(match[1]) for match in found if match), None)
