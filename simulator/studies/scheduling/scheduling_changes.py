"""Changes of waits and slowdowns, repetition by repetition, and the goals that they reach."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from statistics import median
from typing import Any, NamedTuple

from simulator.reports.backtest.gains import GainInterval
from simulator.scheduling.estimates import REQUESTED
from simulator.scheduling.semantics import PROFILES
from simulator.studies.scheduling.scheduling_plays import (
    POLICIES,
    TODAY,
    PolicyProfile,
    Repetition,
)
from simulator.studies.study import Played

WAIT_GOAL, SLOWDOWN_GOAL = -0.15, -0.25
"""Changes in the median log."""

LONGEST_GOAL = 1.25
"""The longest wait of every log, over that by requests."""


class ScheduleChange(NamedTuple):
    """Changes over the repetitions: shares of wait and slowdown, factor of the longest wait."""

    wait: GainInterval
    slowdown: GainInterval
    longest: GainInterval

    @classmethod
    def between(cls, before: Sequence[Repetition], after: Sequence[Repetition]) -> "ScheduleChange":
        """From one to the other."""
        pairs = list(zip(before, after, strict=True))
        wait, slowdown = (
            GainInterval.of([_ratio(one[place], other[place]) - 1 for one, other in pairs])
            for place in (0, 1)
        )
        return cls(
            wait,
            slowdown,
            GainInterval.of([_ratio(one.longest, other.longest) for one, other in pairs]),
        )

    @property
    def is_worse(self) -> bool:
        """Whether wait or slowdown is worse in every repetition."""
        return self.wait.low > 0 or self.slowdown.low > 0


def _ratio(before: float, after: float) -> float:
    if before > 0:
        return after / before
    return 1.0 if after <= 0 else float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodChange:
    """One source of estimates under one policy and profile on one log.

    Attributes:
        plays: those by requests under EASY, and its own.
        today: against requests under EASY.
        alike: against requests under the same policy: what predictions do, without its order.
    """

    log: str
    estimates: str
    rules: PolicyProfile
    plays: tuple[Sequence[Repetition], Sequence[Repetition]]
    today: ScheduleChange
    alike: ScheduleChange

    def as_record(self) -> dict[str, Any]:
        """For JSON."""
        policy, profile = self.rules
        return {
            "log": self.log,
            "estimates": self.estimates,
            "policy": policy,
            "profile": profile,
            "plays_by_requests": [play._asdict() for play in self.plays[0]],
            "plays": [play._asdict() for play in self.plays[1]],
            "against_easy_by_requests": _record(self.today),
            "against_requests": _record(self.alike),
        }


def _record(change: ScheduleChange) -> dict[str, Any]:
    return {
        name: {"mean": each.mean, "low": each.low, "high": each.high}
        for name, each in change._asdict().items()
    }


def lines_of(played: Played) -> Iterator[MethodChange]:
    """The changes on every log, those of requests under another policy first."""
    base = {part.trace: found.plays for part, found in played if part.estimates == REQUESTED}
    for part, found in played:
        for rules, plays in found.plays.items():
            if (part.estimates, rules) != (REQUESTED, TODAY):
                before = base[part.trace]
                yield MethodChange(
                    log=part.log,
                    estimates=part.estimates,
                    rules=rules,
                    plays=(before[TODAY], plays),
                    today=ScheduleChange.between(before[TODAY], plays),
                    alike=ScheduleChange.between(before[rules[0], TODAY[1]], plays),
                )


class Summary(NamedTuple):
    """All logs of one source of estimates under the same rules.

    Attributes:
        wait, slowdown: change in the median log.
        alike: the same against requests under the same policy.
        longest: the worst log's.
        missed: goals that are not reached.
    """

    wait: float
    slowdown: float
    alike: tuple[float, float]
    longest: float
    missed: Sequence[str]

    @property
    def verdict(self) -> str:
        """Whether all goals are reached, and whether a log is worse off."""
        if "worse" in self.missed:
            return "missed, worse"
        return "missed" if self.missed else "reached"

    @classmethod
    def of(cls, lines: Sequence[MethodChange]) -> "Summary":
        """Summary of at least one log."""
        wait, slowdown = (
            median(change.mean for change in (line.today[place] for line in lines))
            for place in (0, 1)
        )
        alike = tuple(
            median(change.mean for change in (line.alike[place] for line in lines))
            for place in (0, 1)
        )
        longest = max(line.today.longest.mean for line in lines)
        reached = {
            "wait": wait <= WAIT_GOAL,
            "slowdown": slowdown <= SLOWDOWN_GOAL,
            "longest": longest <= LONGEST_GOAL,
            "worse": not any(line.today.is_worse for line in lines),
        }
        missed = [goal for goal, is_reached in reached.items() if not is_reached]
        return cls(wait, slowdown, (alike[0], alike[1]), longest, missed)


def summaries(lines: Sequence[MethodChange]) -> Mapping[tuple[PolicyProfile, str], Summary]:
    """Summaries of all logs by rules and estimates."""
    keys = dict.fromkeys((line.rules, line.estimates) for line in lines)
    return {
        key: Summary.of([line for line in lines if (line.rules, line.estimates) == key])
        for key in sorted(keys, key=lambda key: _place(key[0]))
    }


@cache
def _place(rules: PolicyProfile) -> int:
    return list(product(POLICIES, PROFILES)).index(rules)
