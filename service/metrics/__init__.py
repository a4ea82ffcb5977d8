"""What Prometheus is told: requests, predictions, completions, scores and live queues."""

from service.metrics.metric_registry import MULTIPROCESS_DIRECTORY
from service.metrics.request_metrics import RouteMetrics
from service.metrics.score_metrics import Scores
from service.metrics.service_metrics import Metrics

__all__ = ["MULTIPROCESS_DIRECTORY", "Metrics", "RouteMetrics", "Scores"]
