"""Profiles: by which of a job's times a scheduler decides what."""

from collections.abc import Mapping
from dataclasses import dataclass

BOUND = 0.9
"""Share of jobs that run no longer than their bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Which rules of a simulation go by estimates; elsewhere requests count.

    Attributes:
        meaning: in words, for people who choose.
        estimated_order: the order of the queue goes by estimates.
        estimated_backfilling: plans and backfilling of waiting jobs go by estimates.
        estimated_running: the expected ends of running jobs go by estimates.
        guarded: for waiting jobs the estimate is the median where jobs are compared, and the bound
            where they are admitted.
        keeps_reservations: a reservation is never moved later before it is due.
    """

    meaning: str
    estimated_order: bool = True
    estimated_backfilling: bool = True
    estimated_running: bool = False
    guarded: bool = False
    keeps_reservations: bool = False

    @property
    def rules(self) -> Mapping[str, bool]:
        """The rules of ``Semantics`` that the profile sets."""
        return {
            "estimated_order": self.estimated_order,
            "estimated_backfilling": self.estimated_backfilling,
            "estimated_running": self.estimated_running,
            "guarded": self.guarded,
            "keeps_reservations": self.keeps_reservations,
        }


PROFILES: Mapping[str, Profile] = {
    "regular": Profile(meaning="everywhere", estimated_running=True),
    "selective": Profile(meaning="not on running jobs"),
    "guarded": Profile(
        meaning="medians compare waiting jobs, 90% bounds admit them, running jobs have requests",
        guarded=True,
    ),
    "guarded-kept": Profile(
        meaning="guarded, and a reservation is never moved later",
        guarded=True,
        keeps_reservations=True,
    ),
}
"""Regular and selective are those of Tang et al., section 5.2."""
