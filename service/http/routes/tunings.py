"""Calls about rounds of tuning."""

from typing import Annotated

from fastapi import Path, Query

from service.contract.answers import TuningAnswer, TuningsAnswer
from service.contract.bodies import ClusterQuery
from service.contract.fields import Text
from service.errors import InvalidFieldError, UnknownTuningError
from service.http.calls import Calls
from service.http.openapi import STORE_ERRORS
from service.operations.tuning import TuningRounds
from terminal.scopes import Scope

READERS = (Scope.PREDICT, Scope.READ, Scope.SELF)


def add(calls: Calls, rounds: TuningRounds) -> None:
    """Add the calls."""

    @calls.get(
        "/v1/tunings", tag="tunings", scopes=READERS, errors=(InvalidFieldError, *STORE_ERRORS)
    )
    async def of_cluster(query: Annotated[ClusterQuery, Query()]) -> TuningsAnswer:
        """List the latest rounds of a cluster with their results."""
        return await rounds.of_cluster(query.cluster)

    @calls.get(
        "/v1/tunings/{tuning_id}",
        tag="tunings",
        scopes=READERS,
        errors=(UnknownTuningError, InvalidFieldError, *STORE_ERRORS),
    )
    async def one(tuning_id: Annotated[Text, Path()]) -> TuningAnswer:
        """Show one round of tuning: what it found."""
        return await rounds.one(tuning_id)
