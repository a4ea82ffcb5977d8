"""Stores completions, one or several."""

from service.contract.answers import IngestionAnswer
from service.contract.bodies import CompletionBatch, CompletionBody, check_length
from service.errors import TooManyClustersError
from service.store import Ingested, ReportedCompletion
from service.worker.worker import Worker

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
        stored = await self.store(self._reports(body))
        await self._follower.catch_up()
        return IngestionAnswer(accepted=stored.accepted, duplicates=stored.duplicates)

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

    async def store(self, reports: list[ReportedCompletion]) -> Ingested:
        """Store completions durably in one transaction, after all predictions recorded so far."""
        if not reports:
            return NOTHING
        self._recorder.flush()
        return await self._writer.acknowledged(list(map(self._pseudonyms.report, reports)))
