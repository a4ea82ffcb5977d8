"""Tang et al. 2013: adjusted requests under WFP and FCFS, for all jobs or not for running ones.

Figs. 14 to 17 (section 6) are the gains month by month.
"""

from pathlib import Path
from statistics import fmean
from typing import Any

from papers.pivot import ExhibitPlan, Pivot
from papers.study import Inputs, Study, Takes, option
from papers.tang.percentile_schemes import WINDOWS
from papers.tang.tang_accuracy import (
    GROUPS,
    SPREAD,
    by_month,
    described,
    distributions,
    swept,
)
from papers.tang.tang_simulations import (
    ADJUSTED_SCORE,
    INTREPID,
    LOGS,
    PERCENTILES,
    RULES,
    months_under,
)
from simulator.reports.method_summary import CLASSES

BRACKETS = "In brackets: the paper's numbers, which are of Intrepid.\n"


def brackets(inputs: Inputs) -> str:
    """Say whose numbers stand in brackets beside those of a site's own log."""
    return BRACKETS if inputs.options.get("log") is not None else ""


def _described(*quantities: str, **known: Any) -> Pivot:
    """Return a pivot of numbers about requests, a panel for each quantity."""
    usual = {
        "table": described,
        "where": {"quantity": quantities},
        "panel": "{quantity}",
        "rows": "{place}",
        "columns": "{log}",
        "value": "value",
    }
    return Pivot(**{**usual, **known})


def _percentile(each: Any) -> str:
    names = {50: "median", 100: "maximum"}
    return names.get(each.percentile, f"p{each.percentile}")


def _window(each: Any) -> str:
    return "all" if each.window_days is None else f"{round(each.window_days / 30.4)}M"


FIGURE_3 = Pivot(
    table=swept,
    where={"kind": ("triple", "double")},
    panel="{kind} key ({key}), threshold {lower_bound:g}, minimum {min_jobs}",
    rows=_window,
    columns=_percentile,
    value="accuracy",
    along="window",
    unit="accuracy",
    digits=3,
)

FIGURE_4 = Pivot(
    table=swept,
    where={"window_days": None, "lower_bound": 0.0, "min_jobs": 1},
    panel="All history, no threshold, no minimum of jobs",
    rows=_percentile,
    columns="{key}",
    value="accuracy",
    unit="accuracy",
    kind="lines",
    digits=3,
)


def classes(number: int, kinds: tuple[str, ...], lower_bounds: tuple[float, ...]) -> ExhibitPlan:
    """Return one of Figures 5 to 7: shares of NA, OE, UE and BE, and accuracy."""
    pivot = Pivot(
        table=swept,
        where={"kind": kinds, "lower_bound": lower_bounds, "window_days": None, "min_jobs": 1},
        panel="{kind} key ({key}), threshold {lower_bound:g}",
        rows=_percentile,
        value={**{name: field for name, (field, _) in CLASSES.items()}, "accuracy": "accuracy"},
        unit="share of jobs",
        shares=True,
        digits=3,
    )
    return ExhibitPlan(f"Fig. {number}: how far requests are adjusted", [pivot], brackets)


def by_window(number: int, field: str, unit: str) -> ExhibitPlan:
    """Return one of Figures 8 to 10: a measure by percentile and time window."""
    pivot = Pivot(
        table=swept,
        where={
            "kind": ("triple", "double"), "lower_bound": 0.0, "min_jobs": 1, "window_days": WINDOWS,
        },
        panel="{kind} key ({key})",
        rows=_percentile,
        columns=_window,
        value=field,
        unit=unit,
        kind="lines",
        shares=field != "accuracy",
        digits=3,
    )  # fmt: skip
    return ExhibitPlan(f"Fig. {number}: {unit} by time window", [pivot], brackets)


FIGURE_11 = Pivot(
    table=distributions,
    panel="{kind} key ({key})",
    rows="{place}",
    columns="{estimates}",
    value="accuracy",
    along="percent of the jobs",
    unit="accuracy that they do not exceed",
    kind="lines",
    turned=True,
)

FIGURE_13 = Pivot(
    table=by_month,
    panel="By month of submission",
    rows="{place}",
    columns="{estimates}",
    value="accuracy",
    unit="average accuracy",
    kind="lines",
)


def simulated(number: int) -> ExhibitPlan:
    """Return one of Figures 14 to 17: measures by month beside requests, and mean gains."""
    order, adjustment = RULES[number - 14]
    table = months_under(order, adjustment)
    by_month = [
        Pivot(
            table=table,
            where={"measure": measure, "estimates": PERCENTILES},
            panel=f"Average {measure} by month, requests are {scale}",
            rows="m{month}",
            columns="{estimates}",
            value="ratio",
            scale=scale,
            unit=measure,
            kind="lines",
            digits=1,
        )
        for measure, scale in {"wait": 100, "slowdown": 10, "weighted wait": 100}.items()
    ]
    gains = Pivot(
        table=table,
        where={
            "measure": ("wait", "slowdown", "weighted wait", ADJUSTED_SCORE),
            "estimates": PERCENTILES,
        },
        panel="Mean gain",
        rows="{measure}",
        columns="{estimates}",
        value="gain",
        statistic=fmean,
        unit="percent",
        digits=1,
    )
    title = f"Fig. {number}: {order}, {adjustment} adjustment on {INTREPID}"
    return ExhibitPlan(title, [*by_month, gains], brackets)


STUDY = Study(
    name="tang",
    explanation="""Adjust requests under WFP and FCFS, for all jobs or for waiting jobs only.

    Tang et al. 2013, Tables 1 and 2 and Figs. 1 to 11 and 13 to 17, on ANL-Intrepid.

    For example:

        python -m papers tang traces --figure all --output tang
    """,
    takes=Takes.DIRECTORY,
    logs=(LOGS[INTREPID],),
    exhibits={
        "table 1": ExhibitPlan(
            "Table 1: the log", [_described("Basic information", digits=0)], brackets
        ),
        "table 2": ExhibitPlan(
            "Table 2: spread of R by key",
            [
                _described(SPREAD, unit="standard deviation", digits=3),
                _described(GROUPS, unit="groups", digits=0),
            ],
            brackets,
        ),
        "figure 1": ExhibitPlan(
            "Fig. 1: distribution of R",
            [
                _described("Jobs by R", along="R up to", unit="share of jobs", shares=True),
                _described(
                    "Shares that the text names", unit="share of jobs", shares=True, digits=1
                ),
            ],
            brackets,
        ),
        "figure 2": ExhibitPlan(
            "Fig. 2: average R by quarter (the paper's: 0.42 to 0.59)",
            [
                _described(
                    "average R", "standard deviation",
                    panel="By quarter of submission", columns="{quantity}", unit="R", digits=3,
                )
            ],
            brackets,
        ),
        "figure 3": ExhibitPlan(
            "Fig. 3: key x window x percentile, with and without threshold and minimum",
            [FIGURE_3],
            "With --runs also the shares of NA, OE, UE and BE of each scheme.\n",
        ),
        "figure 4": ExhibitPlan("Fig. 4: average accuracy by key", [FIGURE_4], brackets),
        "figure 5": classes(5, ("triple", "double"), (0.0,)),
        "figure 6": classes(6, ("triple",), (0.0, 0.5)),
        "figure 7": classes(7, ("double",), (0.0, 0.5)),
        "figure 8": by_window(8, "accuracy", "accuracy"),
        "figure 9": by_window(9, "badly_underestimated", "share of BE jobs"),
        "figure 10": by_window(10, "underestimated", "share of UE jobs"),
        "figure 11": ExhibitPlan(
            "Fig. 11: distribution of accuracy, 1M, threshold 0.5", [FIGURE_11], brackets
        ),
        "figure 13": ExhibitPlan("Fig. 13: average accuracy by month", [FIGURE_13], brackets),
        **{f"figure {number}": simulated(number) for number in range(14, 18)},
    },
    options={
        "lower_bound": option(
            float, "--lower-bound", "--threshold",
            default=0.5, min=0, max=1, help="Least A; 0 is none.",
        ),
        "min_jobs": option(int, default=10, min=1, help="Fewest similar jobs."),
        "in_one_piece": option(
            bool, "--in-one-piece/--months-anew", default=False, help="How the log is played."
        ),
        "log": option(
            Path | None, help="Your log, for Tables 1 and 2 and Figs. 1 to 11, 13."
        ),
    },
)  # fmt: skip
