"""The page Queue, and one job's page."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from service.contract.answers import PastRunAnswer
from service.contract.queue_answers import (
    ForecastPointAnswer,
    LiveJobAnswer,
    LiveJobDetailAnswer,
    QueueAnswer,
)
from service.contract.queue_bodies import QueueQuery
from service.errors import UnknownQueueError
from service.operations.queues.showing import ShowingQueue
from service.web.charts import Chart, Line
from service.web.frame import Visitor
from service.web.timeline import Stripe, Window, stripe_of, window_of
from service.web.wording import count, duration

ROWS = 50


class JobRow(Struct, frozen=True):
    """A job and its picture."""

    job: LiveJobAnswer
    stripe: Stripe


class QueueShown(Struct, frozen=True, kw_only=True):
    """What the page shows; without a queue, its ``queue`` is None."""

    sentence: str
    queue: QueueAnswer | None
    window: Window | None
    rows: Sequence[JobRow]
    query: QueueQuery
    age: float

    @property
    def before(self) -> int | None:
        """Where the page before begins."""
        return max(0, self.query.offset - ROWS) if self.query.offset else None

    @property
    def after(self) -> int | None:
        """Where the next page begins."""
        next_one = self.query.offset + ROWS
        return next_one if self.queue and next_one < self.queue.found else None


class ReasonRow(Struct, frozen=True):
    """A past run that a prediction rests on."""

    run: PastRunAnswer
    share_of_longest: float


class JobShown(Struct, frozen=True, kw_only=True):
    """What the page of one job shows."""

    sentence: str
    detail: LiveJobDetailAnswer
    reasons: Sequence[ReasonRow]
    chart: Chart


class QueuePage:
    """Gathers what the page of the queue shows."""

    def __init__(self, queues: ShowingQueue, clock: Callable[[], float]) -> None:
        self._queues = queues
        self._clock = clock

    def state(self, cluster: str) -> tuple[float | str | None, ...]:
        """What a queue is known by: another one, or another forecast of it, has another state."""
        try:
            queue = self._queues.known(cluster)
        except UnknownQueueError:
            return ()
        return queue.snapshot.taken_at, queue.received_at, queue.forecast_at, queue.trouble

    def show(self, cluster: str, visitor: Visitor, query: QueueQuery) -> QueueShown:
        """A part of a cluster's queue."""
        try:
            queue = self._queues.queue(cluster, query, visitor.caller)
        except UnknownQueueError:
            return QueueShown(sentence="", queue=None, window=None, rows=(), query=query, age=0.0)
        now = self._clock()
        window = window_of(queue.jobs, now)
        return QueueShown(
            sentence=sentence(queue),
            queue=queue,
            window=window,
            rows=[JobRow(job, stripe_of(job, window)) for job in queue.jobs],
            query=query,
            age=now - queue.taken_at,
        )


def job_shown(detail: LiveJobDetailAnswer) -> JobShown:
    """What the page of one job shows."""
    runs = detail.explanation or []
    longest = max((run.runtime for run in runs), default=1.0) or 1.0
    return JobShown(
        sentence=why(detail),
        detail=detail,
        reasons=[ReasonRow(run, run.runtime / longest) for run in runs],
        chart=moves(detail.forecasts, detail.job.state == "running"),
    )


def sentence(queue: QueueAnswer) -> str:
    """The page in a sentence."""
    running, waiting = queue.totals.running, queue.totals.waiting
    machine = sum(pool.processors for pool in queue.pools)
    told = (
        f"{jobs(running.jobs)} {'runs' if running.jobs == 1 else 'run'} on "
        f"{count(running.processors)} of {count(machine)} processors, "
        f"{jobs(waiting.jobs)} {'waits' if waiting.jobs == 1 else 'wait'}"
    )
    if queue.totals.held.jobs:
        held = queue.totals.held.jobs
        told += f", {count(held)} {'is' if held == 1 else 'are'} held"
    return told + "."


def jobs(number: int) -> str:
    """How many jobs."""
    return "1 job" if number == 1 else f"{count(number)} jobs"


def why(detail: LiveJobDetailAnswer) -> str:
    """The prediction in a sentence."""
    job, span = detail.job, detail.walltime_interval
    predicted = job.predicted_walltime
    if predicted is None:
        return "It has not been predicted yet."
    # Where an underestimate is dear, a prediction may lie beyond its range: not what is likely.
    is_likely = span is None or span.lower <= predicted <= span.upper
    told = (
        f"{'Likely to run' if is_likely else 'Planned with'} {duration(predicted)} of the "
        f"{duration(job.requested_walltime)} asked for"
    )
    if span is not None:
        told += (
            f"; between {duration(span.lower)} and {duration(span.upper)} in "
            f"{round(100 * span.coverage)} of 100 such jobs"
        )
    return told + "."


def moves(points: Sequence[ForecastPointAnswer], runs: bool) -> Chart:  # noqa: FBT001 - of the job
    """How the forecast of a job moved."""
    start = [] if runs else _lines("start", "method-least-cost", points)
    return Chart(
        name="moves",
        title="How the forecast moved",
        says="When the job was expected to end" + ("." if runs else ", and to start.")
        + " Dashed: the bounds of the range, where they are near.",
        x=[point.made_at for point in points],
        series=[*start, *_lines("end", "method-max-usage", points)],
        unit="moment",
        empty="There has been one forecast; the next comes with the next look at the queue.",
    )  # fmt: skip


def _lines(what: str, colour: str, points: Sequence[ForecastPointAnswer]) -> list[Line]:
    spans = [getattr(point, f"{what}_interval") for point in points]
    times = [getattr(point, f"{what}_time") for point in points]
    bounds = [
        Line(
            label=f"{what}, {name}",
            values=[getattr(span, bound) if span else None for span in spans],
            colour=colour,
            dash=True,
        )
        for name, bound in (("earliest", "lower"), ("latest", "upper"))
    ]
    return [Line(label=what, values=times, colour=colour, heavy=True), *bounds]
