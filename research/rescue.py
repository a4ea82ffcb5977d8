"""Measures how many jobs longer limits of running jobs save, and what others wait for it.

    .venv/bin/python research/rescue.py LOG... --limit 5000
    .venv/bin/python research/rescue.py LOG... --limit 5000 --share 9 --delay 3600

Limits are lowered as in ``longer_limits.py``: a run that needs more is cut there, and the runtime
that it needed is known. The twin plays conservative backfilling by limits. Every STEP seconds the
running jobs that have used a share of their limits are looked at, as the updater does: those that
will probably be cut get a longer limit, once, where no planned start moves later by more than a
bound. Each log is played four times: with and without rescue, and each with users who submit what
was cut again, under its true request, and without.
"""

from collections.abc import Sequence
from math import ceil, floor, inf
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from longer_limits import SEED, lowered
from msgspec.structs import replace
from numpy.typing import NDArray
from played_logs import LogPart, Traces, log_parts, play_logs, run_script

from predictors.jobs import Completion, Status
from predictors.limits import LIKELY, LimitHits
from service.live_queue.limit_plays import PARTS, WantedLimit, play_limits
from service.live_queue.playing import PoolQueue
from service.live_queue.snapshot import SchedulerRules
from service.worker.risks import MOSTLY_USED
from simulator.cli.options import Distributed, Processes
from simulator.engine.policies import run
from simulator.engine.state import State, new_state
from simulator.reports.tables import text_table
from simulator.scheduling.forecast import QueuedJobs, Snapshot
from simulator.scheduling.semantics import Semantics
from simulator.traces.swf import read_swf
from terminal.console import CommandError, ExitCode, out
from terminal.options import Limit
from terminal.words import MINUTE

STEP = 60
"""Seconds between two looks at the running jobs."""

LATE = 120
"""Seconds before its limit from which on a job gets a part of what it lacks."""

TWIN = Semantics(policy="conservative")
RULES = SchedulerRules(policy="conservative")


class Rescue(NamedTuple):
    """The rules of the rescue.

    Attributes:
        probability: of being cut, from which on a job gets a longer limit.
        used: share of its limit that it has run for.
        share: most that is added, as a share of the limit.
        bound: seconds by which a planned start may move later.
    """

    probability: float
    used: float
    share: float
    bound: float


class Site(NamedTuple):
    """A log under lowered limits.

    Attributes:
        runs: in order of submission, with the runtimes that they need.
        limits: lowered ones, in seconds.
        processors: of the machine.
        longest: largest true request, in seconds.
    """

    runs: Sequence[Completion]
    limits: NDArray[np.int64]
    processors: int
    longest: int

    @property
    def needed(self) -> NDArray[np.int64]:
        """Seconds that the runs need."""
        return np.array([max(1, round(run.runtime)) for run in self.runs])

    @property
    def cut(self) -> NDArray[np.bool_]:
        """Return which runs need more than their lowered limits, and are known to end."""
        known = np.array([not run.met_limit for run in self.runs])
        return known & (self.needed > self.limits)


class Played(NamedTuple):
    """The jobs of a log, in order of submission: waits and limits in the end, in seconds."""

    waits: NDArray[np.int64]
    limits: NDArray[np.int64]


class Twin:
    """A machine that plays runs under lowered limits, and can give running jobs longer ones.

    Between the jobs stand looks: rows of the engine that never join its queue, before each of
    which it stops. A job that is submitted again takes the row of a look.
    """

    def __init__(self, site: Site) -> None:
        self.site, self.needed = site, site.needed
        self.origin = floor(site.runs[0].submission.submit_time)
        submits = [floor(run.submission.submit_time) - self.origin for run in site.runs]
        looks = np.arange(0, submits[-1] + site.longest, STEP)
        times = np.concatenate([submits, looks])
        order = np.argsort(times, kind="stable")
        self.is_look = order >= len(site.runs)
        self.places = np.flatnonzero(~self.is_look)
        self.job_of = np.where(self.is_look, -1, order)
        cores = [run.submission.requested_processors or 1 for run in site.runs]
        columns = {
            "processors": np.minimum(cores, site.processors),
            "runtime": np.minimum(self.needed, site.limits),
            "request": site.limits,
        }
        blank = np.ones(len(looks), np.int64)
        self.state: State = new_state(
            {"submit": times[order]}
            | {name: np.concatenate([each, blank])[order] for name, each in columns.items()},
            processors=site.processors,
            rules=TWIN.numbers(),
            named_nodes=False,
        )
        self.state.jobs["estimate"] = self.state.jobs["request"]
        self.state.jobs["withheld"] = self.is_look
        self.model, self.learned = LimitHits(), 0
        self.extended: set[int] = set()
        self.cut, self.lost = site.cut, list[int]()

    def play(self, rescue: Rescue | None, *, resubmits: bool) -> Played:
        """Play all runs, looking at those that run at every step."""
        for look in np.flatnonzero(self.is_look):
            self.state.clock["pause_at"] = look
            run(self.state)
            self._learn(is_asked=rescue is not None)
            if rescue is not None:
                self._look(int(self.state.jobs["submit"][look]), rescue)
            if resubmits and self.lost:
                self._resubmit(look, self.lost.pop(0))
        self.state.clock["pause_at"] = len(self.state.jobs)
        run(self.state)
        jobs = self.state.jobs[self.places]
        return Played(jobs["start"] - jobs["submit"], jobs["request"].copy())

    def _resubmit(self, look: int, number: int) -> None:
        """Submit a job that was cut once more, under its true request."""
        job, first = self.state.jobs[look], self.state.jobs[self.places[number]]
        self.is_look[look], self.job_of[look] = False, number
        request = round(self.site.runs[number].submission.requested_walltime)
        job["withheld"], job["processors"] = 0, first["processors"]
        job["request"] = job["estimate"] = request
        job["runtime"] = min(request, self.needed[number])

    def _look(self, now: int, rescue: Rescue) -> None:
        """Give longer limits to running jobs that will probably be cut."""
        running = self.state.running["job"][: self.state.clock["running"][0]]
        found = []
        for row, place in enumerate(running.tolist()):
            job = self.state.jobs[place]
            elapsed, limit = now - int(job["start"]), int(job["request"])
            if place in self.extended or elapsed < max(1, rescue.used * limit):
                continue
            asked = replace(
                self.site.runs[self.job_of[place]].submission,
                requested_walltime=float(limit),
                submit_time=float(self.origin + now),
            )
            risk = self.model.of(asked, float(elapsed))
            if risk.probability is None or not risk.warns(rescue.probability):
                continue
            most = min(self.site.longest, floor(limit * (1 + rescue.share)))
            walltime = min(most, int(risk.longer_walltime or most))
            if walltime > max(limit, elapsed):
                found.append((limit - elapsed, row, walltime))
        if found:
            self._extend(sorted(found), running, now, rescue)

    def _extend(
        self, found: list[tuple[int, int, int]], running: Any, now: int, rescue: Rescue
    ) -> None:
        wanted = [
            WantedLimit(0, row, walltime, parts=len(PARTS) if left <= LATE else 1)
            for left, row, walltime in found
        ]
        pools = [self._pool(running, now)]
        for each, played in zip(
            wanted, play_limits(pools, RULES, wanted, rescue.bound, inf), strict=True
        ):
            if played is not None and played.walltime is not None:
                self._give(int(running[each.row]), played.walltime)

    def _pool(self, running: Any, now: int) -> PoolQueue:
        clock = self.state.clock[0]
        waiting = self.state.queue["job"][clock["head"] : clock["tail"]]
        return PoolQueue(
            queue=Snapshot(
                processors=int(clock["free"] + self.state.jobs["processors"][running].sum()),
                running=self._columns(running, now, "start"),
                waiting=self._columns(waiting, now, "submit"),
            ),
            running=range(len(running)),
            waiting=range(len(waiting)),
            quantiles=([None] * len(running), [None] * len(waiting)),
        )

    def _columns(self, places: Any, now: int, since: str) -> QueuedJobs:
        """Return the jobs, running until their limits."""
        jobs = self.state.jobs[places]
        none, requests = np.full(len(jobs), -1), jobs["request"].copy()
        ages = now - jobs[since]
        return QueuedJobs(
            processors=jobs["processors"].copy(),
            request=requests,
            estimate=requests,
            runtime=np.maximum(requests, ages + 1) if since == "start" else requests,
            age=ages,
            priority=np.zeros(len(jobs)),
            owner=none,
            array=none,
            array_limit=np.zeros(len(jobs), np.int64),
        )

    def _give(self, place: int, walltime: int) -> None:
        """Let a running job end at its need or its new limit, in the engine's lists, too."""
        self.extended.add(place)
        jobs, clock = self.state.jobs, self.state.clock
        jobs["request"][place] = jobs["estimate"][place] = walltime
        jobs["runtime"][place] = min(self.needed[self.job_of[place]], walltime)
        jobs["expected_end"][place] = jobs["start"][place] + walltime
        ends = self.state.ends[: clock["ends"][0]]
        ends["time"][ends["job"] == place] = jobs["start"][place] + jobs["runtime"][place]
        ends[:] = np.sort(ends, order=("time", "serial"))
        running = self.state.running[: clock["running"][0]]
        running["end"][running["job"] == place] = jobs["expected_end"][place]
        running[:] = running[np.argsort(running["end"], kind="stable")]
        clock["disturbed"] = 1

    def _learn(self, *, is_asked: bool) -> None:
        """Note what was cut; learn what has ended, as the service does, where it is asked."""
        jobs, finished = self.state.jobs, int(self.state.clock["finished"][0])
        for place in self.state.finished[self.learned : finished].tolist():
            number, job = self.job_of[place], jobs[place]
            if self.cut[number] and job["runtime"] < self.needed[number]:
                self.lost.append(number)
            if is_asked:
                self.model.observe(self._completion(place))
        self.learned = finished

    def _completion(self, place: int) -> Completion:
        """Return the run of a row; its request is the one at its submission."""
        job, run = self.state.jobs[place], self.site.runs[self.job_of[place]]
        is_first = self.places[self.job_of[place]] == place
        limit = self.site.limits[self.job_of[place]] if is_first else job["request"]
        start = float(self.origin + job["start"])
        return replace(
            run,
            submission=replace(
                run.submission,
                requested_walltime=float(limit),
                submit_time=float(self.origin + job["submit"]),
            ),
            start_time=start,
            end_time=start + float(job["runtime"]),
            runtime=float(job["runtime"]),
            status=Status.TIMEOUT if job["runtime"] >= job["request"] else Status.COMPLETED,
        )


def site_of(part: LogPart, seed: int = SEED) -> Site:
    """Return a log under limits that are lowered by chance."""
    runs = sorted(part.runs(), key=lambda run: run.submission.submit_time)
    limits = [ceil(run.submission.requested_walltime) for run in lowered(runs, seed)]
    longest = max(ceil(run.submission.requested_walltime) for run in runs)
    widest = max(run.submission.requested_processors or 1 for run in runs)
    processors = read_swf(part.trace).max_processors or widest
    return Site(runs, np.array(limits), processors, longest)


def play(part: LogPart) -> tuple[str, ...]:
    """Play a log with and without rescue; return the cells of its row."""
    site, rescue = site_of(part), part.options
    plain, lost = (Twin(site).play(None, resubmits=each) for each in (False, True))
    saving, again = (Twin(site).play(rescue, resubmits=each) for each in (False, True))
    cut, needed = site.cut, site.needed
    within = cut & (needed <= site.limits * (1 + rescue.share))
    saved, extended = cut & (saving.limits >= needed), saving.limits > site.limits

    def change(with_rescue: Played, without: Played) -> str:
        before = without.waits[~cut].mean()
        return f"{with_rescue.waits[~cut].mean() / before - 1:+.1%}" if before >= MINUTE else ""

    if not within.any():
        raise CommandError(f"No run of {part.trace} would be cut within reach.", ExitCode.USAGE)
    return (
        Path(part.trace).name.split(".")[0],
        f"{len(cut):,}",
        f"{cut.sum():,}",
        f"{np.median(needed[cut] / site.limits[cut]):.2f}",
        f"{extended.sum():,}",
        f"{saved.sum():,}",
        f"{saved.sum() / cut.sum():.0%}",
        f"{within.sum():,}",
        f"{(saved & within).sum() / within.sum():.0%}",
        f"{plain.waits[~cut].mean() / MINUTE:,.0f}",
        change(saving, plain),
        f"{lost.waits[~cut].mean() / MINUTE:,.0f}",
        change(again, lost),
    )


HEADS = (
    *("log", "jobs", "cut", "needed", "extended", "saved", "of cut", "within", "of these"),
    *("wait", "with rescue", "wait, again", "with rescue"),
)


def main(  # noqa: PLR0913 - options of a command
    traces: Traces,
    *,
    limit: Limit = None,
    share: Annotated[
        float, typer.Option(min=0.01, help="Most that is added, as a share of the limit.")
    ] = 1.0,
    delay: Annotated[
        float, typer.Option(min=0, help="Seconds by which a planned start may move later.")
    ] = 0.0,
    probability: Annotated[
        float, typer.Option(min=0, max=1, help="Least probability of being cut.")
    ] = LIKELY,
    processes: Processes = None,
    distributed: Distributed = None,
) -> None:
    """Print how many jobs that would be cut are saved, and how the waits of others change.

    Example: python research/rescue.py SDSC-SP2-1998-4.2-cln.swf.gz --limit 5000
    """
    rescue = Rescue(probability, MOSTLY_USED, share, delay)
    parts = log_parts(traces, limit, rescue)
    rows = [
        cells for _, cells in play_logs(play, parts, processes=processes, distributed=distributed)
    ]
    out.print(text_table(HEADS, rows), soft_wrap=True, markup=False)


if __name__ == "__main__":
    run_script(main)
