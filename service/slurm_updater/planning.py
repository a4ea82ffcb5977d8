"""Plans the changes of a job: its TimeMin, comment and site factor."""

import re
from enum import StrEnum
from math import ceil, inf, log10

from msgspec import Struct

from predictors.aged_length import SITE_FACTOR_STEPS, accuracy_factor, site_factor
from predictors.response_ratio import (
    factor_of_steps,
    response_ratio,
    steps_of_overdue,
    steps_of_ratio,
)
from service.adapters.slurm_fields import prediction_id_of
from service.slurm_updater.squeue import QueuedJob
from simulator.scheduling.ratio_rules import USUAL_RATIO, RatioRules
from terminal.words import MINUTE

LARGEST_SITE_FACTOR = 2_147_483_645
"""The largest absolute site factor that scontrol takes."""

LONGEST_MINUTES = 7 * 24 * 60
"""Jobs that are predicted to run longer get no site factor."""

_MARK = re.compile(r"wtm=(\d{1,9})")


class Mode(StrEnum):
    """The steps of adoption; each includes the one before."""

    OFF = "off"
    OBSERVE = "observe"
    SOFT = "soft"


class Order(StrEnum):
    """The jobs that site factors put first."""

    NONE = "none"
    PSP = "psp"
    SHORTEST_FIRST = "shortest-first"
    SJF_AGING = "sjf-aging"
    RESPONSE_RATIO = "response-ratio"


BY_PREDICTION = frozenset({Order.SHORTEST_FIRST, Order.SJF_AGING, Order.RESPONSE_RATIO})
"""Orders for which a prediction has to be known."""


class UpdateRules(Struct, frozen=True, kw_only=True):
    """The site's rules for changing jobs.

    Attributes:
        sets_time_min: whether Slurm and the site allow it.
        keeps_limits: whether a TimeMin leaves limits alone; else those that are ours go.
        soft_floor: seconds below which no TimeMin is set.
        largest: the site factor of what comes first; under ``sjf-aging`` what a day of waiting
            adds to a job's priority.
        overdue_after: seconds of waiting after which a job goes first under ``response-ratio``.
        ratio: numbers of ``response-ratio``.
    """

    mode: Mode
    sets_time_min: bool
    keeps_limits: bool
    soft_floor: float
    order: Order
    largest: int
    overdue_after: float = inf
    ratio: RatioRules = USUAL_RATIO


class Estimate(Struct, frozen=True, kw_only=True, gc=False):
    """The service's answers about a job.

    Attributes:
        predicted: seconds from its start to its end.
        mean: the mean runtime in seconds, by which it is ordered; None: as predicted.
        upper: upper end of the interval in seconds, which becomes its TimeMin; None: as predicted.
        priority: by its user's accuracy and its wait.
    """

    predicted: float
    prediction_id: str
    mean: float | None = None
    upper: float | None = None
    priority: float | None = None

    @property
    def length(self) -> float:
        """Seconds by which the queue is ordered."""
        return self.predicted if self.mean is None else self.mean

    @property
    def planned(self) -> float:
        """Seconds for which the scheduler plans."""
        return self.predicted if self.upper is None else max(self.predicted, self.upper)


class Present(Struct, frozen=True, kw_only=True, gc=False):
    """The state of a job that changes while it waits.

    Attributes:
        site_factor: None if it is unknown.
        wait: seconds since its submission.
    """

    site_factor: int | None
    wait: float = 0.0


def changes_of(
    job: QueuedJob, estimate: Estimate, rules: UpdateRules, present: Present
) -> dict[str, str]:
    """Return the changes of a job that waits, by scontrol's names; nothing if all is right.

    Of a job that runs there is nothing to set: no release of Slurm changes its TimeMin (scontrol
    answers 0 and it stays), and its site factor no longer matters.
    """
    changes: dict[str, str] = {}
    time_min = wanted_time_min(job, estimate, rules)
    if time_min != job.time_min:
        changes["TimeMin"] = str(time_min)
    comment = wanted_comment(job, estimate, rules, time_min)
    if comment != job.admin_comment and comment is not None:
        changes["AdminComment"] = comment
    factor = wanted_site_factor(job, estimate, rules, present.wait)
    if factor is not None and factor != present.site_factor:
        changes["SiteFactor"] = str(factor)
    return changes


def reset_changes(job: QueuedJob, site_factor: int) -> dict[str, str]:
    """Return the changes that take everything back from a job that waits.

    ``site_factor`` is the job's present one, whoever has set it.
    """
    changes = {"SiteFactor": "0"} if site_factor else {}
    if job.time_min and job.admin_comment is not None and owns_time_min(job):
        changes |= {"TimeMin": "0", "AdminComment": _marked(job.admin_comment, [], 0)}
    return changes


def owns_time_min(job: QueuedJob) -> bool:
    """Return whether TimeMin may be changed: it is unset, or the one noted as ``wtm``."""
    return job.time_min == 0 or job.time_min == _noted_minutes(job.admin_comment or "")


def noted_estimate(job: QueuedJob, rules: UpdateRules) -> Estimate | None:
    """Return the estimate that the submit filter left in the job; None if more is needed.

    ``wtp`` names its prediction. A TimeMin that is ours is the upper end of its interval in
    minutes; the prediction itself is unknown, which matters to some rules.
    """
    prediction_id = prediction_id_of(job.admin_comment)
    if prediction_id is None or rules.order in BY_PREDICTION:
        return None
    request = job.submission.requested_walltime
    if job.time_min and owns_time_min(job):
        predicted = min(request, job.time_min * MINUTE)
        return Estimate(predicted=predicted, prediction_id=prediction_id)
    if rules.sets_time_min:
        return None
    return Estimate(predicted=request, prediction_id=prediction_id)


def wanted_time_min(job: QueuedJob, estimate: Estimate, rules: UpdateRules) -> int:
    """Return the TimeMin to set, in minutes below the limit (Slurm refuses more); 0 removes it.

    What ``job_submit.lua`` set carries the same mark: where this updater sets none, it stays.
    """
    if not owns_time_min(job) or job.admin_comment is None:
        return job.time_min
    if not rules.sets_time_min:
        return job.time_min if rules.keeps_limits else 0
    minutes = _minutes(estimate.planned, rules)
    return minutes if minutes < job.limit else 0


def _minutes(seconds: float, rules: UpdateRules) -> int:
    """Return seconds in whole minutes, not below the floor."""
    return max(1, ceil(max(seconds, rules.soft_floor) / MINUTE))


def wanted_comment(
    job: QueuedJob, estimate: Estimate, rules: UpdateRules, time_min: int
) -> str | None:
    """Return the comment with the marks of walltimed; other text stays unchanged.

    ``wtp`` names the prediction, and stays: it was made at submission. ``wtm`` notes down the
    TimeMin that is ours.
    """
    comment = job.admin_comment
    if comment is None:
        return None
    is_noted = prediction_id_of(comment) is not None
    adds = rules.mode is not Mode.OFF and not is_noted
    marks = [f"wtp={estimate.prediction_id}"] if adds else []
    return _marked(comment, marks, time_min if owns_time_min(job) else 0)


def mended_comment(job: QueuedJob, time_min: int) -> str | None:
    """Return the comment of a job whose TimeMin did not change; ``time_min`` is our earlier one.

    None if it is right, or cannot be written back unchanged.
    """
    comment = job.admin_comment
    if comment is None:
        return None
    marked = _marked(comment, [], time_min if time_min == job.time_min else 0)
    return marked if marked != comment else None


def _marked(comment: str, marks: list[str], time_min: int) -> str:
    """Return the comment with these marks instead of the present ones."""
    parts = [part for part in comment.split(";") if part]
    others = [part for part in parts if not _MARK.fullmatch(part)]
    minutes = [f"wtm={time_min}"] if time_min else []
    marked = [*others, *marks, *minutes]
    return comment if marked == parts else ";".join(marked)


def wanted_site_factor(
    job: QueuedJob, estimate: Estimate, rules: UpdateRules, wait: float = 0.0
) -> int | None:
    """Return the site factor to set, in [0, largest]; None if the order sets none.

    Under ``sjf-aging`` its sum with the weighted age factor has the order of ``aged_length``. A job
    without a site factor stands where the longest ones stand. A job that goes first under
    ``response-ratio`` has more than ``largest``.
    """
    if rules.order is Order.NONE:
        return None
    if rules.order in (Order.SJF_AGING, Order.RESPONSE_RATIO):
        length = int(MINUTE) * min(_minutes(estimate.length, rules), job.limit)
        if rules.order is Order.SJF_AGING:
            return site_factor(length, rules.largest)
        return _ratio_factor(length, int(wait), rules)
    if rules.order is Order.PSP:
        if estimate.priority is None:
            return None
        return accuracy_factor(estimate.priority, rules.largest)
    minutes = max(1.0, estimate.predicted / MINUTE)
    share = max(0.0, 1.0 - log10(minutes) / log10(LONGEST_MINUTES))
    return rules.largest * int(share * SITE_FACTOR_STEPS) // SITE_FACTOR_STEPS


def _ratio_factor(length: int, wait: int, rules: UpdateRules) -> int:
    """Return the site factor of ``response-ratio``, which moves when the ratio grew by 5%."""
    if wait > rules.overdue_after:
        steps = steps_of_overdue(wait)
    else:
        numbers = rules.ratio
        offset, longest = numbers.offset, numbers.longest
        ratio = response_ratio(wait, length, offset, numbers.shortest, longest)
        steps = steps_of_ratio(ratio, offset / longest)
    return min(LARGEST_SITE_FACTOR, factor_of_steps(steps, rules.largest))


def _noted_minutes(comment: str) -> int | None:
    matches = (_MARK.fullmatch(part) for part in comment.split(";"))
    return next((int(match[1]) for match in matches if match), None)
