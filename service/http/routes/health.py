"""Calls about the service itself."""

from collections.abc import Callable

from fastapi import Response
from prometheus_client import CONTENT_TYPE_LATEST

from service.contract.answers import HealthAnswer, LivenessAnswer
from service.http.calls import ANY_TOKEN, Calls
from service.http.json_calls import to_json
from service.http.openapi import refusals
from service.operations.method_scores import ShowingMethods


def add(calls: Calls, showing: ShowingMethods, health: Callable[[], HealthAnswer]) -> None:
    """Add the calls."""

    @calls.add("GET /health/live", tags=["health"], scopes=None)
    async def live() -> LivenessAnswer:
        """Say whether the process answers."""
        return LivenessAnswer(status="live")

    @calls.add(
        "GET /health/ready",
        tags=["health"],
        scopes=None,
        response_model=HealthAnswer,
        responses={503: {"model": HealthAnswer, "description": "Starting, or failed."}},
    )
    async def ready() -> Response:
        """Say whether the service has read its history, and how far behind its predictions are.

        A service whose store is away is ready, but stale: it predicts from memory. One whose store
        is locked by another program, or full, is read-only: it predicts, and stores no completion.
        """
        answer = health()
        return Response(
            to_json(answer),
            status_code=200 if answer.status in {"ready", "stale", "read-only"} else 503,
            media_type="application/json",
        )

    @calls.add(
        "GET /metrics",
        tags=["health"],
        scopes=ANY_TOKEN,
        response_class=Response,
        responses={
            200: {"content": {CONTENT_TYPE_LATEST: {"schema": {"type": "string"}}}},
            **refusals(),
        },
    )
    async def metrics() -> Response:
        """Show all metrics, for Prometheus."""
        return Response(await showing.metrics(), media_type=CONTENT_TYPE_LATEST)
