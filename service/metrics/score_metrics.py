"""Metrics of how far off predictions were."""

from collections.abc import Iterable

from service.metrics.metric_registry import MetricRegistry
from service.store import MethodScore, RecentScore

Scores = tuple[MethodScore, RecentScore | None]
"""Of one method: over all jobs that were scored, and over the last ones."""

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
    "coverage": ("coverage_ratio", "Share of intervals that held the runtime."),
    "asked_coverage": (
        "asked_coverage_ratio",
        "Mean coverage that was asked of these intervals.",
    ),
}
"""Name and description of the metric for each field of a method's score."""

RECENT = {
    "asked": "Share of the last 1,000 scored jobs that was asked for: of intervals that hold, or "
    "of underestimates.",
    "got": "Share of these jobs that came.",
}


class ScoreMetrics:
    """By cluster and method."""

    def __init__(self, registry: MetricRegistry) -> None:
        mode = "livemostrecent"
        self._scores = {
            field: registry.gauge(name, description, "cluster method", mode)
            for field, (name, description) in SCORES.items()
        }
        self._recent_underestimates = registry.gauge(
            "recent_underestimation_ratio",
            "Share of the last 1,000 scored jobs that ran longer than predicted.",
            "cluster method",
            mode,
        )
        self._asked, self._got = (
            registry.gauge(f"recent_{name}_ratio", description, "cluster method what", mode)
            for name, description in RECENT.items()
        )

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
