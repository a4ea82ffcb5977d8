"""Metrics of live queues, and of how far off their forecasts were."""

from collections.abc import Mapping

from service.metrics.metric_registry import MetricRegistry
from service.metrics.request_metrics import LATENCY_BUCKETS

WAIT_BUCKETS = (
    *(60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0, 28800.0),
    *(57600.0, 86400.0, 172800.0, 345600.0, 604800.0),
)
"""Seconds."""

WAIT_SCORES = {
    "jobs": ("scored_waits", "Jobs whose forecast waits were scored."),
    "mean_absolute_error": (
        "wait_mean_absolute_error_seconds",
        "Mean absolute error of forecast waits.",
    ),
    "coverage": ("wait_coverage_ratio", "Share of intervals of the start that held it."),
}
"""Name and description of the metric for each field of the score of waits."""


class QueueMetrics:
    """By cluster."""

    def __init__(self, registry: MetricRegistry) -> None:
        self._waits = registry.histogram(
            "job_wait_seconds",
            "Waits of jobs that have started: forecast at their arrival, and as they came.",
            "cluster queue kind",
            WAIT_BUCKETS,
        )
        self._forecasts = registry.histogram(
            "queue_forecast_duration_seconds",
            "Time to predict and play a live queue.",
            "cluster",
            LATENCY_BUCKETS,
        )
        self._jobs = registry.gauge(
            "queue_jobs", "Jobs of a live queue by state.", "cluster state", "livemostrecent"
        )
        self._age = registry.gauge(
            "queue_age_seconds", "Seconds since a live queue was taken.", "cluster", "livemin"
        )
        self._scores = {
            field: registry.gauge(name, description, "cluster made", "livemostrecent")
            for field, (name, description) in WAIT_SCORES.items()
        }

    def waited(self, cluster: str, queue: str | None, *, come: float, forecast: float) -> None:
        """Note the wait of a job that has started, and the one that was forecast at its arrival."""
        self._waits.labels(cluster, queue or "", "come").observe(max(0.0, come))
        self._waits.labels(cluster, queue or "", "forecast").observe(max(0.0, forecast))

    def forecast_made(self, cluster: str, seconds: float) -> None:
        """Note how long the forecast of a live queue took."""
        self._forecasts.labels(cluster).observe(seconds)

    def aged(self, cluster: str, seconds: float) -> None:
        """Set how old a live queue is."""
        self._age.labels(cluster).set(seconds)

    def counted(self, cluster: str, states: Mapping[str, int]) -> None:
        """Set how many jobs a live queue has in each state."""
        for state, jobs in states.items():
            self._jobs.labels(cluster, state).set(jobs)

    def scored(self, cluster: str, made: str, values: Mapping[str, float | None]) -> None:
        """Set how far off the forecast waits of a cluster were."""
        for name, gauge in self._scores.items():
            value = values[name]
            if value is not None:
                gauge.labels(cluster, made).set(value)
