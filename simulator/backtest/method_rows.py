"""Figures of each source of estimates: a row that the text, the document and the page share."""

from dataclasses import dataclass
from typing import Self

from simulator.backtest import gains
from simulator.backtest.gains import GainInterval
from simulator.backtest.plays import Play
from simulator.backtest.site import BY_REQUEST
from simulator.backtest.verdict import Backtest, outran_request
from simulator.scheduling.estimates import EXACT, REQUESTED


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodRow:
    """Figures of one source of estimates; times are seconds, intervals are of the repetitions.

    Attributes:
        is_in_force: whether the site would answer with this method.
        first: the play of the log itself.
        idle_hours: processor-hours that are idle while a job waits.
        wait_gain: relative decrease of the wait against today.
        slowdown_gain: relative decrease of the bounded slowdown against today.
        has_all_plays: its means are over as many plays as today's.
        ran_longer: share of the jobs that run longer than predicted, or in the log than requested.
    """

    name: str
    is_in_force: bool
    first: Play
    wait: GainInterval
    longest_wait: GainInterval
    bounded_slowdown: GainInterval
    idle_hours: GainInterval
    wait_gain: GainInterval
    slowdown_gain: GainInterval
    has_all_plays: bool
    ran_longer: float

    @classmethod
    def of(cls, tested: Backtest, name: str) -> Self:
        """Return the row of one source of estimates."""
        plays = tested.plays[name]
        by_request = name in {REQUESTED, BY_REQUEST}
        return cls(
            name=name,
            is_in_force=name == tested.in_force,
            first=plays[0],
            wait=gains.of(plays, lambda play: play.wait),
            longest_wait=gains.of(plays, lambda play: play.longest_wait),
            bounded_slowdown=gains.of(plays, lambda play: play.bounded_slowdown),
            idle_hours=gains.of(plays, lambda play: play.idle / 3600),
            wait_gain=tested.wait_gain(name),
            slowdown_gain=tested.slowdown_gain(name),
            has_all_plays=len(plays) == tested.repetitions,
            ran_longer=outran_request(tested) if by_request else plays[0].underestimation_rate,
        )

    @property
    def is_today(self) -> bool:
        """Whether this is the row that the others are compared with."""
        return self.name == REQUESTED

    @property
    def is_predicted(self) -> bool:
        """Whether the estimates are no requests."""
        return self.name not in {REQUESTED, BY_REQUEST}


def method_rows(tested: Backtest) -> dict[str, MethodRow]:
    """Return the rows by name: both orders by requests, every method, and exact runtimes."""
    names = (REQUESTED, BY_REQUEST, *tested.methods, EXACT)
    return {name: MethodRow.of(tested, name) for name in names}
