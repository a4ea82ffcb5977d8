"""Accuracy of requests and of adjusted requests, as in sections 3 and 5 of Tang et al. 2013.

Section 3 has Tables 1 and 2 and Figs. 1 and 2 about requests; section 5 has Figs. 4 to 11, and 13.
``--log`` names any site's log. Keys with a part that the log does not know are those without it:
without projects the double key is the user, the triple key the user and the walltime.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from predictors.jobs import Completion
from predictors.measures import accuracy
from predictors.methods.percentile import KEYS
from simulator.reports.exhibit import Exhibit, Panel, Series, Value
from simulator.reports.method_summary import CLASSES
from simulator.studies.study import ExhibitInput, LogPart, Make
from simulator.studies.tang.percentile_schemes import (
    PERCENTILES,
    WINDOWS,
    Scheme,
    Swept,
    predictions,
    schemes,
    sweep,
    usable_keys,
)
from simulator.studies.tang.tang_simulations import INTREPID, LOGS, MONTH
from simulator.studies.tang.tang_simulations import PERCENTILES as ADJUSTED
from simulator.traces.trace import Reals

TRACE: Mapping[str, float] = {
    "jobs": 275_858,
    "days": 911,
    "average run time, s": 5199,
    "average request, s": 9096,
    "users": 503,
}
"""Table 1, with the days from January 2009 to June 2011."""

USAGES: Mapping[str, float] = {
    "close to 1": 0.12,
    "above 0.8": 0.25,
    "below 0.5": 0.50,
    "below 0.2": 0.28,
}
"""Shares of jobs by R that the text reads off Fig. 1 (section 3.2)."""

SPREADS: Mapping[str, float] = {
    "all jobs": 0.335,
    "project": 0.308,
    "user": 0.294,
    "user+project": 0.285,
    "user+project+walltime": 0.253,
}
"""Average standard deviation of R within groups of at least 10 jobs (Table 2)."""

MEAN_USAGE = 0.50
"""Of all jobs; by quarter 0.42 to 0.59 (section 3.2)."""

BEST_ACCURACY = 0.679
"""Of the triple key at the 70th percentile over all history (section 4.2.2)."""

ACCURACIES: Mapping[str, Mapping[int, float]] = {
    "requests": {50: 0.50, 60: 0.64},
    "maximum": {60: 0.70},
    "median": {50: 0.68, 60: 0.83},
    "p85": {50: 0.71, 60: 0.86},
}
"""Accuracy that a given percentage of the jobs does not exceed (Fig. 11)."""

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
    """Spread of R within groups of similar jobs, by the key of the groups."""
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


MEDIUM = 85


def figure_4(sources: ExhibitInput) -> Exhibit:
    """Accuracy by key and percentile, over all history."""
    swept = swept_of(sources)
    base = float(accuracy(*requested_and_run(runs_in(sources))).mean())
    series = [
        Series(
            key,
            [swept[Scheme(key, percentile, None, 0.0, 1)].accuracy for percentile in PERCENTILES],
            [BEST_ACCURACY if percentile == 70 and key == keys_in(swept)["triple"] else None
             for percentile in PERCENTILES],
        )
        for key in dict.fromkeys(scheme.key for scheme in swept)
    ]  # fmt: skip
    series.append(Series("requests", [base] * len(PERCENTILES), [0.5] * len(PERCENTILES)))
    panel = _by_percentile("All history, no threshold, no minimum of jobs", series, "accuracy")
    return Exhibit("Fig. 4: average accuracy by key", [panel])


def classes(number: int, keys: Sequence[str], lower_bounds: Sequence[float]) -> Make:
    """Figures 5 to 7: shares of NA, OE, UE and BE, and accuracy."""

    def make(sources: ExhibitInput) -> Exhibit:
        swept = swept_of(sources)
        panels = []
        for kind in keys:
            key = keys_in(swept)[kind]
            for bound in lower_bounds:
                measured = [
                    swept[Scheme(key, percentile, None, bound, 1)] for percentile in PERCENTILES
                ]
                series = [
                    Series(name, [getattr(each, field) for each in measured])
                    for name, (field, _) in CLASSES.items()
                ]
                series.append(Series("accuracy", [each.accuracy for each in measured]))
                title = f"{kind} key ({key}), threshold {bound:g}"
                panels.append(_by_percentile(title, series, "share of jobs", shares=True))
        return Exhibit(f"Fig. {number}: how far requests are adjusted", panels)

    return make


def by_window(number: int, field: str, what: str) -> Make:
    """Figures 8 to 10: a measure by percentile and time window."""

    def make(sources: ExhibitInput) -> Exhibit:
        swept = swept_of(sources)
        panels = []
        for name in ("triple", "double"):
            key = keys_in(swept)[name]
            series = [
                Series(
                    "all" if window is None else f"{round(window / 30.4)}M",
                    [
                        getattr(swept[Scheme(key, percentile, window, 0.0, 1)], field)
                        for percentile in PERCENTILES
                    ],
                )
                for window in WINDOWS
            ]
            panels.append(
                _by_percentile(
                    f"{name} key ({key})", series, what, shares=field != "accuracy", kind="lines"
                )
            )
        return Exhibit(f"Fig. {number}: {what} by time window", panels)

    return make


def figure_11(sources: ExhibitInput) -> Exhibit:
    """Distribution of accuracy before and after adjustment."""
    runs = runs_in(sources)
    requested, run = requested_and_run(runs)
    shares = list(range(10, 100, 10))
    panels = []
    for name, key in keys_of(usable_keys(runs)).items():
        compared = {
            "maximum": Scheme(key, 100, 30, 0.5, 10),
            "p85": Scheme(key, MEDIUM, 30, 0.5, 10),
            "median": Scheme(key, 50, 30, 0.5, 10),
        }
        found = predictions(runs, list(compared.values()), requested)
        columns = {
            "requests": accuracy(requested, run),
            **{label: accuracy(found[scheme], run) for label, scheme in compared.items()},
        }
        series = [
            Series(
                label,
                [float(np.quantile(values, share / 100)) for share in shares],
                [ACCURACIES[label].get(share) if name == "triple" else None for share in shares],
            )
            for label, values in columns.items()
        ]
        panels.append(
            Panel(
                title=f"{name} key ({key})",
                places=[f"{share}" for share in shares],
                series=series,
                along="percent of the jobs",
                value="accuracy that they do not exceed",
                kind="lines",
                turned=True,
            )
        )
    return Exhibit("Fig. 11: distribution of accuracy, 1M, threshold 0.5", panels)


def figure_13(sources: ExhibitInput) -> Exhibit:
    """Average accuracy by month."""
    runs = runs_in(sources)
    requested, run = requested_and_run(runs)
    submit = np.array([each.submission.submit_time for each in runs])
    months = ((submit - submit.min()) // MONTH).astype(int)
    triple = keys_of(usable_keys(runs))["triple"]
    compared = {label: Scheme(triple, float(label[1:]), 30, 0.5, 10) for label in ADJUSTED}
    found = predictions(runs, list(compared.values()), requested)
    columns = {
        "requests": accuracy(requested, run),
        **{label: accuracy(found[scheme], run) for label, scheme in compared.items()},
    }
    panel = Panel(
        title="By month of submission",
        places=[f"m{month + 1}" for month in np.unique(months)],
        series=[
            Series(label, [float(values[months == month].mean()) for month in np.unique(months)])
            for label, values in columns.items()
        ],
        value="average accuracy",
        kind="lines",
    )
    return Exhibit("Fig. 13: average accuracy by month", [panel])


def _by_percentile(title: str, series: Sequence[Series], value: str, **options: Any) -> Panel:
    """A panel with one place for each percentile."""
    names = {50: "median", 100: "maximum"}
    return Panel(
        title=title,
        places=[names.get(percentile, f"p{percentile}") for percentile in PERCENTILES],
        series=series,
        value=value,
        **{"kind": "bars" if options.get("shares") else "lines", "digits": 3, **options},
    )


def path_of(sources: ExhibitInput) -> Path:
    """The log: the one named by ``--log``, else Intrepid's."""
    named: Path | None = sources.options.get("log")
    return named if named is not None else sources.logs / LOGS[INTREPID]


def name_of(sources: ExhibitInput) -> str:
    """The name of the log, as its file begins."""
    return "-".join(path_of(sources).name.split(".")[0].split("-")[:2])


def runs_in(sources: ExhibitInput) -> list[Completion]:
    """The runs of the log."""
    runs: list[Completion]
    [(_, runs)] = sources.play(LogPart.runs, [_part(sources)])
    return runs


def swept_of(sources: ExhibitInput) -> Swept:
    """All schemes of the log."""
    swept: Swept
    [(_, swept)] = sources.play(_sweep, [_part(sources)])
    return swept


def _part(sources: ExhibitInput) -> LogPart:
    return LogPart(str(path_of(sources)), sources.limit)


def _sweep(part: LogPart) -> Swept:
    runs = part.runs()
    return sweep(runs, schemes(usable_keys(runs)))


def keys_in(swept: Swept) -> Mapping[str, str]:
    """The triple and the double key of schemes that were swept."""
    return keys_of(list(dict.fromkeys(scheme.key for scheme in swept)))


def keys_of(usable: Sequence[str]) -> Mapping[str, str]:
    """The triple and the double key, as far as the log knows their parts."""
    triple = "user+project+walltime" if "user+project+walltime" in usable else "user+walltime"
    return {"triple": triple, "double": "user+project" if "user+project" in usable else "user"}


def requested_of(runs: Sequence[Completion]) -> Reals:
    """Requests in seconds."""
    return np.array([run.submission.requested_walltime for run in runs], dtype=float)


def requested_and_run(runs: Sequence[Completion]) -> tuple[Reals, Reals]:
    """Requests, and run times cut to them: a usage above 1 counts as 1."""
    requested = requested_of(runs)
    return requested, np.minimum(requested, [run.runtime for run in runs])


def usages_of(runs: Sequence[Completion]) -> Reals:
    """The usage R of every run."""
    return np.array([run.usage for run in runs], dtype=float)
