"""Rounds of tuning, and the parameters they put in force.

``python -m service.worker.tuning_rounds`` runs all due rounds in the calling process.
A service starts that process with its own settings in the environment and the lowest priority.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import inf
from typing import Any, TypeVar

import msgspec
import structlog

from predictors.methods.forest_trees import LearnedForest, unpacked
from predictors.methods.knn import Knn, KnnParameters
from predictors.tuning.adoption import Adopted
from predictors.tuning.cluster_round import ClusterParameters, ClusterRound, tune_cluster
from predictors.tuning.genetic import ProgressReport, no_report
from predictors.tuning.plan import TooShortHistoryError, TuningPlan
from service.settings import Settings
from service.store import (
    ActiveAdoption,
    Adoption,
    RoundOutcome,
    Store,
    StoreUnavailableError,
    Tuning,
    open_store,
)
from terminal import logs

log = structlog.get_logger()

Content = TypeVar("Content")


def run_due_rounds(
    store: Store, settings: Settings, plan: TuningPlan, clock: Callable[[], float] = time.time
) -> Iterator[Tuning]:
    """Run the rounds that are due, unless another process runs rounds; yield each after its end.

    Raises:
        StoreError: the store cannot be used.
    """
    with store.tunings.lock() as is_held:
        served = store.past_runs.active_clusters()[: settings.max_clusters] if is_held else ()
        for cluster in served:
            if store.tunings.is_due(cluster, plan):
                with suppress(TooShortHistoryError):  # a part of it was erased
                    tuning = store.tunings.begin(cluster, plan, "history", clock())
                    run_round(store, tuning, settings, clock=clock)
                    yield store.tunings.find(tuning.tuning_id) or tuning


def run_round(
    store: Store,
    tuning: Tuning,
    settings: Settings,
    *,
    clock: Callable[[], float] = time.time,
    report: ProgressReport = no_report,
) -> None:
    """Run a round that has begun, and store its result; this process holds the lock of rounds.

    Args:
        store: of the history and the result.
        settings: defaults before the first round.

    Raises:
        StoreError: the store cannot be used.
    """
    before = of_cluster(store, settings, tuning.cluster)
    completions = store.tunings.latest_completions(tuning.cluster, tuning.plan.jobs)
    try:
        found = tune_cluster(completions, before, tuning.plan, report)
    except TooShortHistoryError as error:
        store.tunings.fail(tuning, str(error), clock())
        return
    now = clock()
    adopted = adoptions(found, before, from_settings(settings), now)
    outcome = RoundOutcome(knn=found.knn, changes=found.changes)
    store.tunings.finish(tuning, outcome, adopted, now)


def from_settings(settings: Settings) -> ClusterParameters:
    """Return the active parameters of clusters without adoptions."""
    knn = Knn(**settings.predictors.get(Knn.name, {})).given
    return ClusterParameters(knn=Adopted(now=knn))


def from_store(store: Store, settings: Settings) -> dict[str, ClusterParameters]:
    """Return the active parameters of clusters with adoptions, by cluster."""
    defaults = from_settings(settings)

    return {
        cluster: ClusterParameters(
            knn=held(adopted.get("knn"), defaults.knn, cluster),
            forest=forest_of(adopted.get("forest"), cluster),
        )
        for cluster, adopted in store.tunings.active().items()
    }


def of_cluster(store: Store, settings: Settings, cluster: str) -> ClusterParameters:
    """Return the active parameters of one cluster."""
    return from_store(store, settings).get(cluster) or from_settings(settings)


def held(
    adoption: ActiveAdoption | None, default: Adopted[KnnParameters], cluster: str
) -> Adopted[KnnParameters]:
    """Return adopted parameters of knn, or the default without any that this release can use."""
    if adoption is None or adoption.parameters is None:
        return default
    now = readable(adoption.parameters, KnnParameters, cluster)
    if now is None or adoption.made_until is None:
        return default if now is None else Adopted(now=now)
    before = readable(adoption.replaced, KnnParameters, cluster) if adoption.replaced else None
    return Adopted(now=now, before=before or default.now, since=adoption.made_until)


def forest_of(adoption: ActiveAdoption | None, cluster: str) -> LearnedForest | None:
    """Return the forest of the last round; None without one that this release can use."""
    parameters = adoption.parameters if adoption else None
    return readable(parameters, LearnedForest, cluster) if parameters else None


def readable(parameters: Any, kind: type[Content], cluster: str) -> Content | None:
    """Return stored parameters; None, with a warning, if this release cannot use them."""
    try:
        found = msgspec.convert(parameters, kind)
        if isinstance(found, LearnedForest):
            unpacked(found.trees)
    except ValueError as error:
        log.warning("adopted parameters cannot be used", reason=str(error), cluster=cluster)
        return None
    return found


def adoptions(
    result: ClusterRound, before: ClusterParameters, defaults: ClusterParameters, now: float
) -> list[Adoption]:
    """Return the adoptions of a round, as they are stored.

    Args:
        defaults: from the settings; a return to the default is stored as ``parameters=None``.
        now: Unix seconds. A run that ends later has a wrong end; after such an end no run would
            ever end, and the adoption would never be reviewed.
    """
    rows = []
    knn, forest = result.in_force.knn, result.in_force.forest
    if knn is not before.knn:
        until = None if knn.since == -inf else min(knn.since, now)
        parameters = None if knn.now == defaults.knn.now else msgspec.to_builtins(knn.now)
        rows.append(Adoption(subject="knn", parameters=parameters, made_until=until))
    if forest is not before.forest:
        rows.append(Adoption(subject="forest", parameters=msgspec.to_builtins(forest)))
    return rows


def main() -> None:
    """Run the due rounds; if the store is away, the next process continues."""
    settings = Settings()
    logs.configure(settings)
    store = open_store(
        settings.database_url.get_secret_value(), sqlite_synchronous=settings.sqlite_synchronous
    )
    try:
        for tuning in run_due_rounds(store, settings, TuningPlan(**settings.tuning_plan)):
            log.info("tuned", cluster=tuning.cluster, state=tuning.state, tuning=tuning.tuning_id)
    except StoreUnavailableError as error:
        log.warning("a round of tuning was interrupted", reason=str(error))
    finally:
        store.close()


if __name__ == "__main__":
    main()
