"""The page Accuracy: errors of each method by day and by kind of job."""

from collections.abc import Callable, Sequence
from functools import partial
from math import fsum
from operator import mul
from typing import Any

from msgspec import Struct
from pydantic import Field

from predictors.methods.forest import Forest
from predictors.registry import UNCERTAIN
from service.contract.answers import TuningAnswer
from service.contract.queue_answers import ToldStartsAnswer
from service.operations.starts_showing import SHOWN_WEEKS, told_answers
from service.store import MethodScore, Side
from service.web.charts import Chart, ChartLine
from service.web.frame import Frame, PageQuery, PageSources, date, duration, share
from terminal.words import DAY, usual

FRESH_SECONDS = 20.0

PERIODS = (30, 90, 365)
"""Periods to choose from, in days."""

KINDS: tuple[Side, ...] = ("queue", "group", "size")
NAMELESS_KINDS: tuple[Side, ...] = ("queue", "size")
"""Kinds for visitors who may not see the groups of other people."""

MOST_KINDS = 50
"""Rows of the table by kind, those with most jobs."""

SHOWN_METHODS = 3
"""Best methods in a chart; the tables have all."""

MEASURES = {
    "mean_absolute_error": "jobs",
    "underestimation_rate": "jobs",
    "coverage": "intervals",
    "nominal_coverage": "intervals",
}
"""Measures of the charts, and the counts that weigh them."""

NOTHING = "There is one day of scored jobs; a line needs two."


class KindRow(Struct, frozen=True, kw_only=True):
    """Jobs of one kind."""

    label: str
    jobs: int
    requested: float | None
    error: float
    ratio: float
    underestimated: float


class StartRow(Struct, frozen=True, kw_only=True):
    """Scores of the told starts of some jobs, by teller."""

    label: str
    tellers: dict[str, ToldStartsAnswer]


HORIZON_WORDS = {
    "arrival": "first forecast",
    "hour": "less than 1 h to come",
    "six-hours": "1 to 6 h to come",
    "later": "more than 6 h to come",
}


class AccuracyQuery(PageQuery):
    """The days to look at, and the property of jobs to group them by."""

    days: int | None = Field(None, ge=1, le=3660)
    by: str | None = Field(None, max_length=16)


def view(sources: PageSources, frame: Frame, query: AccuracyQuery, _facts: None) -> dict[str, Any]:
    """Return the scores of a cluster over some days, grouped by one property of jobs."""
    sides = KINDS if frame.visitor.sees_everybody else NAMELESS_KINDS
    period = query.days if query.days in PERIODS else PERIODS[1]
    side = next((each for each in sides if each == query.by), sides[0])
    daily, methods, kinds = (
        sources.scores(frame.cluster, each, days=period, fresh=FRESH_SECONDS)
        for each in ("day", "all", side)
    )
    answering = answering_of(methods, sources.settings.method)
    adopted = adoption_times(daily, sources.rounds(frame.cluster))
    beside = usual(score.mean_absolute_error for score in methods)
    return {
        "sentence": sentence(methods, answering, period),
        "in_force": answering,
        "unlearned": {Forest.name} - sources.store.tunings.adopting(frame.cluster).keys(),
        "days": period,
        "periods": PERIODS,
        "side": side,
        "sides": sides,
        "charts": charts(daily, answering, adopted, beside),
        "methods": sorted(methods, key=lambda score: score.mean_absolute_error),
        "are_same_jobs": len({score.jobs for score in methods}) < 2,
        "usual": beside,
        "largest": max((score.mean_absolute_error for score in methods), default=0.0) or 1.0,
        "kinds": kind_rows(kinds, answering),
        "starts": start_rows(sources, frame.cluster),
    }


def start_rows(sources: PageSources, cluster: str) -> list[StartRow]:
    """Return how near told starts came, in groups of jobs, with a teller in each column."""
    rows: dict[str, dict[str, ToldStartsAnswer]] = {}
    for each in told_answers(sources.store.queues.start_scores(cluster, SHOWN_WEEKS)):
        rows.setdefault(group_of(each), {})[each.teller] = each
    return [StartRow(label=label, tellers=tellers) for label, tellers in rows.items()]


def group_of(told: ToldStartsAnswer) -> str:
    """Return the words for the jobs of a score."""
    if told.queue is not None:
        queue = f"queue {told.queue}" if told.queue else "no queue named"
        return f"first forecast, {queue}"
    if told.week_begin is not None:
        return f"first forecast, week from {date(told.week_begin)}"
    return HORIZON_WORDS[told.horizon]


def answering_of(methods: Sequence[MethodScore], method: str) -> str:
    """Return the method of the settings, or the one that has most scores if that has none."""
    jobs = {score.method: score.jobs for score in methods}
    if method in jobs or not jobs:
        return method
    return max(jobs, key=lambda name: jobs[name])


def sentence(methods: Sequence[MethodScore], in_force: str, days: int) -> str:
    """Summarise the page in a sentence or two."""
    by_name = {score.method: score for score in methods}
    ours, requests = by_name.get(in_force), by_name.get("requested")
    if ours is None:
        return ""
    beside = usual(score.mean_absolute_error for score in methods)
    text = (
        f"In the last {days} days with jobs, predictions by {in_force} had a mean error of "
        f"{duration(ours.mean_absolute_error, beside=beside)}"
    )
    if requests is not None and requests is not ours:
        text += f"; the users' requests had {duration(requests.mean_absolute_error, beside=beside)}"
    return f"{text}. {share(ours.underestimation_rate)} of jobs ran longer than predicted."


def charts(
    daily: Sequence[MethodScore], in_force: str, marks: Sequence[float], beside: float | None
) -> list[Chart]:
    """Return the charts: error, underestimation, coverage and scored jobs over time.

    ``beside`` is an error in whose unit all are written.
    """
    scores = ScoresByDay(daily, in_force)
    days = [day * DAY for day in scores.days]
    by_day = partial(Chart, x=days, by="day", empty=NOTHING)
    marked = partial(by_day, marks=marks)
    return [
        error_chart(scores, partial(marked, beside=beside)),
        underestimation_chart(scores, marked),
        coverage_chart(scores, marked),
        jobs_chart(scores, by_day),
    ]


class ScoresByDay:
    """The scores of each day, and their means over the week up to each day.

    Args:
        in_force: the method that answers.

    Attributes:
        days: since 1970, ascending.
        in_force: the method that answers.
        best: the methods to draw, the one that answers last.
    """

    def __init__(self, daily: Sequence[MethodScore], in_force: str) -> None:
        self.days = sorted({int(score.label) for score in daily})
        self.in_force = in_force
        self.best = sorted(
            best_methods(daily, in_force) & {score.method for score in daily},
            key=lambda name: (name == in_force, name),
        )
        self._jobs = {int(score.label): score.jobs for score in daily if score.method == in_force}
        self._means = weekly_means(daily)

    def jobs(self) -> list[int | None]:
        """Return the number of scored jobs of the answering method, for each day."""
        return [self._jobs.get(day) for day in self.days]

    def weekly(self, method: str, measure: str) -> list[float | None]:
        """Return the mean of a measure over the week up to each day."""
        return [self._means.get((day, method, measure)) for day in self.days]

    def lines(self, measure: str, methods: Sequence[str]) -> list[ChartLine]:
        """Return a line of a measure for each method, in the colour of the method."""
        return [
            ChartLine(
                label=name,
                values=self.weekly(name, measure),
                colour=f"method-{name}",
                heavy=name == self.in_force,
            )
            for name in methods
        ]


def error_chart(scores: ScoresByDay, chart: Callable[..., Chart]) -> Chart:
    """Return the chart of mean errors of the best methods."""
    return chart(
        name="error",
        title="Mean error",
        says="Mean distance between prediction and runtime, of the jobs that ended in the week "
        f"up to each day, on a logarithmic scale: {scores.in_force}, the {SHOWN_METHODS} best "
        "methods and the users' requests. Lower is better.",
        series=scores.lines("mean_absolute_error", scores.best),
        unit="duration",
        log=True,
    )


def underestimation_chart(scores: ScoresByDay, chart: Callable[..., Chart]) -> Chart:
    """Return the chart of the shares of jobs that ran longer than predicted."""
    predicting = [name for name in scores.best if name != "requested"]
    return chart(
        name="short",
        title="Jobs that ran longer than predicted",
        says="Each of them needs a new estimate while it runs; over the week up to each day. "
        "Dotted: a round adopted new parameters.",
        series=scores.lines("underestimation_rate", predicting),
        unit="share",
        most=1.0,
    )


def coverage_chart(scores: ScoresByDay, chart: Callable[..., Chart]) -> Chart:
    """Return the chart of nominal and observed coverage of the answering method's ranges."""
    method = scores.in_force
    observed, nominal = (
        scores.weekly(method, measure) for measure in ("coverage", "nominal_coverage")
    )
    return chart(
        name="coverage",
        title="Coverage of ranges: nominal and observed",
        says=f"The share of runtimes that the ranges of {method} should hold, and did hold, "
        "over the week up to each day.",
        series=[
            ChartLine(label="observed", values=observed, colour=f"method-{method}", heavy=True),
            ChartLine(label="nominal", values=nominal, colour="quiet", dash="dashed"),
        ],
        unit="share",
        empty=f"{method} gives no ranges; {', '.join(sorted(UNCERTAIN))} do.",
        most=1.0,
    )


def jobs_chart(scores: ScoresByDay, chart: Callable[..., Chart]) -> Chart:
    """Return the chart of the number of scored jobs."""
    return chart(
        name="jobs",
        title="Jobs scored",
        says="How many jobs each day's figures rest on.",
        series=[ChartLine(label="jobs", values=scores.jobs(), colour="quiet", fill=True)],
        unit="count",
    )


def best_methods(daily: Sequence[MethodScore], in_force: str) -> set[str]:
    """Return the methods of smallest error, the method in force, and the requests."""
    errors = {
        name: mean([score for score in daily if score.method == name], "mean_absolute_error")
        for name in {score.method for score in daily}
    }
    ranked = sorted(errors, key=lambda name: (errors[name] is None, errors[name] or 0.0, name))
    return {in_force, "requested", *[n for n in ranked if n != "requested"][:SHOWN_METHODS]}


def weekly_means(daily: Sequence[MethodScore]) -> dict[tuple[int, str, str], float]:
    """Return 7-day trailing means, weighted by jobs, keyed by (day, method, measure)."""
    means: dict[tuple[int, str, str], float] = {}
    for method in {score.method for score in daily}:
        scores = [score for score in daily if score.method == method]
        for place, score in enumerate(scores):
            day = int(score.label)
            week = [s for s in scores[max(0, place - 6) : place + 1] if int(s.label) > day - 7]
            for measure in MEASURES:
                if (value := mean(week, measure)) is not None:
                    means[day, method, measure] = value
    return means


def kind_rows(scores: Sequence[MethodScore], in_force: str) -> list[KindRow]:
    """Compare the answering method with the requests, by kind of jobs, most jobs first."""
    requests = {score.label: score for score in scores if score.method == "requested"}
    rows = []
    for score in scores:
        if score.method != in_force:
            continue
        request = requests.get(score.label)
        base = request.mean_absolute_error if request else None
        rows.append(
            KindRow(
                label=str(score.label),
                jobs=score.jobs,
                requested=base,
                error=score.mean_absolute_error,
                ratio=min(1.0, score.mean_absolute_error / base) if base else 1.0,
                underestimated=score.underestimation_rate,
            )
        )
    return sorted(rows, key=lambda row: -row.jobs)[:MOST_KINDS]


def adoption_times(daily: Sequence[MethodScore], rounds: Sequence[TuningAnswer]) -> list[float]:
    """Return the ends of rounds that adopted something on the days that are shown."""
    days = [int(score.label) for score in daily]
    adopting = (
        each for each in rounds if any(c.action in {"adopted", "learned"} for c in each.changes)
    )
    ends = [each.finished_at for each in adopting if each.finished_at is not None]
    return [end for end in ends if days and min(days) <= end // DAY <= max(days)]


def mean(scores: Sequence[MethodScore], measure: str) -> float | None:
    """Return the mean of a measure over all jobs of these days, or over all their ranges."""
    weights = [getattr(score, MEASURES[measure]) for score in scores]
    if not sum(weights):
        return None
    values = [getattr(score, measure) or 0.0 for score in scores]
    total: float = fsum(map(mul, values, weights)) / sum(weights)
    return total
