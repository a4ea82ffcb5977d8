"""The page Now: what the service knows and does at this moment, and what wants attention."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct

from service.contract.answers import TuningAnswer
from service.contract.queue_answers import QueueHeadAnswer
from service.operations.tuning import TellingRounds
from service.settings import Settings
from service.store import ClusterHistory, MethodScore, Store
from service.web.attention import ClusterFacts, Notice, ServiceFacts, notices
from service.web.remembered import Remembered
from service.web.wording import count, duration

FRESH_SECONDS = 10.0
"""How old the counts of the page may be."""

SCORED_DAYS = 7


class Card(Struct, frozen=True):
    """One large figure."""

    name: str
    figure: str
    note: str


class ClusterRow(Struct, frozen=True, kw_only=True):
    """One cluster in the table."""

    name: str
    runs: int
    last_end: float
    method: str
    error: float | None
    underestimated: float | None
    coverage: float | None
    adopted_at: float | None
    queue: QueueHeadAnswer | None


class NowShown(Struct, frozen=True, kw_only=True):
    """What the page shows."""

    sentence: str
    notices: Sequence[Notice]
    cards: Sequence[Card]
    clusters: Sequence[ClusterRow]


class ServiceNow(Struct, frozen=True, kw_only=True):
    """What only the service itself can tell.

    Attributes:
        facts: how it does.
        queues: the live queues, without their jobs.
    """

    facts: ServiceFacts
    queues: Sequence[QueueHeadAnswer]


class NowPage:
    """Gathers what the page shows."""

    def __init__(
        self,
        settings: Settings,
        *,
        store: Store,
        rounds: TellingRounds,
        remembered: Remembered,
        clock: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._store = store
        self._rounds = rounds
        self._remembered = remembered
        self._clock = clock

    async def show(self, service: ServiceNow) -> NowShown:
        """What there is to see now."""
        histories = await self._remembered.get(
            "sizes", FRESH_SECONDS, partial(asyncio.to_thread, self._store.sizes)
        )
        queues = {queue.cluster: queue for queue in service.queues}
        facts, rows = [], []
        for history in histories:
            score, rounds = await self._score(history.cluster), await self._of(history.cluster)
            queue = queues.get(history.cluster)
            failed = rounds[0].error if rounds and rounds[0].state == "failed" else None
            facts.append(
                ClusterFacts(
                    history=history, answering=score, queue=queue, last_round_failed=failed
                )
            )
            rows.append(self._row(history, score, rounds, queue))
        return NowShown(
            sentence=sentence(histories, rows),
            notices=notices(service.facts, facts, self._clock()),
            cards=cards(histories, service.facts),
            clusters=rows,
        )

    async def _score(self, cluster: str) -> MethodScore | None:
        """Of the method that answers, over the last days together."""
        scores = await self._remembered.get(
            ("recent", cluster),
            FRESH_SECONDS,
            lambda: asyncio.to_thread(self._store.scores.daily, cluster, "all", days=SCORED_DAYS),
        )
        method = self._settings.method
        return next((score for score in scores if score.method == method), None)

    async def _of(self, cluster: str) -> list[TuningAnswer]:
        return (await self._rounds.of_cluster(cluster)).tunings

    def _row(
        self,
        history: ClusterHistory,
        score: MethodScore | None,
        rounds: Sequence[TuningAnswer],
        queue: QueueHeadAnswer | None,
    ) -> ClusterRow:
        return ClusterRow(
            name=history.cluster,
            runs=history.runs,
            last_end=history.last_end,
            method=self._settings.method,
            error=score.mean_absolute_error if score else None,
            underestimated=score.underestimation_rate if score else None,
            coverage=score.coverage if score else None,
            adopted_at=next((each.finished_at for each in rounds if each.adopted), None),
            queue=queue,
        )


def sentence(histories: Sequence[ClusterHistory], rows: Sequence[ClusterRow]) -> str:
    """The page in one sentence."""
    if not histories:
        return "The service runs, and has no history yet: its predictions are the requests."
    runs = count(sum(history.runs for history in histories))
    known = f"The service has learned from {runs} jobs"
    where = f"of {clusters_in_words(len(rows))}"
    scored = [row for row in rows if row.error is not None]
    if not scored:
        return f"{known} {where}; none of its predictions has been scored in the last week."
    best = scored[0]
    return (
        f"{known} {where}. In the last days its predictions for {best.name} were off by "
        f"{duration(best.error)} a job."
    )


def clusters_in_words(number: int) -> str:
    """How many clusters."""
    return "one cluster" if number == 1 else f"{count(number)} clusters"


def cards(histories: Sequence[ClusterHistory], service: ServiceFacts) -> list[Card]:
    """The large figures."""
    runs = sum(history.runs for history in histories)
    return [
        Card("State", service.health.status, service.health.detail or "all parts work"),
        Card("Jobs learned", count(runs), clusters_in_words(len(histories))),
        Card("Lag", count(service.health.lag), "jobs ended and not learned yet"),
    ]
