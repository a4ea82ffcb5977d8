"""Telling how far off forecast waits were."""

import asyncio
from collections.abc import Sequence

from service.contract.queue_answers import WaitScoreAnswer, WaitScoresAnswer
from service.queues.waits import ARRIVAL, SINCE
from service.store import Store, WaitScore


class ScoringWaits:
    """Live scores of forecast waits, from the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def of(self, cluster: str) -> WaitScoresAnswer:
        """The scores of a cluster.

        Raises:
            StoreUnavailableError: they cannot be read now.
        """
        scores = await asyncio.to_thread(self._store.queues.scores, cluster)
        return WaitScoresAnswer(cluster=cluster, scores=[*together(scores), *map(_each, scores)])


def together(scores: Sequence[WaitScore]) -> list[WaitScoreAnswer]:
    """All queues together, by when the forecasts were made."""
    found = []
    for made in (ARRIVAL, SINCE):
        some = [score for score in scores if score.made == made]
        if some:
            found.append(_answer(None, some))
    return found


def _each(score: WaitScore) -> WaitScoreAnswer:
    return _answer(score.queue, [score])


def _answer(queue: str | None, scores: Sequence[WaitScore]) -> WaitScoreAnswer:
    def total(name: str) -> float:
        return float(sum(getattr(score, name) for score in scores))

    jobs, intervals = total("jobs"), total("intervals")
    return WaitScoreAnswer(
        queue=queue,
        made="arrival" if scores[0].made == ARRIVAL else "since",
        jobs=round(jobs),
        mean_wait=total("wait") / jobs,
        mean_absolute_error=total("absolute_error") / jobs,
        mean_error=total("error") / jobs,
        coverage=total("covered") / intervals if intervals else None,
    )
