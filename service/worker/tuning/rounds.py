"""Runs rounds of tuning in the calling process."""

import time
from collections.abc import Callable
from typing import Any

import msgspec

from predictors.tuning.cluster_round import ClusterRound, hold
from predictors.tuning.plan import TooShortHistoryError
from predictors.tuning.search import Progress, ProgressReport, SearchUnavailableError, untold
from service.settings import Settings
from service.store import Store, Tuning
from service.worker.tuning import in_force

TELLING_SECONDS = 1.0
"""How often a round tells the store that it is alive."""


def run_round(
    store: Store,
    tuning: Tuning,
    settings: Settings,
    *,
    clock: Callable[[], float] = time.time,
    report: ProgressReport = untold,
) -> ClusterRound | None:
    """Run a round that this process has taken, and store what it found.

    Args:
        store: where the history is, and the result goes.
        tuning: the round.
        settings: say what is in force before the first round.
        clock: Unix seconds.
        report: is told of progress too.

    Returns:
        What it found; None if the history is too short, or the search is not installed.

    Raises:
        TuningLostError: the round was given to another process meanwhile.
        StoreError: the store cannot be used.
    """
    before = in_force.of_cluster(store, settings, tuning.cluster)
    completions = store.tunings.latest_completions(tuning.cluster, tuning.plan.jobs)
    reporter = ProgressReporter(store, tuning, clock, report)
    try:
        found = hold(completions, before, tuning.plan, reporter, reporter.tell)
    except (TooShortHistoryError, SearchUnavailableError) as error:
        store.tunings.fail(tuning, str(error), clock())
        return None
    now = clock()
    adopted = in_force.adoptions(found, before, in_force.from_settings(settings), now)
    store.tunings.finish(tuning, found.as_dict(), adopted, now)
    return found


class ProgressReporter:
    """Tells the store how far a round is, seldom enough not to be in its way."""

    def __init__(
        self, store: Store, tuning: Tuning, clock: Callable[[], float], report: ProgressReport
    ) -> None:
        self._store = store
        self._tuning = tuning
        self._clock = clock
        self._report = report
        self._costs: list[float] = []
        self._shown: dict[str, Any] = {}
        self._told_at = clock()

    def __call__(self, progress: Progress) -> None:
        """Take a report of progress; every one adds to the costs that are shown."""
        self._costs.append(progress.cost)
        self._shown = {**msgspec.to_builtins(progress), "costs": self._costs}
        self._report(progress)
        self.tell()

    def tell(self) -> None:
        """Say that the round is alive, unless that was said just now."""
        if self._clock() < self._told_at + TELLING_SECONDS:
            return
        self._told_at = self._clock()
        self._store.tunings.tell(self._tuning, self._shown, self._told_at)
