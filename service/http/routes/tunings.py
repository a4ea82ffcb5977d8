"""Calls about the tuning of knn's parameters."""

from typing import Annotated

from fastapi import Path, Query

from service.contract.answers import TuningAnswer, TuningsAnswer
from service.contract.bodies import ClusterQuery, TuningRequest
from service.contract.fields import Text
from service.errors import InvalidFieldError, TooShortHistoryError, UnknownTuningError
from service.http.calls import Calls
from service.http.openapi import STORE_ERRORS
from service.operations.tuning import TuningRounds
from service.store import StoreFullError
from terminal.scopes import Scope

READERS = (Scope.PREDICT, Scope.READ, Scope.SELF)


def add(calls: Calls, rounds: TuningRounds, *, limit: int) -> None:
    """Add the calls; ``limit`` is the largest body in bytes."""

    @calls.takes_json(
        "POST /v1/tunings",
        tag="tunings",
        scopes=(Scope.ADMIN,),
        limit=limit,
        status=202,
        errors=(TooShortHistoryError, *STORE_ERRORS, StoreFullError),
    )
    async def start(body: TuningRequest) -> TuningAnswer:
        """Ask for a round of tuning.

        The round runs beside the service. A cluster has at most one open round; if it has one
        already, the answer is that round.
        """
        return await rounds.start(body)

    @calls.get(
        "/v1/tunings", tag="tunings", scopes=READERS, errors=(InvalidFieldError, *STORE_ERRORS)
    )
    async def of_cluster(query: Annotated[ClusterQuery, Query()]) -> TuningsAnswer:
        """List the latest rounds of a cluster with their progress and results."""
        return await rounds.of_cluster(query.cluster)

    @calls.get(
        "/v1/tunings/{tuning_id}",
        tag="tunings",
        scopes=READERS,
        errors=(UnknownTuningError, InvalidFieldError, *STORE_ERRORS),
    )
    async def one(tuning_id: Annotated[Text, Path()]) -> TuningAnswer:
        """Show one round of tuning: its progress, and what it found."""
        return await rounds.one(tuning_id)
