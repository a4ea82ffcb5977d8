"""The numbers of a prediction as text: likely, range and planned, and whose runs they rest on."""

from typing import Any

from simulator.reports.words import duration


def likely_of(variant: dict[str, Any]) -> float:
    """Return the likely runtime, or the planned one where no other is known."""
    likely: float | None = variant["likely"]
    return variant["predicted_walltime"] if likely is None else likely


def planned_with(variant: dict[str, Any]) -> str:
    """Return the runtime that the scheduler plans with, and why, as text."""
    planned = duration(variant["predicted_walltime"])
    if variant["predicted_walltime"] >= variant["requested_walltime"]:
        return f"{planned}, as requested"
    return f"{planned}, so that few jobs outlive it"


def range_of(variant: dict[str, Any]) -> str:
    """Return the interval of the predicted runtime as text, empty if there is none."""
    interval = variant["interval"]
    if interval is None:
        return ""
    share = round(100 * interval["coverage"])
    return f" ({share}%: {duration(interval['lower'])} to {duration(interval['upper'])})"


def grounds(answer: dict[str, Any]) -> str:
    """Return the number of runs behind the prediction, and the method, as text."""
    basis = answer["basis"]
    if not basis["jobs"]:
        return "no earlier runs: this is the request"
    runs = f"{basis['jobs']:,} earlier run{'s' if basis['jobs'] > 1 else ''}"
    if basis["reason"] == "others":
        return f"{runs} of other users: no run of this user is known ({answer['method']})"
    return f"{runs} ({answer['method']})"
