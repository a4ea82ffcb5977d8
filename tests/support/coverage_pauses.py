"""Where coverage does not look: its tracer makes Python take up to five times as long."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pytest

FIRST_WORKER = "gw0"

TRACED_EXAMPLES = 10
"""Of each property test; those after them hardly run a line that none has run before."""


@contextmanager
def uncovered() -> Iterator[None]:
    """Nothing that this thread does meanwhile is traced: for what runs the same lines again.

    Each of these lines runs in another test, too.

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


@contextmanager
def after_first_examples(test: Any) -> Iterator[None]:
    """The tracer sees the first examples of a property test, and nothing of what makes them."""
    tracer, property_ = sys.gettrace(), getattr(test, "hypothesis", None)
    if tracer is None or property_ is None:
        yield
        return
    inner = property_.inner_test
    left = iter(range(TRACED_EXAMPLES))

    @wraps(inner)
    def traced_at_first(*arguments: Any, **named: Any) -> Any:
        sys.settrace(tracer if next(left, None) is not None else None)
        try:
            return inner(*arguments, **named)
        finally:
            sys.settrace(None)

    property_.inner_test = traced_at_first
    try:
        with uncovered():
            yield
    finally:
        property_.inner_test = inner
