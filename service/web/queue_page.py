"""The page Queue, and one job's page."""

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct, to_builtins
from pydantic import Field

from predictors.jobs import Interval, PastRun
from service.contract.queue_answers import (
    AtRiskAnswer,
    EndedJobAnswer,
    EndedRunAnswer,
    ForecastPointAnswer,
    LiveJobAnswer,
    LiveJobDetailAnswer,
    QueueAnswer,
)
from service.contract.queue_bodies import QueueQuery
from service.errors import UnknownSnapshotError
from service.web.charts import Chart, ChartLine, Stripe, stripe_of, window_of
from service.web.frame import Frame, Name, PageQuery, PageSources, count, duration, share
from terminal.prediction_words import (
    NO_INTERVAL,
    WITH_RANGE,
    grounds_words,
    likely_words,
    limit_words,
    planned_reason,
    planned_word,
    range_words,
)

ROWS = 50

BOUNDS: tuple[tuple[str, str, Literal["dotted", "dashed"]], ...] = (
    ("earliest", "lower", "dotted"),
    ("latest", "upper", "dashed"),
)
"""The lines of an interval: name, bound and how the line is broken."""


ORDERS = {
    "waiting-first": "waiting first",
    "running-first": "running first",
    "start": "next to start",
    "end": "next to end",
    "processors": "most processors",
}
"""Orders of the jobs, and their names."""


class JobRow(Struct, frozen=True):
    """A job and its picture."""

    job: LiveJobAnswer
    stripe: Stripe


class ReasonRow(Struct, frozen=True):
    """A past run that a prediction rests on."""

    run: PastRun
    share_of_longest: float


class QueuePageQuery(PageQuery):
    """The jobs to show; empty texts stand for all."""

    user: Name = ""
    queue: Name = ""
    state: Literal["", "running", "waiting", "held"] = ""
    sort: Literal["waiting-first", "running-first", "start", "end", "processors"] = "waiting-first"
    offset: int = Field(0, ge=0, le=100_000)


class JobPageQuery(PageQuery):
    """The job to show."""

    id: Name


def view(sources: PageSources, frame: Frame, query: QueuePageQuery, _facts: None) -> dict[str, Any]:
    """Return a part of a cluster's queue; without a queue, ``queue`` is None."""
    filters = QueueQuery(
        user=query.user or None,
        queue=query.queue or None,
        state=query.state or None,
        sort=query.sort,
        limit=ROWS,
        offset=query.offset,
    )
    try:
        queue = sources.queues.queue(frame.cluster, filters, frame.visitor.caller)
    except UnknownSnapshotError:
        return {"queue": None}
    now = sources.clock()
    window = window_of(queue.jobs, now)
    next_offset = query.offset + ROWS
    return {
        "sentence": sentence(queue),
        "queue": queue,
        "window": window,
        "rows": [JobRow(job, stripe_of(job, window)) for job in queue.jobs],
        "query": filters,
        "queues": sorted({name for pool in queue.pools for name in pool.queues}),
        "orders": ORDERS,
        "age": now - queue.taken_at,
        "no_range": NO_INTERVAL.get(queue.no_interval or ""),
        "foreign": any(job.basis and job.basis.reason == "others" for job in queue.jobs),
        "before": max(0, query.offset - ROWS) if query.offset else None,
        "after": next_offset if next_offset < queue.matching else None,
    }


def state_of(sources: PageSources, cluster: str) -> tuple[float | str | None, ...]:
    """Return what changes whenever the page of a queue does, but for the time that passes."""
    try:
        queue = sources.queues.live_queue(cluster)
    except UnknownSnapshotError:
        return ()
    return queue.snapshot.taken_at, queue.received_at, queue.forecast_at, queue.trouble


def job_view(
    _sources: PageSources,
    _frame: Frame,
    query: JobPageQuery,
    detail: LiveJobDetailAnswer | EndedJobAnswer,
) -> dict[str, Any]:
    """Return one job with its forecasts and the runs that its prediction rests on."""
    if isinstance(detail, EndedJobAnswer):
        return ended_view(query, detail)
    runs = detail.explanation or []
    longest = max((run.runtime for run in runs), default=1.0) or 1.0
    return {
        "title": f"Job {query.id}",
        "ended": None,
        "sentence": why(detail),
        "detail": detail,
        "range": range_of(detail),
        "likely": likely_words(detail.likely),
        "word": planned_word(detail.likely, plans=detail.plans_by_predictions).capitalize(),
        "limit": limit_words(to_builtins(detail.limit)).partition("; ")[2],
        "grounds": grounds_words(detail.basis.jobs, detail.basis.reason, detail.method),
        "no_range": NO_INTERVAL.get(detail.no_interval or ""),
        "reasons": [ReasonRow(run, run.runtime / longest) for run in runs],
        "chart": moves(detail.forecasts, detail.job.state == "running"),
    }


def risk_view(
    _sources: PageSources, _frame: Frame, _query: PageQuery, found: AtRiskAnswer | None
) -> dict[str, Any]:
    """Return the running jobs that will probably be cut; without a queue, ``found`` is None."""
    if found is None:
        return {"title": "Jobs at risk", "found": None}
    number = len(found.jobs)
    lost = sum(job.elapsed * job.requested_processors for job in found.jobs) / 3600
    who = f"{jobs(number)} that {'has' if number == 1 else 'have'}" if number else "No job that has"
    text = f"{who} used {share(found.used)} of the limit will be cut there with a probability of "
    text += f"{share(found.probability)} or more"
    text += f"; {count(lost)} core-hours have gone into {'it' if number == 1 else 'them'}"
    return {
        "title": "Jobs at risk",
        "found": found,
        "sentence": f"{text if number else text.partition(';')[0]}.",
        "rows": [(job, limit_words(to_builtins(job.limit))) for job in found.jobs],
    }


def ended_view(query: JobPageQuery, ended: EndedJobAnswer) -> dict[str, Any]:
    """Return one job that has ended, and earlier runs like it."""
    run = ended.runs[0]
    longest = max([run.runtime, run.predicted_walltime or 0.0, run.requested_walltime, 1.0])
    bars = [("Ran", run.runtime, "method-max-usage")]
    if run.predicted_walltime is not None:
        bars.append(("Predicted", run.predicted_walltime, "method-least-cost"))
    if run.likely is not None:
        bars.append(("Likely", run.likely, "method-attention"))
    bars.append(("Requested", run.requested_walltime, "method-requested"))
    return {
        "title": f"Job {query.id}",
        "sentence": what_became(run),
        "ended": ended,
        "run": run,
        "bars": [(name, seconds, seconds / longest, colour) for name, seconds, colour in bars],
        "longest": max([each.runtime for each in ended.earlier], default=1.0) or 1.0,
    }


def what_became(run: EndedRunAnswer) -> str:
    """Summarise a run that has ended in two sentences."""
    text = f"It ran {duration(run.runtime)} of the {duration(run.requested_walltime)} requested."
    planned, span = run.predicted_walltime, run.interval
    if planned is None:
        return f"{text} No prediction was recorded for it."
    text += f" Predicted {duration(planned)}"
    if span is None:
        return f"{text}."
    text += f", likely {likely_words(run.likely)}"
    text += f", range {range_words(span.lower, span.upper, span.coverage)}"
    if run.runtime > span.upper:
        return f"{text}: it ran longer than that."
    return f"{text}: it ran shorter than that." if run.runtime < span.lower else f"{text}."


def sentence(queue: QueueAnswer) -> str:
    """Summarise the page in a sentence."""
    running, waiting = queue.totals.running, queue.totals.waiting
    machine = sum(pool.processors for pool in queue.pools)
    text = (
        f"{jobs(running.jobs)} {'runs' if running.jobs == 1 else 'run'} on "
        f"{count(running.processors)} of {count(machine)} processors, "
        f"{jobs(waiting.jobs)} {'waits' if waiting.jobs == 1 else 'wait'}"
    )
    if queue.totals.held.jobs:
        held = queue.totals.held.jobs
        text += f", {count(held)} {'is' if held == 1 else 'are'} held"
    return text + "."


def jobs(number: int) -> str:
    """Return a number of jobs in words."""
    return "1 job" if number == 1 else f"{count(number)} jobs"


def range_of(detail: LiveJobDetailAnswer) -> Interval | None:
    """Return the interval of the runtime if it rests on runs."""
    return detail.interval if detail.basis.reason in WITH_RANGE else None


def why(detail: LiveJobDetailAnswer) -> str:
    """Summarise the prediction: likely and range, then what is planned with, else requested."""
    job, span = detail.job, range_of(detail)
    planned, requested = job.predicted_walltime, job.requested_walltime
    if planned is None:
        return "It has not been predicted yet."
    text = "A likely runtime is not known."
    if detail.likely is not None:
        text = f"Likely {likely_words(detail.likely)}"
        if span is not None:
            text += f", range {range_words(span.lower, span.upper, span.coverage)}"
        text += "."
    word = planned_word(detail.likely, plans=detail.plans_by_predictions).capitalize()
    if not word:
        return f"{text} Requested {duration(requested)}."
    reason = planned_reason(planned, requested, likely=detail.likely, method=detail.method)
    share = "" if planned >= requested else f" of the {duration(requested)} requested"
    when = " before its start" if job.state == "running" else ""
    return f"{text} {word} {duration(planned)}{share}{when}, {reason}."


def moves(points: Sequence[ForecastPointAnswer], runs: bool) -> Chart:  # noqa: FBT001 - of the job
    """Return the chart of a job's forecasts over time."""
    start = [] if runs else _lines("start", "method-least-cost", points)
    return Chart(
        name="moves",
        title="How the forecast moved",
        says="When the job was expected to end" + ("." if runs else ", and to start.")
        + " Dotted and dashed: the bounds of the range, where they are near.",
        x=[point.made_at for point in points],
        series=[*start, *_lines("end", "method-max-usage", points)],
        unit="moment",
        empty="There has been one forecast; the next comes with the next look at the queue.",
    )  # fmt: skip


def _lines(what: str, colour: str, points: Sequence[ForecastPointAnswer]) -> list[ChartLine]:
    spans = [getattr(point, f"{what}_interval") for point in points]
    times = [getattr(point, f"{what}_time") for point in points]
    bounds = [
        ChartLine(
            label=f"{what}, {name}",
            values=[getattr(span, bound) if span else None for span in spans],
            colour=colour,
            dash=dash,
        )
        for name, bound, dash in BOUNDS
    ]
    return [ChartLine(label=what, values=times, colour=colour, heavy=True), *bounds]
