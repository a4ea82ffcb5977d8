"""Tang et al. 2013, section 3: how accurate users' requests are (Tables 1 and 2, Figs. 1 and 2)."""

from datetime import UTC, datetime
from typing import Any

import numpy as np

from predictors.methods.percentile import KEYS
from simulator.reports.exhibit import Exhibit, Panel, Series, Value
from simulator.studies.study import ExhibitInput
from simulator.studies.tang.percentile_schemes import usable_keys
from simulator.studies.tang.tang_log import (
    MEAN_USAGE,
    SPREADS,
    TRACE,
    USAGES,
    name_of,
    requested_of,
    runs_in,
    usages_of,
)

FEWEST_IN_GROUP = 10
"""Jobs; smaller groups are left out of Table 2."""


def table_1(sources: ExhibitInput) -> Exhibit:
    """The log in numbers."""
    runs = runs_in(sources)
    submit = np.array([run.submission.submit_time for run in runs])
    found = {
        "jobs": float(len(runs)),
        "days": float(np.ptp(submit)) / 86400,
        "average run time, s": float(np.mean([run.runtime for run in runs])),
        "average request, s": float(requested_of(runs).mean()),
        "users": float(len({run.submission.user for run in runs} - {None})),
    }
    series = Series(name_of(sources), list(found.values()), [TRACE[name] for name in found])
    panel = Panel(title="Basic information", places=list(found), series=[series], digits=0)
    return Exhibit("Table 1: the log", [panel])


def figure_1(sources: ExhibitInput) -> Exhibit:
    """Distribution of R."""
    usages = usages_of(runs_in(sources))
    bars, edges = np.histogram(usages, bins=20, range=(0, 1))
    shares = {
        "close to 1": float(np.mean(usages > 0.95)),
        "above 0.8": float(np.mean(usages > 0.8)),
        "below 0.5": float(np.mean(usages < 0.5)),
        "below 0.2": float(np.mean(usages < 0.2)),
    }
    panels = [
        Panel(
            title="Jobs by R",
            places=[f"{edge:.2f}" for edge in edges[1:]],
            series=[Series(name_of(sources), (bars / max(1, len(usages))).tolist())],
            along="R up to",
            value="share of jobs",
            shares=True,
        ),
        Panel(
            title="Shares that the text names",
            places=list(shares),
            series=[Series(name_of(sources), list(shares.values()), list(USAGES.values()))],
            value="share of jobs",
            shares=True,
            digits=1,
        ),
    ]
    return Exhibit("Fig. 1: distribution of R", panels)


def figure_2(sources: ExhibitInput) -> Exhibit:
    """Average R by quarters."""
    runs = runs_in(sources)
    usages = usages_of(runs)
    quarters: dict[str, list[float]] = {"all": usages.tolist()}
    for run, usage in zip(runs, usages.tolist(), strict=True):
        quarters.setdefault(_quarter(run.submission.submit_time), []).append(usage)
    means: list[Value] = [float(np.mean(values)) for values in quarters.values()]
    spreads: list[Value] = [float(np.std(values)) for values in quarters.values()]
    paper: list[Value] = [MEAN_USAGE, *([None] * (len(quarters) - 1))]
    panel = Panel(
        title="By quarter of submission",
        places=list(quarters),
        series=[
            Series("average R", means, paper),
            Series("standard deviation", spreads, [0.33, *paper[1:]]),
        ],
        value="R",
        digits=3,
    )
    return Exhibit("Fig. 2: average R by quarter (the paper's: 0.42 to 0.59)", [panel])


def table_2(sources: ExhibitInput) -> Exhibit:
    """Spread of R within groups of similar jobs: which key fits the log?"""
    runs = runs_in(sources)
    usages = usages_of(runs)
    spreads: dict[str, Value] = {"all jobs": float(usages.std())}
    groups = {"all jobs": 1.0}
    for key in usable_keys(runs):
        of_groups: dict[Any, list[float]] = {}
        for run, usage in zip(runs, usages.tolist(), strict=True):
            shared = tuple(getattr(run.submission, part) for part in KEYS[key])
            of_groups.setdefault(shared, []).append(usage)
        large = [values for values in of_groups.values() if len(values) >= FEWEST_IN_GROUP]
        spreads[key] = float(np.mean([np.std(values) for values in large])) if large else None
        groups[key] = float(len(large))
    paper = [SPREADS.get({"user+walltime": "user+project+walltime"}.get(key, key))
             for key in spreads]  # fmt: skip
    panels = [
        Panel(
            title="Average standard deviation of R within groups: the smaller, the better a key",
            places=list(spreads),
            series=[Series(name_of(sources), list(spreads.values()), paper)],
            value="standard deviation",
            digits=3,
        ),
        Panel(
            title=f"Groups of at least {FEWEST_IN_GROUP} jobs",
            places=list(groups),
            series=[Series(name_of(sources), list(groups.values()))],
            value="groups",
            digits=0,
        ),
    ]
    return Exhibit("Table 2: spread of R by key", panels)


def _quarter(time: float) -> str:
    date = datetime.fromtimestamp(time, UTC)
    return f"{date.year} Q{(date.month + 2) // 3}"
