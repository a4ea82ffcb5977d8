"""Xu et al. 2019, sections 2 and 3: knn tuned as the paper does, beside untuned knn and others.

Figs. 1 to 3 and Tables 2 to 4 can be made again on any logs.

Reference:
    Xu L., Xiong M. and Xiao Y., "On-line Prediction of Job Execution Time Using Schedule
    Historical Data", Application Research of Computers 37(3), 2019.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from papers.pivot import ExhibitPlan, Pivot
from papers.study import Inputs, LogPart, Study, Takes, option
from papers.xu.retuning import Scored, jobs_of, name_of, parts_of, scored

LOST = "Our copy of the paper has no numbers of this table.\n"

CURVE = tuple(round(10 ** (1 + step / 50)) for step in range(5 * 50))
"""Seconds of Fig. 1, close enough to show that requests come in steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogProperties:
    """Properties of a log.

    Attributes:
        log: its name, with the year.
        jobs: that can be learned from.
        users: who submitted them.
        first: year in which the first was submitted.
        last: year in which the last was.
    """

    log: str
    jobs: int
    users: int
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeShare:
    """Share of the jobs of a log whose request or run time is no longer than some seconds.

    Attributes:
        log: its name, with the year.
        times: requests, or run times.
        step: place in ``CURVE``, whose first steps are of equal seconds.
        at_most: seconds.
        share: of the jobs.
    """

    log: str
    times: str
    step: int
    at_most: int
    share: float


def properties_of(part: LogPart) -> LogProperties:
    """Return the properties of the part's log."""
    runs = jobs_of(part)
    years = [datetime.fromtimestamp(run.submission.submit_time, UTC).year for run in runs]
    return LogProperties(
        log=name_of(part),
        jobs=len(runs),
        users=len({run.submission.user for run in runs} - {None}),
        first=min(years),
        last=max(years),
    )


def times_of(part: LogPart) -> list[TimeShare]:
    """Return the distributions of the requests and run times of the part's log."""
    runs = jobs_of(part)
    columns = {
        "requests": np.array([run.submission.requested_walltime for run in runs]),
        "run times": np.array([run.runtime for run in runs]),
    }
    return [
        TimeShare(
            log=name_of(part),
            times=name,
            step=step,
            at_most=limit,
            share=float((values <= limit).mean()),
        )
        for name, values in columns.items()
        for step, limit in enumerate(CURVE)
    ]


def logs(inputs: Inputs) -> list[LogProperties]:
    """Return the properties of the logs."""
    return inputs.play(properties_of, parts_of(inputs))


def times(inputs: Inputs) -> list[TimeShare]:
    """Return the distributions of requests and run times."""
    return [each for found in inputs.play(times_of, parts_of(inputs)) for each in found]


def scores(inputs: Inputs) -> list[Scored]:
    """Return the errors of all methods."""
    return [each for found in inputs.play(scored, parts_of(inputs)) for each in found]


def _scores(quantity: str, **known: Any) -> Pivot:
    """Return a pivot of one quantity of all methods."""
    usual = {
        "table": scores,
        "where": {"quantity": quantity},
        "columns": "{method}",
        "value": "value",
    }
    return Pivot(**{**usual, **known})


def _by_log(quantity: str, **known: Any) -> Sequence[Pivot]:
    """Return the pivot of Table 3 or 4: a line for each log."""
    panel = "Every round is used, as in the paper"
    return [_scores(quantity, panel=panel, rows="{log}", along="log", **known)]


FIGURE_1 = Pivot(
    table=times,
    panel="{log}",
    rows="{at_most:,} s",
    row_key="{step}",
    columns="{times}",
    value="share",
    along="at most",
    unit="share of the jobs",
    kind="lines",
    shares=True,
)

TABLE_2 = Pivot(
    table=logs,
    panel="Logs",
    rows="{log}: {first} to {last}",
    value={"jobs": "jobs", "users": "users"},
    along="log",
    digits=0,
)

FIGURE_2 = _scores(
    "errors",
    panel="{log}",
    rows="{place}",
    along="at most",
    unit="share of the jobs",
    kind="lines",
    shares=True,
)

FIGURE_3 = _scores(
    "error until then",
    panel="{log}",
    rows="{place}",
    along="jobs predicted",
    unit="mean absolute error until then, s",
    kind="lines",
    digits=0,
)


def _plan_option(kind: type, explanation: str) -> tuple[Any, None]:
    """Return a field of the plan of tuning, which has its default where it is left out."""
    return option(kind | None, help=explanation)


STUDY = Study(
    name="xu",
    explanation="""Compare knn tuned as in Xu et al. 2019 with untuned knn, requests and last-two.

    After every t2 jobs that have ended, parameters are searched on the last t1 jobs, and used
    whether they are better or not. Tables 2 to 4 and Figures 1 to 3 of the paper.

    The paper's own numbers are relative to Tran & Wolters' hybrid predictor, which is not built
    here: its mean absolute error falls by 43% on HPC2N04 and by 77% on HPC2N05.

    For example:

        python -m papers xu HPC2N-2002-2.2-cln.swf.gz --year 2004 --figure 2
        python -m papers xu sdsc-ds.swf.gz --penalty 3 --table 3
    """,
    takes=Takes.TRACES,
    exhibits={
        "figure 1": ExhibitPlan("Requests and run times (Xu et al., Fig. 1)", [FIGURE_1]),
        "figure 2": ExhibitPlan(
            "Absolute errors (Xu et al., Fig. 2)",
            [FIGURE_2],
            "The paper's 80% are of 9,000 jobs of HPC2N04 that it does not name.\n",
        ),
        "figure 3": ExhibitPlan("Error over the log (Xu et al., Fig. 3)", [FIGURE_3]),
        "table 2": ExhibitPlan("The logs (Xu et al., Table 2)", [TABLE_2], LOST),
        "table 3": ExhibitPlan(
            "Underestimated jobs (Xu et al., Table 3)", _by_log("underestimated", shares=True), LOST
        ),
        "table 4": ExhibitPlan(
            "Mean absolute error (Xu et al., Table 4)",
            _by_log("mean absolute error", unit="s", digits=0),
            LOST,
        ),
    },
    options={
        "year": option(int | None, help="Only jobs submitted in this year."),
        "history": _plan_option(int, "h, jobs that only serve as neighbours (3000)."),
        "training": _plan_option(int, "t1, jobs that parameters are tried on (1500)."),
        "test": _plan_option(int, "t2, jobs between rounds (1000)."),
        "penalty": _plan_option(float, "Price of underestimating (1)."),
        "generations": _plan_option(int, "Of the genetic search, at most (100)."),
        "population": _plan_option(int, "Of the genetic search (50)."),
    },
)
