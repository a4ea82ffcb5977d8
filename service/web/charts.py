"""Charts as the script draws them, and the picture in each row of the queue."""

from collections.abc import Iterable, Sequence
from math import ceil, floor
from typing import Any, Literal

import msgspec
from msgspec import Struct

from service.contract.queue_answers import LiveJobAnswer
from terminal.words import DAY

WIDTH = 1000.0
"""Width of a picture in its own units."""

SHORTEST, LONGEST = 1800.0, 7 * 86400.0
"""Bounds of the seconds ahead that are shown."""

STEPS = tuple(minutes * 60.0 for minutes in (10, 15, 30, 60, 120, 240, 480, 720, 1440, 2880, 5760))
"""Distances of the labels of the axis of time, in seconds."""

MOST_STEPS, MOST_DATED_STEPS = 5, 3
"""Most steps of the axis; labels with a date, beyond a day, are longer."""

MOST_ENDS = 0.9
"""Share of the jobs whose ends are within the picture."""

PAST = 0.25
"""Time before now that is shown, as a share of the time ahead."""

Unit = Literal["duration", "share", "count", "moment"]


class ChartLine(Struct, frozen=True, kw_only=True):
    """One line.

    Attributes:
        values: one for each place of the chart; None leaves a gap.
        colour: a name of the palette.
        heavy: whether it is the one to look at first.
        fill: whether the space below is tinted.
    """

    label: str
    values: Sequence[float | None]
    colour: str
    dash: Literal["", "dashed", "dotted"] = ""
    heavy: bool = False
    fill: bool = False


class Chart(Struct, frozen=True, kw_only=True):
    """Lines over time.

    Attributes:
        says: how to read it, in a sentence.
        empty: said in the place of a chart of fewer than two points.
        by: what a place is.
        most: the upper end of the axis; None: what the values need.
        marks: Unix seconds of dotted lines across.
        log: whether the axis of the values is logarithmic.
        beside: a duration in whose unit others are written.
    """

    name: str
    title: str
    says: str
    x: Sequence[float]
    series: Sequence[ChartLine]
    unit: Unit
    empty: str
    by: Literal["day", "moment"] = "moment"
    most: float | None = None
    marks: Sequence[float] = ()
    log: bool = False
    beside: float | None = None

    @property
    def heading(self) -> str:
        """Heading of the first column of the table."""
        return "Day" if self.by == "day" else "Time"

    @property
    def is_drawable(self) -> bool:
        """Whether one line has at least two points."""
        return any(sum(value is not None for value in line.values) > 1 for line in self.series)

    @property
    def data(self) -> dict[str, Any]:
        """The fields that the script needs."""
        needed: dict[str, Any] = msgspec.to_builtins(self)
        for name in ("name", "title", "says", "empty"):
            del needed[name]
        return needed


class TimeWindow(Struct, frozen=True):
    """The time that the pictures show; in Unix seconds."""

    begin: float
    now: float
    end: float
    step: float

    @property
    def ticks(self) -> list[float]:
        """Times of the labels of the axis, at equal distances, both ends included."""
        steps = round((self.end - self.begin) / self.step)
        return [self.begin + number * self.step for number in range(steps + 1)]

    @property
    def kind(self) -> str:
        """Return how times on the axis are written: the hour within a day, days of whole days."""
        if self.end - self.begin <= DAY:
            return "clock"
        return "moment" if self.step % DAY else "date"

    def place(self, at: float) -> float:
        """Return the place of a time, from 0 to WIDTH; times outside are at the edge."""
        inside = min(max(at, self.begin), self.end)
        return round(WIDTH * (inside - self.begin) / (self.end - self.begin), 1)

    @property
    def now_place(self) -> float:
        """Place of the present."""
        return self.place(self.now)


class Block(Struct, frozen=True):
    """A part of a row."""

    kind: str
    left: float
    width: float


class Stripe(Struct, frozen=True, kw_only=True):
    """The picture of one row.

    Attributes:
        blocks: what the job did and will do.
        range: from where to where the end, or the start of a waiting job, may be.
        requested_end: place of the requested end; None outside the picture.
        continues: whether the job goes on beyond the picture.
    """

    blocks: Sequence[Block]
    range: tuple[float, float] | None
    requested_end: float | None
    continues: bool = False


def window_of(jobs: Iterable[LiveJobAnswer], now: float) -> TimeWindow:
    """Return the period in which most of the jobs end."""
    ends = sorted(job.end_time - now for job in jobs if job.end_time is not None)
    most = ends[int(MOST_ENDS * (len(ends) - 1))] * 1.15 if ends else SHORTEST
    ahead = min(max(most, SHORTEST), LONGEST)
    begin, end = now - PAST * ahead, now + ahead
    most_steps = MOST_STEPS if end - begin <= DAY else MOST_DATED_STEPS
    step = next(each for each in STEPS if end - begin <= most_steps * each)
    return TimeWindow(floor(begin / step) * step, now, ceil(end / step) * step, step)


def stripe_of(job: LiveJobAnswer, window: TimeWindow) -> Stripe:
    """Return the picture of a job."""
    if job.start_time is None:
        return Stripe(blocks=(), range=None, requested_end=None)
    end = job.end_time if job.end_time is not None else job.start_time + job.requested_walltime
    if job.state == "running":
        blocks = [
            block("ran", job.start_time, window.now, window),
            block("ahead", window.now, end, window),
        ]
        span = job.end_interval
    else:
        blocks = [block("wait", job.start_time, end, window)]
        span = job.start_interval
    requested_end = job.start_time + job.requested_walltime
    return Stripe(
        blocks=[each for each in blocks if each.width > 0],
        range=(window.place(span.lower), window.place(span.upper)) if span else None,
        requested_end=window.place(requested_end) if requested_end < window.end else None,
        continues=end > window.end,
    )


def block(kind: str, begin: float, end: float, window: TimeWindow) -> Block:
    """Return a part of a row, as far as it is within the picture."""
    left = window.place(begin)
    return Block(kind, left, round(window.place(end) - left, 1))
