"""Where coverage does not look: its tracer makes Python take up to five times as long."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

FIRST_WORKER = "gw0"


@contextmanager
def pause() -> Iterator[None]:
    """Nothing that this thread does meanwhile is traced.

    pytest-cov's own way, `no_cover`, stops one of two tracers where several processes test.
    """
    tracer = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(tracer)


def is_first_worker(config: pytest.Config) -> bool:
    """Whether this test process is the first of several, or the only one."""
    return getattr(config, "workerinput", {}).get("workerid", FIRST_WORKER) == FIRST_WORKER
