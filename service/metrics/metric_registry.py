"""Where a process keeps its metrics, and how they are told together with other workers' metrics."""

import os
from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

PREFIX = "walltimed"

MULTIPROCESS_DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable with which several worker processes share their metrics."""


class MetricRegistry:
    """Makes metrics, all with one prefix, and tells them all."""

    def __init__(self) -> None:
        self.own = CollectorRegistry()

    def counter(self, name: str, description: str, labels: str = "") -> Counter:
        """A number that only grows; ``labels`` are names apart by spaces."""
        return Counter(f"{PREFIX}_{name}", description, labels.split(), registry=self.own)

    def gauge(self, name: str, description: str, labels: str = "", mode: str = "livemax") -> Gauge:
        """A number that is set; ``mode`` says what several workers' numbers are together."""
        return Gauge(
            f"{PREFIX}_{name}",
            description,
            labels.split(),
            registry=self.own,
            multiprocess_mode=mode,  # type: ignore[arg-type] # a Literal there, checked at run time
        )

    def histogram(
        self, name: str, description: str, labels: str, buckets: Sequence[float]
    ) -> Histogram:
        """Counts of what was observed, by upper bounds."""
        return Histogram(
            f"{PREFIX}_{name}", description, labels.split(), buckets=buckets, registry=self.own
        )

    def collected(self) -> Iterable[Metric]:
        """All metrics with their values; those of all worker processes, if they share them."""
        return self._told().collect()

    def exposition(self) -> bytes:
        """The same as text for Prometheus."""
        return generate_latest(self._told())

    def _told(self) -> CollectorRegistry:
        if MULTIPROCESS_DIRECTORY not in os.environ:
            return self.own
        shared = CollectorRegistry()
        MultiProcessCollector(shared)  # type: ignore[no-untyped-call] # the client has no types there
        return shared
