"""Calls about the service itself."""

from collections.abc import Callable

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST

from service.contract.answers import HealthAnswer, LivenessAnswer
from service.http.gate import needs, open_to_all
from service.http.hot_calls import to_json
from service.http.openapi import refusals
from service.operations.reporting import Reporting


def add(router: APIRouter, reporting: Reporting, health: Callable[[], HealthAnswer]) -> None:
    """Add the calls."""

    @router.get("/health/live", tags=["health"], openapi_extra=open_to_all())
    async def live() -> LivenessAnswer:
        """Say whether the process answers."""
        return LivenessAnswer(status="live")

    @router.get(
        "/health/ready",
        tags=["health"],
        response_model=HealthAnswer,
        responses={503: {"model": HealthAnswer, "description": "Starting, or failed."}},
        openapi_extra=open_to_all(),
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

    @router.get(
        "/metrics",
        tags=["health"],
        response_class=Response,
        responses={
            200: {"content": {CONTENT_TYPE_LATEST: {"schema": {"type": "string"}}}},
            **refusals(),
        },
        openapi_extra=needs(),
    )
    async def metrics() -> Response:
        """Show all metrics, for Prometheus."""
        return Response(await reporting.metrics(), media_type=CONTENT_TYPE_LATEST)
