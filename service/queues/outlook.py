"""What was forecast for each job of a queue, from its first sight until now."""

from msgspec import Struct, field

from service.queues.snapshot import LiveJob, QueueSnapshot

MOST_POINTS = 24
"""Forecasts of one job that are remembered; a job that has more keeps every other of them."""

SAME_SECONDS = 60.0
"""A forecast that is no further than this from the one before replaces that one."""


class Span(Struct, frozen=True, array_like=True, gc=False):
    """Bounds of a time, in Unix seconds, that hold it with probability ``coverage``."""

    lower: float
    upper: float
    coverage: float

    def holds(self, time: float) -> bool:
        """Whether a time is within the bounds."""
        return self.lower <= time <= self.upper


class Point(Struct, frozen=True, array_like=True, gc=False):
    """What one forecast said of a job; times are Unix seconds."""

    made_at: float
    start: float
    end: float
    start_span: Span | None = None
    end_span: Span | None = None


class Outlook(Struct, kw_only=True, gc=False):
    """What is forecast for one job.

    Attributes:
        predicted: its runtime as it was last predicted, in seconds.
        points: forecasts, the oldest first, the last one last; thinned between the two.
        before: the forecast before the last one.
        position: its place among the jobs that wait for the same processors, from 1.
        waits: whether it waited when it was forecast last.
    """

    predicted: float
    points: list[Point] = field(default_factory=list)
    before: Point | None = None
    position: int | None = None
    waits: bool = True

    @property
    def last(self) -> Point | None:
        """The last forecast."""
        return self.points[-1] if self.points else None

    def add(self, point: Point) -> None:
        """Remember one more forecast."""
        self.before = self.last
        if len(self.points) > 2 and _is_same(self.points[-2], self.points[-1]):
            self.points.pop()
        self.points.append(point)
        if len(self.points) > MOST_POINTS:
            self.points = [*self.points[:-1][::2], point]

    def moved(self, *, running: bool) -> float | None:
        """How much later the last forecast has the job start, or end if it runs."""
        return _later(self.before, self.last, running=running)

    def moved_since_arrival(self, *, running: bool) -> float | None:
        """The same since the first forecast."""
        return _later(self.points[0] if self.points else None, self.last, running=running)


def _is_same(point: Point, next_point: Point) -> bool:
    return (
        abs(point.start - next_point.start) <= SAME_SECONDS
        and abs(point.end - next_point.end) <= SAME_SECONDS
    )


def _later(before: Point | None, last: Point | None, *, running: bool) -> float | None:
    if before is None or last is None:
        return None
    return last.end - before.end if running else last.start - before.start


class LiveQueue(Struct, kw_only=True):
    """The latest queue of a cluster, and what is forecast for its jobs.

    Attributes:
        snapshot: the queue.
        received_at: Unix seconds.
        forecast_at: when the queue was taken that was forecast last.
        outlooks: by job id; jobs of the last forecast that have left are not among them.
        departed: jobs that waited when they were last seen, by job id, and when that was. Whether
            they have run is not known yet.
        trouble: why the queue could not be forecast, in a sentence.
    """

    snapshot: QueueSnapshot
    received_at: float
    forecast_at: float | None = None
    outlooks: dict[str, Outlook] = field(default_factory=dict)
    departed: dict[str, "Departed"] = field(default_factory=dict)
    trouble: str | None = None


class Departed(Struct, frozen=True, kw_only=True, gc=False):
    """A job that has left the queue without having been seen running."""

    job: LiveJob
    outlook: Outlook
    seen_at: float
