"""All metrics of the service, for Prometheus. No label names a user or a job."""

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from time import time
from typing import Any, Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from service.store import MethodScores, RecentScore

PREFIX = "walltimed"

MULTIPROCESS_DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable with which several worker processes share their metrics."""

LATENCY_BUCKETS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005),
    *(0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0),
)
"""Seconds."""

WAIT_BUCKETS = (
    *(60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0, 28800.0),
    *(57600.0, 86400.0, 172800.0, 345600.0, 604800.0),
)
"""Seconds."""

FILTER = re.compile(
    rb"(walltimed\.lua|cli_filter\.lua|walltimed_hook\.py|torque_submitfilter\.py)"
    rb"/([0-9A-Za-z.+-]{1,32})(?: \(([a-z-]{1,16})\))?"
)
"""User-Agent of a submit filter: name, release and, in newer releases, mode."""

UNNAMED = (b"unnamed", b"", b"")
"""Labels of a submit filter of an early release, which has no User-Agent."""

MOST_FILTERS = 32
"""Largest number of different filters; each makes a time series."""

SCORES = {
    "jobs": ("scored_jobs", "Jobs that ended and were scored."),
    "mean_absolute_error": (
        "mean_absolute_error_seconds",
        "Mean absolute error of the method's predictions.",
    ),
    "underestimation_rate": (
        "underestimation_ratio",
        "Share of jobs that ran longer than predicted.",
    ),
    "accuracy": (
        "accuracy_ratio",
        "Mean of min(p, r) / max(p, r) over predictions and runtimes.",
    ),
    "coverage": ("coverage_ratio", "Share of intervals that contained the runtime."),
    "nominal_coverage": (
        "nominal_coverage_ratio",
        "Mean nominal coverage of these intervals.",
    ),
}
"""Name and description of the metric for each field of a method's score."""

RECENT = {
    "nominal": "Nominal share among the last 1,000 scored jobs: of intervals that contain the "
    "runtime, or of underestimates.",
    "observed": "Observed share among the last 1,000 scored jobs.",
}

WAIT_SCORES = {
    "jobs": ("scored_waits", "Jobs whose forecast waits were scored."),
    "mean_absolute_error": (
        "wait_mean_absolute_error_seconds",
        "Mean absolute error of forecast waits.",
    ),
    "coverage": ("wait_coverage_ratio", "Share of start intervals that contained the start."),
}
"""Name and description of the metric for each field of the score of waits."""


BATCH = 64
"""Number of observations that a metric takes at once."""

Observed = TypeVar("Observed")


class Batched(Generic[Observed]):
    """Observations that a metric takes in batches: one behind another takes a fifth of the time."""

    def __init__(self, take: Callable[[Observed], None]) -> None:
        self._take = take
        self._waiting: deque[Observed] = deque()

    def add(self, observed: Observed) -> None:
        """Observe, at once or with one of the next observations."""
        self._waiting.append(observed)
        if len(self._waiting) >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Let the metric take what waits; any thread may call it."""
        with suppress(IndexError):
            while True:
                self._take(self._waiting.popleft())


class Metrics:
    """All metrics of one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._batches: list[Batched[Any]] = []
        self.requests = RequestMetrics(self)
        self.scores = ScoreMetrics(self)
        self.queues = QueueMetrics(self)
        predictions = self.counter(
            "predictions", "Predictions answered, by the method that answered.", "method"
        )
        by_method = cache(predictions.labels)
        self.predicted: Batched[str] = self.batched(lambda method: by_method(method).inc())
        self.failures = self.counter(
            "method_failures",
            "Errors of a method by phase: answer (the request was answered instead), shadow "
            "(predictions for scores only), or observe (learning).",
            "method phase",
        )
        completions = self.counter(
            "completions", "Completions received: accepted, duplicate or rejected.", "result"
        )
        self.accepted, self.duplicates, self.rejected = (
            completions.labels(result) for result in ("accepted", "duplicate", "rejected")
        )
        self._skipped = self.counter(
            "skipped_records",
            "Records of resource managers that were not stored, by reason.",
            "reason",
        )
        self._doubted = self.counter(
            "doubted_records",
            "Stored records whose fields contradict each other, by contradiction.",
            "reason",
        )
        self.refused_clusters = self.counter(
            "refused_clusters",
            "Completions refused because their cluster would be one more than max_clusters.",
        )
        self.dropped = self.counter(
            "dropped_predictions", "Predictions that were answered but could not be recorded."
        )
        self.commits = self.counter("commits", "Write transactions that were committed.")
        self.ready = self.gauge(
            "ready", "1 when the service has read its history, else 0.", mode="livemin"
        )
        self.lag = self.gauge(
            "replay_lag_completions", "Stored completions that are not yet used for predictions."
        )
        self.stale_seconds = self.gauge(
            "stale_seconds", "Seconds since the history store could last be read; 0 while it can."
        )
        self.read_only = self.gauge(
            "read_only", "1 while the history store can be read but not written to, else 0."
        )
        self.queued = self.gauge(
            "writer_pending_completions", "Completions waiting for their commit.", mode="livesum"
        )
        self.clusters = self.gauge("clusters", "Clusters with history.")
        self.unserved_clusters = self.gauge(
            "unserved_clusters",
            "Clusters with history but without predictions: there are more than max_clusters.",
        )

    def counter(self, name: str, description: str, labels: str = "") -> Counter:
        """Return a new counter; ``labels`` are names separated by spaces."""
        return Counter(f"{PREFIX}_{name}", description, labels.split(), registry=self.registry)

    def gauge(self, name: str, description: str, labels: str = "", mode: str = "livemax") -> Gauge:
        """Return a new gauge; ``mode`` combines the numbers of several workers."""
        return Gauge(
            f"{PREFIX}_{name}",
            description,
            labels.split(),
            registry=self.registry,
            multiprocess_mode=mode,  # type: ignore[arg-type] # a Literal there, checked at run time
        )

    def histogram(
        self, name: str, description: str, labels: str, buckets: Sequence[float]
    ) -> Histogram:
        """Return a new histogram; ``buckets`` are upper bounds."""
        return Histogram(
            f"{PREFIX}_{name}", description, labels.split(), buckets=buckets, registry=self.registry
        )

    def skipped(self, records: Mapping[str, int]) -> None:
        """Count records of which nothing was stored, by reason."""
        for reason, count in records.items():
            self._skipped.labels(reason).inc(count)

    def doubted(self, records: Mapping[str, int]) -> None:
        """Count stored records whose fields contradict each other, by contradiction."""
        for reason, count in records.items():
            self._doubted.labels(reason).inc(count)

    def batched(self, take: Callable[[Observed], None]) -> Batched[Observed]:
        """Return observations that a metric takes in batches."""
        self._batches.append(Batched(take))
        return self._batches[-1]

    def flush(self) -> None:
        """Let metrics take the observations that wait."""
        for each in self._batches:
            each.flush()

    def exposition(self) -> bytes:
        """Return all metrics as text; those of all worker processes, if they share them."""
        self.flush()
        if MULTIPROCESS_DIRECTORY not in os.environ:
            return generate_latest(self.registry)
        shared = CollectorRegistry()
        own = self.registry.collect()
        shared.register(AllWorkers({each.name: each.documentation for each in own}))
        return generate_latest(shared)


class AllWorkers(Collector):
    """The metrics of all worker processes, with their help, which the client does not keep.

    Args:
        help_of: sentences by the name of the metric.
    """

    def __init__(self, help_of: Mapping[str, str]) -> None:
        self._help_of = help_of
        self._files = MultiProcessCollector(None)  # type: ignore[no-untyped-call] # the client has no types there

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        for metric in self._files.collect():  # type: ignore[no-untyped-call] # likewise
            metric.documentation = self._help_of.get(metric.name, metric.documentation)
            yield metric


class RouteMetrics:
    """Metrics of one route. Each label is resolved once, because that is most of the cost."""

    def __init__(
        self, metrics: Metrics, route: str, requests: Counter, seconds: Histogram, refused_at: Gauge
    ) -> None:
        self._route = route
        self._refused_at = refused_at
        self._requests = requests
        self._by_status: dict[int, Counter] = {}
        self._observe_seconds = seconds.labels(route).observe
        self.answered = metrics.batched(self._count).add

    def _count(self, answered: tuple[int, float]) -> None:
        """Count a request by the status of its answer, and observe the seconds until then."""
        status, seconds = answered
        self._observe_seconds(seconds)
        counter = self._by_status.get(status)
        if counter is None:
            counter = self._by_status[status] = self._requests.labels(self._route, str(status))
        counter.inc()

    def refused_program(self, status: int) -> None:
        """Set the time of the last request of a program that was refused for its token."""
        self._refused_at.labels(self._route, str(status)).set(time())


class RequestMetrics:
    """Metrics of requests: by route and status, and of the submit filters that ask."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._requests = metrics.counter(
            "requests", "Requests by route and status.", "route status"
        )
        self._seconds = metrics.histogram(
            "request_duration_seconds", "Time to answer, by route.", "route", LATENCY_BUCKETS
        )
        self._refused_connections = metrics.counter(
            "refused_connections",
            "Connections that were closed with an error before there was a whole request.",
            "error",
        )
        self._refused_at = metrics.gauge(
            "program_last_refusal_timestamp_seconds",
            "Unix time of the last request to a route of programs that was refused for its token.",
            "route status",
            mode="max",
        )
        self._last_asked = metrics.gauge(
            "filter_last_request_timestamp_seconds",
            "Unix time of the last request of a submit filter, by file, release and mode.",
            "filter release mode",
            mode="max",
        )
        self._by_filter: dict[bytes, tuple[Gauge, float]] = {}

    def route(self, template: str) -> RouteMetrics:
        """Return the metrics of one route, such as /v1/users/{user}/accuracy."""
        return RouteMetrics(
            self._metrics, template, self._requests, self._seconds, self._refused_at
        )

    def refused(self, error: str) -> None:
        """Count a connection that was closed with an error."""
        self._refused_connections.labels(error).inc()

    @property
    def filter_modes(self) -> frozenset[str]:
        """Return the modes in which submit filters have asked this process."""
        found = map(FILTER.fullmatch, self._by_filter)
        return frozenset((parts[3] or b"").decode() for parts in found if parts)

    def asked_by(self, agent: bytes) -> None:
        """Set the time of the last request of a submit filter, at most once a second.

        Args:
            agent: the name that the filter gives itself.
        """
        gauge, noted = self._by_filter.get(agent, (None, 0.0))
        now = time()
        if 0.0 <= now - noted < 1.0:
            return
        if gauge is None:
            parts = FILTER.fullmatch(agent)
            if (agent and not parts) or len(self._by_filter) == MOST_FILTERS:
                return
            labels = parts.groups(b"") if parts else UNNAMED
            gauge = self._last_asked.labels(*map(bytes.decode, labels))
        gauge.set(now)
        self._by_filter[agent] = gauge, now


class ScoreMetrics:
    """Metrics of the errors of predictions, by cluster and method."""

    def __init__(self, metrics: Metrics) -> None:
        mode = "livemostrecent"
        self._scores = {
            field: metrics.gauge(name, description, "cluster method", mode)
            for field, (name, description) in SCORES.items()
        }
        self._recent_underestimates = metrics.gauge(
            "recent_underestimation_ratio",
            "Share of the last 1,000 scored jobs that ran longer than predicted.",
            "cluster method",
            mode,
        )
        self._nominal, self._observed = (
            metrics.gauge(f"recent_{name}_ratio", description, "cluster method what", mode)
            for name, description in RECENT.items()
        )

    def scored(self, cluster: str, scores: Iterable[MethodScores]) -> None:
        """Set the scores of the methods on a cluster."""
        for score, recent in scores:
            for name, gauge in self._scores.items():
                value = getattr(score, name)
                if value is not None:
                    gauge.labels(cluster, score.method).set(value)
            if recent is not None:
                self._scored_lately(cluster, recent)

    def _scored_lately(self, cluster: str, recent: RecentScore) -> None:
        of_method = self._recent_underestimates.labels(cluster, recent.method)
        of_method.set(recent.underestimation_rate)
        for what, found in (("intervals", recent.intervals), ("underestimates", recent.rates)):
            if found is not None:
                self._nominal.labels(cluster, recent.method, what).set(found.nominal)
                self._observed.labels(cluster, recent.method, what).set(found.observed)


class QueueMetrics:
    """Metrics of live queues and of the errors of their forecasts, by cluster."""

    def __init__(self, metrics: Metrics) -> None:
        self._waits = metrics.histogram(
            "job_wait_seconds",
            "Waits of jobs that have started: forecast at arrival, and observed.",
            "cluster queue kind",
            WAIT_BUCKETS,
        )
        self.forecast_seconds = metrics.histogram(
            "snapshot_forecast_duration_seconds",
            "Time to forecast a snapshot.",
            "cluster",
            LATENCY_BUCKETS,
        )
        self._jobs = metrics.gauge(
            "snapshot_jobs",
            "Jobs of the last snapshot by state.",
            "cluster state",
            "livemostrecent",
        )
        self.at_risk = metrics.gauge(
            "snapshot_jobs_at_risk",
            "Running jobs of the last snapshot that will probably be cut at their limits.",
            "cluster",
            "livemostrecent",
        )
        self._core_hours = metrics.gauge(
            "recent_core_hours",
            "Core hours of the cluster's last 4,000 runs: of those that ended at their limits, and "
            "of the others.",
            "cluster ended",
            "livemostrecent",
        )
        self.age = metrics.gauge(
            "snapshot_age_seconds",
            "Seconds since the last snapshot was taken.",
            "cluster",
            "livemin",
        )
        self._scores = {
            field: metrics.gauge(name, description, "cluster made", "livemostrecent")
            for field, (name, description) in WAIT_SCORES.items()
        }

    def observe_wait(
        self, cluster: str, queue: str | None, *, observed: float, forecast: float
    ) -> None:
        """Add a started job's wait, and the wait forecast at its arrival, to the histogram."""
        self._waits.labels(cluster, queue or "", "observed").observe(max(0.0, observed))
        self._waits.labels(cluster, queue or "", "forecast").observe(max(0.0, forecast))

    def counted(self, cluster: str, states: Mapping[str, int]) -> None:
        """Set the number of jobs of a live queue in each state."""
        for state, jobs in states.items():
            self._jobs.labels(cluster, state).set(jobs)

    def used(self, cluster: str, core_hours: tuple[float, float]) -> None:
        """Set the core hours of runs that ended at their limits, and of the others."""
        for ended, hours in zip(("at-limit", "otherwise"), core_hours, strict=True):
            self._core_hours.labels(cluster, ended).set(hours)

    def scored(self, cluster: str, made: str, values: Mapping[str, float | None]) -> None:
        """Set the errors of the forecast waits of a cluster."""
        for name, gauge in self._scores.items():
            value = values[name]
            if value is not None:
                gauge.labels(cluster, made).set(value)
