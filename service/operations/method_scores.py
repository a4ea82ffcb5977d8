"""Shows the methods of a cluster with their live scores, and all metrics."""

import asyncio
from dataclasses import asdict

import structlog
from msgspec import convert, structs

from predictors.registry import AUTO
from service.contract.answers import (
    AdoptionAnswer,
    MethodAnswer,
    MethodsAnswer,
    ScoreAnswer,
)
from service.operations.history_showing import verdict_of
from service.operations.queue_showing import all_waits
from service.store import (
    AdoptingRound,
    MethodScore,
    MethodScores,
    RecentScore,
    StoreError,
)
from service.worker.worker import Worker

log = structlog.get_logger()

REPORTED_CLUSTERS = 100
"""Number of clusters with scores in the metrics; each makes a time series per method."""


class ShowingMethods:
    """Live scores and metrics."""

    def __init__(self, worker: Worker) -> None:
        self._settings = worker.settings
        self._store = worker.store
        self._live = worker.live
        self._metrics = worker.metrics
        self._set_gauges = worker.set_gauges
        self._recent: dict[str, tuple[int, dict[str, RecentScore]]] = {}

    async def methods(self, cluster: str) -> MethodsAnswer:
        """Return the methods of a cluster with their parameters and live scores.

        Raises:
            StoreUnavailableError: the scores cannot be read now.
        """
        scores = await asyncio.to_thread(self._scores, cluster)
        rounds = await asyncio.to_thread(self._store.tunings.adopting, cluster)
        state = self._live.of(cluster)
        parameters = {name: each.parameters for name, each in state.predictors.items()}
        parameters[AUTO] = state.choice
        return MethodsAnswer(
            cluster=cluster,
            default=self._settings.method,
            methods=[
                MethodAnswer(
                    name=name,
                    parameters=in_force,
                    adopted=_adoption(rounds[name]) if name in rounds else None,
                    score=_score(*scores.get(name, (None, None))),
                )
                for name, in_force in parameters.items()
            ],
        )

    async def metrics(self) -> bytes:
        """Return all metrics as text, with the present live scores if the store can be read."""
        self._set_gauges()
        try:
            await asyncio.to_thread(self._read_scores)
        except StoreError as error:
            log.warning("live scores cannot be read", reason=str(error))
        return await asyncio.to_thread(self._metrics.exposition)

    def _read_scores(self) -> None:
        for cluster in self._live.clusters[:REPORTED_CLUSTERS]:
            self._metrics.scores.scored(cluster, self._scores(cluster).values())
        for cluster in sorted(self._store.queues.versions())[:REPORTED_CLUSTERS]:
            for score in all_waits(self._store.queues.scores(cluster)):
                self._metrics.queues.scored(cluster, score.made, asdict(score))

    def _scores(self, cluster: str) -> dict[str, MethodScores]:
        """Return the scores over all jobs and over the last ones, by method.

        Recent scores need a thousand rows, and are read again only after another scored job.
        """
        scores = self._store.scores.of_methods(cluster)
        jobs = sum(score.jobs for score in scores)
        counted, recent = self._recent.get(cluster, (0, {}))
        if jobs != counted:
            recent = {each.method: each for each in self._store.scores.recent(cluster)}
            self._recent[cluster] = (jobs, recent)
        return {score.method: (score, recent.get(score.method)) for score in scores}


def _adoption(by_round: AdoptingRound) -> AdoptionAnswer:
    """Return a round that adopted what is in force as the API answers it."""
    return AdoptionAnswer(
        tuning_id=by_round.tuning_id,
        adopted_at=by_round.adopted_at,
        verdict=verdict_of(by_round.verdict) if by_round.verdict else None,
    )


def _score(score: MethodScore | None, recent: RecentScore | None) -> ScoreAnswer | None:
    """Return the scores of a method as the API answers them, under the same names."""
    if score is None or score.jobs == 0:
        return None
    fields = structs.asdict(score) | {"recent": recent}
    return convert(fields, ScoreAnswer, from_attributes=True)
