"""Calls that predict, and calls that report runs that have ended."""

import re
from collections.abc import Callable
from datetime import timedelta, timezone
from typing import Annotated, Any

from fastapi import Query, Request

from service.contract.answers import (
    ExtensionAnswer,
    IngestionAnswer,
    PredictionAnswer,
    PredictionsAnswer,
    RecordsAnswer,
)
from service.contract.bodies import (
    CompletionBatch,
    CompletionBody,
    ExtensionRequest,
    PredictionBatch,
    PredictionRequest,
)
from service.contract.fields import ErrorSentence, Text, msgspec_first
from service.errors import (
    EncodedBodyError,
    InvalidFieldError,
    TooManyClustersError,
    UnsupportedMediaTypeError,
)
from service.http.json_calls import CurrentCaller, check_is_json, content_type
from service.http.openapi import STORE_ERRORS, Calls, refusals
from service.operations.completing import Adapting, Completing
from service.operations.predicting import Predicting
from service.store import RefusedRecordError, StoreFullError, StoreUnavailableError
from terminal.scopes import Scope

LARGEST_JOB = 1 << 16
"""Most bytes of a body about one job; one with the longest fields takes less than half of them."""


def add_predictions(calls: Calls, predicting: Predicting, *, limit: int) -> None:
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


WRITE_ERRORS = (*STORE_ERRORS, StoreFullError, RefusedRecordError)

_is_batch = re.compile(rb'\s*\{\s*"completions"\s*:').match
"""A batch has one field only, of this name; a completion has none of this name."""


def add_completions(calls: Calls, completing: Completing, *, limit: int) -> None:
    """Add the call; ``limit`` is the largest body in bytes."""

    @calls.takes_json(
        "POST /v1/completions",
        tag="completions",
        scopes=(Scope.INGEST,),
        limit=limit,
        decoder=one_or_several,
        errors=(*WRITE_ERRORS, TooManyClustersError),
    )
    async def complete(body: CompletionBody | CompletionBatch) -> IngestionAnswer:
        """Report runs that have ended, one or several.

        The answer comes when all runs are stored durably. A run, named by `(cluster, job_id,
        start_time)`, counts once, even if it is sent repeatedly.
        """
        return await completing.complete(body)


def one_or_several(_either: Any) -> Callable[[bytes], Any]:
    """Return a decoder that knows a batch by its first field, so that errors name their place."""
    one, several = msgspec_first(CompletionBody), msgspec_first(CompletionBatch)
    return lambda body: several(body) if _is_batch(body) else one(body)


ACCOUNTING = "text/x-pbs-accounting"
"""The media type of accounting records. A web page could send text/plain here unasked."""

RecordCluster = Annotated[
    Text | None, Query(description="Cluster of the runs; overrides the record's.")
]
Offset = Annotated[
    str,
    Query(
        pattern=r"^[+-]([01]\d|2[0-3])[0-5]\d$",
        description="UTC offset of the server's clock, such as +0200, for the dates of R records.",
    ),
    ErrorSentence("Input should be an offset such as +0200"),
]


def add_adapters(calls: Calls, adapting: Adapting, *, limit: int) -> None:
    """Add the calls for records of resource managers; ``limit`` is the largest body in bytes."""
    responses = refusals(
        UnsupportedMediaTypeError,
        EncodedBodyError,
        InvalidFieldError,
        StoreUnavailableError,
        StoreFullError,
    )

    @calls.add(
        "POST /v1/adapters/slurm/jobcomp",
        tags=["adapters"],
        scopes=(Scope.INGEST,),
        responses=responses,
        openapi_extra=body("application/json", {"type": "object"}),
    )
    async def jobcomp(request: Request, cluster: RecordCluster = None) -> RecordsAnswer:
        """Report a run as Slurm's jobcomp/elasticsearch plugin sends it.

        Every document is answered 200 as soon as its run is stored durably, also a document
        without a usable run. Only if the store is unavailable the answer is 503, and Slurm sends
        the document again. The job script in the document is neither stored nor logged.
        """
        check_is_json(request.scope)
        return await adapting.slurm_document(await up_to(request, limit), cluster)

    @calls.add(
        "POST /v1/adapters/pbs/accounting",
        tags=["adapters"],
        scopes=(Scope.INGEST,),
        responses=responses,
        openapi_extra=body(ACCOUNTING, {"type": "string"}),
    )
    async def accounting(
        request: Request, cluster: RecordCluster = None, utc_offset: Offset = "+0000"
    ) -> RecordsAnswer:
        """Report runs as lines of the accounting log of PBS or Torque.

        Records of other kinds are skipped and counted.
        """
        if content_type(request.scope) != ACCOUNTING.encode():
            raise UnsupportedMediaTypeError(f"The body must be sent as {ACCOUNTING}.")
        return await adapting.pbs_records(await up_to(request, limit), cluster, zone_of(utc_offset))


def body(media_type: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Describe, for ``openapi_extra``, a body that is read as bytes."""
    return {"requestBody": {"required": True, "content": {media_type: {"schema": schema}}}}


def zone_of(offset: str) -> timezone:
    """Return the time zone of an offset such as ``+0200``."""
    ahead = timedelta(hours=int(offset[1:3]), minutes=int(offset[3:5]))
    return timezone(-ahead if offset[0] == "-" else ahead)


async def up_to(request: Request, limit: int) -> bytes | None:
    """Return the whole body; None if it is longer than ``limit``: it is read to its end then."""
    chunks: list[bytes] = []
    length = 0
    async for chunk in request.stream():
        length += len(chunk)
        if length <= limit:
            chunks.append(chunk)
    return b"".join(chunks) if length <= limit else None
