"""Tang et al. 2013: its figures and tables, made again.

Those about accuracy need one log only, and ``--log`` names any site's. Keys with a part that the
log does not know are those without it: without projects the double key is the user, the triple
key the user and the walltime.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predictors.jobs import Completion
from predictors.measures import PredictionMeasures, accuracy
from predictors.methods.percentile import KEYS
from simulator.replay.percentile_schemes import (
    PERCENTILES,
    WINDOWS,
    Scheme,
    Swept,
    predictions,
    schemes,
    sweep,
    usable_keys,
)
from simulator.reports.exhibit import Exhibit, Panel, Series, Value
from simulator.studies.exhibits import Exhibits, Make, Sources
from simulator.studies.study import Played, runs_of
from simulator.studies.tang.months import MONTH, MonthSimulation
from simulator.studies.tang.tang_paper import (
    ACCURACIES,
    BEST_ACCURACY,
    GAINS,
    MEAN_USAGE,
    SPREADS,
    TRACE,
    USAGES,
)
from simulator.studies.tang.tang_simulations import INTREPID, LOGS, RULES, Readings, month_runs
from simulator.studies.tang.tang_simulations import PERCENTILES as ADJUSTED

CLASSES = {
    "not_adjusted": "NA",
    "overestimated": "OE",
    "underestimated": "UE",
    "badly_underestimated": "BE",
}

FEWEST_IN_GROUP = 10
"""Jobs; smaller groups are left out of Table 2."""

MEDIUM = 85

Values = NDArray[np.float64]


def table_1(sources: Sources) -> Exhibit:
    """The log in numbers."""
    runs = _runs(sources)
    submit = np.array([run.submission.submit_time for run in runs])
    found = {
        "jobs": float(len(runs)),
        "days": float(np.ptp(submit)) / 86400,
        "average run time, s": float(np.mean([run.runtime for run in runs])),
        "average request, s": float(_requested(runs).mean()),
        "users": float(len({run.submission.user for run in runs})),
    }
    series = Series(_name(sources), list(found.values()), [TRACE[name] for name in found])
    panel = Panel(title="Basic information", places=list(found), series=[series], digits=0)
    return Exhibit("Table 1: the log", [panel])


def figure_1(sources: Sources) -> Exhibit:
    """Distribution of R."""
    usages = _usages(_runs(sources))
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
            series=[Series(_name(sources), (bars / max(1, len(usages))).tolist())],
            along="R up to",
            value="share of jobs",
            shares=True,
        ),
        Panel(
            title="Shares that the text names",
            places=list(shares),
            series=[Series(_name(sources), list(shares.values()), list(USAGES.values()))],
            value="share of jobs",
            shares=True,
            digits=1,
        ),
    ]
    return Exhibit("Fig. 1: distribution of R", panels)


def figure_2(sources: Sources) -> Exhibit:
    """Average R by quarters."""
    runs = _runs(sources)
    usages = _usages(runs)
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


def table_2(sources: Sources) -> Exhibit:
    """Spread of R within groups of similar jobs: which key fits the log?"""
    runs = _runs(sources)
    usages = _usages(runs)
    spreads, groups = {"all jobs": float(usages.std())}, {"all jobs": 1.0}
    for key in usable_keys(runs):
        of_groups: dict[Any, list[float]] = {}
        for run, usage in zip(runs, usages.tolist(), strict=True):
            shared = tuple(getattr(run.submission, part) for part in KEYS[key])
            of_groups.setdefault(shared, []).append(usage)
        large = [values for values in of_groups.values() if len(values) >= FEWEST_IN_GROUP]
        spreads[key] = float(np.mean([np.std(values) for values in large])) if large else np.nan
        groups[key] = float(len(large))
    paper = [SPREADS.get({"user+walltime": "user+project+walltime"}.get(key, key))
             for key in spreads]  # fmt: skip
    panels = [
        Panel(
            title="Average standard deviation of R within groups: the smaller, the better a key",
            places=list(spreads),
            series=[Series(_name(sources), list(spreads.values()), paper)],
            value="standard deviation",
            digits=3,
        ),
        Panel(
            title=f"Groups of at least {FEWEST_IN_GROUP} jobs",
            places=list(groups),
            series=[Series(_name(sources), list(groups.values()))],
            value="groups",
            digits=0,
        ),
    ]
    return Exhibit("Table 2: spread of R by key", panels)


def figure_4(sources: Sources) -> Exhibit:
    """Accuracy by key and percentile, over all history."""
    swept = _swept(sources)
    base = float(accuracy(*_requested_and_run(_runs(sources))).mean())
    series = [
        Series(
            key,
            [swept[Scheme(key, percentile, None, 0.0, 1)].accuracy for percentile in PERCENTILES],
            [BEST_ACCURACY if percentile == 70 and key == _keys(swept)["triple"] else None
             for percentile in PERCENTILES],
        )
        for key in dict.fromkeys(scheme.key for scheme in swept)
    ]  # fmt: skip
    series.append(Series("requests", [base] * len(PERCENTILES), [0.5] * len(PERCENTILES)))
    panel = _by_percentile("All history, no threshold, no minimum of jobs", series, "accuracy")
    return Exhibit("Fig. 4: average accuracy by key", [panel])


def classes(number: int, keys: Sequence[str], lower_bounds: Sequence[float]) -> Make:
    """Figures 5 to 7: shares of NA, OE, UE and BE, and accuracy."""

    def make(sources: Sources) -> Exhibit:
        swept = _swept(sources)
        panels = []
        for name in keys:
            key = _keys(swept)[name]
            for bound in lower_bounds:
                measured = [
                    swept[Scheme(key, percentile, None, bound, 1)] for percentile in PERCENTILES
                ]
                series = [
                    Series(short, [getattr(each, field) for each in measured])
                    for field, short in CLASSES.items()
                ]
                series.append(Series("accuracy", [each.accuracy for each in measured]))
                title = f"{name} key ({key}), threshold {bound:g}"
                panels.append(_by_percentile(title, series, "share of jobs", shares=True))
        return Exhibit(f"Fig. {number}: how far requests are adjusted", panels)

    return make


def by_window(number: int, field: str, what: str) -> Make:
    """Figures 8 to 10: a measure by percentile and time window."""

    def make(sources: Sources) -> Exhibit:
        swept = _swept(sources)
        panels = []
        for name in ("triple", "double"):
            key = _keys(swept)[name]
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


def figure_11(sources: Sources) -> Exhibit:
    """Distribution of accuracy before and after adjustment."""
    runs = _runs(sources)
    requested, run = _requested_and_run(runs)
    shares = list(range(10, 100, 10))
    panels = []
    for name, key in _keys_of(usable_keys(runs)).items():
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
            )
        )
    return Exhibit("Fig. 11: distribution of accuracy, 1M, threshold 0.5", panels)


def figure_13(sources: Sources) -> Exhibit:
    """Average accuracy by month."""
    runs = _runs(sources)
    requested, run = _requested_and_run(runs)
    submit = np.array([each.submission.submit_time for each in runs])
    months = ((submit - submit.min()) // MONTH).astype(int)
    triple = _keys_of(usable_keys(runs))["triple"]
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


def simulated(number: int) -> Make:
    """Figures 14 to 17: waits, slowdowns and weighted waits by month, and mean gains."""

    def make(sources: Sources) -> Exhibit:
        order, adjustment = RULES[number - 14]
        options = {name: value for name, value in sources.options.items() if name != "log"}
        runs = [
            run
            for run in month_runs(
                sources.logs, {INTREPID: LOGS[INTREPID]}, sources.limit, Readings(**options)
            )
            if (run.order, run.adjustment) == (order, adjustment)
        ]
        return _simulated(number, sources.play(MonthSimulation.play, runs))

    return make


def simulated_figures(played: Played) -> Mapping[int, Exhibit]:
    """Figures 14 to 17 of runs that were played, of the paper's machine."""
    return {
        14 + number: _simulated(
            14 + number,
            [
                (run, months)
                for run, months in played
                if (run.log, run.order, run.adjustment) == (INTREPID, *rules)
            ],
        )
        for number, rules in enumerate(RULES)
    }


def _simulated(number: int, played: Played) -> Exhibit:
    found = {run.estimates: months for run, months in played}
    base = found["requested"]
    rules = ", ".join(RULES[number - 14])
    panels = []
    for row, (measure, scale) in enumerate(
        {"wait": 100, "slowdown": 10, "weighted wait": 100}.items()
    ):
        series = [
            Series(label, _known(scale * found[label].values[row] / base.values[row]))
            for label in ADJUSTED
        ]
        panels.append(
            Panel(
                title=f"Average {measure} by month, requests are {scale}",
                places=[f"m{month + 1}" for month in range(len(base.jobs))],
                series=series,
                value=measure,
                kind="lines",
                digits=1,
            )
        )
    names = ("wait", "slowdown", "weighted wait", "the same, adjusted P")
    series = [
        Series(
            label,
            _means(found[label].gains(base)),
            [*GAINS[rules].get(label, (None,) * 3), None],
        )
        for label in ADJUSTED
    ]
    panels.append(Panel(title="Mean gain", places=names, series=series, value="percent", digits=1))
    return Exhibit(f"Fig. {number}: {rules} adjustment on {INTREPID}", panels)


def _means(gains: Values) -> list[Value]:
    """Of the months in which anybody waited."""
    known = [row[np.isfinite(row)] for row in gains]
    return [float(row.mean()) if len(row) else None for row in known]


def _known(values: Values) -> list[Value]:
    return [float(value) if np.isfinite(value) else None for value in values]


def _by_percentile(title: str, series: Sequence[Series], value: str, **options: Any) -> Panel:
    names = {50: "median", 100: "maximum"}
    return Panel(
        title=title,
        places=[names.get(percentile, f"p{percentile}") for percentile in PERCENTILES],
        series=series,
        value=value,
        **{"kind": "bars" if options.get("shares") else "lines", "digits": 3, **options},
    )


def _path(sources: Sources) -> Path:
    named: Path | None = sources.options.get("log")
    return named if named is not None else sources.logs / LOGS[INTREPID]


def _name(sources: Sources) -> str:
    return "-".join(_path(sources).name.split(".")[0].split("-")[:2])


def _runs(sources: Sources) -> list[Completion]:
    runs: list[Completion]
    [(_, runs)] = _played(sources, _read)
    return runs


def _swept(sources: Sources) -> Swept:
    """All schemes of the log."""
    swept: Swept
    [(_, swept)] = _played(sources, _sweep)
    return swept


def _played(sources: Sources, function: Any) -> list[tuple[Any, Any]]:
    play = partial(function, limit=sources.limit)
    play.__qualname__ = function.__name__  # type: ignore[attr-defined] # names what is kept
    return sources.play(play, [_path(sources)])


def _read(path: Path, limit: int | None) -> list[Completion]:
    return runs_of(path, limit)


def _sweep(path: Path, limit: int | None) -> Mapping[Scheme, PredictionMeasures]:
    runs = runs_of(path, limit)
    return sweep(runs, schemes(usable_keys(runs)))


def _keys(swept: Swept) -> Mapping[str, str]:
    return _keys_of(list(dict.fromkeys(scheme.key for scheme in swept)))


def _keys_of(usable: Sequence[str]) -> Mapping[str, str]:
    """The triple and the double key, as far as the log knows their parts."""
    triple = "user+project+walltime" if "user+project+walltime" in usable else "user+walltime"
    return {"triple": triple, "double": "user+project" if "user+project" in usable else "user"}


def _requested(runs: Sequence[Completion]) -> Values:
    return np.array([run.submission.requested_walltime for run in runs], dtype=float)


def _requested_and_run(runs: Sequence[Completion]) -> tuple[Values, Values]:
    """Requests, and run times cut to them: a usage above 1 counts as 1."""
    requested = _requested(runs)
    return requested, np.minimum(requested, [run.runtime for run in runs])


def _usages(runs: Sequence[Completion]) -> Values:
    return np.array([run.usage for run in runs], dtype=float)


def _quarter(time: float) -> str:
    date = datetime.fromtimestamp(time, UTC)
    return f"{date.year} Q{(date.month + 2) // 3}"


EXHIBITS: Exhibits = {
    "table 1": table_1,
    "table 2": table_2,
    "figure 1": figure_1,
    "figure 2": figure_2,
    "figure 4": figure_4,
    "figure 5": classes(5, ("triple", "double"), (0.0,)),
    "figure 6": classes(6, ("triple",), (0.0, 0.5)),
    "figure 7": classes(7, ("double",), (0.0, 0.5)),
    "figure 8": by_window(8, "accuracy", "accuracy"),
    "figure 9": by_window(9, "badly_underestimated", "share of BE jobs"),
    "figure 10": by_window(10, "underestimated", "share of UE jobs"),
    "figure 11": figure_11,
    "figure 13": figure_13,
    **{f"figure {number}": simulated(number) for number in range(14, 18)},
}
