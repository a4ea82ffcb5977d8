"""Following the log of completions."""

from collections.abc import Sequence
from typing import Protocol

from predictors.jobs import Completion
from service.store.store_errors import StoreError


class LogReader(Protocol):
    """One worker's place in the log of completions.

    Nothing here raises when the database is away: there is no news then, and ``error`` says why.
    Everything but ``refresh`` returns without waiting for a network.

    Attributes:
        error: why the log cannot be followed at the moment; None while it can.
    """

    error: StoreError | None

    def has_news(self) -> bool:
        """Whether ``read`` would return something; costs microseconds."""
        ...

    def read(self, limit: int) -> Sequence[Completion]:
        """The next completions in log order, at most ``limit``; moves the place behind them."""
        ...

    def lag(self) -> int:
        """How many durable completions are still to be read; large numbers are estimates."""
        ...

    def refresh(self) -> None:
        """Wait until what was durable at the time of this call is there to be read.

        The writer calls this between commit and acknowledgement. So this worker's next prediction
        already uses a completion that has been acknowledged.
        """
        ...

    def close(self) -> None:
        """Let go of the connection."""
        ...
