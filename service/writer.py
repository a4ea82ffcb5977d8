"""The one thread that writes: what gathers while it commits shares the next commit."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future

from service.store import Ingested, RecordedPrediction, ReportedCompletion, Store


class Writer:
    """Commits completions and predictions in groups, in the order they came.

    Attributes:
        queued: completions waiting for their commit.
        commits: transactions committed.
        dropped_predictions: predictions lost to a full buffer or a database that was away.
        last_flush_seconds: how long the last transaction took.
        failure: why the last transaction failed; None after one that succeeded.
    """

    queued: int = 0
    commits: int = 0
    dropped_predictions: int = 0
    last_flush_seconds: float = 0.0
    failure: Exception | None = None

    def __init__(
        self,
        store: Store,
        *,
        before_acknowledging: Callable[[], None] = lambda: None,
        retention_seconds: float = 90 * 86400.0,
    ) -> None:
        """Start the thread.

        Args:
            before_acknowledging: called in the writer's thread after each commit with
                completions; a log reader's ``refresh`` belongs here.
            retention_seconds: predictions whose job never ended are dropped after this.
        """
        raise NotImplementedError

    def complete(self, group: Sequence[ReportedCompletion]) -> Future[Ingested]:
        """Queue completions; the future resolves when all of them are durable.

        Use ``asyncio.wrap_future`` for one at a time, or ``await acknowledged(group)``.

        Raises:
            StoreUnavailableError: too much is waiting already, or the writer is closed.
        """
        raise NotImplementedError

    async def acknowledged(self, group: Sequence[ReportedCompletion]) -> Ingested:
        """Queue completions and wait until they are durable; wakes the event loop once a commit."""
        raise NotImplementedError

    def record(self, prediction: RecordedPrediction) -> None:
        """Queue a prediction and return at once; it is dropped and counted if there is no room."""
        raise NotImplementedError

    def close(self) -> None:
        """Commit what is queued, then stop."""
        raise NotImplementedError
