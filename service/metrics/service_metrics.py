"""All metrics of the service, for Prometheus."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from service.metrics.metric_registry import MetricRegistry
from service.metrics.queue_metrics import QueueMetrics
from service.metrics.request_metrics import RequestMetrics
from service.metrics.score_metrics import ScoreMetrics
from service.store import Ingested

if TYPE_CHECKING:
    from prometheus_client import Counter


class Metrics:
    """All metrics of one process. No label names a user or a job."""

    def __init__(self) -> None:
        registry = self.registry = MetricRegistry()
        self.requests = RequestMetrics(registry)
        self.scores = ScoreMetrics(registry)
        self.queues = QueueMetrics(registry)
        self._predictions = registry.counter(
            "predictions", "Predictions answered, by the method that answered.", "method"
        )
        self._by_method: dict[str, Counter] = {}
        self._failures = registry.counter(
            "method_failures",
            "Errors of a method by phase: answer (the request was answered instead), shadow (the "
            "method was asked for its score only), or observe (learning).",
            "method phase",
        )
        completions = registry.counter(
            "completions", "Completions received: accepted, duplicate or rejected.", "result"
        )
        self._accepted, self._duplicates, self._rejected = (
            completions.labels(result) for result in ("accepted", "duplicate", "rejected")
        )
        self._skipped = registry.counter(
            "skipped_records",
            "Records of resource managers that were not stored, by reason.",
            "reason",
        )
        self._refused_clusters = registry.counter(
            "refused_clusters",
            "Completions refused because their cluster would be one more than max_clusters.",
        )
        self._dropped = registry.counter(
            "dropped_predictions", "Predictions that were answered but could not be recorded."
        )
        self._commits = registry.counter("commits", "Write transactions that were committed.")
        self.ready = registry.gauge(
            "ready", "1 when the service has read its history, else 0.", mode="livemin"
        )
        self.lag = registry.gauge(
            "replay_lag_completions", "Stored completions that are not yet used for predictions."
        )
        self.stale_seconds = registry.gauge(
            "stale_seconds", "Seconds since the history store could last be read; 0 while it can."
        )
        self.read_only = registry.gauge(
            "read_only", "1 while the history store can be read but not written to, else 0."
        )
        self.queued = registry.gauge(
            "writer_queue_completions", "Completions waiting for their commit.", mode="livesum"
        )
        self.clusters = registry.gauge("clusters", "Clusters with history.")
        self.unserved_clusters = registry.gauge(
            "unserved_clusters",
            "Clusters with history that no predictions are made for: more than max_clusters.",
        )

    def predicted(self, method: str) -> None:
        """Count an answer of a method."""
        counter = self._by_method.get(method)
        if counter is None:
            counter = self._by_method[method] = self._predictions.labels(method)
        counter.inc()

    def failed(self, method: str, phase: str) -> None:
        """Count an error of a method, in the phase ``answer``, ``shadow`` or ``observe``."""
        self._failures.labels(method, phase).inc()

    def ingested(self, counts: Ingested) -> None:
        """Count completions that are durable."""
        self._accepted.inc(counts.accepted)
        self._duplicates.inc(counts.duplicates)

    def rejected(self, completions: int) -> None:
        """Count lines of a stream that were not completions."""
        self._rejected.inc(completions)

    def skipped(self, records: Mapping[str, int]) -> None:
        """Count records of which nothing was stored, by reason."""
        for reason, count in records.items():
            self._skipped.labels(reason).inc(count)

    def refused_cluster(self) -> None:
        """Count a completion of one cluster too many."""
        self._refused_clusters.inc()

    def dropped(self, predictions: int) -> None:
        """Count predictions that could not be recorded."""
        self._dropped.inc(predictions)

    def committed(self, transactions: int) -> None:
        """Count write transactions."""
        self._commits.inc(transactions)
