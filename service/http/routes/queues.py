"""Calls about live queues."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import TypeAdapter, ValidationError
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.types import Receive, Send
from starlette.types import Scope as Connection

from service.auth import Scope
from service.contract.bodies import ClusterQuery, refusal
from service.contract.decoding import msgspec_first
from service.contract.fields import Text
from service.contract.queue_answers import (
    LiveJobDetailAnswer,
    QueueAnswer,
    QueuesAnswer,
    QueueTakenAnswer,
    WaitScoresAnswer,
    WhatIfAnswer,
)
from service.contract.queue_bodies import QueueBody, QueueQuery, WhatIfRequest
from service.errors import InvalidFieldError
from service.http.bytes_route import (
    BytesRoute,
    check_is_json,
    read_body,
    send_json,
    to_json,
)
from service.http.callers import CALLER, Asking
from service.http.gate import needs
from service.http.openapi import refusals
from service.operations.queues.showing import ShowingQueues
from service.operations.queues.taking import TakingQueues
from service.operations.queues.wait_scoring import ScoringWaits
from service.operations.queues.what_if import WhatIf

LARGEST_QUEUE = 64 << 20
"""Bytes; 100,000 jobs of 600 bytes each."""

Cluster = Annotated[Text, Path(description="Cluster of the queue.")]

SEEN = (Scope.READ, Scope.SELF)


class ClusterConvertor(StringConvertor):
    """The name of a cluster in a path: it may have slashes, but not the end of another call."""

    regex = "(?:(?!/jobs/(?!what-if$)[^/]*$|/what-if$).)+"


register_url_convertor("cluster", ClusterConvertor())


class ClusterRoute(BytesRoute):
    """A bytes route with the cluster in its path."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        self._cluster = TypeAdapter(Text).validate_python
        self._validate = self.checked_validator()
        self.app = self.bytes_app = self.serve

    async def serve(self, connection: Connection, receive: Receive, send: Send) -> None:
        """Serve one request."""
        check_is_json(connection)
        body = await read_body(connection, receive, self.max_body_size)
        if body is None:
            return
        try:
            argument = self._validate(body)
        except ValidationError as error:
            raise refusal(error) from error
        answer = await self.answer(connection, self._cluster_in(connection["path"]), argument)
        await send_json(send, self.status_code or 200, to_json(answer))

    async def answer(self, _connection: Connection, cluster: str, argument: Any) -> Any:
        """What the endpoint answers."""
        return await self.endpoint(cluster, argument)

    def _cluster_in(self, path: str) -> str:
        match = self.path_regex.match(path)
        try:
            return self._cluster(match["cluster"] if match else "")
        except ValidationError as error:
            raise InvalidFieldError("The name of the cluster is none.", "cluster") from error


class QueueRoute(ClusterRoute):
    """Takes queues, whose bodies are larger than those of other calls."""

    def checked_validator(self) -> Callable[[bytes], Any]:
        """A fast decoder for most queues; it leaves the others to the model."""
        return msgspec_first(QueueBody)


class WhatIfRoute(ClusterRoute):
    """Tells its endpoint who asks, too: the answer to one user is not that to another."""

    async def answer(self, connection: Connection, cluster: str, argument: Any) -> Any:
        """What the endpoint answers to this caller."""
        return await self.endpoint(cluster, argument, connection[CALLER])


def add(
    router: APIRouter,
    *,
    taking: TakingQueues,
    showing: ShowingQueues,
    what_if: WhatIf,
    scoring: ScoringWaits,
) -> None:
    """Add the calls."""

    async def put(cluster: Cluster, body: QueueBody) -> QueueTakenAnswer:
        """Hand over the queue and the machine of a cluster, in the place of those before.

        The forecast is made afterwards: within a second for 2,000 jobs.
        """
        return await taking.take(cluster, body)

    router.routes.append(
        QueueRoute(
            "/v1/queues/{cluster:cluster}",
            put,
            methods=["PUT"],
            tags=["queues"],
            status_code=202,
            response_model=QueueTakenAnswer,
            responses=refusals(400, 413, 415, 422, 503),
            openapi_extra=needs(Scope.INGEST),
            max_body_size=LARGEST_QUEUE,
        )
    )

    @router.get("/v1/queues", tags=["queues"], responses=refusals(), openapi_extra=needs(*SEEN))
    async def queues() -> QueuesAnswer:
        """List the queues that were handed over, without their jobs."""
        return showing.queues()

    @router.get(
        "/v1/queues/{cluster:cluster}/jobs/{job_id}",
        tags=["queues"],
        responses=refusals(404, 422),
        openapi_extra=needs(*SEEN),
    )
    async def job(
        cluster: Cluster, job_id: Annotated[Text, Path()], caller: Asking
    ) -> LiveJobDetailAnswer:
        """Show one job: how its forecast moved, and the runs that its prediction rests on."""
        return showing.job(cluster, job_id, caller)

    @router.get(
        "/v1/queues/{cluster:cluster}",
        tags=["queues"],
        responses=refusals(404, 422),
        openapi_extra=needs(*SEEN),
    )
    async def queue(
        cluster: Cluster, query: Annotated[QueueQuery, Query()], caller: Asking
    ) -> QueueAnswer:
        """Show a queue and when its jobs will start and end.

        A caller with scope self sees their own jobs, and totals of all.
        """
        return showing.queue(cluster, query, caller)

    async def ask(cluster: Cluster, body: WhatIfRequest, caller: Asking) -> WhatIfAnswer:
        """Say when a job that is not in the queue would start and end, by what is asked for it.

        The job is played at the end of the queue. Nothing is recorded or submitted.
        """
        return await what_if.ask(cluster, body, caller)

    router.routes.append(
        WhatIfRoute(
            "/v1/queues/{cluster:cluster}/what-if",
            ask,
            methods=["POST"],
            tags=["queues"],
            response_model=WhatIfAnswer,
            responses=refusals(400, 404, 413, 415, 422, 503),
            openapi_extra=needs(*SEEN),
            max_body_size=router.max_body_size,
        )
    )

    @router.get(
        "/v1/waits", tags=["methods"], responses=refusals(422, 503), openapi_extra=needs(*SEEN)
    )
    async def waits(of: Annotated[ClusterQuery, Query()]) -> WaitScoresAnswer:
        """Show how far off forecast waits were, of the jobs that have started."""
        return await scoring.of(of.cluster)
