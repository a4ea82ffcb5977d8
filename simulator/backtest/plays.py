"""Plays a site's log with each source of estimates, again and again with shaken input.

Every play is independent of the others, so plays run in processes beside each other, with the same
results.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from os import cpu_count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictors.measures import Flags, mean_absolute_error, underestimation_rate
from simulator.backtest.site import (
    BY_REQUEST,
    BacktestSite,
    Grouping,
    SiteFiles,
    give_back_what_is_dropped,
)
from simulator.scheduling.estimates import EXACT, REQUESTED, Estimates
from simulator.scheduling.measures import (
    bounded_slowdown,
    idle_while_waiting,
    makespan,
)
from simulator.scheduling.processes import several_processes
from simulator.scheduling.simulate import Schedule, simulate_together
from simulator.scheduling.workload import Workload
from simulator.traces.shake import FEWEST_REPETITIONS, shaken
from simulator.traces.trace import Integers

SHAKE_SECONDS = 60
"""Submissions are moved by at most this much."""

FULL_LOOP_JOBS = 100_000
"""In logs of more jobs, repetitions take over the predictions of the log itself."""

REPETITIONS_BESIDE = FEWEST_REPETITIONS
"""Most plays of a method that is not in force, and of exact run times: no verdict rests on them."""

JOBS_WORTH_A_PROCESS = 400_000
"""A process of its own takes seconds to begin; fewer jobs to play in all are played in this one."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """Result of one play of the log; times are seconds.

    Attributes:
        estimates: the source of estimates.
        repetition: 0 is the log itself, others are shaken.
        wait: mean wait; and so for what says no other.
        p90_wait: 9 of 10 jobs wait no longer.
        waiting: share of jobs that wait longer than a minute.
        idle: processor seconds that are idle while a job waits.
        work: processor seconds that jobs use.
        utilisation: ``work`` as a share of the machines' time from first submission to last end.
        error: mean distance of the estimate from the runtime.
        underestimation_rate: share of the jobs that run longer than estimated.
        wait_quantiles: waits at ``QUANTILES``.
        where_logged: waits of the jobs whose wait is in the log.
        estimate_quantiles: first estimates at ``QUANTILES``.
        groups: means by kind of group.
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


class Task(NamedTuple):
    """A play to come; ``reuses`` says that predictions of the log itself are taken over."""

    number: int
    estimates: str
    repetition: int
    reuses: bool


def play(site: BacktestSite, task: Task, directory: Path | None = None) -> Play:
    """Simulate the site once, from an empty machine and without any history.

    Args:
        site: the site.
        task: what is to be played.
        directory: directory with the predictions of the log itself, or None.
    """
    trace = site.trace
    if task.repetition:
        trace = shaken(trace, SHAKE_SECONDS, task.repetition)
    workloads = [workload for workload in site.workloads(trace) if len(workload)]
    schedules = simulate_together(
        workloads, site.rules_of(task.estimates), _estimates(site, task, directory)
    )
    if directory and not task.repetition:
        _keep(site, schedules, _kept_file(directory, task))
    return play_of(site, task.estimates, task.repetition, schedules)


def _estimates(site: BacktestSite, task: Task, directory: Path | None) -> Estimates:
    if not (task.reuses and task.repetition and directory):
        return Estimates.named(REQUESTED if task.estimates == BY_REQUEST else task.estimates)
    log = np.load(_kept_file(directory, task), mmap_mode="r")

    def logged_estimates(workload: Workload) -> Integers:
        found = log[site.places([workload])]
        return np.where(found > 0, found, workload.request)

    return Estimates(task.estimates, known=logged_estimates)


def _keep(site: BacktestSite, schedules: Sequence[Schedule], file: Path) -> None:
    log = np.zeros(len(site.trace), np.int64)
    for schedule in schedules:
        log[site.places([schedule.workload])] = schedule.estimate
    np.save(file, log)


def _kept_file(directory: Path, task: Task) -> Path:
    return directory / f"estimates-{task.number}.npy"


def play_of(
    site: BacktestSite, estimates: str, repetition: int, schedules: Sequence[Schedule]
) -> Play:
    """Return what a backtest keeps of the schedules of all machines."""
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
    """Mean waits of the jobs that are in ``is_logged``, by month; NaN for a month without one."""
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
    files: SiteFiles,
    methods: Sequence[str],
    shakes: int,
    *,
    processes: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> Plays:
    """Play requests under both orders, every method, and exact runtimes.

    Requests and the method in force are played ``shakes`` times more, shaken; the others up to
    ``REPETITIONS_BESIDE`` times in all.

    Args:
        files: the site.
        methods: method specs as ``MethodSpec`` reads them, the method in force first.
        shakes: number of shaken copies of the log.
        processes: number of processes; None takes all cores where it is worth it.
        progress: called with the number of plays that have just ended.
    """
    jobs = len(files.mapped().trace)
    keep = jobs > FULL_LOOP_JOBS and shakes > 0
    tasks = tasks_of(methods, shakes, keep=keep)
    if processes is None:
        small = len(tasks) * jobs < JOBS_WORTH_A_PROCESS
        processes = 1 if small else cpu_count() or 1
    directory = files.directory if keep else None
    found: dict[str, dict[int, Play]] = {task.estimates: {} for task in tasks}
    for task, each in _played(files, tasks, processes, directory):
        found[task.estimates][task.repetition] = each
        if progress:
            progress(1)
    return {name: [plays[number] for number in sorted(plays)] for name, plays in found.items()}


def tasks_of(methods: Sequence[str], shakes: int, *, keep: bool = False) -> list[Task]:
    """Return the plays of a backtest; ``keep``: repetitions take over predictions."""
    names = (REQUESTED, BY_REQUEST, *methods, EXACT)
    return [
        Task(number, name, repetition, keep and name not in {REQUESTED, BY_REQUEST, EXACT})
        for repetition in range(shakes + 1)
        for number, name in enumerate(names)
        if number <= FIRST_METHOD or repetition < REPETITIONS_BESIDE
    ]


def _played(
    files: SiteFiles, tasks: Sequence[Task], processes: int, directory: Path | None
) -> Iterator[tuple[Task, Play]]:
    """Every task with its play, in this process or in several others."""
    if processes == 1:
        site = files.mapped()
        for task in tasks:
            yield task, play(site, task, directory)
        return
    with several_processes(processes, _begin, files, directory) as executor:
        yield from _as_they_end(tasks, lambda task: executor.submit(_play_here, task))


def _as_they_end(
    tasks: Sequence[Task], submit: Callable[[Task], "Future[Play]"]
) -> Iterator[tuple[Task, Play]]:
    """Plays as they end; one that takes over predictions begins when these are there."""
    held = [task for task in tasks if task.reuses and task.repetition]
    ready = [task for task in tasks if not (task.reuses and task.repetition)]
    # Methods take longest: first the one in force, whose rounds take minutes, then from the last in
    # the list, which are slower than those before them.
    ready.sort(
        key=lambda task: (
            not task.reuses,
            task.repetition,
            task.number != FIRST_METHOD,
            -task.number,
        )
    )
    under_way = {submit(task): task for task in ready}
    while under_way:
        ended, _ = wait(under_way, return_when=FIRST_COMPLETED)
        for future in ended:
            task = under_way.pop(future)
            yield task, future.result()
            if task.reuses and not task.repetition:
                freed = [each for each in held if each.number == task.number]
                under_way |= {submit(each): each for each in freed}


_here: list[tuple[BacktestSite, Path | None]] = []
"""The site of a process that plays."""


def _begin(files: SiteFiles, directory: Path | None) -> None:
    give_back_what_is_dropped()
    _here[:] = [(files.mapped(), directory)]


def _play_here(task: Task) -> Play:
    site, directory = _here[0]
    return play(site, task, directory)
