"""Tells waiting jobs their starts over months of a log in the twin of Slurm, as the service would.

    .venv/bin/python research/starts_in_twin.py LOG... --limit 15000

The twin of Slurm plays the log by requests, in the order of submission: these starts are the truth.
Every some hours the queue is forecast with what the service's functions make of it: quantiles of
runtimes by the runs that had ended, an expected future by medians, 19 others, intervals calibrated
by what earlier ones missed. Beside it stands the plan by limits, as the scheduler has it. With
--arrivals each other future also has the submissions of the same hours of an earlier week, with
the runtimes that they had. With --anew 3 the record of told starts is empty again every three days,
as at a new site. With --right one of the other futures is the truth, and is told from those
that are left: the most that runtimes which are so uncertain leave.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace as with_fields
from itertools import count
from pathlib import Path
from random import Random
from typing import Annotated, NamedTuple

import numpy as np
import typer
from msgspec.structs import replace
from played_logs import Traces, log_parts, run_script

from predictors.jobs import Submission
from service.live_queue.forecast_record import (
    ForecastPoint,
    JobForecast,
    TimeInterval,
    calibrated,
)
from service.live_queue.playing import nearer_starts
from service.live_queue.snapshot import JobState, LiveJob
from service.live_queue.told_starts import Calibration, ToldRecord
from service.worker.wait_scores import StartedJob, told_record
from simulator.cli.options import Distributed, Processes
from simulator.replay.method_spec import MethodSpec
from simulator.replay.trace_replay import InProcess
from simulator.scheduling.estimates import EXACT, REQUESTED, Estimates
from simulator.scheduling.forecast import (
    QUANTILE_GRID,
    Quantiles,
    QueuedJobs,
    QueueQuantiles,
    Snapshot,
    forecast,
    median_of,
    nominal_coverage,
    running_runtime,
    varied,
)
from simulator.scheduling.parallel import in_parallel
from simulator.scheduling.semantics import SLURM, Semantics
from simulator.scheduling.simulate import Schedule, simulate
from simulator.scheduling.workload import Workload, usable_workload
from simulator.traces.completions import completions
from simulator.traces.trace import Integers
from terminal.console import out
from terminal.options import Limit

sys.path.insert(0, str(Path(__file__).parent / "fast_motion"))
from forecast_scores import ToldStart, coverage_by_promise, coverage_by_window, table_of

DAY = 86400
WEEK = 7 * DAY
WARM_UP = 0.1
"""Share of a log's jobs before the first question, from which methods have learned."""

MOST_WEEKS_BACK = 8
SAMPLES = 19
BY_LIMITS = Semantics(
    policy="conservative",
    estimated_order=False,
    estimated_backfilling=False,
    estimated_running=False,
)
"""Rules that the updater hands over for Slurm."""


class Case(NamedTuple):
    """A log whose waiting jobs are told their starts.

    Attributes:
        trace: a file.
        limit: jobs after cleaning, or all.
        method: that predicts runtimes.
        hours: mean time between two forecasts of the queue.
        arrivals: whether later submissions are in the other futures.
        anew: days after which the record of told starts begins anew; 0 is never.
        right: whether one of the other futures is the truth.
        shipped: whether starts as of 75e9637f are beside these in place of those by limits.
    """

    trace: str
    limit: int | None
    method: str
    hours: float
    arrivals: bool
    anew: int = 0
    right: bool = False
    shipped: bool = False


class Queue(NamedTuple):
    """The queue at one moment: places of its jobs in the workload, and their snapshot."""

    now: int
    running: Integers
    waiting: Integers
    quantiles: QueueQuantiles
    shown: Snapshot


class Site:
    """A cluster whose schedule is known, and what a service knows of it until now.

    Args:
        workload: of the log.
        schedule: true starts.
        method: that predicts, or ``EXACT``.
    """

    def __init__(self, workload: Workload, schedule: Schedule, method: str) -> None:
        self.workload, self.start, self.end = workload, schedule.start, schedule.end
        self._begin = workload.trace.unix_start + workload.origin
        self._runs = [
            replace(
                run,
                submission=replace(run.submission, submit_time=float(self._begin + submit)),
                start_time=float(self._begin + start),
                end_time=float(self._begin + end),
                runtime=float(end - start),
            )
            for run, submit, start, end in zip(
                completions(workload.trace),
                *(each.tolist() for each in (workload.submit, self.start, self.end)),
                strict=True,
            )
        ]
        self._method = method
        self._player = (
            None if method == EXACT else InProcess({method: MethodSpec.parse(method).predictor()})
        )
        self._starts = np.argsort(self.start, kind="stable")
        self._ends = np.argsort(self.end, kind="stable")
        self._told = 0, 0

    def advance(self, now: int) -> None:
        """Tell the method which runs have started and ended until a second."""
        if self._player is None:
            return
        started, ended = self._told
        self._told = (
            int(np.searchsorted(self.start[self._starts], now, side="right")),
            int(np.searchsorted(self.end[self._ends], now, side="right")),
        )
        self._player.note([self._runs[job] for job in self._starts[started : self._told[0]]])
        self._player.observe([self._runs[job] for job in self._ends[ended : self._told[1]]])

    def queue(self, now: int) -> Queue:
        """Return the queue of a second, with the quantiles that are known then."""
        submitted = int(np.searchsorted(self.workload.submit, now, side="right"))
        waiting = np.flatnonzero(self.start[:submitted] > now)
        running = np.flatnonzero((self.start[:submitted] <= now) & (now < self.end[:submitted]))
        ages = now - self.start[running], now - self.workload.submit[waiting]
        quantiles = (
            [
                self._quantiles(job, now, float(age))
                for job, age in zip(running.tolist(), ages[0], strict=True)
            ],
            [self._quantiles(job, now, None) for job in waiting.tolist()],
        )
        shown = Snapshot(
            processors=self.workload.processors_of_machine,
            running=self._columns(running, quantiles[0], ages[0], least=ages[0] + 1),
            waiting=self._columns(waiting, quantiles[1], ages[1], least=1),
        )
        return Queue(now, running, waiting, quantiles, shown)

    def later(self, queue: Queue, ahead: int, random: Random) -> tuple[QueuedJobs, list[Quantiles]]:
        """Return what was submitted in so many seconds from the same hour of a past week on."""
        weeks = min(MOST_WEEKS_BACK, queue.now // WEEK)
        past = queue.now - random.randint(1, weeks) * WEEK if weeks else queue.now
        ends = [past, min(queue.now, past + ahead)]
        rows = np.arange(*np.searchsorted(self.workload.submit, ends, side="right"))
        runtimes: list[Quantiles] = [
            [float(each)] * len(QUANTILE_GRID) for each in self.workload.runtime[rows]
        ]
        return self._columns(rows, runtimes, past - self.workload.submit[rows], least=1), runtimes

    def _quantiles(self, job: int, now: int, elapsed: float | None) -> Quantiles:
        if self._player is None:
            return [float(self.workload.runtime[job])] * len(QUANTILE_GRID)
        submission = replace(self._runs[job].submission, submit_time=float(self._begin + now))
        return self._player.quantiles(self._method, submission, QUANTILE_GRID, elapsed)

    def as_planned(self, queue: Queue) -> Snapshot:
        """Return the queue where jobs run as the scheduler plans by the method, as of 75e9637f.

        Such a prediction is careful: that a job runs longer costs more than that it ends early.
        """
        shown = queue.shown
        running = [
            running_runtime(self._planned(job, queue.now), request, age, "double")
            for job, request, age in zip(
                queue.running.tolist(),
                shown.running.request.tolist(),
                shown.running.age.tolist(),
                strict=True,
            )
        ]
        waiting = [self._planned(job, queue.now) for job in queue.waiting.tolist()]
        return shown.with_runtimes(np.array(running, np.int64), np.array(waiting, np.int64))

    def _planned(self, job: int, now: int) -> int:
        if self._player is None:
            return int(self.workload.runtime[job])
        submission = replace(self._runs[job].submission, submit_time=float(self._begin + now))
        (found,) = self._player.predict(self._method, [submission])
        return max(1, int(min(found.predicted_walltime, submission.requested_walltime)))

    def _columns(
        self, rows: Integers, quantiles: Sequence[Quantiles], ages: Integers, least: Integers | int
    ) -> QueuedJobs:
        request = self.workload.request[rows]
        medians = [
            ceiling if each is None else min(ceiling, int(median_of(each)))
            for each, ceiling in zip(quantiles, request.tolist(), strict=True)
        ]
        return QueuedJobs(
            processors=self.workload.processors[rows],
            request=request,
            estimate=request,
            runtime=np.maximum(least, np.array(medians, np.int64)),
            age=ages,
            priority=np.zeros(len(rows)),
            owner=self.workload.trace.user[rows],
            array=np.full(len(rows), -1),
            array_limit=np.zeros(len(rows), np.int64),
        )

    def job(self, job: int) -> LiveJob:
        """Return a waiting job as the service keeps it; times are seconds of the workload."""
        submission = Submission(
            requested_walltime=float(self.workload.request[job]),
            submit_time=float(self.workload.submit[job]),
            job_id=str(job),
        )
        return LiveJob(submission=submission, state=JobState.WAITING)


class Telling:
    """The forecasts of a site's waiting jobs, and the record of how near earlier ones came.

    Args:
        site: that is forecast.
        arrivals: whether later submissions are in the other futures.
        right: whether one of these futures is the truth, which is not told.
        shipped: see ``Case``.
    """

    def __init__(
        self, site: Site, *, arrivals: bool, right: bool = False, shipped: bool = False
    ) -> None:
        self._site = site
        self._arrivals = arrivals
        self._right = right
        self._shipped = shipped
        self._record = ToldRecord()
        self._forecasts: dict[int, JobForecast] = {}

    def forget(self) -> None:
        """Begin a new record; jobs that wait are told once more for the first time."""
        self._record, self._forecasts = ToldRecord(), {}

    def tell(self, queue: Queue) -> Iterator[tuple[int, ForecastPoint, float]]:
        """Yield the waiting jobs of a queue, their forecasts and starts; in seconds of the log."""
        self._score(queue.now)
        calibration = Calibration(self._record, nominal_coverage(SAMPLES))
        expected = forecast(queue.shown, BY_LIMITS)
        starts = np.array([expected.start, *self._other_starts(queue, int(expected.start.max()))])
        beside, true = self._beside(queue), self._site.start[queue.waiting]
        if self._right:
            place = Random(queue.now).randrange(1, len(starts))  # noqa: S311 - repeatable
            starts, true = np.delete(starts, place, axis=0), queue.now + starts[place]
        told = nearer_starts(list(starts))
        for row, job in enumerate(queue.waiting.tolist()):
            shown = TimeInterval(
                lower=float(queue.now + starts[:, row].min()),
                upper=float(queue.now + starts[:, row].max()),
                coverage=nominal_coverage(SAMPLES),
            )
            start = float(queue.now + told[row])
            point = ForecastPoint(
                made_at=float(queue.now),
                start=start,
                end=start,
                start_interval=shown,
                end_interval=shown,
                scheduler=float(queue.now + beside[row]),
            )
            point = calibrated(point, calibration)
            self._forecasts.setdefault(job, JobForecast(predicted=None)).add(point)
            yield job, point, float(true[row])

    def _beside(self, queue: Queue) -> Integers:
        """Return the starts by the other teller."""
        if self._shipped:
            return forecast(self._site.as_planned(queue), BY_LIMITS).start
        return by_limits(queue.shown)

    def _score(self, now: int) -> None:
        """Remember how near the forecasts of the jobs came that have started by now."""
        started = [job for job in self._forecasts if self._site.start[job] <= now]
        told = [
            StartedJob(
                job=self._site.job(job),
                forecast=self._forecasts.pop(job),
                start_time=float(self._site.start[job]),
            )
            for job in sorted(started, key=self._site.start.item)
        ]
        self._record = told_record(self._record, told)

    def _other_starts(self, queue: Queue, last: int) -> Iterator[Integers]:
        """Yield the starts of the waiting jobs in each other future."""
        running, waiting = queue.quantiles
        for seed in range(SAMPLES):
            random = Random(seed)  # noqa: S311 - repeatable
            shown, runtimes = queue.shown, waiting
            if self._arrivals:
                later, known = self._site.later(queue, max(DAY, 2 * last), random)
                shown = with_fields(shown, waiting=shown.waiting + later)
                runtimes = [*waiting, *known]
            future = varied(shown, (), (running, runtimes), random)
            yield forecast(future, BY_LIMITS).start[: len(queue.waiting)]


def by_limits(shown: Snapshot) -> Integers:
    """Return the starts where each job runs until its limit, as the scheduler plans."""
    running = np.maximum(shown.running.age + 1, shown.running.request)
    return forecast(shown.with_runtimes(running, shown.waiting.request), BY_LIMITS).start


def told_starts(case: Case) -> list[ToldStart]:
    """Return the told starts of a log's waiting jobs at moments that are drawn at random."""
    workload = usable_workload(case.trace, case.limit)
    rules = with_fields(BY_LIMITS, policy=SLURM)
    site = Site(workload, simulate(workload, rules, Estimates.named(REQUESTED)), case.method)
    telling = Telling(site, arrivals=case.arrivals, right=case.right, shipped=case.shipped)
    found: list[ToldStart] = []
    seen: set[int] = set()
    window = 0
    for now in moments(workload, case.hours):
        if case.anew and window != now // (case.anew * DAY):
            window = now // (case.anew * DAY)
            telling.forget()
        site.advance(now)
        queue = site.queue(now)
        if not len(queue.waiting):
            continue
        for job, point, start in telling.tell(queue):
            assert point.start_interval is not None  # noqa: S101 - all futures were played
            submit = float(workload.submit[job])
            found.append(
                ToldStart(
                    job=job,
                    at=point.made_at,
                    submit=submit,
                    start=start,
                    slurm=point.scheduler,
                    ours=point.start,
                    lower=point.start_interval.lower,
                    upper=point.start_interval.upper,
                    is_first=job not in seen,
                )
            )
            seen.add(job)
    return found


def moments(workload: Workload, hours: float) -> Iterator[int]:
    """Yield the seconds at which the queue is forecast, on average ``hours`` apart."""
    random = Random(0)  # noqa: S311 - repeatable
    now = int(workload.submit[int(WARM_UP * len(workload))])
    for _ in count():
        now += int(hours * 3600 * (0.5 + random.random()))
        if now >= workload.submit[-1]:
            return
        yield now


def main(  # noqa: PLR0913 - options of a command
    traces: Traces,
    *,
    method: Annotated[str, typer.Option("--method", "-m", help="Or: exact.")] = "attention",
    hours: Annotated[float, typer.Option(min=0.1, help="Between two forecasts.")] = 4.0,
    arrivals: Annotated[bool, typer.Option(help="Play later submissions, too.")] = False,
    anew: Annotated[int, typer.Option(min=0, help="Days after which records begin anew.")] = 0,
    right: Annotated[bool, typer.Option(help="One of the other futures is the truth.")] = False,
    shipped: Annotated[bool, typer.Option(help="Beside them starts as of 75e9637f.")] = False,
    limit: Limit = None,
    processes: Processes = None,
    distributed: Distributed = None,
) -> None:
    """Tell waiting jobs their starts over months of logs, and compare with the starts that came.

    For example: python research/starts_in_twin.py *.swf.gz --limit 15000
    """
    cases = [
        Case(part.trace, limit, method, hours, arrivals, anew, right, shipped)
        for part in log_parts(traces, limit)
    ]
    played = in_parallel(told_starts, cases, processes=processes, distributed=distributed)
    for case, told in zip(cases, played, strict=True):
        out.print(f"\n{Path(case.trace).name}, {case.method}, minutes", markup=False)
        held = coverage_by_promise(told), coverage_by_window(told)
        for line in (*table_of(told, "as of 75e9637f" if case.shipped else "by limits"), *held):
            out.print(line, markup=False, soft_wrap=True, highlight=False)


if __name__ == "__main__":
    run_script(main)
