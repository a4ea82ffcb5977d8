"""Contradictions between the fields of a record, and the field that is believed."""

from enum import StrEnum

SLACK_SECONDS = 10.0
"""Seconds by which the clocks and the rounding of a resource manager explain a difference."""

LEAST_SHARE = 0.1
"""Share of the span from start to end below which an elapsed time needs proof of a suspension."""

BUSY = 0.5
"""Share of an elapsed time that the used CPU time of all processors has to fill to prove it."""

MOST_BUSY = 1.1
"""Largest such share: accounting rounds, and processes outlive the last sample."""

CLOCK_CHANGES = (1800.0, 3600.0, 7200.0)
"""Seconds by which the clock is changed somewhere, or by which a wrong time zone changes it."""

OVERRUN = 2.0
"""Times the request from which on a run contradicts it; grace times are far below."""

OVERRUN_SECONDS = 600.0


class Doubt(StrEnum):
    """The contradictions in the records of runs that are stored all the same."""

    ELAPSED = "with an elapsed time that start, end and CPU time contradict: start to end counts"
    CLOCK_CHANGE = "over a change of the clock, or of another zone: the elapsed time counts"
    FEW_PROCESSORS = "with fewer processors than nodes: a processor for each node counts"
    SUBMITTED_LATER = "submitted after the start: the start counts"
    OVERRUN = "that lasted over twice the request: the request counts as it is"
    FUTURE = "that ended in the future: a clock or the time zone is wrong"


def checked_elapsed(  # noqa: PLR0913  one keyword for each fact of a run
    elapsed: float | None,
    *,
    span: float,
    cpu_time: float | None = None,
    processors: int | None = None,
    suspended: float | None = None,
    needs_proof: bool = False,
) -> tuple[float, Doubt | None]:
    """Return the runtime that all facts allow, and the contradiction, if there is one.

    An elapsed time below the span means a suspension. It is believed as far as the other facts
    can be true beside it: the suspended time, and the CPU time that was used meanwhile.

    Args:
        elapsed: seconds that the record says the job ran.
        span: seconds from start to end.
        cpu_time: used seconds of all processors.
        needs_proof: whether an elapsed time needs a CPU time beside it.

    >>> checked_elapsed(0.0, span=3600.0)[0], checked_elapsed(1800.0, span=3600.0)[0]
    (3600.0, 1800.0)
    """
    if elapsed is None:
        return span, None
    if elapsed > span:
        return _beyond_span(elapsed, span)
    if span - elapsed <= SLACK_SECONDS:
        return elapsed, None
    if suspended is not None:
        is_possible = elapsed > 0 and abs(span - suspended - elapsed) <= SLACK_SECONDS
    else:
        is_possible = _is_possible(elapsed, span, cpu_time, processors, needs_proof)
    return (elapsed, None) if is_possible else (span, Doubt.ELAPSED)


def _beyond_span(elapsed: float, span: float) -> tuple[float, Doubt | None]:
    """Return the elapsed time if a change of the clock took the rest from the span."""
    is_clock = elapsed > 0 and any(
        abs(elapsed - span - each) <= SLACK_SECONDS for each in CLOCK_CHANGES
    )
    return (elapsed, Doubt.CLOCK_CHANGE) if is_clock else (span, None)


def _is_possible(
    elapsed: float,
    span: float,
    cpu_time: float | None,
    processors: int | None,
    needs_proof: bool,  # noqa: FBT001
) -> bool:
    if not elapsed or (cpu_time is None and needs_proof):
        return False
    busy = (cpu_time or 0.0) / (elapsed * (processors or 1))
    if processors and (cpu_time or 0.0) > SLACK_SECONDS and busy > MOST_BUSY:
        return False
    return busy >= BUSY or elapsed >= LEAST_SHARE * span
