"""Calls that forecast when jobs will start and end."""

from fastapi import APIRouter

from service.auth import Scope
from service.contract.forecast_answers import ForecastAnswer
from service.contract.forecast_bodies import ForecastRequest
from service.http.gate import needs
from service.http.hot_calls import HotCalls, JSONCall
from service.http.openapi import refusals
from service.operations.forecasting import Forecasting


def add(router: APIRouter, hot: HotCalls, forecasting: Forecasting, *, limit: int) -> None:
    """Add the call; ``limit`` is the largest body in bytes."""

    @router.post(
        "/v1/forecasts",
        tags=["forecasts"],
        responses=refusals(400, 413, 415, 422, 503),
        openapi_extra=needs(Scope.PREDICT, Scope.READ),
    )
    async def forecast(body: ForecastRequest) -> ForecastAnswer:
        """Play a queue forward with the scheduler's rules and predicted runtimes.

        The forecast assumes that no further jobs are submitted. Times are exact to the second.
        """
        return await forecasting.forecast(body)

    hot["POST", "/v1/forecasts"] = JSONCall(
        endpoint=forecast, validate=ForecastRequest.model_validate_json, limit=limit
    )
