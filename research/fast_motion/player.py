"""Plays jobs through a cluster: fast where nothing happens, slowly near events.

An event is a submission, a start or an end. The faster the clock, the more of its seconds a launch
or a completion takes, and the later a scheduler's cycle falls.
"""

import heapq
import time
from collections.abc import Iterable, Sequence
from math import inf
from typing import NamedTuple, Protocol

from fast_clock import FastClock

BEFORE, AFTER = 3.0, 20.0
"""Seconds of the clock around an event in which it goes slowly."""

WORK = 40_000.0
"""Bound on speed times waiting jobs: a cycle's time grows with the queue."""

LONGEST_SLEEP = 0.004
"""Real seconds."""

LAUNCH, RECORD = 5.0, 10.0
"""Real seconds for which the clock goes slowly for a launch, or until an end is recorded."""

SETTLED = 20.0
"""Real seconds before the machine is judged."""


class Speeds(NamedTuple):
    """Speeds of the clock.

    Attributes:
        slow: near events.
        waiting: at most, while jobs wait.
        idle: else.
        most_crawled: share of the real time in which the clock may crawl.
    """

    slow: float = 100.0
    waiting: float = 1500.0
    idle: float = 3000.0
    most_crawled: float = 0.25


class TooFastError(RuntimeError):
    """The machine does not keep up with the speeds, or the play takes too long."""


class PlayJob(NamedTuple):
    """A job of a play.

    Attributes:
        submit: seconds.
        run: seconds.
        options: of sbatch or qsub, which say its size and queue.
        site_factor: SiteFactor of Slurm to set once it is submitted; None: none.
        longest: seconds after which the resource manager ends it.
    """

    submit: int
    run: int
    options: Sequence[str]
    site_factor: int | None = None
    longest: float = inf


class Records(Protocol):
    """Records of a resource manager about its jobs."""

    def starts(self) -> Iterable[str]:
        """Return the ids of the jobs that were started since the last call."""

    def ends(self) -> int:
        """Return the number of jobs whose end is recorded."""


class Cluster(Protocol):
    """A resource manager whose daemons live by the clock of a play."""

    clock: FastClock
    records: Records

    def submit(self, run: int, *options: str) -> str:
        """Submit a job that runs for some seconds of the clock; return its id."""

    def set_site_factor(self, job: str, factor: int) -> None:
        """Set the SiteFactor of a job, where the resource manager is Slurm."""

    def reports(self) -> Sequence[tuple[str, str]]:
        """Return the lines that jobs have written since the last call: an id, an end or ``?``."""

    def store_starts(self, jobs: Sequence[str]) -> None:
        """Say to jobs that wrote ``?`` when they started."""


class Watch:
    """Events of a cluster: launches, ends and records.

    Attributes:
        ends: known ends of running jobs, a heap.
        last_end: the last of them that has come, or when the last record was seen.
        excess: seconds by which jobs would outlive their limits, by their ids.
        reported: number of jobs that were launched.
        recorded: number of jobs whose end is recorded.
        started: ids of jobs that were started and are not launched yet.
        started_at: real time of the last start.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._launched: set[str] = set()
        self.ends: list[float] = []
        self.last_end = -inf
        self.ended = self.reported = self.recorded = 0
        self.excess: dict[str, float] = {}
        self.started: set[str] = set()
        self.started_at = 0.0

    def look(self) -> None:
        """Take in what has happened since the last look."""
        self._read_reports()
        for job in self._cluster.records.starts():
            if job not in self._launched:
                self.started.add(job)
                self.started_at = time.monotonic()
        now = self._cluster.clock.now()
        while self.ends and self.ends[0] <= now:
            self.last_end = max(self.last_end, heapq.heappop(self.ends))
            self.ended += 1
        recorded = self._cluster.records.ends()
        if recorded > self.recorded:  # Slurm ends jobs up to half a minute after their limit
            self.last_end = max(self.last_end, now)
        self.recorded = recorded

    def _read_reports(self) -> None:
        asking = []
        for job, end in self._cluster.reports():
            if end == "?":
                asking.append(job)
                continue
            self.reported += 1
            heapq.heappush(self.ends, float(end) - self.excess.get(job, 0.0))
            self._launched.add(job)
            self.started.discard(job)
        if asking:
            self._cluster.store_starts(asking)


class Player:
    """Plays jobs through a cluster.

    Args:
        cluster: a cluster without jobs.
        speeds: speeds of the clock.
        longest: real seconds that the play may take.
        zero: Unix seconds of the clock at which second 0 of the jobs is; None: soon.

    Attributes:
        zero: Unix seconds of the clock at which second 0 of the jobs is.
        ids: of the jobs that were submitted.
        seconds: real seconds of the play.
    """

    def __init__(
        self, cluster: Cluster, speeds: Speeds, longest: float, zero: int | None = None
    ) -> None:
        self._clock = cluster.clock
        self._cluster = cluster
        self._speeds = speeds
        self._longest = longest
        self._watch = Watch(cluster)
        self._submitted = 0
        self._last_submission = -inf
        self._missing_since = inf
        self.ids: list[str] = []
        self._began = time.monotonic()
        self._crawled = self._clock.crawled
        self.zero = (int(self._clock.now()) // 60 + 2) * 60 if zero is None else zero

    @property
    def seconds(self) -> float:
        """Real seconds since the play began."""
        return time.monotonic() - self._began

    @property
    def crawled(self) -> float:
        """Share of the real time in which the clock crawled."""
        return (self._clock.crawled - self._crawled) / max(self.seconds, 1e-9)

    def play(self, jobs: Sequence[PlayJob]) -> list[str]:
        """Submit all jobs at their times and wait for their ends; return their ids.

        Raises:
            TooFastError: the machine does not keep up, or the play takes too long.
        """
        for job in jobs:
            self._play_until(self.zero + job.submit)
            self.ids.append(self._cluster.submit(job.run, *job.options))
            self._watch.excess[self.ids[-1]] = max(0.0, job.run - job.longest)
            if job.site_factor is not None:
                self._clock.go_on(self._speeds.slow)
                self._cluster.set_site_factor(self.ids[-1], job.site_factor)
            self._submitted += 1
            self._last_submission = self._clock.now()
        while self._watch.recorded < len(jobs):
            self._step(inf)
        return self.ids

    def _play_until(self, due: float) -> None:
        while self._clock.now() < due:
            self._step(due)

    def _step(self, due: float) -> None:
        """Go on for some milliseconds, at a speed that fits what happens."""
        self._watch.look()
        self._check()
        now = self._clock.now()
        coming = min(due, self._watch.ends[0] if self._watch.ends else now + 60)
        is_near = self._is_near_event(now, coming)
        speed = self._speeds.slow if is_near else self._speed_between_events()
        self._clock.go_on(speed)
        stop = coming if is_near else coming - BEFORE
        time.sleep(max(0.0002, min((stop - now) / speed, LONGEST_SLEEP)))

    def _is_near_event(self, now: float, coming: float) -> bool:
        real, watch = time.monotonic(), self._watch
        if watch.recorded >= watch.ended:
            self._missing_since = inf
        else:
            self._missing_since = min(self._missing_since, real)
        is_unrecorded = 0 <= real - self._missing_since < RECORD
        is_unlaunched = bool(watch.started) and real - watch.started_at < LAUNCH
        last = max(watch.last_end, self._last_submission)
        return now < last + AFTER or coming - now < BEFORE or is_unrecorded or is_unlaunched

    def _speed_between_events(self) -> float:
        waiting = self._submitted - self._watch.reported
        if not waiting:
            return self._speeds.idle
        return max(self._speeds.slow, min(self._speeds.waiting, WORK / waiting))

    def _check(self) -> None:
        if self.seconds > self._longest:
            raise TooFastError(
                f"The play was not over after {self._longest:.0f} s: {self._submitted} jobs were "
                f"submitted, {self._watch.recorded} had ended."
            )
        if self.seconds > SETTLED and self.crawled > self._speeds.most_crawled:
            raise TooFastError(
                f"The machine does not keep up with these speeds: the clock crawled for "
                f"{self.crawled:.0%} of the time. Lower them (--speeds), allow more "
                "(--most-crawled), or wait until the machine is idle."
            )
