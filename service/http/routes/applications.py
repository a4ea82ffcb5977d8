"""Calls about what applications are when they run alone."""

from typing import Annotated

from fastapi import APIRouter, Query

from service.auth import Scope
from service.contract.bodies import ClusterQuery
from service.contract.characterisation_bodies import (
    ApplicationQuery,
    CharacterisationsAnswer,
    CharacterisationsBody,
    DroppedAnswer,
)
from service.http.gate import needs
from service.http.openapi import refusals
from service.operations.characterising import Characterising


def add(router: APIRouter, characterising: Characterising) -> None:
    """Add the calls."""

    @router.post(
        "/v1/characterisations",
        tags=["forecasts"],
        responses=refusals(400, 413, 415, 422, 503),
        openapi_extra=needs(Scope.INGEST),
    )
    async def keep(body: CharacterisationsBody) -> CharacterisationsAnswer:
        """Say how applications run alone; forecasts on shared nodes use it.

        What is posted takes the place of what was known, and runs do not change it any more.
        """
        return await characterising.keep(body)

    @router.get(
        "/v1/characterisations",
        tags=["forecasts"],
        responses=refusals(422, 503),
        openapi_extra=needs(Scope.PREDICT, Scope.READ),
    )
    async def known(of: Annotated[ClusterQuery, Query()]) -> CharacterisationsAnswer:
        """Show how applications run alone, as posted, or by runs with a CPU time."""
        return await characterising.known(of.cluster)

    @router.delete(
        "/v1/characterisations",
        tags=["forecasts"],
        responses=refusals(422, 503),
        openapi_extra=needs(Scope.ADMIN),
    )
    async def drop(of: Annotated[ApplicationQuery, Query()]) -> DroppedAnswer:
        """Delete all that is known of an application, with every number of tasks."""
        return await characterising.drop(of)
