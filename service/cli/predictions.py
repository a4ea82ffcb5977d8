"""The prediction in an answer of the service as rows of text: likely, range, planned, basis."""

from typing import Any

from service.contract.prediction_words import (
    NO_INTERVAL,
    grounds_words,
    likely_words,
    planned_reason,
    range_words,
)
from simulator.reports.words import duration


def prediction_rows(
    prediction: dict[str, Any], basis: dict[str, Any], method: str
) -> dict[str, str]:
    """Return the rows by name, with what they rest on.

    Args:
        prediction: an object with ``likely``, ``interval`` and planned and requested walltime.
        basis: number of runs, and reason.
        method: that predicted.
    """
    rests_on = grounds_words(basis["jobs"], basis["reason"], method)
    return {**number_rows(prediction, method), "rests on": rests_on}


def number_rows(prediction: dict[str, Any], method: str) -> dict[str, str]:
    """Return the rows of the three numbers of a prediction."""
    likely, interval = prediction["likely"], prediction["interval"]
    planned, requested = prediction["predicted_walltime"], prediction["requested_walltime"]
    span = "not known"
    if interval is not None:
        span = range_words(interval["lower"], interval["upper"], interval["coverage"])
    reason = planned_reason(planned, requested, likely=likely, method=method)
    return {
        "likely": likely_words(likely),
        "range": span,
        "planned": f"{duration(planned)}, {reason}",
    }


def no_range(answer: dict[str, Any]) -> str:
    """Return why the forecast has no range, as the end of a sentence; empty if it has one."""
    reason = NO_INTERVAL.get(answer["no_interval"] or "")
    return f"; no range: {reason}" if reason else ""
