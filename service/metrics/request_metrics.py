"""Metrics of requests: by route and status, and of the submit filters that ask."""

import re
from time import time

from prometheus_client import Counter, Gauge, Histogram

from service.metrics.metric_registry import MetricRegistry

LATENCY_BUCKETS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005),
    *(0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0),
)
"""Seconds."""

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


class RequestMetrics:
    """Of all routes."""

    def __init__(self, registry: MetricRegistry) -> None:
        self._requests = registry.counter(
            "requests", "Requests by route and status.", "route status"
        )
        self._seconds = registry.histogram(
            "request_duration_seconds", "Time to answer, by route.", "route", LATENCY_BUCKETS
        )
        self._refused_connections = registry.counter(
            "refused_connections",
            "Connections that were closed with an error before there was a whole request.",
            "error",
        )
        self._last_asked = registry.gauge(
            "filter_last_request_timestamp_seconds",
            "When a submit filter last asked, in Unix seconds, by its file and release.",
            "filter release",
            mode="max",
        )
        self._by_filter: dict[bytes, tuple[Gauge, float]] = {}

    def route(self, template: str) -> RouteMetrics:
        """The metrics of one route, such as /v1/users/{user}/accuracy."""
        return RouteMetrics(template, self._requests, self._seconds)

    def refused(self, error: str) -> None:
        """Count a connection that was closed with an error."""
        self._refused_connections.labels(error).inc()

    def asked_by(self, agent: bytes) -> None:
        """Remember that a submit filter asks, by the name that it gives itself.

        Once a second will do, as nobody looks more often.
        """
        gauge, noted = self._by_filter.get(agent, (None, 0.0))
        now = time()
        if 0.0 <= now - noted < 1.0:
            return
        if gauge is None:
            known = FILTER.fullmatch(agent)
            if (agent and not known) or len(self._by_filter) == MOST_FILTERS:
                return
            labels = map(bytes.decode, known.groups()) if known else UNNAMED
            gauge = self._last_asked.labels(*labels)
        gauge.set(now)
        self._by_filter[agent] = gauge, now
