"""The updater's rounds: read the queue, ask the service, update jobs."""

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from math import inf
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from predictors.response_ratio import USUAL_SITE_FACTOR, largest_ratio_factor
from service.slurm_updater.extending import ExtensionRules, extension_of, next_start
from service.slurm_updater.planning import (
    BY_PREDICTION,
    Estimate,
    Mode,
    Order,
    Present,
    UpdateRules,
    changes_of,
    mended_comment,
    noted_estimate,
    reset_changes,
)
from service.slurm_updater.service_calls import HandOver, LongerLimit, ServiceQueries
from service.slurm_updater.slurm import (
    ControllerSettings,
    Slurm,
    SlurmError,
    SlurmSilentError,
    queue_in,
)
from service.slurm_updater.squeue import QueuedJob
from service.slurm_updater.updates import JobUpdates, UpdatePace
from simulator.scheduling.ratio_rules import USUAL_RATIO, RatioRules
from terminal.client import RemoteError
from terminal.words import MINUTE

OPT_OUT = "walltimed=off"
"""Jobs with this in their comment are left alone."""

AGAIN_AFTER = 3600.0
"""Seconds of waiting after which a job is predicted again, where that matters; then twice, …"""


class UpdaterOptions(Struct, frozen=True, kw_only=True):
    """The options of the updater.

    Attributes:
        cluster: the history's name; by default Slurm's ClusterName.
        site_factor: of the job that comes first; None: under ``sjf-aging`` what Slurm's age factor
            adds in a day, under ``response-ratio`` that of ``largest_ratio_factor``, else
            ``USUAL_SITE_FACTOR``.
        overdue_after: seconds of waiting after which a job goes first under ``response-ratio``.
        ratio: numbers of ``response-ratio``.
        soft_floor: seconds below which no TimeMin is set.
        extensions: the running jobs whose limits may be extended.
        users, accounts, partitions: names whose jobs are updated; None means all.
        share: largest share of slurmctld's time for updates, which all end within the interval.
        off_switch: file that stops every effect on jobs; empty for none.
    """

    cluster: str | None = None
    mode: Mode = Mode.OBSERVE
    order: Order = Order.NONE
    site_factor: int | None = None
    overdue_after: float | None = None
    ratio: RatioRules = USUAL_RATIO
    soft_floor: float = 60.0
    extensions: ExtensionRules = ExtensionRules()
    users: frozenset[str] | None = None
    accounts: frozenset[str] | None = None
    partitions: frozenset[str] | None = None
    interval: float = 60.0
    share: float = 0.05
    off_switch: str = ""

    @property
    def is_off(self) -> bool:
        """Whether `walltimed connect --off` has stopped every effect on jobs."""
        return bool(self.off_switch) and Path(self.off_switch).exists()

    @property
    def changes_jobs(self) -> bool:
        """Whether jobs are changed at all, beside the handing over of the queue."""
        return self.mode is not Mode.OFF or self.order is not Order.NONE

    def concern(self, job: QueuedJob) -> bool:
        """Return whether the site's options allow the job and its user has not opted out."""
        submission = job.submission
        return (
            OPT_OUT not in job.comment
            and _allows(self.users, submission.user)
            and _allows(self.accounts, submission.project)
            and _allows(self.partitions, submission.queue)
        )


def _allows(names: frozenset[str] | None, name: str | None) -> bool:
    return names is None or name in names


class JobChange(Struct, frozen=True):
    """The planned changes of one job.

    Attributes:
        job_id: Slurm's number of it.
        target: what scontrol calls it.
        time_min: minutes that it has before.
    """

    job_id: str
    target: str
    settings: dict[str, str]
    time_min: int


class JobExtension(Struct, frozen=True, kw_only=True):
    """A longer limit of a running job.

    Attributes:
        user, partition: of the job.
        before, after: limits in minutes.
        delay: most seconds by which a planned start moves later.
        probability: that the job would have ended at its limit.
    """

    job: str
    user: str | None
    partition: str | None
    before: int
    after: int
    delay: float | None
    probability: float | None


class QueueUpdate(Struct, kw_only=True):
    """The result of one round.

    Attributes:
        jobs: that wait or run, and are concerned.
        asked: jobs that the service was asked about.
        planned: what was, or is to be, changed.
        extended: limits that were, or are to be, extended, by job.
        refused: why Slurm did not change a job, or not all that was to be changed, by job.
        postponed: changes that are left to the next round, for the sake of slurmctld.
        update_seconds: slurmctld's time for an update, without waits for locks; None if unknown.
        warnings: what the site wants and this Slurm cannot do.
    """

    jobs: int = 0
    asked: int = 0
    planned: list[JobChange] = field(default_factory=list)
    extended: dict[str, JobExtension] = field(default_factory=dict)
    updated: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    postponed: int = 0
    update_seconds: float | None = None
    warnings: list[str] = field(default_factory=list)


class JobMemory(Struct, gc=False, kw_only=True):
    """Facts about a job that a round leaves for the next one.

    Attributes:
        estimate: last answer of the service; None before the first.
        due_again: Unix seconds from which the job is predicted again, where that matters.
        site_factor: present one; None if it is unknown.
        refused: changes that Slurm refused last.
        updated_at: Unix seconds of the last update; 0 before the first.
        is_extended: whether its limit was extended.
    """

    estimate: Estimate | None = None
    first_asked: float = 0.0
    due_again: float = 0.0
    site_factor: int | None = None
    refused: dict[str, str] | None = None
    updated_at: float = 0.0
    is_extended: bool = False


class Updater:
    """Updates jobs in rounds; remembers predictions and refused updates.

    Nothing here can fail a job: all that it changes is how and when a job is planned, and a
    round that fails leaves jobs as they are.

    Args:
        hand_over: sends the queue to the service in each round; None if it is not to be sent.
    """

    def __init__(  # noqa: PLR0913 - the parts of a round, and what tests replace
        self,
        slurm: Slurm,
        service: ServiceQueries,
        options: UpdaterOptions,
        *,
        hand_over: HandOver | None = None,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._slurm = slurm
        self._service = service
        self._options = options
        self._hand_over = hand_over
        self._clock = clock
        self._pace = UpdatePace(slurm, options.share, sleep)
        self._memories: dict[str, JobMemory] = {}

    def round(self, *, dry_run: bool = False) -> QueueUpdate:
        """Run one round: hand the queue over, then update jobs; with ``dry_run`` change nothing.

        While the site has turned walltimed off, Slurm is not even asked.

        Raises:
            SlurmError: Slurm does not answer, or lets us change nothing.
            NonsenseError, RemoteError, ConnectionError: the service does not.
        """
        if self._options.is_off:
            return QueueUpdate(warnings=[f"{self._options.off_switch} is there: nothing is done."])
        now = self._clock()
        site = self._slurm.site()
        rules, warnings = rules_of(self._options, site)
        machine = self._slurm.machine(site.takes)
        taken_at = self._clock()
        with self._slurm.shown_queue() as shown:
            if self._hand_over is not None and not dry_run:
                obstacle = self._hand_over.send(site, shown, machine, taken_at=taken_at)
                warnings += [obstacle] if obstacle else []
            cluster = self._options.cluster or site.cluster
            queue = queue_in(shown, cluster, machine.queue_nodes())
        jobs = [job for job in queue if self._options.concern(job)]
        self._memories = {job.job_id: self._memories.get(job.job_id) or JobMemory() for job in jobs}
        found = QueueUpdate(jobs=len(jobs), warnings=warnings)
        self._plan_extensions(jobs, machine.longest, cluster, found, now=now)
        if self._options.changes_jobs:
            estimates, found.asked = self._estimates(jobs, rules, now)
            self._plan(jobs, estimates, rules, found, now=now)
        if not dry_run:
            applied = self._apply(found, now + self._options.interval)
            self._read_back(applied, site, found)
        return found

    def reset(self, *, dry_run: bool = False) -> QueueUpdate:
        """Take site factors and our TimeMins back from waiting jobs; the service is not asked.

        Raises:
            SlurmError: Slurm does not answer, or lets us change nothing.
        """
        site = self._slurm.site()
        jobs = [
            job
            for job in self._slurm.queue(self._options.cluster or site.cluster)
            if job.started is None and self._options.concern(job)
        ]
        factors = self._slurm.site_factors() if site.sums_factors else {}
        found = QueueUpdate(jobs=len(jobs))
        for job in jobs:
            if changes := reset_changes(job, factors.get(job.job_id, 0)):
                found.planned.append(JobChange(job.job_id, job.target, changes, job.time_min))
        if not dry_run:
            self._apply(found, inf)
        return found

    def _plan_extensions(
        self,
        jobs: list[QueuedJob],
        longest: Mapping[str, float],
        cluster: str,
        found: QueueUpdate,
        *,
        now: float,
    ) -> None:
        """Plan longer limits of running jobs; a limit that cannot grow by a minute stays."""
        rules, known = self._options.extensions, self._memories
        late = [
            job for job in jobs if rules.concern(job, now) and not known[job.job_id].is_extended
        ]
        if not late:
            return
        until = next_start(self._slurm.reservation_starts(), now)
        most = {job.target: rules.most(job, longest, until) for job in late}
        asked = {job.target: job for job in late if most[job.target] > job.limit}
        if not asked:
            return
        try:
            answers = self._service.longer_limits(
                cluster, {name: most[name] for name in asked}, rules
            )
        except RemoteError as error:
            found.warnings.append(f"limits are not extended: {error}")
            return
        for answer in answers:
            self._plan_extension(asked.get(answer.job_id), answer, found)

    def _plan_extension(
        self, job: QueuedJob | None, answer: LongerLimit, found: QueueUpdate
    ) -> None:
        minutes = 0 if answer.walltime is None else int(answer.walltime // MINUTE)
        if job is None or minutes <= job.limit:
            return
        found.planned.append(
            JobChange(job.job_id, job.target, extension_of(job, minutes), job.time_min)
        )
        found.extended[job.job_id] = JobExtension(
            job=job.target,
            user=job.submission.user,
            partition=job.submission.queue,
            before=job.limit,
            after=minutes,
            delay=answer.delay,
            probability=answer.probability,
        )

    def _estimates(
        self, jobs: list[QueuedJob], rules: UpdateRules, now: float
    ) -> tuple[dict[str, Estimate], int]:
        """Return the estimates of jobs that may be changed, and how many jobs were asked about."""
        waiting = [job for job in jobs if job.started is None]
        for job in waiting:
            self._read_note(job, rules)
        due = [job for job in waiting if self._is_due(job, rules, now)]
        for job_id, estimate in self._service.predictions(due).items():
            self._note_estimate(self._memories[job_id], estimate, now)
        known = {job.job_id: self._memories[job.job_id].estimate for job in waiting}
        estimates = {job_id: estimate for job_id, estimate in known.items() if estimate}
        if rules.order is Order.PSP:
            for job_id, priority in self._service.priorities(waiting, now).items():
                if job_id in estimates:
                    estimates[job_id] = replace(estimates[job_id], priority=priority)
        return estimates, len(due)

    def _read_note(self, job: QueuedJob, rules: UpdateRules) -> None:
        """Take over the prediction of the submit filter, as if it had been asked for here."""
        memory = self._memories[job.job_id]
        if memory.estimate is None and (noted := noted_estimate(job, rules)) is not None:
            memory.estimate, memory.first_asked = noted, job.submission.submit_time
            memory.due_again = memory.first_asked + AGAIN_AFTER

    def _is_due(self, job: QueuedJob, rules: UpdateRules, now: float) -> bool:
        memory = self._memories[job.job_id]
        predicted = memory.estimate.predicted if memory.estimate else inf
        if predicted > job.submission.requested_walltime:
            return True
        matters = rules.sets_time_min or rules.order in BY_PREDICTION
        return matters and now >= memory.due_again

    def _note_estimate(self, memory: JobMemory, estimate: Estimate, now: float) -> None:
        """Note a prediction; it is renewed when the job has waited twice as long.

        The service records every prediction: a long queue must not fill its store.
        """
        if memory.estimate is None:
            memory.first_asked = now
        memory.estimate = estimate
        memory.due_again = now + max(AGAIN_AFTER, now - memory.first_asked)

    def _plan(
        self,
        jobs: list[QueuedJob],
        estimates: Mapping[str, Estimate],
        rules: UpdateRules,
        found: QueueUpdate,
        *,
        now: float,
    ) -> None:
        """Plan the changes: oldest last update first, then Slurm's highest priority first."""
        factors = {} if rules.order is Order.NONE else self._slurm.site_factors()
        for job in sorted(jobs, key=self._turn):
            memory = self._memories[job.job_id]
            # sprio does not list every waiting job.
            memory.site_factor = factors.get(job.job_id, memory.site_factor)
            estimate = estimates.get(job.job_id)
            if estimate is None:
                continue
            wait = max(0.0, now - job.submission.submit_time)
            present = Present(site_factor=memory.site_factor, wait=wait)
            changes = changes_of(job, estimate, rules, present)
            if changes and changes != memory.refused:
                found.planned.append(JobChange(job.job_id, job.target, changes, job.time_min))

    def _turn(self, job: QueuedJob) -> tuple[float, float]:
        return self._memories[job.job_id].updated_at, -job.priority

    def _apply(self, found: QueueUpdate, ends: float) -> list[JobChange]:
        """Update jobs one by one, with pauses, until a time: each update locks slurmctld."""
        applied: list[JobChange] = []
        if not found.planned:
            return applied
        self._pace.read()
        with closing(JobUpdates(self._slurm)) as updates:
            for place, change in enumerate(found.planned):
                if place and self._clock() >= ends:
                    found.postponed = len(found.planned) - place
                    for late in found.planned[place:]:
                        found.extended.pop(late.job_id, None)
                    break
                now = self._memory_of(change).updated_at = self._clock()
                left = max(0.0, ends - now)
                if self._pace.time(partial(self._update, updates, change, found), longest=left):
                    applied.append(change)
        found.update_seconds = self._pace.seconds
        return applied

    def _memory_of(self, change: JobChange) -> JobMemory:
        """Return the memory of a job, which a reset does not read beforehand."""
        return self._memories.setdefault(change.job_id, JobMemory())

    def _update(self, updates: JobUpdates, change: JobChange, found: QueueUpdate) -> bool:
        """Change a job; return whether Slurm did it."""
        try:
            updates.update(change.target, change.settings)
        except SlurmSilentError:
            raise  # slurmctld is in trouble; the other updates would make it worse
        except SlurmError as error:
            if "permission" in str(error).lower():
                raise
            # Most have just started or ended: they are looked at again in the next round.
            self._memory_of(change).refused = change.settings
            found.refused[change.job_id] = str(error)
            found.extended.pop(change.job_id, None)
            return False
        found.updated += 1
        if "TimeLimit" in change.settings:
            self._memory_of(change).is_extended = True
        if "SiteFactor" in change.settings:
            self._memory_of(change).site_factor = int(change.settings["SiteFactor"])
        return True

    def _read_back(
        self, applied: list[JobChange], site: ControllerSettings, found: QueueUpdate
    ) -> None:
        """Check each TimeMin that was set, and remove the mark if it did not change.

        Slurm answers 0 to an update of a job that has just started, and leaves its TimeMin.
        """
        changes = {change.job_id: change for change in applied if "TimeMin" in change.settings}
        if not changes:
            return
        for job in self._slurm.queue(self._options.cluster or site.cluster):
            change = changes.get(job.job_id)
            if change is None or job.time_min == int(change.settings["TimeMin"]):
                continue
            found.updated -= 1
            found.refused[job.job_id] = f"its TimeMin stayed {job.time_min}: it has just started"
            comment = mended_comment(job, change.time_min)
            if comment is not None:
                self._mend(job, comment)

    def _mend(self, job: QueuedJob, comment: str) -> None:
        try:
            self._slurm.update(job.target, {"AdminComment": comment})
        except SlurmSilentError:
            raise
        except SlurmError:
            return  # it has ended meanwhile, and its marks have no reader


def rules_of(options: UpdaterOptions, site: ControllerSettings) -> tuple[UpdateRules, list[str]]:
    """Return the rules that this Slurm allows, and warnings about the others."""
    warnings = []
    if options.mode is Mode.SOFT and not site.keeps_limits:
        warnings.append(
            f"TimeMin is not set: it needs Slurm 25.05.4 and "
            f"SchedulerParameters=time_min_as_soft_limit, and this is {site.version or 'unknown'}"
        )
    order = options.order
    if order is not Order.NONE and not site.sums_factors:
        warnings.append("SiteFactor is not set: it needs PriorityType=priority/multifactor")
        order = Order.NONE
    largest = _usual_factor(order, site) if options.site_factor is None else options.site_factor
    if not largest:
        warnings.append("SiteFactor is not set: sjf-aging needs a PriorityWeightAge")
        order = Order.NONE
    if order is Order.RESPONSE_RATIO and options.overdue_after is None:
        warnings.append("No wait is bounded: response-ratio needs --first-after")
    rules = UpdateRules(
        mode=options.mode,
        sets_time_min=options.mode is Mode.SOFT and site.keeps_limits,
        keeps_limits=site.keeps_limits,
        soft_floor=options.soft_floor,
        order=order,
        largest=largest,
        overdue_after=inf if options.overdue_after is None else options.overdue_after,
        ratio=options.ratio,
    )
    return rules, warnings


def _usual_factor(order: Order, site: ControllerSettings) -> int:
    """Return the largest site factor where no option names one."""
    if order is Order.SJF_AGING:
        return site.age_of_a_day
    if order is Order.RESPONSE_RATIO:
        return largest_ratio_factor(site.age_weight, site.other_weights)
    return USUAL_SITE_FACTOR
