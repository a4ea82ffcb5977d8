"""Pauses of coverage: its tracer makes Python take up to five times as long."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncovered() -> Iterator[None]:
    """Trace nothing of this thread meanwhile: for lines that other tests run, too.

    pytest-cov's own way, `no_cover`, stops one of two tracers where several processes test.
    """
    tracer = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(tracer)
