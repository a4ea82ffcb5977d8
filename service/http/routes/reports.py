"""Calls about how requests compared with runtimes."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query

from service.auth import Scope
from service.contract.report_answers import RequestsReportAnswer, UsersReportAnswer
from service.contract.report_bodies import RequestsQuery, UsersQuery
from service.http.gate import Asking, needs
from service.http.openapi import refusals
from service.operations.request_reports import ReportingRequests


def add(router: APIRouter, reporting: ReportingRequests) -> None:
    """Add the calls."""
    extra, responses = needs(Scope.READ, Scope.SELF), refusals(422, 503)

    @router.get("/v1/reports/requests", tags=["reports"], responses=responses, openapi_extra=extra)
    async def requests(
        query: Annotated[RequestsQuery, Query()], caller: Asking
    ) -> RequestsReportAnswer:
        """Show how requests compared with runtimes, by job name, those with most to gain first.

        A caller with scope self is told of their own runs only.
        """
        return await asyncio.to_thread(reporting.by_job, query, caller)

    @router.get("/v1/reports/users", tags=["reports"], responses=responses, openapi_extra=extra)
    async def users(query: Annotated[UsersQuery, Query()], caller: Asking) -> UsersReportAnswer:
        """Show users by what they have to gain.

        A caller with scope self is told of their own runs only.
        """
        return await asyncio.to_thread(reporting.by_user, query, caller)
