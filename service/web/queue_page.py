"""The page Queue, and one job's page."""

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct
from pydantic import Field

from service.contract.answers import PastRunAnswer
from service.contract.queue_answers import (
    ForecastPointAnswer,
    LiveJobAnswer,
    LiveJobDetailAnswer,
    QueueAnswer,
)
from service.contract.queue_bodies import QueueQuery
from service.errors import UnknownQueueError
from service.web.charts import Chart, Line, Stripe, stripe_of, window_of
from service.web.frame import Frame, Name, PageQuery
from service.web.sources import Sources
from service.web.wording import count, duration

ROWS = 50


class JobRow(Struct, frozen=True):
    """A job and its picture."""

    job: LiveJobAnswer
    stripe: Stripe


class ReasonRow(Struct, frozen=True):
    """A past run that a prediction rests on."""

    run: PastRunAnswer
    share_of_longest: float


class QueuePageQuery(PageQuery):
    """The jobs to show; empty texts stand for all."""

    user: Name = ""
    queue: Name = ""
    state: Literal["", "running", "waiting", "held"] = ""
    offset: int = Field(0, ge=0, le=100_000)


class JobQuery(PageQuery):
    """The job to show."""

    id: Name


def view(sources: Sources, frame: Frame, query: QueuePageQuery, _facts: None) -> dict[str, Any]:
    """Return a part of a cluster's queue; without a queue, ``queue`` is None."""
    wanted = QueueQuery(
        user=query.user or None,
        queue=query.queue or None,
        state=query.state or None,
        limit=ROWS,
        offset=query.offset,
    )
    try:
        queue = sources.queues.queue(frame.cluster, wanted, frame.visitor.caller)
    except UnknownQueueError:
        return {"title": "Queue", "queue": None}
    now = sources.clock()
    window = window_of(queue.jobs, now)
    next_offset = query.offset + ROWS
    return {
        "title": "Queue",
        "sentence": sentence(queue),
        "queue": queue,
        "window": window,
        "rows": [JobRow(job, stripe_of(job, window)) for job in queue.jobs],
        "query": wanted,
        "age": now - queue.taken_at,
        "before": max(0, query.offset - ROWS) if query.offset else None,
        "after": next_offset if next_offset < queue.found else None,
    }


def state_of(sources: Sources, cluster: str) -> tuple[float | str | None, ...]:
    """Return what changes whenever the page of a queue does, but for the time that passes."""
    try:
        queue = sources.queues.live_queue(cluster)
    except UnknownQueueError:
        return ()
    return queue.snapshot.taken_at, queue.received_at, queue.forecast_at, queue.trouble


def job_view(
    _sources: Sources, _frame: Frame, query: JobQuery, detail: LiveJobDetailAnswer
) -> dict[str, Any]:
    """Return one job with its forecasts and the runs that its prediction rests on."""
    runs = detail.explanation or []
    longest = max((run.runtime for run in runs), default=1.0) or 1.0
    return {
        "title": f"Job {query.id}",
        "sentence": why(detail),
        "detail": detail,
        "reasons": [ReasonRow(run, run.runtime / longest) for run in runs],
        "chart": moves(detail.forecasts, detail.job.state == "running"),
    }


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
