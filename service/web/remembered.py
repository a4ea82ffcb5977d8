"""What is read for a page, kept for some seconds for all who look at it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")

MOST = 1000
"""Answers that are kept, unless it is said otherwise; then all are forgotten."""


class Remembered:
    """Keeps what was read, and reads it once at a time: ten open pages cost as much as one."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, most: int = MOST) -> None:
        self._clock = clock
        self._most = most
        self._kept: dict[Hashable, tuple[float, Any]] = {}
        self._locks: dict[Hashable, asyncio.Lock] = {}

    async def get(self, key: Hashable, seconds: float, read: Callable[[], Awaitable[T]]) -> T:
        """What ``read`` says, not older than ``seconds``."""
        async with self._locks.setdefault(key, asyncio.Lock()):
            kept = self._kept.get(key)
            if kept is None or self._clock() - kept[0] >= seconds:
                value = await read()
                self._forget_too_many()
                self._kept[key] = kept = (self._clock(), value)
        found: T = kept[1]
        return found

    def forget(self, key: Hashable) -> None:
        """Read it again at the next time."""
        self._kept.pop(key, None)

    def _forget_too_many(self) -> None:
        if len(self._kept) >= self._most:
            self._kept.clear()
            self._locks.clear()
