"""Calls about methods, users, priorities, and how requests compared with runtimes."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Query

from service.auth import Scope
from service.contract.answers import GroupsAnswer, MethodsAnswer, PrioritiesAnswer, UserAnswer
from service.contract.bodies import ClusterQuery, PriorityRequest
from service.contract.fields import Text
from service.contract.queue_answers import EndedJobAnswer
from service.contract.reports import (
    RequestsQuery,
    RequestsReportAnswer,
    UsersQuery,
    UsersReportAnswer,
)
from service.http.gate import CurrentCaller, needs
from service.http.hot_calls import HotCalls, JSONCall
from service.http.openapi import BODY_REFUSALS, refusals
from service.operations.ranking import Ranking
from service.operations.reporting import Reporting, read_ended_job
from service.operations.request_reports import ReportingRequests
from service.store import Store

OneCluster = Annotated[ClusterQuery, Query()]


def add(
    router: APIRouter, hot: HotCalls, ranking: Ranking, reporting: Reporting, *, limit: int
) -> None:
    """Add the calls; ``limit`` is the largest body in bytes."""
    of_one = needs(Scope.PREDICT, Scope.READ, Scope.SELF)

    @router.get("/v1/methods", tags=["methods"], responses=refusals(422, 503), openapi_extra=of_one)
    async def methods(query: OneCluster) -> MethodsAnswer:
        """Show the methods with their parameters and their scores on jobs that have ended."""
        return await reporting.methods(query.cluster)

    # A user's name may contain slashes, hence the converter.
    @router.get(
        "/v1/users/{user:path}/accuracy",
        tags=["accuracy"],
        responses=refusals(404, 422),
        openapi_extra=of_one,
    )
    async def accuracy(
        user: Annotated[Text, Path()], query: OneCluster, caller: CurrentCaller
    ) -> UserAnswer:
        """Show the accuracy of a user's requests: the share that the last ten jobs used.

        A caller with scope self may ask about no user but their own.
        """
        return ranking.user(user, query.cluster, caller)

    @router.get(
        "/v1/accuracy-groups", tags=["accuracy"], responses=refusals(422), openapi_extra=of_one
    )
    async def groups(query: OneCluster) -> GroupsAnswer:
        """Show the accuracy groups g1 to g10 and the users of each."""
        return ranking.groups(query.cluster)

    @router.post(
        "/v1/priorities",
        tags=["accuracy"],
        responses=BODY_REFUSALS,
        openapi_extra=needs(Scope.PREDICT, Scope.READ),
    )
    async def priorities(body: PriorityRequest) -> PrioritiesAnswer:
        """Rank waiting jobs by the accuracy of their users and by their waits."""
        return await ranking.priorities(body)

    hot["POST", "/v1/priorities"] = JSONCall(
        endpoint=priorities, validate=PriorityRequest.model_validate_json, limit=limit
    )


def add_reports(router: APIRouter, reporting: ReportingRequests, store: Store) -> None:
    """Add the calls."""
    extra, responses = needs(Scope.READ, Scope.SELF), refusals(422, 503)

    @router.get(
        "/v1/ended-jobs/{job_id}",
        tags=["reports"],
        responses=refusals(404, 422, 503),
        openapi_extra=extra,
    )
    async def ended_job(
        job_id: Annotated[Text, Path()], query: OneCluster, caller: CurrentCaller
    ) -> EndedJobAnswer:
        """Show a job that has ended: planned and actual runtime, and earlier runs like it.

        A caller with scope self sees their own jobs only.
        """
        return await asyncio.to_thread(read_ended_job, store, query.cluster, job_id, caller)

    @router.get("/v1/reports/requests", tags=["reports"], responses=responses, openapi_extra=extra)
    async def requests(
        query: Annotated[RequestsQuery, Query()], caller: CurrentCaller
    ) -> RequestsReportAnswer:
        """Show how requests compared with runtimes, by job name, those with most to gain first.

        A caller with scope self sees their own runs only.
        """
        return await asyncio.to_thread(reporting.by_job, query, caller)

    @router.get("/v1/reports/users", tags=["reports"], responses=responses, openapi_extra=extra)
    async def users(
        query: Annotated[UsersQuery, Query()], caller: CurrentCaller
    ) -> UsersReportAnswer:
        """Show users by what they have to gain.

        A caller with scope self sees their own runs only.
        """
        return await asyncio.to_thread(reporting.by_user, query, caller)
