"""What an administrator should look at, worst first, each with what to do about it."""

from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

from service.contract.answers import HealthAnswer
from service.contract.queue_answers import QueueHeadAnswer
from service.store import ClusterHistory, MethodScore
from service.web.wording import DAY, count, duration, share

ENOUGH = 200
"""Scored jobs from which on a share says something."""

MANY_TOO_SHORT = 0.35
"""Share of jobs that ran longer than predicted, above which something should be changed."""

COVERAGE_OFF = 0.05
"""How far the share of ranges that held may be from what was asked."""

LARGE_LAG = 1000
"""Completions."""


class Notice(Struct, frozen=True):
    """One thing to look at."""

    kind: Literal["bad", "careful"]
    text: str
    advice: str


class ClusterFacts(Struct, frozen=True, kw_only=True):
    """What is known of one cluster.

    Attributes:
        history: how long it is.
        answering: how the method did that answers; None without scores.
        queue: the queue that was handed over, without its jobs.
        last_round_failed: why the newest round of tuning failed.
    """

    history: ClusterHistory
    answering: MethodScore | None
    queue: QueueHeadAnswer | None
    last_round_failed: str | None


class ServiceFacts(Struct, frozen=True, kw_only=True):
    """What is known of the service.

    Attributes:
        health: as the probe of readiness says it.
        asks_for_tokens: whether the door is closed.
        is_loopback: whether only this machine can reach the service.
        dropped: predictions that could not be recorded.
    """

    health: HealthAnswer
    asks_for_tokens: bool
    is_loopback: bool
    dropped: int


def notices(service: ServiceFacts, clusters: Sequence[ClusterFacts], now: float) -> list[Notice]:
    """Everything that wants attention, worst first."""
    found = [*_of_service(service)]
    for cluster in clusters:
        found += _of_cluster(cluster, now)
    return sorted(found, key=lambda notice: notice.kind)


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


def _of_cluster(facts: ClusterFacts, now: float) -> Iterator[Notice]:
    name = facts.history.cluster
    silent = now - facts.history.last_end
    if silent > DAY:
        yield Notice(
            "careful",
            f"{name}: no job has ended for {duration(silent)}.",
            "If jobs run there, look whether the resource manager still reports completions.",
        )
    if facts.last_round_failed:
        yield Notice(
            "careful", f"{name}: the last round of tuning failed.", facts.last_round_failed
        )
    yield from _of_queue(name, facts.queue, now)
    if facts.answering is not None and facts.answering.jobs >= ENOUGH:
        yield from _of_scores(name, facts.answering)


def _of_queue(name: str, queue: QueueHeadAnswer | None, now: float) -> Iterator[Notice]:
    if queue is None:
        return
    if queue.is_old:
        yield Notice(
            "careful",
            f"{name}: the queue is {duration(now - queue.taken_at)} old.",
            "Look whether `walltimed slurm-updater` or the follower of PBS runs.",
        )
    if queue.trouble:
        yield Notice("careful", f"{name}: the queue could not be forecast.", queue.trouble)


def _of_scores(name: str, score: MethodScore) -> Iterator[Notice]:
    if score.method != "requested" and score.underestimation_rate > MANY_TOO_SHORT:
        yield Notice(
            "careful",
            f"{name}: {share(score.underestimation_rate)} of jobs ran longer than "
            f"{score.method} predicted.",
            "Give it a larger margin, or choose a method with a price for that; see Accuracy.",
        )
    if score.coverage is None or score.asked_coverage is None or score.intervals < ENOUGH:
        return
    if abs(score.coverage - score.asked_coverage) > COVERAGE_OFF:
        yield Notice(
            "careful",
            f"{name}: ranges that should hold {share(score.asked_coverage)} of runtimes held "
            f"{share(score.coverage)}.",
            "Each job that ends corrects them; look again after some hundred more.",
        )
