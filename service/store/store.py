"""The history store: everything that outlives the process, behind domain types."""

from collections.abc import Iterable, Iterator, Sequence

from predictors.base import Memory
from predictors.jobs import Completion
from service.store.log import LogReader
from service.store.records import (
    Ingested,
    MethodScore,
    RecordedPrediction,
    ReportedCompletion,
    Token,
)


class Store:
    """History, recorded predictions, scores and tokens in one database.

    Every method may raise StoreUnavailableError, every writing one StoreFullError. The methods
    block: call them from a thread that may wait. All of them are safe to call from any thread.
    """

    def upgrade(self) -> None:
        """Bring the schema up to this release's; safe from several processes at once."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise SchemaOutdatedError unless the schema is this release's."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of all connections."""
        raise NotImplementedError

    def write(
        self,
        groups: Sequence[Sequence[ReportedCompletion]],
        predictions: Sequence[RecordedPrediction] = (),
    ) -> list[Ingested]:
        """Store predictions, then completions, in one durable transaction; one count a group."""
        raise NotImplementedError

    def import_completions(
        self, completions: Iterable[Completion], *, batch: int = 5000
    ) -> Iterator[Ingested]:
        """Store old completions in bulk; yields after each durable batch."""
        raise NotImplementedError

    def reader(self, after: int = 0) -> LogReader:
        """A place in the log behind its first ``after`` completions."""
        raise NotImplementedError

    def warm_start(self, memory: Memory, now: float) -> tuple[LogReader, Iterator[Completion]]:
        """The part of the log that ``memory`` asks for, cluster by cluster in log order.

        Returns it with a reader placed where it ends.
        """
        raise NotImplementedError

    def history_length(self) -> int:
        """How many completions are stored."""
        raise NotImplementedError

    def clusters(self) -> list[str]:
        """The clusters that completions were stored of."""
        raise NotImplementedError

    def scores(self, cluster: str) -> list[MethodScore]:
        """How each method did on this cluster, by name."""
        raise NotImplementedError

    def drop_stale_predictions(self, before: float) -> int:
        """Forget predictions recorded earlier whose job never ended; says how many."""
        raise NotImplementedError

    def issue_token(self, name: str, scopes: Iterable[str], now: float) -> tuple[Token, str]:
        """Make a token; the text is what its bearer presents and cannot be shown again."""
        raise NotImplementedError

    def revoke_token(self, token_id: str, now: float) -> bool:
        """Make a token worthless; False if there is no valid token of that id."""
        raise NotImplementedError

    def tokens(self) -> list[Token]:
        """All tokens, revoked ones too, oldest first."""
        raise NotImplementedError


def open_store(url: str, *, sqlite_synchronous: str = "full") -> Store:
    """Open the store at a SQLAlchemy URL, without touching its schema."""
    raise NotImplementedError
