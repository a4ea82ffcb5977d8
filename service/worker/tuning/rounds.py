"""Rounds of tuning in the calling process: ``python -m service.worker.tuning.rounds`` runs all.

A service starts that process with its own settings in the environment and the lowest priority.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import msgspec
import structlog

from predictors.tuning.cluster_round import ClusterRound, hold
from predictors.tuning.plan import TooShortHistoryError, TuningPlan
from predictors.tuning.search import Progress, ProgressReport, SearchUnavailableError, untold
from service import logs
from service.settings import Settings
from service.store import Store, StoreUnavailableError, Tuning, Tunings, open_store
from service.worker.tuning import in_force

log = structlog.get_logger()

REPORT_SECONDS = 1.0
"""Seconds between two reports of a round's progress to the store."""


def ask_for_due_rounds(
    tunings: Tunings, clusters: Iterable[str], plan: TuningPlan, now: float
) -> None:
    """Ask for a round of every cluster in which enough jobs have ended since its last one."""
    for cluster in clusters:
        if tunings.is_due(cluster, plan):
            with suppress(TooShortHistoryError):
                tunings.ask(cluster, plan, "history", now)


def run_open_rounds(store: Store, settings: Settings) -> Iterator[Tuning]:
    """Run the rounds that have not ended, unless another process does; yield each one ended.

    Raises:
        StoreError: the store cannot be used.
    """
    with store.tunings.lock() as is_held:
        for tuning in store.tunings.open() if is_held else ():
            run_round(store, tuning, settings)
            yield store.tunings.find(tuning.tuning_id) or tuning


def run_round(
    store: Store,
    tuning: Tuning,
    settings: Settings,
    *,
    clock: Callable[[], float] = time.time,
    report: ProgressReport = untold,
) -> ClusterRound | None:
    """Run a round, and store what it found; this process holds the lock of rounds.

    Args:
        store: where the history is, and the result goes.
        tuning: the round.
        settings: say what is in force before the first round.
        clock: Unix seconds.
        report: is told of progress too.

    Returns:
        The round's findings; None if the history is too short, or the search is not installed.

    Raises:
        StoreError: the store cannot be used.
    """
    store.tunings.begin(tuning, clock())
    before = in_force.of_cluster(store, settings, tuning.cluster)
    completions = store.tunings.latest_completions(tuning.cluster, tuning.plan.jobs)
    try:
        found = hold(completions, before, tuning.plan, Reporter(store, tuning, report))
    except (TooShortHistoryError, SearchUnavailableError) as error:
        store.tunings.fail(tuning, str(error), clock())
        return None
    now = clock()
    adopted = in_force.adoptions(found, before, in_force.from_settings(settings), now)
    store.tunings.finish(tuning, found.as_dict(), adopted, now)
    return found


class Reporter:
    """Stores how far a round is, seldom enough not to delay the round."""

    def __init__(self, store: Store, tuning: Tuning, report: ProgressReport) -> None:
        self._store = store
        self._tuning = tuning
        self._report = report
        self._costs: list[float] = []
        self._stored_at = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        """Take a report of progress; every one adds to the costs that are shown."""
        self._costs.append(progress.cost)
        self._report(progress)
        if time.monotonic() >= self._stored_at + REPORT_SECONDS:
            self._stored_at = time.monotonic()
            shown: dict[str, Any] = {**msgspec.to_builtins(progress), "costs": self._costs}
            self._store.tunings.report(self._tuning, shown)


def main() -> None:
    """Run the open rounds; a store that is away leaves a round to the next process."""
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
