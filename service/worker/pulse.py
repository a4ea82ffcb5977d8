"""How many predictions the service answered lately, and how fast: the last hour in samples."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping

from msgspec import Struct

from service.metrics import Metrics

SAMPLE_SECONDS = 10.0

KEPT = 361
"""Samples: an hour and its beginning."""


class Served(Struct, frozen=True):
    """What was answered from the start until ``at``, by all workers of this host.

    Attributes:
        at: Unix seconds.
        predictions: answered.
        by_seconds: answers of the route of predictions that took no longer, by seconds.
    """

    at: float
    predictions: float
    by_seconds: Mapping[float, float]


class Span(Struct, frozen=True):
    """What was answered between two samples.

    Attributes:
        at: the end, in Unix seconds.
        per_minute: predictions.
        median: seconds that an answer took; None if there was none.
        slow: seconds that 99% of the answers did not exceed.
    """

    at: float
    per_minute: float
    median: float | None
    slow: float | None


class Pulse:
    """Samples the metrics every few seconds."""

    def __init__(self, metrics: Metrics, clock: Callable[[], float]) -> None:
        self._metrics = metrics
        self._clock = clock
        self._samples: deque[Served] = deque(maxlen=KEPT)
        self._spans: deque[Span] = deque(maxlen=KEPT - 1)

    async def run(self) -> None:
        """Take samples, for ever."""
        while True:
            await asyncio.to_thread(self.sample)
            await asyncio.sleep(SAMPLE_SECONDS)

    def sample(self) -> None:
        """Take one sample."""
        predictions, by_seconds = self._metrics.served()
        served = Served(self._clock(), predictions, by_seconds)
        if self._samples:
            self._spans.append(between(self._samples[-1], served))
        self._samples.append(served)

    def spans(self) -> list[Span]:
        """The last hour, sample by sample."""
        return list(self._spans)

    def lately(self, seconds: float) -> Span | None:
        """The last ``seconds`` in one; None before there are two samples."""
        samples = list(self._samples)
        if len(samples) < 2:
            return None
        last = samples[-1]
        first = next(sample for sample in samples if last.at - sample.at <= seconds)
        return between(first if first is not last else samples[-2], last)


def between(first: Served, last: Served) -> Span:
    """What was answered after ``first`` until ``last``."""
    minutes = max(last.at - first.at, 1e-9) / 60.0
    answers = {
        most: max(0.0, count - first.by_seconds.get(most, 0.0))
        for most, count in last.by_seconds.items()
    }
    return Span(
        at=last.at,
        per_minute=max(0.0, last.predictions - first.predictions) / minutes,
        median=quantile(answers, 0.5),
        slow=quantile(answers, 0.99),
    )


def quantile(at_most: Mapping[float, float], share: float) -> float | None:
    """The time that a share of answers did not exceed, from cumulative counts by upper bound.

    Within a bound the answers are taken to lie evenly, as Prometheus does.
    """
    bounds = sorted(at_most)
    total = at_most[bounds[-1]] if bounds else 0.0
    if total <= 0.0:
        return None
    wanted, lower, below = share * total, 0.0, 0.0
    for bound in bounds:
        count = at_most[bound]
        if count >= wanted:
            inside = (wanted - below) / (count - below) if count > below else 1.0
            return lower if bound == float("inf") else lower + (bound - lower) * inside
        lower, below = bound, count
    return lower
