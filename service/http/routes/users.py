"""Calls about methods, users, priorities, and how requests compared with runtimes."""

import asyncio
from typing import Annotated

from fastapi import Path, Query

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
from service.errors import InvalidFieldError, UnknownJobError, UnknownUserError
from service.http.calls import Calls
from service.http.json_calls import CurrentCaller
from service.http.openapi import STORE_ERRORS
from service.operations.ended_jobs import read_ended_job
from service.operations.method_scores import ShowingMethods
from service.operations.ranking import Ranking
from service.operations.request_reports import ReportingRequests
from service.store import Store
from terminal.scopes import Scope

OneCluster = Annotated[ClusterQuery, Query()]


def add(calls: Calls, ranking: Ranking, showing: ShowingMethods, *, limit: int) -> None:
    """Add the calls; ``limit`` is the largest body in bytes."""
    readers = (Scope.PREDICT, Scope.READ, Scope.SELF)

    @calls.get(
        "/v1/methods", tag="methods", scopes=readers, errors=(InvalidFieldError, *STORE_ERRORS)
    )
    async def methods(query: OneCluster) -> MethodsAnswer:
        """Show the methods with their parameters and their scores on jobs that have ended."""
        return await showing.methods(query.cluster)

    # A user's name may contain slashes, hence the converter.
    @calls.get(
        "/v1/users/{user:path}/accuracy",
        tag="accuracy",
        scopes=readers,
        errors=(UnknownUserError, InvalidFieldError),
    )
    async def accuracy(
        user: Annotated[Text, Path()], query: OneCluster, caller: CurrentCaller
    ) -> UserAnswer:
        """Show the accuracy of a user's requests: the share that the last ten jobs used.

        A caller with scope self may ask about no user but their own.
        """
        return ranking.user(user, query.cluster, caller)

    @calls.get("/v1/accuracy-groups", tag="accuracy", scopes=readers, errors=(InvalidFieldError,))
    async def groups(query: OneCluster) -> GroupsAnswer:
        """Show the accuracy groups g1 to g10 and the users of each."""
        return ranking.groups(query.cluster)

    @calls.takes_json(
        "POST /v1/priorities",
        tag="accuracy",
        scopes=(Scope.PREDICT, Scope.READ),
        limit=limit,
    )
    async def priorities(body: PriorityRequest) -> PrioritiesAnswer:
        """Rank waiting jobs by the accuracy of their users and by their waits."""
        return await ranking.priorities(body)


def add_reports(calls: Calls, reporting: ReportingRequests, store: Store) -> None:
    """Add the calls."""
    scopes, errors = (Scope.READ, Scope.SELF), (InvalidFieldError, *STORE_ERRORS)

    @calls.get(
        "/v1/ended-jobs/{job_id}",
        tag="reports",
        scopes=scopes,
        errors=(UnknownJobError, *errors),
    )
    async def ended_job(
        job_id: Annotated[Text, Path()], query: OneCluster, caller: CurrentCaller
    ) -> EndedJobAnswer:
        """Show a job that has ended: planned and actual runtime, and earlier runs like it.

        A caller with scope self sees their own jobs only.
        """
        return await asyncio.to_thread(read_ended_job, store, query.cluster, job_id, caller)

    @calls.get("/v1/reports/requests", tag="reports", scopes=scopes, errors=errors)
    async def requests(
        query: Annotated[RequestsQuery, Query()], caller: CurrentCaller
    ) -> RequestsReportAnswer:
        """Show how requests compared with runtimes, by job name, those with most to gain first.

        A caller with scope self sees their own runs only.
        """
        return await asyncio.to_thread(reporting.by_job, query, caller)

    @calls.get("/v1/reports/users", tag="reports", scopes=scopes, errors=errors)
    async def users(
        query: Annotated[UsersQuery, Query()], caller: CurrentCaller
    ) -> UsersReportAnswer:
        """Show users by what they have to gain.

        A caller with scope self sees their own runs only.
        """
        return await asyncio.to_thread(reporting.by_user, query, caller)
