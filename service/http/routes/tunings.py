"""Calls about the tuning of knn's parameters."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from service.auth import Scope
from service.contract.answers import TuningAnswer, TuningsAnswer
from service.contract.bodies import ClusterQuery, TuningRequest
from service.contract.fields import Text
from service.http.gate import needs
from service.http.hot_calls import HotCalls, JSONCall
from service.http.openapi import refusals
from service.operations.tuning import TuningRounds


def add(router: APIRouter, hot: HotCalls, rounds: TuningRounds, *, limit: int) -> None:
    """Add the calls; ``limit`` is the largest body in bytes."""

    @router.post(
        "/v1/tunings",
        tags=["tunings"],
        status_code=202,
        responses=refusals(400, 409, 413, 415, 422, 503),
        openapi_extra=needs(Scope.ADMIN),
    )
    async def start(body: TuningRequest) -> TuningAnswer:
        """Ask for a round of tuning.

        The round runs beside the service. A cluster has at most one open round; if it has one
        already, the answer is that round.
        """
        return await rounds.start(body)

    hot["POST", "/v1/tunings"] = JSONCall(
        endpoint=start, validate=TuningRequest.model_validate_json, limit=limit, status=202
    )

    @router.get(
        "/v1/tunings",
        tags=["tunings"],
        responses=refusals(422, 503),
        openapi_extra=needs(Scope.PREDICT, Scope.READ, Scope.SELF),
    )
    async def of_cluster(query: Annotated[ClusterQuery, Query()]) -> TuningsAnswer:
        """List the latest rounds of a cluster with their progress and results."""
        return await rounds.of_cluster(query.cluster)

    @router.get(
        "/v1/tunings/{tuning_id}",
        tags=["tunings"],
        responses=refusals(404, 422, 503),
        openapi_extra=needs(Scope.PREDICT, Scope.READ, Scope.SELF),
    )
    async def one(tuning_id: Annotated[Text, Path()]) -> TuningAnswer:
        """Show one round of tuning: its progress, and what it found."""
        return await rounds.one(tuning_id)
