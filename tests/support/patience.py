"""Waiting for a state: at first looking often, then seldom, since looking takes time as well."""

import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")

FIRST_PAUSE, LONGEST_PAUSE = 0.002, 0.1
"""Seconds."""

GROWTH = 1.25

BUSY_SECONDS = 15.0
"""What a busy machine may add to something that takes a moment.

Whoever waits for what must not happen needs more: a mistake has to cost more than this.
"""


def eventually(condition: Callable[[], Answer], *, seconds: float = 20.0) -> Answer:
    """The first true answer of ``condition``, asked again and again until the deadline."""
    deadline, pause = time.monotonic() + seconds, FIRST_PAUSE
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"still not after {seconds} s: {answer!r}"
        time.sleep(pause)
        pause = min(LONGEST_PAUSE, pause * GROWTH)
    return answer
