"""Taking in what resource managers send unasked: their own records, unchanged."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from datetime import tzinfo
from io import BytesIO

import structlog

from service.adapters import pbs, slurm_json
from service.adapters.runs import Reason, SkippedError
from service.contract.answers import RecordsAnswer
from service.errors import TooManyClustersError
from service.operations.completing import GROUP, NOTHING, Completing
from service.store import (
    Ingested,
    RefusedRecordError,
    ReportedCompletion,
    StoreUnavailableError,
)
from service.worker.worker import Worker

log = structlog.get_logger()

PATIENCE_SECONDS = 1.0
"""How long a caller waits for its record to be durable. Slurm's plugin has no time-out of its own,
and sends no other record meanwhile."""

LINES_BYTES = 1 << 14
"""How much of an accounting log is read at a time, so that other requests pass in between."""

REFUSED = "the database refuses it"
"""The reason for dropping a record whose run is refused; adapters give all other reasons."""

RecordResult = ReportedCompletion | SkippedError
"""What a record tells of: a run, or why it is none."""


class Adapting:
    """Reads records and stores the runs that they tell of.

    A record that tells of none is answered like any other: Slurm sends again, every 30 s and for
    ever, what is not answered with 200. For the same reason a record is answered 200 only when it
    is durable: what the store cannot take now will come again.
    """

    def __init__(self, worker: Worker) -> None:
        self._completing = Completing(worker)
        self._metrics = worker.metrics

    async def slurm_document(self, body: bytes | None, cluster: str | None) -> RecordsAnswer:
        """Take a document of jobcomp/elasticsearch; None was too large to be one.

        Raises:
            StoreUnavailableError: it is not durable yet, and should be sent again.
        """
        return await self._take(_alone(_read_document(body, cluster)))

    async def pbs_records(
        self, body: bytes | None, cluster: str | None, zone: tzinfo
    ) -> RecordsAnswer:
        """Take lines of an accounting log; None were too many.

        Raises:
            StoreUnavailableError: they are not durable yet, and should be sent again.
        """
        if body is None:
            return await self._take(_alone(SkippedError(Reason.TOO_LARGE)))
        return await self._take(_read_in_turns(body, zone=zone, cluster=cluster))

    async def _take(self, outcomes: AsyncIterator[RecordResult]) -> RecordsAnswer:
        """Store the runs in groups; those before a failure stay, and count once when sent again."""
        reports: list[ReportedCompletion] = []
        skipped: Counter[str] = Counter()
        stored = NOTHING
        async for outcome in outcomes:
            admitted = self._admitted(outcome)
            if isinstance(admitted, SkippedError):
                skipped[admitted.reason.value] += 1
            else:
                reports.append(admitted)
            if len(reports) >= GROUP:
                stored += await self._stored(reports)
                reports = []
        stored += await self._stored(reports)
        if skipped:
            self._metrics.rejected.inc(skipped.total())
            self._metrics.skipped(skipped)
            log.info("records tell of no run", reasons=dict(skipped))
        return RecordsAnswer(
            accepted=stored.accepted, duplicates=stored.duplicates, skipped=dict(skipped)
        )

    def _admitted(self, outcome: RecordResult) -> RecordResult:
        """The completion under pseudonyms, or the reason why it is refused."""
        if isinstance(outcome, SkippedError):
            return outcome
        try:
            self._completing.admit(outcome)
        except TooManyClustersError as error:
            log.warning("a record is of one cluster too many", reason=str(error))
            return SkippedError(Reason.TOO_MANY_CLUSTERS)
        return outcome

    async def _stored(self, reports: list[ReportedCompletion]) -> Ingested:
        try:
            return await asyncio.wait_for(self._completing.store(reports), PATIENCE_SECONDS)
        except TimeoutError as error:
            raise StoreUnavailableError("The record is not durable yet; send it again.") from error
        except RefusedRecordError:
            if len(reports) > 1:
                return sum([await self._stored([report]) for report in reports], NOTHING)
            self._metrics.skipped({REFUSED: 1})
            log.warning("the database refuses a record")
            return NOTHING


async def _alone(outcome: RecordResult) -> AsyncIterator[RecordResult]:
    yield outcome


async def _read_in_turns(
    body: bytes, *, zone: tzinfo, cluster: str | None
) -> AsyncIterator[RecordResult]:
    """What the records of an accounting log tell of; others get their turn now and then."""
    stream = BytesIO(body)
    while block := stream.readlines(LINES_BYTES):
        lines = (line.decode("utf-8", "replace") for line in block)
        for _, outcome in pbs.read_accounting(lines, zone=zone, cluster=cluster):
            yield outcome
        await asyncio.sleep(0)


def _read_document(body: bytes | None, cluster: str | None) -> RecordResult:
    if body is None:
        return SkippedError(Reason.TOO_LARGE)
    try:
        return slurm_json.jobcomp_completion(body, cluster=cluster)
    except SkippedError as skipped:
        return skipped
