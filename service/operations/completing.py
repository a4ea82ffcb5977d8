"""Stores completions: one, several, or a stream of any size."""

import asyncio
from collections.abc import AsyncIterator, Callable
from tempfile import TemporaryFile
from typing import IO

from service.contract.answers import IngestionAnswer, Rejection, SkippingAnswer
from service.contract.bodies import CompletionBatch, CompletionBody, check_length
from service.contract.decoding import NumberedLine, lines_of, report_of
from service.errors import InvalidLineError, TooManyBadLinesError, TooManyClustersError
from service.store import Ingested, ReportedCompletion, StoreFullError
from service.worker.worker import Worker

GROUP = 1000
"""Number of completions of a stream stored in one commit; other commits pass in between."""

LINES_PER_TURN = 64
"""Number of completions checked in one turn of the event loop; other requests pass in between."""

BLOCK_BYTES = 1 << 16
"""Bytes of a spooled stream that are read at a time."""

MOST_BAD_LINES = 1000
"""Invalid lines after which a stream is not read further."""

NOTHING = Ingested(accepted=0, duplicates=0)


class Completing:
    """Stores completions durably, applies them in this process, then answers."""

    def __init__(self, worker: Worker) -> None:
        self._settings = worker.settings
        self._writer = worker.writer
        self._recorder = worker.recorder
        self._follower = worker.follower
        self._pseudonyms = worker.pseudonyms
        self._metrics = worker.metrics
        self._cluster_limit = worker.cluster_limit

    async def complete(self, body: CompletionBody | CompletionBatch) -> IngestionAnswer:
        """Store one or several completions in one transaction.

        Raises:
            InvalidFieldError: a run contradicts itself, or there are too many runs.
            StoreUnavailableError: the same call may succeed later.
            StoreFullError: the database has no room.
        """
        return await self._answer(await self.store(self._reports(body)))

    async def complete_all_or_none(self, chunks: AsyncIterator[bytes]) -> IngestionAnswer:
        """Store a stream of NDJSON, provided that every line is valid.

        The stream goes to a temporary file while it is checked, so that a bad line at its end
        leaves nothing stored. Then it is stored in groups: if the store fails in between, earlier
        groups stay, and sending the stream again counts none of them twice.

        Raises:
            InvalidLineError: a line is no completion; nothing is stored.
        """
        with TemporaryFile() as spool:
            try:
                async for _ in self._groups(_copied(chunks, spool), self._refuse):
                    pass
                await asyncio.to_thread(spool.seek, 0)
            except OSError as error:
                raise StoreFullError("There is no room to check the stream in.") from error
            stored = await self._store_groups(self._groups(_blocks(spool), self._refuse))
        return await self._answer(stored)

    async def complete_valid(self, chunks: AsyncIterator[bytes]) -> SkippingAnswer:
        """Store a stream of NDJSON as it comes, and list the lines that are no completions.

        Raises:
            TooManyBadLinesError: there are more such lines than ``MOST_BAD_LINES``. Valid lines
                before the last of them are stored.
        """
        bad: list[InvalidLineError] = []

        def continues(error: InvalidLineError) -> bool:
            bad.append(error)
            self._metrics.rejected.inc()
            return len(bad) <= MOST_BAD_LINES

        counts = await self._answer(await self._store_groups(self._groups(chunks, continues)))
        if len(bad) > MOST_BAD_LINES:
            raise TooManyBadLinesError(bad, counts.accepted + counts.duplicates)
        return SkippingAnswer(
            accepted=counts.accepted,
            duplicates=counts.duplicates,
            rejected=len(bad),
            rejections=[Rejection(each.line, each.field, str(each)) for each in bad],
        )

    def _reports(self, body: CompletionBody | CompletionBatch) -> list[ReportedCompletion]:
        """Return the completions of a body, if all may be stored."""
        reports = body.reports()
        check_length(reports, "completions", self._settings.max_batch)
        for place, report in enumerate(reports):
            several = hasattr(body, "completions")
            self.admit(report, f"completions.{place}.cluster" if several else "cluster")
        return reports

    def admit(self, report: ReportedCompletion, field: str = "cluster") -> None:
        """Admit a completion by its cluster.

        Raises:
            TooManyClustersError: the cluster would exceed the limit.
        """
        try:
            self._cluster_limit.admit(report.completion.submission.cluster, field)
        except TooManyClustersError:
            self._metrics.refused_clusters.inc()
            raise

    def _refuse(self, error: InvalidLineError) -> bool:
        self._metrics.rejected.inc()
        raise error

    async def _groups(
        self, blocks: AsyncIterator[bytes], continues: Callable[[InvalidLineError], bool]
    ) -> AsyncIterator[list[ReportedCompletion]]:
        """Yield the completions of a stream in groups of at least ``GROUP``, one for each commit.

        After an invalid line ``continues`` decides whether the rest is read.
        """
        group: list[ReportedCompletion] = []
        async for lines in lines_of(blocks):
            for place, line in enumerate(lines):
                try:
                    group.append(self._admitted(line))
                except InvalidLineError as error:
                    if not continues(error):
                        yield group
                        return
                if place % LINES_PER_TURN == LINES_PER_TURN - 1:
                    await asyncio.sleep(0)
            if len(group) >= GROUP:
                yield group
                group = []
        yield group

    def _admitted(self, line: NumberedLine) -> ReportedCompletion:
        """Return the completion in a line of NDJSON, if its cluster is admitted."""
        report = report_of(line)
        try:
            self.admit(report)
        except TooManyClustersError as error:
            raise InvalidLineError(str(error), field=error.field, line=line.number) from error
        return report

    async def _store_groups(self, groups: AsyncIterator[list[ReportedCompletion]]) -> Ingested:
        stored = NOTHING
        async for group in groups:
            stored += await self.store(group)
        return stored

    async def store(self, reports: list[ReportedCompletion]) -> Ingested:
        """Store completions durably in one transaction, after all predictions recorded so far."""
        if not reports:
            return NOTHING
        self._recorder.flush()
        stored = await self._writer.acknowledged(self._pseudonyms.reports(reports))
        self._metrics.accepted.inc(stored.accepted)
        self._metrics.duplicates.inc(stored.duplicates)
        return stored

    async def _answer(self, stored: Ingested) -> IngestionAnswer:
        await self._follower.catch_up()
        return IngestionAnswer(accepted=stored.accepted, duplicates=stored.duplicates)


async def _copied(blocks: AsyncIterator[bytes], spool: IO[bytes]) -> AsyncIterator[bytes]:
    """Yield the blocks, and write each to a file."""
    async for block in blocks:
        await asyncio.to_thread(spool.write, block)
        yield block


async def _blocks(spool: IO[bytes]) -> AsyncIterator[bytes]:
    """Yield the content of a file from its current position."""
    while block := await asyncio.to_thread(spool.read, BLOCK_BYTES):
        yield block
