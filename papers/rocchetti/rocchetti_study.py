"""Rocchetti et al. 2017: priorities by the accuracy of users' requests, six scenarios."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from papers.pivot import ExhibitPlan, Pivot
from papers.rocchetti.slurm_twin import UserWaits, waits_on
from papers.rocchetti.stretches import (
    CURIE,
    GAIA,
    LOGS,
    POLICIES,
    FindingCount,
    ScenarioRun,
    distinct,
    findings_over,
    logs_in,
    scenario_run,
    scenario_runs,
)
from papers.study import Inputs, Study, StudyError, Table, Takes
from predictors.accuracy_groups import GROUPS, STEP_SECONDS, aged_priority, group_of
from simulator.traces.cleaning import SIMULATION_RULES, NoJobError, clean
from simulator.traces.swf import read_swf
from simulator.traces.trace import Integers, Trace

JOBS: Mapping[str, tuple[int, float]] = {
    "j1: g 10, 2 h": (10, 2.0),
    "j4: g 49, 12 h": (49, 12.0),
    "j4: g 49, 10 h": (49, 10.0),
}
"""Priority of the group, and hours requested."""

CORES: Mapping[str, float] = {
    "2 to 16": 16,
    "17 to 64": 64,
    "65 to 256": 256,
    "257 to 1024": 1024,
    "1025 or more": float("inf"),
}
"""Classes of Table 2, with their upper ends."""

FIGURES: Mapping[str, int] = {CURIE: 3, GAIA: 4}
"""Number of the figure of each log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgedPriority:
    """Priority of a job after some seconds."""

    job: str
    waited: float
    priority: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LogShare:
    """Share of the jobs of a log by requested cores, or of its users by accuracy group."""

    log: str
    place: str
    share: float


def aging(_inputs: Inputs) -> list[AgedPriority]:
    """Return the priorities of the jobs of Fig. 1 as they age."""
    return [
        AgedPriority(job=name, waited=time, priority=aged_priority(group, time, 3600 * hours))
        for name, (group, hours) in JOBS.items()
        for time in (float(STEP_SECONDS) * step for step in range(0, 46, 5))
    ]


def cores(inputs: Inputs) -> list[LogShare]:
    """Return the shares of jobs that requested more than one core, by their number."""
    return [
        LogShare(log=log, place=place, share=share)
        for log, jobs in _jobs_of(inputs).items()
        for place, share in zip(CORES, _core_shares(_requested_cores(jobs)), strict=True)
    ]


def groups(inputs: Inputs) -> list[LogShare]:
    """Return the shares of users by the group of their mean usage."""
    return [
        LogShare(log=log, place=group.name, share=share)
        for log, jobs in _jobs_of(inputs).items()
        for group, share in zip(GROUPS, _group_shares(jobs), strict=True)
    ]


def scenarios(inputs: Inputs) -> list[ScenarioRun]:
    """Return all scenarios on the distinct stretches of the logs that are there."""
    return _scenarios(inputs, list(_paths(inputs)))


def findings(inputs: Inputs) -> list[FindingCount]:
    """Return in how many stretches each finding of the paper holds."""
    return findings_over(scenarios(inputs))


def slurm_waits(inputs: Inputs) -> list[UserWaits]:
    """Return the waits of users on the twin of Slurm, with PSP off and on."""
    return waits_on(inputs, _paths(inputs))


def _scenarios_of(log: str) -> Table:
    """Return the table of the scenarios on one log."""

    def of_log(inputs: Inputs) -> list[ScenarioRun]:
        if log not in logs_in(inputs.logs):
            raise StudyError(
                f"Fig. {FIGURES[log]} needs {log}'s log, which is not in the directory."
            )
        return _scenarios(inputs, [log])

    of_log.__name__ = f"scenarios_{log.lower()}"
    return of_log


def _scenarios(inputs: Inputs, logs: Sequence[str]) -> list[ScenarioRun]:
    paths = logs_in(inputs.logs)
    runs = [run for log in logs for run in scenario_runs(log, paths[log], inputs.limit)]
    return distinct(inputs.play(scenario_run, runs))


def _jobs_of(inputs: Inputs) -> Mapping[str, Trace]:
    """Return the jobs of more than one core that ran, of every log that is there."""
    found = {}
    for name, path in _paths(inputs).items():
        jobs, removed = clean(read_swf(path), SIMULATION_RULES)
        found[name] = jobs.select(jobs.processors > 1).select(slice(inputs.limit))
        if not len(found[name]):
            raise NoJobError(path.name, "counted", removed)
    return found


def _paths(inputs: Inputs) -> Mapping[str, Path]:
    """Return the paper's logs that are there.

    Raises:
        StudyError: there is none.
    """
    found = logs_in(inputs.logs)
    if not found:
        raise StudyError(f"The logs of {' and '.join(LOGS)} are not in the directory.")
    return found


def _requested_cores(jobs: Trace) -> Integers:
    """Return the cores of the jobs that requested more than one; those of a few are not logged."""
    known = jobs.requested_processors > 0
    requested = np.where(known, jobs.requested_processors, jobs.processors).astype(np.int64)
    more: Integers = requested[requested > 1]
    return more


def _core_shares(requested: Integers) -> list[float]:
    classes = np.searchsorted(list(CORES.values()), requested, side="left")
    counts = np.bincount(classes, minlength=len(CORES))
    shares: list[float] = (counts / max(1, len(requested))).tolist()
    return shares


def _group_shares(jobs: Trace) -> list[float]:
    usage = np.clip(jobs.run / jobs.requested_time, 0, 1)
    users, number = np.unique(jobs.user, return_inverse=True)
    means = np.bincount(number, usage) / np.bincount(number)
    names = [group_of(float(mean)).name for mean in means]
    return [names.count(group.name) / len(users) for group in GROUPS]


def _missing(inputs: Inputs) -> str:
    missing = [name for name in LOGS if name not in logs_in(inputs.logs)]
    return f"Not in the directory: {', '.join(missing)}.\n" if missing else ""


FIGURE_1 = Pivot(
    table=aging,
    panel="Priority by the time waited",
    rows="{waited:,.0f}",
    columns="{job}",
    value="priority",
    along="seconds waited",
    unit="priority",
    kind="lines",
    digits=1,
    linear_until=0,
)

TABLE_2 = Pivot(
    table=cores,
    panel="Jobs that requested more than one core",
    rows="{place}",
    columns="{log}",
    value="share",
    along="cores requested",
    unit="share of jobs",
    shares=True,
    digits=1,
)

TABLE_3 = Pivot(
    table=groups,
    panel="Users by the mean usage of all their jobs of more than one core",
    rows="{place}",
    columns="{log}",
    value="share",
    along="group",
    unit="share of users",
    shares=True,
    digits=1,
)

FINDINGS = Pivot(
    table=findings,
    panel=lambda each: f"{each.log}, {POLICIES[each.policy]}: {each.stretches} stretches",
    rows="{finding}",
    value={"holds in": "held", "ratio": "ratio", "from": "lower", "to": "upper"},
    along="finding",
)

STRETCHES = """\
The paper plays "a representative subset" of each log, which it does not name, on fewer cores than
there were (4,096 for Curie, 1,024 for Gaia), and does not say whether its Slurm backfilled. Ours
are all distinct stretches of 8 to 16 days whose jobs of more than one core, and no more than there
are, come nearest to 1.1 to 2 times what these cores can do in them. They overlap, so that the
intervals (95%, bootstrap over stretches) are narrower than they should be. Aging goes by the
request, also where estimates are exact.
"""


SLURM = Pivot(
    table=slurm_waits,
    panel="{log}: mean wait, median of {stretches} stretches",
    rows="{users}",
    columns="{play}",
    value="wait",
    statistic=median,
    along="users",
    unit="minutes",
    digits=0,
)

TWIN = """\
Slurm 26.05 by its twin: 1,024 nodes of 4 cores (Curie), 256 (Gaia), which jobs take whole, and
stretches of 8 to 16 days with 1.1 and 1.5 times the work that the machine can do. PSP is that of
walltimed slurm-updater --order psp: SiteFactor by the user's accuracy and the job's wait, renewed
every minute. Accurate users use 40% of their requests or more, in the mean of their jobs. A better
request is a quarter more than the run takes, if that is less than the request.
"""


def _table(title: str, value: str, unit: str, *, digits: int) -> ExhibitPlan:
    """Return Table 5 or 6: a column for each policy and a line for each scenario."""
    pivot = Pivot(
        table=scenarios,
        panel="{log}: median of the stretches",
        rows="{scenario}",
        columns=lambda each: POLICIES[each.policy],
        value=value,
        statistic=median,
        along="scenario",
        unit=unit,
        digits=digits,
    )
    return ExhibitPlan(title, [pivot], _missing)


def _figure(log: str) -> ExhibitPlan:
    """Return Figure 3 or 4: a panel for each policy, bars by order and estimates."""
    pivot = Pivot(
        table=_scenarios_of(log),
        panel=lambda each: f"{POLICIES[each.policy]}, median of {each.stretches} stretches",
        rows=lambda each: each.order.upper().replace("-", "+"),
        columns=lambda each: {"exact": "perfect estimates"}.get(each.estimates, "requests"),
        value="wait",
        statistic=median,
        unit="mean wait, minutes",
        digits=0,
    )
    return ExhibitPlan(f"Fig. {FIGURES[log]}: mean waits on {log}", [pivot])


STUDY = Study(
    name="rocchetti",
    explanation="""Rank users by the accuracy of their requests: six scenarios, and a twin of Slurm.

    Rocchetti et al. 2017, Tables 2, 3, 5 and 6 and Figs. 1, 3 and 4, and the findings of the text,
    on CEA-Curie, and on UniLu-Gaia where it lies beside it; and what the updater of walltimed does
    to waits in Slurm.

    For example:

        python -m papers rocchetti traces --table 5 --table findings
    """,
    takes=Takes.DIRECTORY,
    logs=(LOGS[CURIE].pattern,),
    further_logs=("UniLu-Gaia-2014-1.swf.gz",),
    exhibits={
        "figure 1": ExhibitPlan(
            "Fig. 1: aging priorities, in steps of 150 s",
            [FIGURE_1],
            "The text has neither the groups nor the requests of j1 and j4: they are inferred. 2 h"
            " and 12 h come nearest to 61 and 58; that j4 waits 18.8 % of its request would mean"
            " 10 h. Of its two other jobs the text says nothing.\n",
        ),
        "figure 3": _figure(CURIE),
        "figure 4": _figure(GAIA),
        "table 2": ExhibitPlan("Table 2: jobs by cores", [TABLE_2], _missing),
        "table 3": ExhibitPlan("Table 3: users by group", [TABLE_3], _missing),
        "table 5": _table(
            "Table 5: mean waits by scenario", "wait", "mean wait, minutes", digits=0
        ),
        "table 6": _table("Table 6: makespans by scenario", "makespan", "makespan, days", digits=2),
        "table findings": ExhibitPlan("Findings of the paper by stretches", [FINDINGS], STRETCHES),
        "table slurm": ExhibitPlan("Slurm: waits with PSP off and on, by users", [SLURM], TWIN),
    },
)
