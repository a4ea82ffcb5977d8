"""The page Now: state of the service and its clusters, and problems."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal
from urllib.parse import quote

from msgspec import Struct

from service.contract.answers import HealthAnswer
from service.contract.queue_answers import QueueHeadAnswer
from service.store import ClusterHistory, MethodScore
from service.web.accuracy_page import answering_of, charts
from service.web.charts import Chart
from service.web.frame import Frame, PageQuery, PageSources, count, duration, share
from terminal.words import DAY, usual

FRESH_SECONDS = 10.0
"""Largest age of the counts of the page, in seconds."""

SCORED_DAYS, CHART_DAYS = 7, 30

ENOUGH = 200
"""Least scored jobs for a notice about a share."""

MANY_TOO_SHORT = 0.35
"""Share of underestimated jobs above which there is a notice."""

COVERAGE_OFF = 0.05
"""Largest difference of observed and nominal coverage without a notice."""

LARGE_LAG = 1000
"""Completions, from which on there is a notice."""


class Card(Struct, frozen=True):
    """One large figure."""

    name: str
    figure: str
    note: str


class Notice(Struct, frozen=True):
    """One thing to look at, with the path of the page that shows it."""

    kind: Literal["bad", "careful"]
    text: str
    advice: str
    path: str | None = None


class ClusterRow(Struct, frozen=True, kw_only=True):
    """One cluster in the table.

    Attributes:
        score: of the method that answers, over the last days; None without scored jobs.
        requests: the score of users' requests over the same days.
        round_error: why the newest round of tuning failed.
        queue: the queue that was handed over, without its jobs.
    """

    history: ClusterHistory
    score: MethodScore | None
    requests: MethodScore | None
    round_error: str | None
    queue: QueueHeadAnswer | None

    @property
    def hours_saved(self) -> float | None:
        """Hours by which plans of the last days were nearer to the runtimes than requests."""
        if self.score is None or self.requests is None:
            return None
        gain = self.requests.mean_absolute_error - self.score.mean_absolute_error
        return max(0.0, gain * self.score.jobs / 3600)


class ServiceFacts(Struct, frozen=True, kw_only=True):
    """State of the service, which only the serving process knows.

    Attributes:
        health: as the probe of readiness says it.
        is_loopback: whether only this machine can reach the service.
        dropped: number of predictions that could not be recorded.
        queues: the live queues, without their jobs.
        at_risk: numbers of running jobs that will probably be cut, of those that the visitor may
            see, by cluster.
        planning: the clusters whose schedulers plan or order by predictions, as far as this process
            sees.
    """

    health: HealthAnswer
    asks_for_tokens: bool
    is_loopback: bool
    dropped: int
    queues: Sequence[QueueHeadAnswer]
    at_risk: Mapping[str, int]
    planning: frozenset[str]


def view(
    sources: PageSources, frame: Frame, _query: PageQuery, service: ServiceFacts
) -> dict[str, Any]:
    """Return what the service knows at this moment, of all clusters."""
    queues = {queue.cluster: queue for queue in service.queues}
    rows = [
        row_of(sources, history, queues.get(history.cluster))
        for history in sources.cache.get("sizes", FRESH_SECONDS, sources.store.past_runs.sizes)
    ]
    return {
        "sentence": sentence(rows),
        "notices": notices(service, rows, sources.clock()),
        "cards": cards(rows, service),
        "clusters": rows,
        "usual": usual_error(rows),
        "plans": not service.planning.isdisjoint(row.history.cluster for row in rows),
        "planning": service.planning,
        "method": sources.settings.method,
        "charts": recent_charts(sources, frame.cluster, usual_error(rows)) if rows else [],
    }


def recent_charts(sources: PageSources, cluster: str, beside: float | None) -> list[Chart]:
    """Return the charts of errors of the last days; ``beside`` is an error in their unit."""
    daily = sources.scores(cluster, "day", days=CHART_DAYS, fresh=FRESH_SECONDS)
    return charts(daily, answering_of(daily, sources.settings.method), (), beside)[:2]


def row_of(
    sources: PageSources, history: ClusterHistory, queue: QueueHeadAnswer | None
) -> ClusterRow:
    """Return the row of a cluster."""
    rounds = sources.rounds(history.cluster)
    return ClusterRow(
        history=history,
        score=score_of(sources, history.cluster, sources.settings.method),
        requests=score_of(sources, history.cluster, "requested"),
        round_error=rounds[0].error if rounds and rounds[0].state == "failed" else None,
        queue=queue,
    )


def score_of(sources: PageSources, cluster: str, method: str) -> MethodScore | None:
    """Return the score of a method over the last days together."""
    scores = sources.scores(cluster, "all", days=SCORED_DAYS, fresh=FRESH_SECONDS)
    return next((score for score in scores if score.method == method), None)


def sentence(rows: Sequence[ClusterRow]) -> str:
    """Return the page in one sentence."""
    if not rows:
        return "The service runs, and has no history yet: its predictions are the requests."
    runs = count(sum(row.history.runs for row in rows))
    learned = f"The service has learned from {runs} jobs of {clusters_in_words(len(rows))}"
    for row in rows:
        if row.score is not None:
            said = partial(duration, beside=usual_error(rows))
            text = (
                f"{learned}. In the last {SCORED_DAYS} days with jobs its predictions for "
                f"{row.history.cluster} had a mean error of "
                f"{said(row.score.mean_absolute_error)}"
            )
            if row.requests is None:
                return f"{text}."
            return f"{text}; the users' requests {said(row.requests.mean_absolute_error)}."
    return f"{learned}; none of its predictions has been scored in the last week."


def usual_error(rows: Sequence[ClusterRow]) -> float | None:
    """Return an error in whose unit all errors of the page are written."""
    scores = [score for row in rows for score in (row.score, row.requests) if score is not None]
    return usual(score.mean_absolute_error for score in scores)


def clusters_in_words(number: int) -> str:
    """Return a number of clusters in words."""
    return "one cluster" if number == 1 else f"{count(number)} clusters"


def cards(rows: Sequence[ClusterRow], service: ServiceFacts) -> list[Card]:
    """Return the large figures."""
    runs = sum(row.history.runs for row in rows)
    return [
        Card("State", service.health.status, service.health.detail or "all parts work"),
        Card("Jobs learned", count(runs), clusters_in_words(len(rows))),
        Card("Lag", count(service.health.lag), "jobs ended and not learned yet"),
    ]


def notices(service: ServiceFacts, rows: Sequence[ClusterRow], now: float) -> list[Notice]:
    """Return the problems of the service and its clusters, worst first."""
    problems = [*_of_service(service)]
    for row in rows:
        problems += _of_cluster(row, now)
        problems += _of_limits(row.history.cluster, service.at_risk)
    return sorted(problems, key=lambda notice: notice.kind)


def _of_service(facts: ServiceFacts) -> Iterator[Notice]:
    health = facts.health
    if health.status == "starting":
        yield Notice(
            "careful",
            "The service reads its history.",
            "Until it is read predictions are the requests; that takes seconds to minutes.",
        )
    elif health.status != "ready":
        yield Notice(
            "bad", f"The service is {health.status}.", health.detail or "Its log says why."
        )
    if health.lag > LARGE_LAG and health.status != "starting":
        yield Notice(
            "careful",
            f"{count(health.lag)} jobs have ended that predictions do not use yet.",
            "They are learned in the background; a bulk import takes a while.",
        )
    if facts.dropped:
        yield Notice(
            "careful",
            f"{count(facts.dropped)} predictions could not be recorded.",
            "Their jobs will have no score. Look at the disk of the history store.",
        )
    if not facts.asks_for_tokens and not facts.is_loopback:
        yield Notice(
            "bad",
            "Everybody on the network may call this service.",
            "Issue a token with `walltimed token issue`; from then on calls need one.",
        )


def _of_cluster(row: ClusterRow, now: float) -> Iterator[Notice]:
    name = row.history.cluster
    silent = now - row.history.last_end
    if silent > DAY:
        yield Notice(
            "careful",
            f"{name}: no job has ended for {duration(silent)}.",
            "If jobs run there, look whether the resource manager still reports completions.",
        )
    if row.round_error:
        yield Notice("careful", f"{name}: the last round of tuning failed.", row.round_error)
    yield from _of_queue(name, row.queue, now)
    if row.score is not None and row.score.jobs >= ENOUGH:
        yield from _of_scores(name, row.score)


def _of_queue(name: str, queue: QueueHeadAnswer | None, now: float) -> Iterator[Notice]:
    if queue is None:
        return
    if queue.is_old:
        yield Notice(
            "careful",
            f"{name}: the queue is {duration(now - queue.taken_at)} old.",
            "Look whether `walltimed slurm-updater` or the follower of PBS runs.",
        )
    if queue.forecast_error:
        yield Notice("careful", f"{name}: the queue could not be forecast.", queue.forecast_error)


def _of_limits(name: str, at_risk: Mapping[str, int]) -> Iterator[Notice]:
    jobs = at_risk.get(name, 0)
    if jobs:
        yield Notice(
            "careful",
            f"{name}: {count(jobs)} running {'job' if jobs == 1 else 'jobs'} will probably be cut.",
            "Jobs at risk",
            f"/at-risk?cluster={quote(name, safe='')}",
        )


def _of_scores(name: str, score: MethodScore) -> Iterator[Notice]:
    if score.method != "requested" and score.underestimation_rate > MANY_TOO_SHORT:
        yield Notice(
            "careful",
            f"{name}: {share(score.underestimation_rate)} of jobs ran longer than "
            f"{score.method} predicted.",
            "Give it a larger margin, or choose a method with a price for that; see Accuracy.",
        )
    if score.coverage is None or score.nominal_coverage is None or score.intervals < ENOUGH:
        return
    if abs(score.coverage - score.nominal_coverage) > COVERAGE_OFF:
        yield Notice(
            "careful",
            f"{name}: ranges that should hold {share(score.nominal_coverage)} of runtimes held "
            f"{share(score.coverage)}.",
            "Each job that ends corrects them; look again after some hundred more.",
        )
