"""The numbers of a prediction in words: likely, range and planned, and the runs they rest on.

Pages and commands use the same words. The functions take fields of answers, so that commands load
no models of the API.
"""

from collections.abc import Mapping
from typing import Any

from terminal.words import counted, duration, walltime

OWNERS = {"knn": "of like jobs", "percentile": "of like jobs"}
"""Owners of the runs behind a prediction, of methods that look beyond the user's own."""

WITH_RANGE = frozenset({"history", "others"})
"""Reasons of a basis on whose runs an interval rests; without them it is all that can be."""

GROUNDS = {
    "others": "of other users: no run of this user is known",
    "young-cluster": "so far: too few jobs have ended in the cluster for a range",
    "too-few-jobs": "so far, too few for this method",
}
"""Ends of sentences about runs, by reason of a basis."""

NO_INTERVAL = {
    "too-few-runs": "too few jobs have ended to know how far forecasts are off",
    "no-samples": "no other futures were played",
    "no-prediction": "nothing was predicted",
    "no-time": "there was no time to play other futures",
}
"""Reasons why forecasts have no range."""

OBSTACLES = {
    "no-snapshot": "not known: the cluster's queue is not handed over",
    "too-large": "never: there are not so many processors",
    "not-planned": "not planned yet: too many jobs wait before it",
    "no-forecast": "not known yet: the queue is being forecast",
    "no-time": "not known: the forecast took too long",
}
"""Words in the place of the start of a job that cannot be forecast."""


def likely_words(likely: float | None) -> str:
    """Return the median runtime as text."""
    return "not known" if likely is None else duration(likely)


def range_words(lower: float, upper: float, coverage: float) -> str:
    """Return an interval of runtimes as text, such as ``2 min to 13 min (90%)``."""
    return f"{duration(lower)} to {duration(upper)} ({round(100 * coverage)}%)"


def planned_word(likely: float | None, *, plans: bool) -> str:
    """Return the name of the predicted walltime; empty where the median says all.

    Args:
        likely: median in seconds; None from methods without a distribution.
        plans: whether a scheduler plans or orders by predictions.
    """
    if plans:
        return "planned"
    return "predicted" if likely is None else ""


def planned_reason(planned: float, requested: float, *, likely: float | None, method: str) -> str:
    """Return the reason of the predicted walltime as text.

    Args:
        likely: median in seconds; None from methods without a distribution.
    """
    if planned >= requested:
        return "as requested"
    return f"by {method}" if likely is None else "so that few jobs outlive it"


def grounds_words(jobs: int, reason: str, method: str) -> str:
    """Return the runs that a prediction rests on as text."""
    if reason == "failure":
        return "the request, because the method failed"
    if not jobs:
        return "no earlier runs: this is the request"
    owner = GROUNDS.get(reason) or OWNERS.get(method, "of this user")
    return f"{counted(jobs, 'earlier run')} {owner} ({method})"


def prediction_rows(prediction: dict[str, Any], answer: dict[str, Any]) -> dict[str, str]:
    """Return the rows by name, with what they rest on.

    Args:
        prediction: an object with ``likely``, ``interval`` and predicted and requested walltime.
        answer: an object with ``method``, ``basis`` and ``plans_by_predictions``.
    """
    basis, method = answer["basis"], answer["method"]
    rests_on = grounds_words(basis["jobs"], basis["reason"], method)
    word = planned_word(prediction["likely"], plans=answer["plans_by_predictions"])
    if basis["reason"] not in WITH_RANGE:
        prediction = prediction | {"interval": None}
    return {**number_rows(prediction, method, word), "rests on": rests_on}


def number_rows(prediction: dict[str, Any], method: str, word: str) -> dict[str, str]:
    """Return the rows of the numbers of a prediction; ``word`` names the predicted walltime."""
    likely, interval = prediction["likely"], prediction["interval"]
    planned, requested = prediction["predicted_walltime"], prediction["requested_walltime"]
    span = "not known"
    if interval is not None:
        span = range_words(interval["lower"], interval["upper"], interval["coverage"])
    reason = planned_reason(planned, requested, likely=likely, method=method)
    rows = {"likely": likely_words(likely), "range": span}
    return rows | ({word: f"{duration(planned)}, {reason}"} if word else {})


def no_range(answer: dict[str, Any]) -> str:
    """Return why the forecast has no range, as the end of a sentence; empty if it has one."""
    reason = NO_INTERVAL.get(answer["no_interval"] or "")
    return f"; no range: {reason}" if reason else ""


def alike_words(run: Mapping[str, Any]) -> str:
    """Return the facts that made an earlier run like the job; empty without any."""
    names = [name.replace("_hash", "").replace("_", " ") for name in run.get("shared") or ()]
    return f"; alike in {', '.join(names)}" if names else ""


def limit_words(limit: Mapping[str, Any]) -> str:
    """Return the probability that a job ends at its limit as text, with a longer request."""
    if limit["probability"] is None:
        return "not known"
    if limit["reason"] == "chain":
        return "goes on where a job like it was cut"
    parts = [f"{100 * limit['probability']:.0f}% likely to end there"]
    if limit["like_hits"]:
        parts.append(f"{limit['like_hits']} of the last {limit['like_runs']} like it did")
    if limit["longer_walltime"] is not None:
        parts.append(f"9 of 10 would end within {walltime(limit['longer_walltime'])}")
    return "; ".join(parts)
