"""Telling how the service and its methods are doing."""

import asyncio
from collections.abc import Callable

import structlog

from predictors.registry import AUTO
from service.contract.answers import MethodAnswer, MethodsAnswer, ScoreAnswer
from service.metrics import Metrics
from service.settings import Settings
from service.store import MethodScore, Store, StoreError
from service.worker.live_state import LiveState

log = structlog.get_logger()

REPORTED_CLUSTERS = 100
"""Clusters whose scores are metrics; each makes a time series per method and measure."""


class Reporting:
    """Live scores and metrics."""

    def __init__(
        self,
        settings: Settings,
        *,
        store: Store,
        live: LiveState,
        metrics: Metrics,
        set_gauges: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._store = store
        self._live = live
        self._metrics = metrics
        self._set_gauges = set_gauges

    async def methods(self, cluster: str) -> MethodsAnswer:
        """The methods of a cluster with their parameters and live scores.

        Raises:
            StoreUnavailableError: the scores cannot be read now.
        """
        scores = await asyncio.to_thread(self._store.scores, cluster)
        by_method = {score.method: score for score in scores}
        state = self._live.of(cluster)
        parameters = {name: each.parameters for name, each in state.predictors.items()}
        parameters[AUTO] = {"answers": state.chosen}
        return MethodsAnswer(
            cluster=cluster,
            default=self._settings.method,
            methods=[
                MethodAnswer(
                    name=name,
                    parameters=in_force,
                    score=_score(by_method.get(name)),
                )
                for name, in_force in parameters.items()
            ],
        )

    async def metrics(self) -> bytes:
        """All metrics as text; live scores as fresh as the store can be read."""
        self._set_gauges()
        try:
            await asyncio.to_thread(self._read_scores)
        except StoreError as error:
            log.warning("live scores cannot be read", reason=str(error))
        return await asyncio.to_thread(self._metrics.exposition)

    def _read_scores(self) -> None:
        for cluster in self._live.clusters[:REPORTED_CLUSTERS]:
            self._metrics.scored(cluster, self._store.scores(cluster))


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
