"""Writes a replay to a directory: a page with tables, the field's usual pictures, and data."""

from bisect import bisect_left
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from predictors.measures import Seconds, error_per_group
from simulator.replay.trace_replay import Replay
from simulator.reports.exhibit import Exhibit, Panel, Series, Value
from simulator.reports.method_summary import summarise, summary_table, user_numbers
from simulator.reports.page import ReportFiles, preformatted, section
from simulator.reports.pictures import write_exhibit

REQUESTED = "requested"
"""The method whose answers are the requests; pictures show the requests themselves."""

MINUTE, HOUR, DAY = 60, 3600, 86400

WALLTIMES = (
    *(1, 5, 10, 20, 30, 45),
    *(MINUTE * each for each in (1, 2, 3, 5, 7, 10, 15, 20, 30, 45, 60)),
    *(HOUR * each for each in (2, 3, 4, 6, 8, 10, 12, 18)),
    *(DAY * each for each in (1, 2, 3, 5, 7, 14, 30, 60)),
)
"""Walltimes in seconds, at about equal distances in a logarithm."""

TENTHS = 10


def distributions(played: Replay) -> Exhibit:
    """Return cumulative distributions of actual, requested and predicted walltimes."""
    longest = max(float(played.requested.max()), float(played.actual.max()))
    shown = WALLTIMES[: bisect_left(WALLTIMES, longest) + 1]
    series = {"exact": played.actual, REQUESTED: played.requested, **_predicted(played)}
    panel = Panel(
        title="",
        places=[_named(each) for each in shown],
        series=[
            Series(name, [float(np.mean(values <= each)) for each in shown])
            for name, values in series.items()
        ],
        along="walltime",
        value="share of jobs that are no longer",
        kind="lines",
        shares=True,
    )
    return Exhibit(
        f"Actual, requested and predicted walltimes of {len(played.runs):,} jobs",
        [panel],
        "The closer a method's line is to the black line of actual runtimes, the better its "
        "predictions are as a whole. After Klusáček and Soysal 2020, Figure 2.",
    )


def _named(seconds: int) -> str:
    """Return a walltime in its largest unit."""
    for size, unit in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def errors_per_user(played: Replay) -> Exhibit | None:
    """Return mean absolute errors of requests and of each method, by tenths of the users.

    Tenths are in the order of the error of their requests. None without a method.
    """
    predicted = _predicted(played)
    if not predicted:
        return None
    users, count = user_numbers(played)
    errors = {
        name: error_per_group(values, played.actual, users, count) / HOUR
        for name, values in {REQUESTED: played.requested, **predicted}.items()
    }
    order = np.argsort(-errors[REQUESTED], kind="stable")
    by_tenths = Panel(
        title="Errors of tenths of the users",
        places=[f"{tenth + 1}" for tenth in range(TENTHS)],
        series=[
            Series(name, [_mean(part) for part in np.array_split(values[order], TENTHS)])
            for name, values in errors.items()
        ],
        along="tenths of users, by the error of their requests",
        value="mean absolute error, h",
        kind="lines",
    )
    of_users = Panel(
        title=f"Predictions that err less than requests, of {count:,} users",
        places=[""],
        series=[
            Series(name, [float(np.mean(errors[name] < errors[REQUESTED]))]) for name in predicted
        ],
        value="share of users",
        shares=True,
    )
    return Exhibit(
        "Errors of users",
        [by_tenths, of_users],
        "After Klusáček and Soysal 2020, Figures 3 and 4.",
    )


def _predicted(played: Replay) -> Mapping[str, Seconds]:
    """Return the predictions of methods other than the request."""
    return {
        method: answers.predicted
        for method, answers in played.answers.items()
        if method != REQUESTED
    }


def _mean(errors: Seconds) -> Value:
    """Return the mean; None for a tenth without a user, as in a log that has fewer than ten."""
    return float(errors.mean()) if len(errors) else None


def write_report(
    directory: Path,
    facts: Mapping[str, str],
    played: Replay,
    *,
    data: Mapping[str, Any],
) -> None:
    """Write ``index.html``, ``table.txt``, ``report.json`` and the pictures with their data.

    Args:
        directory: made if it does not exist.
        facts: about the replay, by name; the first is the trace.
    """
    directory.mkdir(parents=True, exist_ok=True)
    methods = summary_table(summarise(played))
    exhibits = {"distributions": distributions(played), "errors-per-user": errors_per_user(played)}
    pictures = [
        write_exhibit(each, directory / f"{name}.png") for name, each in exhibits.items() if each
    ]
    files = ReportFiles(
        title=f"Replay of {facts['trace']}",
        facts=facts,
        text=methods,
        sections=[section("Methods", preformatted(methods)), *pictures],
        data=data,
    )
    files.write(directory)
