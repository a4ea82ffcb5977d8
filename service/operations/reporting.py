"""Telling how the service and its methods are doing."""

import asyncio

import structlog

from service.contract.answers import HealthAnswer, MethodAnswer, MethodsAnswer, ScoreAnswer, Status
from service.store import MethodScore, StoreError
from service.worker.worker import Worker

log = structlog.get_logger()

REPORTED_CLUSTERS = 100
"""Clusters whose scores are metrics; each makes a time series per method and measure."""


class Reporting:
    """Live scores, readiness, metrics."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    async def methods(self, cluster: str) -> MethodsAnswer:
        """The methods of a cluster with their parameters and live scores.

        Raises:
            StoreUnavailableError: the scores cannot be read now.
        """
        scores = await asyncio.to_thread(self._worker.store.scores, cluster)
        by_method = {score.method: score for score in scores}
        predictors = self._worker.live.of(cluster).predictors
        return MethodsAnswer(
            cluster=cluster,
            default=self._worker.settings.method,
            methods=[
                MethodAnswer(
                    name=name,
                    parameters=predictor.parameters,
                    score=_score(by_method.get(name)),
                )
                for name, predictor in predictors.items()
            ],
        )

    def health(self) -> HealthAnswer:
        """Whether the history is folded, how far behind it we are, and whether we can tell."""
        follower = self._worker.follower
        error = self._worker.failure or follower.error
        return HealthAnswer(
            status=self._status(),
            lag=follower.lag() if follower.started else self._worker.history_length,
            stale_seconds=follower.stale_seconds(),
            detail=str(error) if error else None,
        )

    def _status(self) -> Status:
        if self._worker.failure:
            return "failed"
        if not self._worker.follower.started:
            return "starting"
        return "stale" if self._worker.follower.error else "ready"

    async def metrics(self) -> bytes:
        """All metrics as text; live scores as fresh as the store can be read."""
        self._worker.set_gauges()
        try:
            await asyncio.to_thread(self._read_scores)
        except StoreError as error:
            log.warning("live scores cannot be read", reason=str(error))
        return await asyncio.to_thread(self._worker.metrics.exposition)

    def _read_scores(self) -> None:
        for cluster in self._worker.live.clusters[:REPORTED_CLUSTERS]:
            self._worker.metrics.scored(cluster, self._worker.store.scores(cluster))


def _score(score: MethodScore | None) -> ScoreAnswer | None:
    if score is None or score.jobs == 0:
        return None
    return ScoreAnswer(
        jobs=score.jobs,
        mean_absolute_error=score.mean_absolute_error,
        underestimation_rate=score.underestimation_rate,
        accuracy=score.accuracy,
        coverage=score.coverage,
    )
