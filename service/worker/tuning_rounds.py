"""Rounds of tuning, and the parameters they put in force.

``python -m service.worker.tuning_rounds`` runs all open rounds in the calling process.
A service starts that process with its own settings in the environment and the lowest priority.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from math import inf
from typing import Any, TypeVar

import msgspec
import structlog

from predictors.methods.attention import Attention
from predictors.methods.forest_trees import LearnedForest, unpacked
from predictors.methods.knn import Knn, KnnParameters
from predictors.tuning.adoption import Adopted
from predictors.tuning.cluster_round import ClusterParameters, ClusterRound, tune_cluster
from predictors.tuning.plan import TooShortHistoryError, TuningPlan
from predictors.tuning.search import Progress, ProgressReport, no_report
from predictors.tuning.tunables import CANDIDATES, FIRST
from service import logs
from service.settings import Settings
from service.store import (
    ActiveAdoption,
    Adoption,
    Store,
    StoreUnavailableError,
    Tuning,
    Tunings,
    open_store,
)

log = structlog.get_logger()

Content = TypeVar("Content")

REPORT_SECONDS = 1.0
"""Seconds between two reports of a round's progress to the store."""


def ask_for_due_rounds(
    tunings: Tunings, clusters: Iterable[str], plan: TuningPlan, now: float
) -> None:
    """Request a round of every cluster in which enough jobs have ended since the last one."""
    for cluster in clusters:
        if tunings.is_due(cluster, plan):
            with suppress(TooShortHistoryError):
                tunings.ask(cluster, plan, "history", now)


def run_open_rounds(
    store: Store, settings: Settings, due: TuningPlan | None = None
) -> Iterator[Tuning]:
    """Run the open rounds, unless another process does; yield each round after its end.

    Args:
        store: of the history and the rounds.
        settings: defaults before the first round.
        due: plan of rounds that are due, which are requested first; None requests none. Under the
            lock, so that no service takes these rounds before this process runs them.

    Raises:
        StoreError: the store cannot be used.
    """
    with store.tunings.lock() as is_held:
        if due is not None:
            ask_for_due_rounds(store.tunings, store.past_runs.clusters(), due, time.time())
        for tuning in store.tunings.open() if is_held else ():
            run_round(store, tuning, settings)
            yield store.tunings.find(tuning.tuning_id) or tuning


def run_round(
    store: Store,
    tuning: Tuning,
    settings: Settings,
    *,
    clock: Callable[[], float] = time.time,
    report: ProgressReport = no_report,
) -> ClusterRound | None:
    """Run a round and store its result; this process holds the lock of rounds.

    Args:
        store: of the history and the result.
        settings: defaults before the first round.
        report: called with the progress too.

    Returns:
        The round's findings; None if the history is too short.

    Raises:
        StoreError: the store cannot be used.
    """
    store.tunings.begin(tuning, clock())
    before = of_cluster(store, settings, tuning.cluster)
    completions = store.tunings.latest_completions(tuning.cluster, tuning.plan.jobs)
    try:
        found = tune_cluster(completions, before, tuning.plan, Reporter(store, tuning, report))
    except TooShortHistoryError as error:
        store.tunings.fail(tuning, str(error), clock())
        return None
    now = clock()
    adopted = adoptions(found, before, from_settings(settings), now)
    store.tunings.finish(tuning, found.as_dict(), adopted, now)
    return found


class Reporter:
    """Stores the progress of a round, at most once a second."""

    def __init__(self, store: Store, tuning: Tuning, report: ProgressReport) -> None:
        self._store = store
        self._tuning = tuning
        self._report = report
        self._costs: list[float] = []
        self._stored_at = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        """Take a report of progress; its cost is added to the stored costs."""
        self._costs.append(progress.cost)
        self._report(progress)
        if time.monotonic() >= self._stored_at + REPORT_SECONDS:
            self._stored_at = time.monotonic()
            stored: dict[str, Any] = {**msgspec.to_builtins(progress), "costs": self._costs}
            self._store.tunings.report(self._tuning, stored)


def from_settings(settings: Settings) -> ClusterParameters:
    """Return the active parameters of clusters without adoptions."""
    attention = Attention(**settings.predictors.get(Attention.name, {}))
    return ClusterParameters(
        knn=Adopted(now=Knn(**settings.predictors.get(Knn.name, {})).given),
        price=Adopted(now=float(attention.parameters["price"])),
        auto=Adopted(now=FIRST),
    )


def from_store(store: Store, settings: Settings) -> dict[str, ClusterParameters]:
    """Return the active parameters of clusters with adoptions, by cluster."""
    defaults = from_settings(settings)

    def of_subjects(cluster: str, adopted: Mapping[str, ActiveAdoption]) -> dict[str, Adopted[Any]]:
        return {
            subject: held(
                adopted.get(subject),
                getattr(defaults, subject),
                read,
                cluster=cluster,
                subject=subject,
            )
            for subject, read in READERS.items()
        }

    return {
        cluster: ClusterParameters(**of_subjects(cluster, adopted))
        for cluster, adopted in store.tunings.active().items()
    }


def of_cluster(store: Store, settings: Settings, cluster: str) -> ClusterParameters:
    """Return the active parameters of one cluster."""
    return from_store(store, settings).get(cluster) or from_settings(settings)


def held(
    adoption: ActiveAdoption | None,
    default: Adopted[Content],
    read: Callable[[Any], Content],
    **names: str,
) -> Adopted[Content]:
    """Return an adoption, or the default if there is none that this release can use."""
    if adoption is None or adoption.parameters is None:
        return default
    try:
        now = read(adoption.parameters)
    except ValueError as error:
        log.warning("adopted parameters cannot be used", reason=str(error), **names)
        return default
    if adoption.made_until is None:
        return Adopted(now=now)
    before = default.now
    if adoption.replaced is not None:
        with suppress(ValueError):
            before = read(adoption.replaced)
    return Adopted(now=now, before=before, since=adoption.made_until)


def adoptions(
    result: ClusterRound, before: ClusterParameters, defaults: ClusterParameters, now: float
) -> list[Adoption]:
    """Return the adoptions of a round, as they are stored.

    Args:
        before: active parameters before it.
        defaults: from the settings; a return to the default is stored as ``parameters=None``.
        now: Unix seconds. A run that ends later has a wrong end; after such an end no run would
            ever end, and the adoption would never be reviewed.
    """
    rows = []
    for subject in READERS:
        chosen: Adopted[Any] = getattr(result.in_force, subject)
        if chosen is getattr(before, subject):
            continue
        until = None if chosen.since == -inf else min(chosen.since, now)
        is_default = chosen.now == getattr(defaults, subject).now
        parameters = None if is_default else msgspec.to_builtins(chosen.now)
        rows.append(Adoption(subject=subject, parameters=parameters, made_until=until))
    return rows


def method_of(parameters: Any) -> str:
    """Return the method that auto answers with.

    Raises:
        ValueError: this release does not let auto choose it.
    """
    if parameters not in CANDIDATES:
        raise ValueError(f"auto does not choose {parameters!r}.")
    return str(parameters)


def forest_of(parameters: Any) -> LearnedForest:
    """Return an adopted forest.

    Raises:
        ValueError: this release cannot use it.
    """
    learned = msgspec.convert(parameters, LearnedForest)
    unpacked(learned.trees)
    return learned


READERS: dict[str, Callable[[Any], Any]] = {
    "knn": lambda parameters: msgspec.convert(parameters, KnnParameters),
    "price": lambda parameters: msgspec.convert(parameters, float, strict=False),
    "forest": forest_of,
    "auto": method_of,
}
"""Functions from stored parameters to each subject's content; a ValueError refuses them."""


def main() -> None:
    """Run the open rounds; if the store is away, the next process continues."""
    settings = Settings()
    logs.configure(settings)
    store = open_store(
        settings.database_url.get_secret_value(), sqlite_synchronous=settings.sqlite_synchronous
    )
    try:
        for tuning in run_open_rounds(store, settings):
            log.info("tuned", cluster=tuning.cluster, state=tuning.state, tuning=tuning.tuning_id)
    except StoreUnavailableError as error:
        log.warning("a round of tuning was interrupted", reason=str(error))
    finally:
        store.close()


if __name__ == "__main__":
    main()
