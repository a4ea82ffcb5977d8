"""Price and best method of a cluster, tuned on its last runs and their predictions."""

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from predictors.jobs import Completion, Submission
from predictors.memory.columns import Floats
from predictors.methods.attention import Attention
from predictors.methods.forest import Forest
from predictors.methods.least_cost import LeastCost
from predictors.tuning.adoption import NO_CASES, Demand, Verdict, compare, verdict_of

NO_USER = ""
"""User of a run whose user is unknown."""


class RunRecord(NamedTuple):
    """A run that has ended, and the predictions for it.

    Attributes:
        user: NO_USER if unknown.
        runtime: seconds, at most the request.
        end: Unix seconds.
        estimates: predictions in seconds, by method and price.
        submission: of the job.
    """

    user: str
    runtime: float
    end: float
    estimates: Mapping[str, Floats]
    submission: Submission


class ReplayBuffer:
    """The last runs of a cluster, oldest first.

    Args:
        capacity: number of runs.
        prices: of an underestimate, in mean runtimes, ascending.
    """

    def __init__(self, capacity: int, prices: Sequence[float]) -> None:
        self.prices = np.array(prices, dtype=float)
        self._records: deque[RunRecord] = deque(maxlen=capacity)

    def __len__(self) -> int:
        return len(self._records)

    def add(self, run: Completion, estimates: Mapping[str, Floats]) -> None:
        """Store a run that has ended, with the predictions of each method at each price."""
        request = run.submission.requested_walltime
        record = RunRecord(
            user=run.submission.user or NO_USER,
            runtime=min(run.runtime, request),
            end=run.end_time,
            estimates=estimates,
            submission=run.submission,
        )
        self._records.append(record)

    @property
    def records(self) -> Sequence[RunRecord]:
        """The runs."""
        return self._records

    def nearest(self, price: float) -> int:
        """Return the index of the nearest of the prices."""
        return int(np.abs(self.prices - price).argmin())

    def last(self, count: int) -> "ReplayBuffer":
        """Return a buffer of the last ``count`` runs, or of all if there are fewer."""
        other = ReplayBuffer(count, self.prices.tolist())
        other._records.extend(self._records)
        return other

    def estimates(self, method: str) -> Floats:
        """Return the predictions of a method, by run and price, in seconds."""
        return np.array([run.estimates[method] for run in self._records])

    def with_method(self, method: str, estimates: Floats) -> "ReplayBuffer":
        """Return a buffer with the predictions of another method, by run and price."""
        other = ReplayBuffer(len(self), self.prices.tolist())
        for run, each in zip(self._records, estimates, strict=True):
            other._records.append(run._replace(estimates={**run.estimates, method: each}))
        return other

    def divide(self, later: int) -> tuple[Sequence[RunRecord], Sequence[RunRecord]]:
        """Return the older runs, and the ``later`` newest ones, at most a quarter of all runs."""
        records = list(self._records)
        first = len(records) - min(later, len(records) // 4)
        return records[:first], records[first:]


def estimates_of(
    run: Completion, least_cost: LeastCost, attention: Attention, prices: Floats
) -> dict[str, Floats]:
    """Return the predictions of both methods for a run at each price, by method."""
    methods = (least_cost, attention)
    return {method.name: method.estimates(run.submission, prices) for method in methods}


def fill_buffer(
    completions: Sequence[Completion],
    attention: Attention,
    *,
    capacity: int,
    prices: Sequence[float],
) -> ReplayBuffer:
    """Play completions to both methods, and store the last ``capacity`` of them.

    The prediction for a run is the same at its end as at its submission, since runs that end in
    between do not count for it.

    Args:
        completions: in the order of the log.
        attention: without any observed run.
        capacity: number of runs that are stored.
        prices: of an underestimate, in mean runtimes, ascending.
    """
    least_cost = LeastCost()
    buffer = ReplayBuffer(capacity, prices)
    for place, run in enumerate(completions):
        if place >= len(completions) - capacity:
            buffer.add(run, estimates_of(run, least_cost, attention, buffer.prices))
        attention.observe(run)
        least_cost.observe(run)
    return buffer


CANDIDATES = (Attention.name, LeastCost.name, Forest.name)
"""The methods that auto chooses from: those with a distribution."""

FIRST = Attention.name
"""The method that auto answers with before any round has chosen one."""


def costs_of(predicted: Floats, runtimes: Floats, price: float) -> Floats:
    """Return the cost of each prediction: its error, plus the price of an underestimate.

    Args:
        predicted: seconds.
        runtimes: seconds.
        price: in mean runtimes.
    """
    penalty = price * runtimes.mean()
    costs: Floats = np.abs(predicted - runtimes) + penalty * (predicted < runtimes)
    return costs


class BestMethod:
    """The method whose predictions cost least: by default the one that auto answers with.

    Args:
        place: index of the site's price among the prices of the replay buffer.
        price: the site's price, in mean runtimes.
        demand: the least gain that counts.
        name: of the tunable.
        candidates: names of the methods; by default all whose predictions are stored.
    """

    def __init__(
        self,
        place: int,
        price: float,
        demand: Demand,
        *,
        name: str = "auto",
        candidates: Collection[str] = (),
    ) -> None:
        self.name = name
        self._place = place
        self._price = price
        self._demand = demand
        self._candidates = candidates

    def propose(self, now: str, older: Sequence[RunRecord]) -> str | None:
        """Return the method of least cost on the older runs; None if it is in force."""
        if not older:
            return None
        candidates = self._candidates or older[0].estimates
        means = {method: float(self.costs(method, older).mean()) for method in candidates}
        best = min(means, key=means.__getitem__)
        return None if best == now else best

    def judge(self, old: str, new: str, later: Sequence[RunRecord]) -> Verdict:
        """Judge how much less the predictions of the new method cost."""
        if not later:
            return NO_CASES
        users = [run.user for run in later]
        return compare(self.costs(old, later), self.costs(new, later), users, self._demand)

    def costs(self, method: str, runs: Sequence[RunRecord]) -> Floats:
        """Return the cost of each prediction: its error, plus the price of an underestimate."""
        runtimes = np.array([run.runtime for run in runs])
        predicted = np.array([run.estimates[method][self._place] for run in runs])
        return costs_of(predicted, runtimes, self._price)


class TargetPrice:
    """The price that reaches the share of underestimated runs that the site wants.

    Args:
        prices: of the replay buffer, ascending.
        method: the method in force.
        rate: share of underestimated runs that the site wants.
        demand: the least gain that counts, as a share of all runs.
    """

    name = "price"

    def __init__(self, prices: Sequence[float], method: str, rate: float, demand: Demand) -> None:
        self._prices = np.array(prices, dtype=float)
        self._method = method
        self._rate = rate
        self._demand = demand

    def propose(self, now: float, older: Sequence[RunRecord]) -> float | None:
        """Return the price whose rate was nearest on the older runs, interpolated."""
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

    def judge(self, old: float, new: float, later: Sequence[RunRecord]) -> Verdict:
        """Judge how much nearer the rate is to the wanted one, as a share of the runs."""
        if not later:
            return NO_CASES
        before, after = self._at(old, later), self._at(new, later)
        nearer = abs(before.mean() - self._rate) - abs(after.mean() - self._rate)
        moved = before - after
        # Each run's part of the gain: how far it moves the rate, signed so that nearer is positive.
        sign = 1.0 if before.mean() > after.mean() else -1.0
        parts = sign * moved
        return verdict_of(parts - parts.mean() + nearer, [run.user for run in later], self._demand)

    def _too_short(self, runs: Sequence[RunRecord]) -> Floats:
        """Return by price and run: 1 for an underestimate, else 0."""
        runtimes = np.array([run.runtime for run in runs])
        predicted = np.array([run.estimates[self._method] for run in runs]).T
        return np.asarray(predicted < runtimes, dtype=float)

    def _at(self, price: float, runs: Sequence[RunRecord]) -> Floats:
        """Return by run the share of underestimates at a price, interpolated between prices."""
        short = self._too_short(runs)
        place = np.interp(
            np.log1p(price), np.log1p(self._prices), np.arange(len(self._prices), dtype=float)
        )
        low = int(place)
        high = min(low + 1, len(self._prices) - 1)
        share = place - low
        mixed: Floats = short[low] * (1 - share) + short[high] * share
        return mixed
