"""Calls that predict."""

from fastapi import APIRouter

from service.auth import Scope
from service.contract.answers import ExtensionAnswer, PredictionAnswer, PredictionsAnswer
from service.contract.bodies import ExtensionRequest, PredictionBatch, PredictionRequest
from service.contract.decoding import msgspec_first
from service.http.gate import CALLER, CurrentCaller, needs
from service.http.hot_calls import HotCalls, JSONCall
from service.http.openapi import BODY_REFUSALS
from service.operations.predicting import Predicting

LARGEST_JOB = 1 << 16
"""Most bytes of a body about one job; one with the longest fields takes less than half of them."""


def add(router: APIRouter, hot: HotCalls, predicting: Predicting, *, limit: int) -> None:
    """Add the calls; ``limit`` is the largest body in bytes."""
    extra = needs(Scope.PREDICT)
    about_one = min(LARGEST_JOB, limit)

    @router.post(
        "/v1/predictions",
        tags=["predictions"],
        responses=BODY_REFUSALS,
        openapi_extra=needs(Scope.PREDICT, Scope.SELF),
    )
    async def predict(caller: CurrentCaller, body: PredictionRequest) -> PredictionAnswer:
        """Predict how long a job will run.

        A prediction does not change what the service has learned: a submit filter may ask twice.
        A caller with scope self asks about their own jobs only, and nothing is recorded.
        """
        return predicting.predict(body, caller)

    @router.post(
        "/v1/predictions/batch",
        tags=["predictions"],
        responses=BODY_REFUSALS,
        openapi_extra=extra,
    )
    async def predict_batch(body: PredictionBatch) -> PredictionsAnswer:
        """Predict several jobs; the answers are in the order of the submissions."""
        return await predicting.predict_batch(body)

    @router.post(
        "/v1/predictions/extend",
        tags=["predictions"],
        responses=BODY_REFUSALS,
        openapi_extra=extra,
    )
    async def extend(body: ExtensionRequest) -> ExtensionAnswer:
        """Give the next estimate of a job that has outlived its prediction.

        With a submission it is what three quarters of the jobs like it that ran as long do not
        exceed; in a young cluster, those of the user's jobs. Without it, or with too few such runs,
        the prediction is doubled until it exceeds the elapsed time or reaches the request.
        """
        return predicting.extend(body)

    hot["POST", "/v1/predictions"] = JSONCall(
        endpoint=predict,
        validate=msgspec_first(PredictionRequest),
        limit=about_one,
        arguments=lambda connection: (connection[CALLER],),
    )
    hot["POST", "/v1/predictions/batch"] = JSONCall(
        endpoint=predict_batch, validate=msgspec_first(PredictionBatch), limit=limit
    )
    hot["POST", "/v1/predictions/extend"] = JSONCall(
        endpoint=extend, validate=msgspec_first(ExtensionRequest), limit=about_one
    )
