"""Simulates a site's log with each source of estimates, and with shaken submissions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from ctypes import CDLL
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictors.auto import Auto
from predictors.measures import Flags, mean_absolute_error, underestimation_rate
from simulator.backtest.site import BY_REQUEST, BacktestSite, Codes, Grouping
from simulator.replay.method_spec import MethodSpec
from simulator.replay.trace_replay import Answers, InProcess
from simulator.scheduling.estimates import EXACT, REQUESTED, Estimates
from simulator.scheduling.measures import (
    bounded_slowdown,
    idle_while_waiting,
    makespan,
)
from simulator.scheduling.parallel import in_parallel
from simulator.scheduling.simulate import Schedule, simulate_together
from simulator.scheduling.workload import Workload
from simulator.traces.shake import FEWEST_REPETITIONS, shaken
from simulator.traces.trace import Integers, Trace

SHAKE_SECONDS = 60
"""Submissions are moved by at most this much."""

FULL_LOOP_JOBS = 100_000
"""In logs of more jobs, repetitions take over the predictions of the log itself."""

REPETITIONS_BESIDE = FEWEST_REPETITIONS
"""Plays of a method that is not in force, and of exact runtimes: no verdict rests on them."""

JOBS_WORTH_A_PROCESS = 400_000
"""Jobs over all plays from which other processes, which take seconds to begin, are used."""

FIRST_METHOD = 2
"""Place of the method in force among the sources of estimates."""

QUANTILES = np.linspace(0, 1, 401)

Values = NDArray[np.float64]


class GroupMeans(NamedTuple):
    """Means of each group of a grouping; NaN for a group without a job."""

    jobs: Integers
    wait: Values
    bounded_slowdown: Values
    error: Values


class Waits(NamedTuple):
    """Simulated waits of the jobs whose wait is in the log; seconds.

    Attributes:
        mean: over these jobs; 0 if there is none.
        quantiles: at ``QUANTILES``.
        by_month: means; NaN for a month without such a job.
    """

    mean: float
    quantiles: Values
    by_month: Values


class CandidateChoice(NamedTuple):
    """The candidates of ``auto`` in the order of their users.

    Attributes:
        users: number of users whom each candidate answers.
        costs: relative difference of the cost of each to that of the first, on the cluster.
    """

    users: Mapping[str, int]
    costs: Mapping[str, float]


class PlayedJobs(NamedTuple):
    """Jobs of a play by their place in the log; NaN and 0 for jobs that were left out.

    Attributes:
        start: seconds of the log.
        end: seconds of the log.
        estimate: first estimates in seconds.
        answers: of the method that estimated; None of other sources.
    """

    start: Values
    end: Values
    estimate: Codes
    answers: Answers | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """Result of one play of the log; times are seconds.

    Attributes:
        repetition: 0 is the log itself, others are shaken.
        wait: mean wait; other names without a statistic are means, too.
        p90_wait: 9 of 10 jobs wait no longer.
        waiting: share of jobs that wait longer than a minute.
        idle: processor seconds that are idle while a job waits.
        utilisation: ``work`` as a share of the machines' time from first submission to last end.
        error: mean distance of the estimate from the runtime.
        underestimation_rate: share of the jobs that run longer than estimated.
        wait_quantiles: waits at ``QUANTILES``.
        where_logged: waits of the jobs whose wait is in the log.
        estimate_quantiles: first estimates at ``QUANTILES``.
        choice: of auto at the end of the log; None of other sources.
        played: every job; None unless it was asked for.
    """

    estimates: str
    repetition: int
    jobs: int
    wait: float
    median_wait: float
    p90_wait: float
    longest_wait: float
    waiting: float
    bounded_slowdown: float
    idle: float
    work: float
    utilisation: float
    error: float
    underestimation_rate: float
    wait_quantiles: Values
    where_logged: Waits
    estimate_quantiles: Values
    groups: Mapping[str, GroupMeans]
    choice: CandidateChoice | None = None
    played: PlayedJobs | None = None


class Task(NamedTuple):
    """A play to come.

    Attributes:
        number: place of the source among all sources of estimates.
        repetition: 0 is the log itself, others are shaken.
        reuses: whether repetitions take over the estimates of the log itself.
        known: estimates and lengths to take over, a row of each, by place in the log.
        keeps: whether the play holds every job.
        spec: of a method that is not made by its name.
    """

    number: int
    estimates: str
    repetition: int
    reuses: bool
    known: Codes | None = None
    keeps: bool = False
    spec: MethodSpec | None = None

    @property
    def takes_over(self) -> bool:
        """Whether the play needs the estimates of another play."""
        return self.reuses and self.repetition > 0


def play(site: BacktestSite, task: Task) -> tuple[Play, Codes | None]:
    """Simulate the site once, from an empty machine and without any history.

    Returns:
        The play, and for later repetitions its estimates by place in the log.
    """
    return_freed_arrays()
    trace = site.trace
    if task.repetition:
        trace = shaken(trace, SHAKE_SECONDS, task.repetition)
    workloads = [workload for workload in site.workloads(trace) if len(workload)]
    source = replace(_estimates(site, task), keeps=task.keeps)
    schedules = simulate_together(workloads, site.rules_of(task.estimates), source)
    estimates = None if task.takes_over or not task.reuses else _by_place(site, schedules)
    found = play_of(site, task.estimates, task.repetition, schedules)
    jobs = _played_jobs(site, schedules) if task.keeps else None
    return replace(found, choice=_choice(source, trace), played=jobs), estimates


def _played_jobs(site: BacktestSite, schedules: Sequence[Schedule]) -> PlayedJobs:
    """Return starts, ends and estimates by place in the log."""
    start, end = np.full((2, len(site.trace)), np.nan)
    estimate = np.zeros(len(site.trace), np.int32)
    answers: Answers | None = None
    for schedule in schedules:
        places, origin = site.places([schedule.workload]), schedule.workload.origin
        start[places], end[places] = origin + schedule.start, origin + schedule.end
        estimate[places] = schedule.estimate
        if schedule.answers is not None:
            answers = answers or Answers.of(len(site.trace))
            answers.place(places, schedule.answers)
    return PlayedJobs(start, end, estimate, answers)


def _choice(source: Estimates, trace: Trace) -> CandidateChoice | None:
    """Return the candidates of auto; None where another method predicts."""
    if not isinstance(source.player, InProcess):
        return None
    (predictor,) = source.player.predictors.values()
    if not isinstance(predictor, Auto):
        return None
    users = predictor.users_by_candidate(map(str, np.unique(trace.user).tolist()))
    return CandidateChoice(users, predictor.cluster_costs()[0])


def _estimates(site: BacktestSite, task: Task) -> Estimates:
    known = task.known
    if known is None and task.spec is not None:
        return Estimates.of_method(task.spec)
    if known is None:
        return Estimates.named(REQUESTED if task.estimates == BY_REQUEST else task.estimates)

    def known_or_requested(workload: Workload) -> Integers:
        found = known[0, site.places([workload])].astype(np.int64)
        return np.where(found > 0, found, workload.request)

    def lengths(workload: Workload) -> Integers:
        found: Integers = known[1, site.places([workload])].astype(np.int64)
        return found

    return Estimates(task.estimates, known=known_or_requested, lengths=lengths)


def _by_place(site: BacktestSite, schedules: Sequence[Schedule]) -> Codes:
    """Return first estimates and lengths by place in the log; 0 for jobs that were left out."""
    estimates = np.zeros((2, len(site.trace)), np.int32)
    for schedule in schedules:
        estimates[:, site.places([schedule.workload])] = schedule.estimate, schedule.length
    return estimates


M_MMAP_THRESHOLD = -3
"""The parameter of glibc's ``mallopt``, as ``malloc.h`` defines it."""

LONG_COLUMN = 1 << 18
"""Bytes from which a freed array is returned to the system at once."""


def return_freed_arrays() -> None:
    """Make glibc return freed arrays to the system (``M_MMAP_THRESHOLD``).

    By default glibc keeps freed memory for the next array once it has mapped a long one. A play
    makes and drops arrays of many lengths, and a third of the process's memory would lie idle.
    Another C library is left as it is.
    """
    set_option = getattr(CDLL(None), "mallopt", None)
    if set_option:
        set_option(M_MMAP_THRESHOLD, LONG_COLUMN)


def play_of(
    site: BacktestSite, estimates: str, repetition: int, schedules: Sequence[Schedule]
) -> Play:
    """Measure the schedules of all machines, for a backtest to keep."""
    workloads = [schedule.workload for schedule in schedules]
    waits = np.concatenate([schedule.wait for schedule in schedules])
    runtime = np.concatenate([workload.runtime for workload in workloads])
    estimate = np.concatenate([schedule.estimate for schedule in schedules])
    slowdowns = bounded_slowdown(waits, runtime)
    errors = np.abs(estimate - runtime)
    places = site.places(workloads)
    work = sum(float(np.sum(each.processors * each.runtime)) * _cores(each) for each in workloads)
    return Play(
        estimates=estimates,
        repetition=repetition,
        jobs=len(waits),
        wait=float(waits.mean()),
        median_wait=float(np.median(waits)),
        p90_wait=float(np.quantile(waits, 0.9)),
        longest_wait=float(waits.max()),
        waiting=float(np.mean(waits > 60)),
        bounded_slowdown=float(slowdowns.mean()),
        idle=sum(map(_idle, schedules)),
        work=work,
        utilisation=work / max(1.0, sum(map(_room, schedules))),
        error=mean_absolute_error(estimate, runtime),
        underestimation_rate=underestimation_rate(estimate, runtime),
        wait_quantiles=np.quantile(waits, QUANTILES),
        where_logged=_where_logged(site, workloads, waits),
        estimate_quantiles=np.quantile(estimate, QUANTILES),
        groups={
            each.kind: _means(each, places, (waits, slowdowns, errors)) for each in site.groupings
        },
    )


def _where_logged(site: BacktestSite, workloads: Sequence[Workload], waits: Integers) -> Waits:
    logged = np.concatenate([workload.trace.wait for workload in workloads]) >= 0
    found = waits[logged]
    return Waits(
        mean=float(found.mean()) if len(found) else 0.0,
        quantiles=np.quantile(found, QUANTILES) if len(found) else np.zeros_like(QUANTILES),
        by_month=by_month(site, workloads, waits, logged),
    )


def by_month(
    site: BacktestSite, workloads: Sequence[Workload], waits: NDArray[Any], is_logged: Flags
) -> Values:
    """Return mean waits of the jobs in ``is_logged``, by month; NaN for a month without one."""
    months = next((each for each in site.groupings if each.kind == "months"), None)
    if months is None:
        return np.zeros(0)
    codes, count = months.codes[site.places(workloads)][is_logged], len(months.names)
    jobs = np.bincount(codes, minlength=count)
    sums = np.bincount(codes, waits[is_logged], count)
    return np.where(jobs > 0, sums / np.maximum(jobs, 1), np.nan)


def _cores(workload: Workload) -> int:
    return workload.cores_per_node or 1


def _idle(schedule: Schedule) -> float:
    workload = schedule.workload
    return _cores(workload) * idle_while_waiting(
        workload.submit,
        schedule.start,
        schedule.end,
        workload.processors,
        workload.processors_of_machine,
    )


def _room(schedule: Schedule) -> float:
    workload = schedule.workload
    span = makespan(workload.submit, schedule.end)
    return span * workload.processors_of_machine * _cores(workload)


def _means(each: Grouping, places: Integers, measures: Sequence[NDArray[Any]]) -> GroupMeans:
    codes, count = each.codes[places], len(each.names)
    jobs = np.bincount(codes, minlength=count)
    shares = np.where(jobs > 0, jobs, np.nan)
    return GroupMeans(jobs, *(np.bincount(codes, column, count) / shares for column in measures))


Plays = Mapping[str, Sequence[Play]]
"""The plays of each source of estimates; the log itself is the first, then its shaken copies."""


def play_all(
    site: BacktestSite,
    tasks: Sequence[Task],
    *,
    processes: int | None = None,
    distributed: str | None = None,
    progress: Callable[[int], object] | None = None,
) -> Plays:
    """Simulate the site once per task; the results do not depend on the number of processes.

    Args:
        tasks: the plays, as ``tasks_of`` lists them.
        processes: number of processes; None takes all cores if there are enough jobs.
        distributed: a cluster to simulate on, as ``in_parallel`` names it.
        progress: called with the number of plays that have just ended.
    """
    if processes is None and len(tasks) * len(site.trace) < JOBS_WORTH_A_PROCESS:
        processes = 1
    run = partial(in_parallel, partial(play, site), processes=processes, distributed=distributed)
    found: dict[str, dict[int, Play]] = {task.estimates: {} for task in tasks}
    for task, each in _played(tasks, run):
        found[task.estimates][task.repetition] = each
        if progress:
            progress(1)
    return {name: [plays[number] for number in sorted(plays)] for name, plays in found.items()}


def tasks_of(methods: Sequence[str], shakes: int, *, jobs: int, keeps: bool = False) -> list[Task]:
    """Return a task per source of estimates and repetition.

    The sources are requests under both orders, every method, and exact runtimes. Requests and the
    method in force have ``shakes`` repetitions beside the log itself; the others have up to
    ``REPETITIONS_BESIDE`` plays in all.

    Args:
        methods: method specs as ``MethodSpec`` reads them, the method in force first.
        shakes: number of shaken copies of the log.
        jobs: number of jobs of the log.
        keeps: whether the plays of the log itself hold every job.
    """
    names = (REQUESTED, BY_REQUEST, *methods, EXACT)
    reuse = shakes > 0 and jobs > FULL_LOOP_JOBS
    return [
        Task(
            number,
            name,
            repetition,
            reuse and name not in {REQUESTED, BY_REQUEST, EXACT},
            keeps=keeps and repetition == 0,
        )
        for repetition in range(shakes + 1)
        for number, name in enumerate(names)
        if number <= FIRST_METHOD or repetition < REPETITIONS_BESIDE
    ]


def _played(
    tasks: Sequence[Task],
    run: Callable[[Sequence[Task]], Iterator[tuple[Play, Codes | None]]],
) -> Iterator[tuple[Task, Play]]:
    """Yield every task with its play, first those that need no estimates of another play."""
    first = sorted((task for task in tasks if not task.takes_over), key=_precedence)
    known: dict[str, Codes | None] = {}
    for task, (found, estimates) in zip(first, run(first), strict=True):
        yield task, found
        if task.reuses:
            known[task.estimates] = estimates
    later = [task._replace(known=known[task.estimates]) for task in tasks if task.takes_over]
    if later:
        yield from ((task, found) for task, (found, _) in zip(later, run(later), strict=True))


def _precedence(task: Task) -> tuple[bool, int, bool, int]:
    """Put the slowest plays first.

    Methods take longest: the method in force, whose rounds take minutes, then methods from the last
    in the list, which are slower than those before them.
    """
    return not task.reuses, task.repetition, task.number != FIRST_METHOD, -task.number
