"""Rounds of tuning, and the parameters they put in force.

``python -m service.worker.tuning_rounds`` runs all due rounds in the calling process.
A service starts that process with its own settings in the environment and the lowest priority.
"""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
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
    StoreError,
    StoreFullError,
    StoreUnavailableError,
    Tuning,
    open_store,
)
from service.worker.live_state import LiveState
from service.worker.processes import give_way
from terminal import logs

log = structlog.get_logger()

PARAMETER_SECONDS = 1.0
"""Seconds between two reads of adopted parameters."""

ROUND_SECONDS = 5.0
"""Seconds between two looks for due rounds."""

NO_VERSION = -1
"""A number below all versions."""

COMMAND = (sys.executable, "-P", "-m", "service.worker.tuning_rounds")
"""Runs the due rounds."""

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
            knn=adopted_knn(adopted.get("knn"), defaults.knn, cluster),
            forest=forest_of(adopted.get("forest"), cluster),
        )
        for cluster, adopted in store.tunings.active().items()
    }


def of_cluster(store: Store, settings: Settings, cluster: str) -> ClusterParameters:
    """Return the active parameters of one cluster."""
    return from_store(store, settings).get(cluster) or from_settings(settings)


def adopted_knn(
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


class TuningKeeper:
    """Starts a process that runs due rounds, and puts adoptions of any process in force.

    Every worker has a keeper. One process of all workers and machines runs rounds.

    Args:
        live: state whose parameters are kept up to date.
        is_catching_up: returns whether the log is far ahead, as in an import; no round becomes due
            meanwhile.
    """

    def __init__(
        self,
        store: Store,
        live: LiveState,
        settings: Settings,
        *,
        is_catching_up: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        self._plan = TuningPlan(**settings.tuning_plan)
        self._store = store
        self._live = live
        self._settings = settings
        self._is_catching_up = is_catching_up
        self._clock = clock

    async def follow_parameters(self) -> None:
        """Put adoptions of any process in force, until cancelled."""
        current, standing = NO_VERSION, dict[str, ClusterParameters]()
        while True:
            with suppress(StoreError):
                version = await asyncio.to_thread(self._store.tunings.version)
                if version != current:
                    standing = await asyncio.to_thread(from_store, self._store, self._settings)
                    current = version
                await self._grow(standing)
                self._live.retune(standing)  # also clusters that are new since
            await asyncio.sleep(PARAMETER_SECONDS)

    async def _grow(self, standing: Mapping[str, ClusterParameters]) -> None:
        """Put adopted trees in force; their leaves are computed beside the event loop."""
        for state, forest in self._live.growing(standing):
            await asyncio.to_thread(forest.rank_runs)
            state.replant(forest)

    async def run_rounds(self) -> None:
        """Run due rounds, until cancelled."""
        while self._settings.tuning == "automatic":
            await asyncio.sleep(ROUND_SECONDS)
            try:
                if not self._is_catching_up() and await asyncio.to_thread(self._is_due):
                    await self._run()
            except StoreError as error:
                log.warning("rounds of tuning cannot be looked at", reason=str(error))

    def _is_due(self) -> bool:
        """Return whether a round is due and no process runs rounds."""
        tunings = self._store.tunings
        if not any(tunings.is_due(cluster, self._plan) for cluster in self._live.clusters):
            return False
        with tunings.lock() as is_free:
            return is_free

    async def _run(self) -> None:
        """Run the due rounds in a process."""
        process = subprocess.Popen(  # noqa: ASYNC220, S603 - quick, and our own module
            COMMAND,
            env=os.environ | self._settings.environment(),
            stdin=subprocess.DEVNULL,
            process_group=0,  # not a session: Linux shares the processor between sessions first
        )
        give_way(process.pid)
        try:
            code = await asyncio.to_thread(process.wait)
        finally:
            process.terminate()  # an interrupted round is due
            await asyncio.to_thread(process.wait)
        if code:
            await asyncio.to_thread(self._fail_interrupted, code)

    def _fail_interrupted(self, code: int) -> None:
        """Fail rounds whose process died: the next process might be killed for its memory too."""
        reason = f"signal {-code}" if code < 0 else f"exit code {code}"
        log.warning("the process of a round of tuning died", reason=reason)
        with self._store.tunings.lock() as is_held:
            for tuning in self._store.tunings.running() if is_held else ():
                error = f"The process of the round ended with {reason}."
                self._store.tunings.fail(tuning, error, self._clock())


def main() -> None:
    """Run the due rounds; if the store is away or full, the next process continues."""
    settings = Settings()
    logs.configure(settings)
    store = open_store(
        settings.database_url.get_secret_value(), sqlite_synchronous=settings.sqlite_synchronous
    )
    try:
        for tuning in run_due_rounds(store, settings, TuningPlan(**settings.tuning_plan)):
            log.info("tuned", cluster=tuning.cluster, state=tuning.state, tuning=tuning.tuning_id)
    except (StoreUnavailableError, StoreFullError) as error:
        log.warning("a round of tuning was interrupted", reason=str(error))
    finally:
        store.close()


if __name__ == "__main__":
    main()
