"""Proposes and judges what rounds learn besides knn's parameters: a price, the best method."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from predictors.memory.columns import Floats
from predictors.methods.attention import Attention
from predictors.methods.least_cost import LeastCost
from predictors.tuning.stretch import Noted
from predictors.tuning.verdict import NO_CASES, Demand, Verdict, compare, verdict_of

CANDIDATES = (Attention.name, LeastCost.name)
"""The methods that auto chooses from: those that know how sure they are."""

FIRST = Attention.name
"""The method that auto answers with before any round has chosen one."""


class BestMethod:
    """The method that auto answers with.

    Args:
        place: of the site's price among the prices of the stretch.
        price: itself, in mean runtimes.
        demand: what counts as a gain.
    """

    name = "auto"

    def __init__(self, place: int, price: float, demand: Demand) -> None:
        self._place = place
        self._price = price
        self._demand = demand

    def propose(self, now: str, older: Sequence[Noted]) -> str | None:
        """The method of least cost on the older runs, if it wins on them already; else none.

        So a method has to win twice. A stretch on which another one does better ends sooner or
        later, and a choice of methods is worth most where it seldom changes.
        """
        if not older:
            return None
        means = {method: float(self.costs(method, older).mean()) for method in older[0].said}
        best = min(means, key=means.__getitem__)
        return best if best != now and self.judge(now, best, older).wins else None

    def judge(self, old: str, new: str, later: Sequence[Noted]) -> Verdict:
        """How much less the new one's answers cost."""
        if not later:
            return NO_CASES
        users = [noted.user for noted in later]
        return compare(self.costs(old, later), self.costs(new, later), users, self._demand)

    def costs(self, method: str, runs: Sequence[Noted]) -> Floats:
        """What each answer of a method cost: its error, and the price where it was too short."""
        runtimes = np.array([noted.runtime for noted in runs])
        said = np.array([noted.said[method][self._place] for noted in runs])
        price = self._price * runtimes.mean()
        costs: Floats = np.abs(said - runtimes) + price * (said < runtimes)
        return costs

    @staticmethod
    def described(content: str) -> Any:
        """Its name."""
        return content


class TargetPrice:
    """The price at which as many runs are underestimated as the site wants.

    Args:
        prices: among which it is sought, ascending.
        method: that answers.
        rate: the share of runs that the site wants to be underestimated.
        demand: what counts as a gain; here in shares of all runs.
    """

    name = "price"

    def __init__(self, prices: Sequence[float], method: str, rate: float, demand: Demand) -> None:
        self._prices = np.array(prices, dtype=float)
        self._method = method
        self._rate = rate
        self._demand = demand

    def propose(self, now: float, older: Sequence[Noted]) -> float | None:
        """The price whose rate was nearest on the older runs, between the given ones."""
        if not older:
            return None
        rates = self._too_short(older).mean(axis=1)
        if rates[0] <= self._rate:
            found = self._prices[0]
        elif rates[-1] >= self._rate:
            found = self._prices[-1]
        else:
            scale = np.log1p(self._prices)
            falling = np.minimum.accumulate(rates)
            found = np.expm1(np.interp(-self._rate, -falling, scale))
        price = round(float(found), 3)
        return None if price == now else price

    def judge(self, old: float, new: float, later: Sequence[Noted]) -> Verdict:
        """How much nearer the rate is to the wanted one, in shares of the runs."""
        if not later:
            return NO_CASES
        before, after = self._at(old, later), self._at(new, later)
        nearer = abs(before.mean() - self._rate) - abs(after.mean() - self._rate)
        moved = before - after
        # Each run's part of the gain: how far it moves the rate, signed so that nearer is positive.
        sign = 1.0 if before.mean() > after.mean() else -1.0
        parts = sign * moved
        return verdict_of(parts - parts.mean() + nearer, [run.user for run in later], self._demand)

    @staticmethod
    def described(content: float) -> Any:
        """The price."""
        return content

    def _too_short(self, runs: Sequence[Noted]) -> Floats:
        """By price and run: 1 where the answer was too short."""
        runtimes = np.array([noted.runtime for noted in runs])
        said = np.array([noted.said[self._method] for noted in runs]).T
        return np.asarray(said < runtimes, dtype=float)

    def _at(self, price: float, runs: Sequence[Noted]) -> Floats:
        """By run, how likely the answer is too short at a price between the given ones."""
        short = self._too_short(runs)
        place = np.interp(
            np.log1p(price), np.log1p(self._prices), np.arange(len(self._prices), dtype=float)
        )
        low = int(place)
        high = min(low + 1, len(self._prices) - 1)
        share = place - low
        mixed: Floats = short[low] * (1 - share) + short[high] * share
        return mixed
