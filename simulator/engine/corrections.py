"""The corrections of ``predictors.correction`` in whole seconds, for the scheduling loop."""

from collections.abc import Mapping

from predictors.correction import TSAFRIR_STEPS
from simulator.engine.compiled import kernel

DOUBLE, REQUEST, TSAFRIR = range(3)

CORRECTION_NUMBERS: Mapping[str, int] = {"double": DOUBLE, "request": REQUEST, "tsafrir": TSAFRIR}

_STEPS = tuple(int(step) for step in TSAFRIR_STEPS)


@kernel
def corrected(correction: int, first: int, request: int, elapsed: int) -> int:
    """The estimate of a job that has run for ``elapsed`` seconds, from its first estimate.

    The request is the limit of every correction. A job outlives its request only where overruns
    are kept. Then the estimate is doubled until it exceeds ``elapsed``.
    """
    estimate = first
    if correction == TSAFRIR:
        for step in _STEPS:
            if estimate > elapsed:
                break
            estimate = first + step
    if correction != DOUBLE and estimate <= elapsed:
        estimate = request
    while estimate <= elapsed:
        estimate *= 2
    if elapsed < request:
        return min(estimate, request)
    doubled = request
    while doubled <= elapsed:
        doubled *= 2
    return doubled
