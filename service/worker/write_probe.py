"""Watching whether the history can be written to, also while there is nothing to write."""

import asyncio

import structlog

from service.store import Store, StoreError

log = structlog.get_logger()

PROBE_SECONDS = 1.0
"""How often the history is asked for its write lock, and how long it is waited for."""


class WriteProbe:
    """Takes the write lock of the history again and again, and gives it back at once.

    Somebody may hold it: an editor of the database with an open transaction, a backup that locks.
    Predictions go on meanwhile, and every completion is answered 503.

    Args:
        store: the history.

    Attributes:
        error: why nothing can be written; None while it can.
    """

    def __init__(self, store: Store) -> None:
        self.error: StoreError | None = None
        self._store = store

    async def run(self) -> None:
        """Watch for ever."""
        while True:
            await asyncio.sleep(PROBE_SECONDS)
            self._note(await asyncio.to_thread(self._refusal))

    def _refusal(self) -> StoreError | None:
        try:
            self._store.probe_writing(PROBE_SECONDS)
        except StoreError as error:
            return error
        return None

    def _note(self, error: StoreError | None) -> None:
        if error and not self.error:
            log.warning("the history cannot be written to", reason=str(error))
        if self.error and not error:
            log.info("the history can be written to again")
        self.error = error
