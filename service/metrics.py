"""The service's metrics, for Prometheus."""

import os
import re
from collections.abc import Iterable, Mapping

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

from service.store import Ingested, MethodScore, RecentScore

PREFIX = "walltimed"

Scores = tuple[MethodScore, RecentScore | None]
"""Of one method: over all jobs that were scored, and over the last ones."""

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

MULTIPROCESS_DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable with which several worker processes share their metrics."""


FILTER = re.compile(
    rb"(walltimed\.lua|walltimed_hook\.py|torque_submitfilter\.py)/([0-9A-Za-z.+-]{1,32})"
)
"""How a submit filter names itself and its release."""

UNNAMED = ("unnamed", "")
"""A submit filter from before there were such names."""

MOST_FILTERS = 32
"""Different names; each makes a time series."""


class RouteMetrics:
    """The metrics of one route. Resolves each label once, because that is most of the cost."""

    def __init__(self, route: str, requests: Counter, seconds: Histogram) -> None:
        self._route = route
        self._requests = requests
        self._by_status: dict[int, Counter] = {}
        self._observe_seconds = seconds.labels(route).observe

    def observe(self, status: int, seconds: float) -> None:
        """Count a request that was answered with ``status`` after ``seconds``."""
        self._observe_seconds(seconds)
        counter = self._by_status.get(status)
        if counter is None:
            counter = self._by_status[status] = self._requests.labels(self._route, str(status))
        counter.inc()


class Metrics:
    """All metrics of one process. No label names a user or a job."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = self._counter("requests", "Requests by route and status.", "route status")
        self._seconds = Histogram(
            f"{PREFIX}_request_duration_seconds",
            "Time to answer, by route.",
            ["route"],
            buckets=LATENCY_BUCKETS,
            registry=self.registry,
        )
        self._refused_connections = self._counter(
            "refused_connections",
            "Connections that were closed with an error before there was a whole request.",
            "error",
        )
        self._predictions = self._counter(
            "predictions", "Predictions answered, by the method that answered.", "method"
        )
        self._by_method: dict[str, Counter] = {}
        self._last_asked = self._gauge(
            "filter_last_request_timestamp_seconds",
            "When a submit filter last asked, in Unix seconds, by its file and release.",
            "filter release",
            mode="max",
        )
        self._by_filter: dict[bytes, Gauge] = {}
        self._failures = self._counter(
            "method_failures",
            "Errors of a method by phase: answer (the request was answered instead), shadow (the "
            "method was asked for its score only), or observe (learning).",
            "method phase",
        )
        completions = self._counter(
            "completions", "Completions received: accepted, duplicate or rejected.", "result"
        )
        self._accepted, self._duplicates, self._rejected = (
            completions.labels(result) for result in ("accepted", "duplicate", "rejected")
        )
        self._skipped = self._counter(
            "skipped_records",
            "Records of resource managers that were not stored, by reason.",
            "reason",
        )
        self._refused_clusters = self._counter(
            "refused_clusters",
            "Completions refused because their cluster would be one more than max_clusters.",
        )
        self._dropped = self._counter(
            "dropped_predictions", "Predictions that were answered but could not be recorded."
        )
        self._commits = self._counter("commits", "Write transactions that were committed.")
        self.ready = self._gauge(
            "ready", "1 when the service has read its history, else 0.", mode="livemin"
        )
        self.lag = self._gauge(
            "replay_lag_completions", "Stored completions that are not yet used for predictions."
        )
        self.stale_seconds = self._gauge(
            "stale_seconds", "Seconds since the history store could last be read; 0 while it can."
        )
        self.read_only = self._gauge(
            "read_only", "1 while the history store can be read but not written to, else 0."
        )
        self.queued = self._gauge(
            "writer_queue_completions", "Completions waiting for their commit.", mode="livesum"
        )
        self.clusters = self._gauge("clusters", "Clusters with history.")
        self.unserved_clusters = self._gauge(
            "unserved_clusters",
            "Clusters with history that no predictions are made for: more than max_clusters.",
        )
        self._waits = Histogram(
            f"{PREFIX}_job_wait_seconds",
            "Waits of jobs that have started: forecast at their arrival, and as they came.",
            ["cluster", "queue", "kind"],
            buckets=WAIT_BUCKETS,
            registry=self.registry,
        )
        self._queue_forecasts = Histogram(
            f"{PREFIX}_queue_forecast_duration_seconds",
            "Time to predict and play a live queue.",
            ["cluster"],
            buckets=LATENCY_BUCKETS,
            registry=self.registry,
        )
        self._queue_jobs = self._gauge(
            "queue_jobs", "Jobs of a live queue by state.", "cluster state", "livemostrecent"
        )
        self._queue_age = self._gauge(
            "queue_age_seconds", "Seconds since a live queue was taken.", "cluster", "livemin"
        )
        self._wait_scores = {
            "jobs": self._wait_score("scored_waits", "Jobs whose forecast waits were scored."),
            "mean_absolute_error": self._wait_score(
                "wait_mean_absolute_error_seconds", "Mean absolute error of forecast waits."
            ),
            "coverage": self._wait_score(
                "wait_coverage_ratio", "Share of intervals of the start that held it."
            ),
        }
        self._scores = {
            "jobs": self._score("scored_jobs", "Jobs that ended and were scored."),
            "mean_absolute_error": self._score(
                "mean_absolute_error_seconds", "Mean absolute error of the method's predictions."
            ),
            "underestimation_rate": self._score(
                "underestimation_ratio", "Share of jobs that ran longer than predicted."
            ),
            "accuracy": self._score(
                "accuracy_ratio", "Mean of min(p, r) / max(p, r) over predictions and runtimes."
            ),
            "coverage": self._score("coverage_ratio", "Share of intervals that held the runtime."),
            "asked_coverage": self._score(
                "asked_coverage_ratio", "Mean coverage that was asked of these intervals."
            ),
        }
        self._recent_underestimates = self._score(
            "recent_underestimation_ratio",
            "Share of the last 1,000 scored jobs that ran longer than predicted.",
        )
        self._asked, self._got = (
            self._gauge(
                f"recent_{name}_ratio",
                description,
                "cluster method what",
                mode="livemostrecent",
            )
            for name, description in {
                "asked": "Share of the last 1,000 scored jobs that was asked for: of intervals "
                "that hold, or of underestimates.",
                "got": "Share of these jobs that came.",
            }.items()
        )

    def route(self, template: str) -> RouteMetrics:
        """The metrics of one route, such as /v1/users/{user}/accuracy."""
        return RouteMetrics(template, self._requests, self._seconds)

    def refused(self, error: str) -> None:
        """Count a connection that was closed with an error."""
        self._refused_connections.labels(error).inc()

    def predicted(self, method: str) -> None:
        """Count an answer of a method."""
        counter = self._by_method.get(method)
        if counter is None:
            counter = self._by_method[method] = self._predictions.labels(method)
        counter.inc()

    def asked_by(self, agent: bytes) -> None:
        """Remember that a submit filter asks, by the name that it gives itself."""
        gauge = self._by_filter.get(agent)
        if gauge is None:
            known = FILTER.fullmatch(agent)
            if (agent and not known) or len(self._by_filter) == MOST_FILTERS:
                return
            labels = map(bytes.decode, known.groups()) if known else UNNAMED
            gauge = self._by_filter[agent] = self._last_asked.labels(*labels)
        gauge.set_to_current_time()

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

    def scored(self, cluster: str, scores: Iterable[Scores]) -> None:
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
        for what, kept in (("intervals", recent.intervals), ("underestimates", recent.rates)):
            if kept is not None:
                self._asked.labels(cluster, recent.method, what).set(kept.asked)
                self._got.labels(cluster, recent.method, what).set(kept.got)

    def waited(self, cluster: str, queue: str | None, *, come: float, forecast: float) -> None:
        """Note the wait of a job that has started, and the one that was forecast at its arrival."""
        self._waits.labels(cluster, queue or "", "come").observe(max(0.0, come))
        self._waits.labels(cluster, queue or "", "forecast").observe(max(0.0, forecast))

    def queue_forecast(self, cluster: str, seconds: float) -> None:
        """Note how long the forecast of a live queue took."""
        self._queue_forecasts.labels(cluster).observe(seconds)

    def queue_age(self, cluster: str, seconds: float) -> None:
        """Set how old a live queue is."""
        self._queue_age.labels(cluster).set(seconds)

    def queue_jobs(self, cluster: str, states: Mapping[str, int]) -> None:
        """Set how many jobs a live queue has in each state."""
        for state, jobs in states.items():
            self._queue_jobs.labels(cluster, state).set(jobs)

    def scored_waits(self, cluster: str, made: str, values: Mapping[str, float | None]) -> None:
        """Set how far off the forecast waits of a cluster were."""
        for name, gauge in self._wait_scores.items():
            value = values[name]
            if value is not None:
                gauge.labels(cluster, made).set(value)

    def exposition(self) -> bytes:
        """All metrics as text; those of all worker processes, if they share them."""
        if MULTIPROCESS_DIRECTORY not in os.environ:
            return generate_latest(self.registry)
        shared = CollectorRegistry()
        MultiProcessCollector(shared)  # type: ignore[no-untyped-call] # the client has no types there
        return generate_latest(shared)

    def _counter(self, name: str, description: str, labels: str = "") -> Counter:
        return Counter(f"{PREFIX}_{name}", description, labels.split(), registry=self.registry)

    def _gauge(self, name: str, description: str, labels: str = "", mode: str = "livemax") -> Gauge:
        return Gauge(
            f"{PREFIX}_{name}",
            description,
            labels.split(),
            registry=self.registry,
            multiprocess_mode=mode,  # type: ignore[arg-type] # a Literal there, checked at run time
        )

    def _wait_score(self, name: str, description: str) -> Gauge:
        return self._gauge(name, description, "cluster made", mode="livemostrecent")

    def _score(self, name: str, description: str) -> Gauge:
        return self._gauge(name, description, "cluster method", mode="livemostrecent")
