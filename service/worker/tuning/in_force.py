"""Which parameters of knn are in force."""

from typing import Any

import msgspec
import structlog

from predictors.methods.knn import Knn, KnnParameters
from service.settings import Settings
from service.store import Store

log = structlog.get_logger()


def from_settings(settings: Settings) -> KnnParameters:
    """The parameters of clusters on which no round has adopted any yet."""
    return Knn(**settings.predictors.get(Knn.name, {})).given


def from_store(store: Store) -> dict[str, KnnParameters]:
    """The parameters that rounds adopted, by cluster, except those unknown to this release."""
    known = {}
    for cluster, parameters in store.tunings.in_force().items():
        try:
            known[cluster] = parameters_of(parameters)
        except ValueError as error:
            log.warning("tuned parameters cannot be used", cluster=cluster, reason=str(error))
    return known


def parameters_of(value: dict[str, Any]) -> KnnParameters:
    """Read parameters from their JSON.

    Raises:
        ValueError: the JSON holds no parameters.
    """
    return msgspec.convert(value, KnnParameters)
