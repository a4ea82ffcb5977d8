"""The rounds of tuning that are waiting to be run."""

from collections.abc import Iterable
from contextlib import suppress

from predictors.tuning.plan import TooShortHistoryError, TuningPlan
from service.store import Tuning, Tunings

SILENT_SECONDS = 60.0
"""A round whose process has not reported for this many seconds is given to another process."""


def waiting_rounds(tunings: Tunings, now: float) -> list[Tuning]:
    """Rounds waiting to be run, including those whose process stopped reporting."""
    if tunings.any_silent(now - SILENT_SECONDS):
        tunings.give_back_silent(now, now - SILENT_SECONDS)
    return tunings.waiting()


def ask_for_due_rounds(
    tunings: Tunings, clusters: Iterable[str], plan: TuningPlan, now: float
) -> None:
    """Ask for a round of every cluster in which enough jobs have ended since its last one."""
    for cluster in clusters:
        if tunings.is_due(cluster, plan):
            with suppress(TooShortHistoryError):
                tunings.ask(cluster, plan, "history", now)
