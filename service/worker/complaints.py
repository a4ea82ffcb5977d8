"""Which errors are told: at once, and while they go on once a minute."""

import time
from collections.abc import Callable

AGAIN_SECONDS = 60.0


class Complaints:
    """Remembers when each error was last told.

    A method that fails may fail at every run of a history: a traceback for each of a million runs
    would fill the disk, and take longer than learning does. How often it fails is in the metrics.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._told: dict[tuple[str, ...], float] = {}

    def is_due(self, *error: str) -> bool:
        """Whether to tell the ``error`` now, which then counts as told."""
        now = self._clock()
        if now - self._told.get(error, float("-inf")) < AGAIN_SECONDS:
            return False
        self._told[error] = now
        return True
