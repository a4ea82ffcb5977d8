"""Calls about methods, tuning, users, priorities, requests against runtimes, and the service."""

import asyncio
from collections.abc import Callable
from typing import Annotated

from fastapi import Path, Query, Response
from prometheus_client import CONTENT_TYPE_LATEST

from service.contract.answers import (
    GroupsAnswer,
    HealthAnswer,
    LivenessAnswer,
    MethodsAnswer,
    PrioritiesAnswer,
    TuningAnswer,
    TuningsAnswer,
    UserAnswer,
)
from service.contract.bodies import ClusterQuery, PriorityRequest
from service.contract.fields import Text
from service.contract.queue_answers import EndedJobAnswer
from service.contract.reports import (
    RequestsQuery,
    RequestsReportAnswer,
    UsersQuery,
    UsersReportAnswer,
)
from service.errors import InvalidFieldError, UnknownJobError, UnknownTuningError, UnknownUserError
from service.http.json_calls import CurrentCaller, to_json
from service.http.openapi import ANY_TOKEN, STORE_ERRORS, Calls, refusals
from service.operations.history_showing import TuningRounds, read_ended_job
from service.operations.method_scores import ShowingMethods
from service.operations.predicting import Ranking
from service.operations.request_reports import ReportingRequests
from service.store import Store
from terminal.scopes import Scope

OneCluster = Annotated[ClusterQuery, Query()]

READERS = (Scope.PREDICT, Scope.READ, Scope.SELF)


def add_users(calls: Calls, ranking: Ranking, showing: ShowingMethods, *, limit: int) -> None:
    """Add the calls; ``limit`` is the largest body in bytes."""

    @calls.get(
        "/v1/methods", tag="methods", scopes=READERS, errors=(InvalidFieldError, *STORE_ERRORS)
    )
    async def methods(query: OneCluster) -> MethodsAnswer:
        """Show the methods with their parameters and their scores on jobs that have ended."""
        return await showing.methods(query.cluster)

    # A user's name may contain slashes, hence the converter.
    @calls.get(
        "/v1/users/{user:path}/accuracy",
        tag="accuracy",
        scopes=READERS,
        errors=(UnknownUserError, InvalidFieldError),
    )
    async def accuracy(
        user: Annotated[Text, Path()], query: OneCluster, caller: CurrentCaller
    ) -> UserAnswer:
        """Show the accuracy of a user's requests: the share that the last ten jobs used.

        A caller with scope self may ask about no user but their own.
        """
        return ranking.user(user, query.cluster, caller)

    @calls.get("/v1/accuracy-groups", tag="accuracy", scopes=READERS, errors=(InvalidFieldError,))
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


def add_tunings(calls: Calls, rounds: TuningRounds) -> None:
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


def add_health(calls: Calls, showing: ShowingMethods, health: Callable[[], HealthAnswer]) -> None:
    """Add the calls."""

    @calls.add("GET /health/live", tags=["health"], scopes=None)
    async def live() -> LivenessAnswer:
        """Say whether the process answers."""
        return LivenessAnswer(status="live")

    @calls.add(
        "GET /health/ready",
        tags=["health"],
        scopes=None,
        response_model=HealthAnswer,
        responses={503: {"model": HealthAnswer, "description": "Starting, or failed."}},
    )
    async def ready() -> Response:
        """Say whether the service has read its history, and how far behind its predictions are.

        A service whose store is away is ready, but stale: it predicts from memory. One whose store
        is locked by another program, or full, is read-only: it predicts, and stores no completion.
        """
        answer = health()
        return Response(
            to_json(answer),
            status_code=200 if answer.status in {"ready", "stale", "read-only"} else 503,
            media_type="application/json",
        )

    @calls.add(
        "GET /metrics",
        tags=["health"],
        scopes=ANY_TOKEN,
        response_class=Response,
        responses={
            200: {"content": {CONTENT_TYPE_LATEST: {"schema": {"type": "string"}}}},
            **refusals(),
        },
    )
    async def metrics() -> Response:
        """Show all metrics, for Prometheus."""
        return Response(await showing.metrics(), media_type=CONTENT_TYPE_LATEST)
