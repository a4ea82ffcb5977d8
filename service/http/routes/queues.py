"""Calls about snapshots of clusters, and about queues that are posted for one forecast."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import TypeAdapter, ValidationError
from starlette.types import Scope as Connection

from service.auth import Scope
from service.contract.bodies import ClusterQuery
from service.contract.decoding import msgspec_first
from service.contract.fields import Text
from service.contract.queue_answers import (
    ClustersAnswer,
    ForecastAnswer,
    LiveJobDetailAnswer,
    QueueAnswer,
    QueueTakenAnswer,
    WaitScoresAnswer,
    WhatIfAnswer,
)
from service.contract.queue_bodies import ForecastRequest, QueueBody, QueueQuery, WhatIfRequest
from service.errors import InvalidFieldError
from service.http.gate import CALLER, CurrentCaller, needs
from service.http.hot_calls import HotCalls, JSONCall
from service.http.openapi import refusals
from service.operations.queue_posting import PostingQueues
from service.operations.queue_showing import ShowingQueues
from service.operations.queue_taking import TakingQueues
from service.operations.what_if import WhatIf

LARGEST_QUEUE = 64 << 20
"""Bytes; 100,000 jobs of 600 bytes each."""

ClusterParameter = Annotated[Text, Path(description="Name of the cluster.")]

READERS = (Scope.READ, Scope.SELF)

_cluster = TypeAdapter(Text).validate_python


def cluster_in(connection: Connection) -> tuple[str]:
    """Return the cluster in the path.

    Raises:
        InvalidFieldError: it is not a valid name.
    """
    try:
        return (_cluster(connection["path_params"]["cluster"]),)
    except ValidationError as error:
        raise InvalidFieldError("The cluster in the path has no valid name.", "cluster") from error


def add_forecasts(router: APIRouter, hot: HotCalls, posting: PostingQueues, *, limit: int) -> None:
    """Add the forecast of a posted queue; ``limit`` is the largest body in bytes."""

    @router.post(
        "/v1/forecasts",
        tags=["forecasts"],
        responses=refusals(400, 413, 415, 422, 503),
        openapi_extra=needs(Scope.PREDICT, Scope.READ),
    )
    async def forecast(body: ForecastRequest) -> ForecastAnswer:
        """Play a queue forward with the scheduler's rules and predicted runtimes.

        The forecast assumes that no further jobs are submitted. Times are exact to the second.
        """
        return await posting.forecast(body)

    hot["POST", "/v1/forecasts"] = JSONCall(
        endpoint=forecast, validate=ForecastRequest.model_validate_json, limit=limit
    )


def add_snapshots(
    router: APIRouter, hot: HotCalls, taking: TakingQueues, showing: ShowingQueues
) -> None:
    """Add the calls that hand snapshots over and show them."""

    @router.put(
        "/v1/clusters/{cluster:path}/snapshot",
        tags=["queues"],
        status_code=202,
        responses=refusals(400, 413, 415, 422, 503),
        openapi_extra=needs(Scope.INGEST),
    )
    async def put(cluster: ClusterParameter, body: QueueBody) -> QueueTakenAnswer:
        """Hand over a snapshot of a cluster, its jobs and its machine; it replaces the one before.

        The forecast is made afterwards: within a second for 2,000 jobs.
        """
        return await taking.take(cluster, body)

    hot["PUT", "/v1/clusters/{cluster}/snapshot"] = JSONCall(
        endpoint=put,
        validate=msgspec_first(QueueBody),
        limit=LARGEST_QUEUE,
        status=202,
        arguments=cluster_in,
    )

    @router.get(
        "/v1/clusters", tags=["queues"], responses=refusals(), openapi_extra=needs(*READERS)
    )
    async def clusters() -> ClustersAnswer:
        """List the clusters whose snapshots were handed over, without their jobs."""
        return showing.all_clusters()

    @router.get(
        "/v1/clusters/{cluster:path}/snapshot",
        tags=["queues"],
        responses=refusals(404, 422),
        openapi_extra=needs(*READERS),
    )
    async def queue(
        cluster: ClusterParameter, query: Annotated[QueueQuery, Query()], caller: CurrentCaller
    ) -> QueueAnswer:
        """Show the last snapshot of a cluster, with the forecast starts and ends of its jobs.

        A caller with scope self sees their own jobs, and the totals of all.
        """
        return showing.queue(cluster, query, caller)

    @router.get(
        "/v1/clusters/{cluster:path}/jobs/{job_id}",
        tags=["queues"],
        responses=refusals(404, 422),
        openapi_extra=needs(*READERS),
    )
    async def job(
        cluster: ClusterParameter, job_id: Annotated[Text, Path()], caller: CurrentCaller
    ) -> LiveJobDetailAnswer:
        """Show one job, its forecasts, and the runs that its prediction rests on."""
        return showing.job(cluster, job_id, caller)

    @router.get(
        "/v1/waits", tags=["methods"], responses=refusals(422, 503), openapi_extra=needs(*READERS)
    )
    async def waits(query: Annotated[ClusterQuery, Query()]) -> WaitScoresAnswer:
        """Show the errors of forecast waits, of the jobs that have started."""
        return await showing.waits(query.cluster)


def add_what_if(router: APIRouter, hot: HotCalls, what_if: WhatIf, *, limit: int) -> None:
    """Add the forecast of a job that is not submitted; ``limit`` is the largest body in bytes."""

    @router.post(
        "/v1/clusters/{cluster:path}/what-if",
        tags=["queues"],
        responses=refusals(400, 404, 413, 415, 422, 503),
        openapi_extra=needs(*READERS),
    )
    async def ask(
        cluster: ClusterParameter, caller: CurrentCaller, body: WhatIfRequest
    ) -> WhatIfAnswer:
        """Forecast a job that is not in the queue, for several requests.

        The job is played at the end of the queue. Nothing is recorded or submitted.
        """
        return await what_if.ask(cluster, body, caller)

    hot["POST", "/v1/clusters/{cluster}/what-if"] = JSONCall(
        endpoint=ask,
        validate=WhatIfRequest.model_validate_json,
        limit=limit,
        arguments=lambda connection: (*cluster_in(connection), connection[CALLER]),
    )
