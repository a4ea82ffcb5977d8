"""Calls that predict."""

from service.contract.answers import ExtensionAnswer, PredictionAnswer, PredictionsAnswer
from service.contract.bodies import ExtensionRequest, PredictionBatch, PredictionRequest
from service.contract.decoding import msgspec_first
from service.http.calls import Calls
from service.http.json_calls import CurrentCaller
from service.operations.predicting import Predicting
from terminal.scopes import Scope

LARGEST_JOB = 1 << 16
"""Most bytes of a body about one job; one with the longest fields takes less than half of them."""


def add(calls: Calls, predicting: Predicting, *, limit: int) -> None:
    """Add the calls; ``limit`` is the largest body in bytes."""
    about_one = min(LARGEST_JOB, limit)

    @calls.takes_json(
        "POST /v1/predictions",
        tag="predictions",
        scopes=(Scope.PREDICT, Scope.SELF),
        limit=about_one,
        decoder=msgspec_first,
    )
    async def predict(caller: CurrentCaller, body: PredictionRequest) -> PredictionAnswer:
        """Predict how long a job will run.

        A prediction does not change what the service has learned: a submit filter may ask twice.
        A caller with scope self asks about their own jobs only, and nothing is recorded.
        """
        return predicting.predict(body, caller)

    @calls.takes_json(
        "POST /v1/predictions/batch",
        tag="predictions",
        scopes=(Scope.PREDICT,),
        limit=limit,
        decoder=msgspec_first,
    )
    async def predict_batch(body: PredictionBatch) -> PredictionsAnswer:
        """Predict several jobs; the answers are in the order of the submissions."""
        return await predicting.predict_batch(body)

    @calls.takes_json(
        "POST /v1/predictions/extend",
        tag="predictions",
        scopes=(Scope.PREDICT,),
        limit=about_one,
        decoder=msgspec_first,
    )
    async def extend(body: ExtensionRequest) -> ExtensionAnswer:
        """Give the next estimate of a job that has outlived its prediction.

        With a submission it is what three quarters of the jobs like it that ran as long do not
        exceed; in a young cluster, those of the user's jobs. Without it, or with too few such runs,
        the prediction is doubled until it exceeds the elapsed time or reaches the request.
        """
        return predicting.extend(body)
