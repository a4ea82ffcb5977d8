"""Taking in what resource managers send unasked: their own records, unchanged."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from datetime import tzinfo

import structlog

from service.adapters import pbs
from service.adapters.runs import Reason, SkippedError
from service.adapters.slurm import jobcomp
from service.contract.answers import RecordsAnswer
from service.errors import TooManyClustersError
from service.metrics import Metrics
from service.operations.completing import NOTHING, Completing
from service.store import (
    Ingested,
    RefusedRecordError,
    ReportedCompletion,
    StoreUnavailableError,
)

log = structlog.get_logger()

PATIENCE_SECONDS = 1.0
"""How long a caller waits for its record to be durable. Slurm's plugin has no time-out of its own,
and sends no other record meanwhile."""


REFUSED = "the database refuses it"
"""The reason for dropping a record whose run is refused; adapters give all other reasons."""


class Adapting:
    """Reads records and stores the runs that they tell of.

    A record that tells of none is answered like any other: Slurm sends again, every 30 s and for
    ever, what is not answered with 200. For the same reason a record is answered 200 only when it
    is durable: what the store cannot take now will come again.
    """

    def __init__(self, completing: Completing, metrics: Metrics) -> None:
        self._completing = completing
        self._metrics = metrics

    async def slurm_document(self, body: bytes | None, cluster: str | None) -> RecordsAnswer:
        """Take a document of jobcomp/elasticsearch; None was too large to be one.

        Raises:
            StoreUnavailableError: it is not durable yet, and should be sent again.
        """
        return await self._take([_read_document(body, cluster)])

    async def pbs_records(
        self, body: bytes | None, cluster: str | None, zone: tzinfo
    ) -> RecordsAnswer:
        """Take lines of an accounting log; None were too many.

        Raises:
            StoreUnavailableError: they are not durable yet, and should be sent again.
        """
        if body is None:
            return await self._take([SkippedError(Reason.TOO_LARGE)])
        lines = body.decode("utf-8", "replace").splitlines()
        read = pbs.read_accounting(lines, zone=zone, cluster=cluster)
        return await self._take(outcome for _, outcome in read)

    async def _take(self, outcomes: Iterable[ReportedCompletion | SkippedError]) -> RecordsAnswer:
        reports: list[ReportedCompletion] = []
        skipped: Counter[str] = Counter()
        for outcome in map(self._admitted, outcomes):
            if isinstance(outcome, SkippedError):
                skipped[outcome.reason.value] += 1
            else:
                reports.append(outcome)
        if skipped:
            self._metrics.rejected(skipped.total())
            self._metrics.skipped(skipped)
            log.info("records tell of no run", reasons=dict(skipped))
        stored = await self._stored(reports)
        return RecordsAnswer(
            accepted=stored.accepted, duplicates=stored.duplicates, skipped=dict(skipped)
        )

    def _admitted(
        self, outcome: ReportedCompletion | SkippedError
    ) -> ReportedCompletion | SkippedError:
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


def _read_document(body: bytes | None, cluster: str | None) -> ReportedCompletion | SkippedError:
    if body is None:
        return SkippedError(Reason.TOO_LARGE)
    try:
        return jobcomp.completion_of(body, cluster=cluster)
    except SkippedError as skipped:
        return skipped
