"""Calls about snapshots of clusters, and about queues that are posted for one forecast."""

from typing import Annotated

from fastapi import Path, Query

from service.contract.bodies import ClusterQuery
from service.contract.fields import Text, msgspec_first
from service.contract.limit_calls import LongerLimitsAnswer, LongerLimitsRequest
from service.contract.queue_answers import (
    AtRiskAnswer,
    ClustersAnswer,
    EndedJobAnswer,
    ForecastAnswer,
    LiveJobDetailAnswer,
    QueueAnswer,
    QueueTakenAnswer,
    WaitScoresAnswer,
    WhatIfAnswer,
)
from service.contract.queue_bodies import (
    AtRiskQuery,
    ForecastRequest,
    QueueBody,
    QueueQuery,
    WhatIfRequest,
)
from service.errors import (
    ForecastsBusyError,
    ForecastsStartingError,
    ForecastTooLongError,
    InvalidFieldError,
    SnapshotTooLargeError,
    TooManyClustersError,
    UnknownJobError,
    UnknownSnapshotError,
)
from service.http.json_calls import CurrentCaller
from service.http.openapi import STORE_ERRORS, Calls
from service.operations.completing import TakingQueues
from service.operations.longer_limits import LongerLimits
from service.operations.queue_posting import PostingQueues
from service.operations.queue_showing import ShowingQueues
from service.operations.risk_showing import ShowingRisks
from service.operations.what_if import WhatIf
from terminal.scopes import Scope

LARGEST_QUEUE = 64 << 20
"""Bytes; 100,000 jobs of 600 bytes each."""

ClusterParameter = Annotated[Text, Path(description="Name of the cluster.")]

READERS = (Scope.READ, Scope.SELF)


def add_forecasts(calls: Calls, posting: PostingQueues, *, limit: int) -> None:
    """Add the forecast of a posted queue; ``limit`` is the largest body in bytes."""

    @calls.takes_json(
        "POST /v1/forecasts",
        tag="forecasts",
        scopes=(Scope.PREDICT, Scope.READ),
        limit=limit,
        errors=(
            SnapshotTooLargeError,
            ForecastsBusyError,
            ForecastsStartingError,
            ForecastTooLongError,
        ),
    )
    async def forecast(body: ForecastRequest) -> ForecastAnswer:
        """Play a queue forward with the scheduler's rules and predicted runtimes.

        The forecast assumes that no further jobs are submitted. Times are exact to the second.
        """
        return await posting.forecast(body)


def add_snapshots(calls: Calls, taking: TakingQueues, showing: ShowingQueues) -> None:
    """Add the calls that hand snapshots over and show them."""

    @calls.takes_json(
        "PUT /v1/clusters/{cluster:path}/snapshot",
        tag="queues",
        scopes=(Scope.INGEST,),
        limit=LARGEST_QUEUE,
        decoder=msgspec_first,
        status=202,
        errors=(SnapshotTooLargeError, TooManyClustersError),
    )
    async def put(cluster: ClusterParameter, body: QueueBody) -> QueueTakenAnswer:
        """Hand over a snapshot of a cluster, its jobs and its machine; it replaces the one before.

        The forecast is made afterwards: within a second for 2,000 jobs.
        """
        return await taking.take(cluster, body)

    @calls.get("/v1/clusters", tag="queues", scopes=READERS)
    async def clusters() -> ClustersAnswer:
        """List the clusters whose snapshots were handed over, without jobs, and all names."""
        return await showing.all_clusters()

    @calls.get(
        "/v1/clusters/{cluster:path}/snapshot",
        tag="queues",
        scopes=READERS,
        errors=(UnknownSnapshotError, InvalidFieldError),
    )
    async def queue(
        cluster: ClusterParameter, query: Annotated[QueueQuery, Query()], caller: CurrentCaller
    ) -> QueueAnswer:
        """Show the last snapshot of a cluster, with the forecast starts and ends of its jobs.

        A caller with scope self sees their own jobs, and the totals of all.
        """
        return showing.queue(cluster, query, caller)

    @calls.get(
        "/v1/clusters/{cluster:path}/jobs/{job_id}",
        tag="queues",
        scopes=READERS,
        errors=(UnknownJobError, InvalidFieldError, *STORE_ERRORS),
    )
    async def job(
        cluster: ClusterParameter, job_id: Annotated[Text, Path()], caller: CurrentCaller
    ) -> LiveJobDetailAnswer | EndedJobAnswer:
        """Show one job with its forecasts and the runs that its prediction rests on.

        Of a job that has ended, show its runs, with the predictions that were recorded for them.
        """
        return await showing.job(cluster, job_id, caller)

    @calls.get(
        "/v1/waits", tag="methods", scopes=READERS, errors=(InvalidFieldError, *STORE_ERRORS)
    )
    async def waits(query: Annotated[ClusterQuery, Query()]) -> WaitScoresAnswer:
        """Show the errors of forecast waits, of the jobs that have started."""
        return await showing.waits(query.cluster)


def add_risks(calls: Calls, risks: ShowingRisks) -> None:
    """Add the call about jobs that will probably be cut."""

    @calls.get(
        "/v1/clusters/{cluster:path}/at-risk",
        tag="queues",
        scopes=READERS,
        errors=(UnknownSnapshotError, InvalidFieldError),
    )
    async def at_risk(
        cluster: ClusterParameter, query: Annotated[AtRiskQuery, Query()], caller: CurrentCaller
    ) -> AtRiskAnswer:
        """Show running jobs that will probably be cut at their limits, and what they are missing.

        A caller with scope self sees their own jobs. Jobs of a chain are left out.
        """
        return await risks.at_risk(cluster, query, caller)


def add_longer_limits(calls: Calls, limits: LongerLimits, *, limit: int) -> None:
    """Add the call about longer limits; ``limit`` is the largest body in bytes."""

    @calls.takes_json(
        "POST /v1/clusters/{cluster:path}/longer-limits",
        tag="queues",
        scopes=(Scope.INGEST,),
        limit=limit,
        errors=(UnknownSnapshotError, ForecastsBusyError, ForecastTooLongError),
    )
    async def find(cluster: ClusterParameter, body: LongerLimitsRequest) -> LongerLimitsAnswer:
        """Find longer limits for running jobs that will probably be cut.

        The queue is played with each of them; a job gets one where no planned start moves later by
        more than `delay`. Nothing is set: the caller does that, in the resource manager.
        """
        return await limits.find(cluster, body)


def add_what_if(calls: Calls, what_if: WhatIf, *, limit: int) -> None:
    """Add the forecast of a job that is not submitted; ``limit`` is the largest body in bytes."""

    @calls.takes_json(
        "POST /v1/clusters/{cluster:path}/what-if",
        tag="queues",
        scopes=READERS,
        limit=limit,
    )
    async def ask(
        cluster: ClusterParameter, caller: CurrentCaller, body: WhatIfRequest
    ) -> WhatIfAnswer:
        """Forecast a job that is not in the queue, for several requests.

        The job is played at the end of the queue. Nothing is recorded or submitted.
        """
        return await what_if.ask(cluster, body, caller)
