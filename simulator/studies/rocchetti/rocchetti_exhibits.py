"""Rocchetti et al. 2017: its figures and tables, made again."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from predictors.accuracy_groups import GROUPS, STEP_SECONDS, aged_priority, group_of
from simulator.reports.exhibit import Exhibit, Panel, Series, Value
from simulator.studies.rocchetti.stretches import (
    CORES,
    CURIE,
    ESTIMATES,
    GAIA,
    LOGS,
    ORDERS,
    PAPER_CORES,
    PAPER_GROUPS,
    PAPER_MAKESPANS,
    PAPER_WAITS,
    POLICIES,
    StretchesByPolicy,
    logs_in,
    scenario_runs,
    stretches_of,
)
from simulator.studies.simulations import Results, Simulation
from simulator.studies.study import ExhibitInput, Exhibits, Make, StudyError
from simulator.traces.cleaning import SIMULATION_RULES, NoJobError, clean
from simulator.traces.swf import read_swf
from simulator.traces.trace import Trace

CHECKED_AT = 6750
"""Seconds after which the text names the priorities of j1 and j4 in Fig. 1."""

JOBS: Mapping[str, tuple[int, float, float | None]] = {
    "j1: g 10, 2 h": (10, 2.0, 61.0),
    "j4: g 49, 12 h": (49, 12.0, 58.0),
    "j4: g 49, 10 h": (49, 10.0, 58.0),
}
"""Priority of the group, hours requested, and the priority that the text reads off the figure."""


SCENARIO_NUMBERS = tuple("123456")


def figure_1(_sources: ExhibitInput) -> Exhibit:
    """Priorities that age."""
    times = [float(STEP_SECONDS) * step for step in range(0, 46, 5)]
    series = [
        Series(
            name,
            [aged_priority(group, time, 3600 * hours) for time in times],
            [paper if time == CHECKED_AT else None for time in times],
        )
        for name, (group, hours, paper) in JOBS.items()
    ]
    panel = Panel(
        title="Priority by the time waited",
        places=[f"{time:,.0f}" for time in times],
        series=series,
        along="seconds waited",
        value="priority",
        kind="lines",
        digits=1,
        linear_until=0,
    )
    return Exhibit(
        "Fig. 1: aging priorities, in steps of 150 s",
        [panel],
        "The text has neither the groups nor the requests of j1 and j4: they are inferred. 2 h and"
        " 12 h come nearest to 61 and 58; that j4 waits 18.8 % of its request would mean 10 h."
        " Of its two other jobs the text says nothing.\n",
    )


def table_2(sources: ExhibitInput) -> Exhibit:
    """Jobs by the cores they request."""
    shares = {name: _core_shares(jobs) for name, jobs in _jobs_of(sources).items()}
    panel = Panel(
        title="Jobs of more than one core",
        places=list(CORES),
        series=[Series(name, found, PAPER_CORES[name]) for name, found in shares.items()],
        along="cores requested",
        value="share of jobs",
        shares=True,
        digits=1,
    )
    return Exhibit("Table 2: jobs by cores", [panel], _missing(shares))


def table_3(sources: ExhibitInput) -> Exhibit:
    """Users by their accuracy."""
    shares = {name: _group_shares(jobs) for name, jobs in _jobs_of(sources).items()}
    panel = Panel(
        title="Users by the mean usage of all their jobs of more than one core",
        places=[group.name for group in GROUPS],
        series=[Series(name, found, PAPER_GROUPS[name]) for name, found in shares.items()],
        along="group",
        value="share of users",
        shares=True,
        digits=1,
    )
    return Exhibit("Table 3: users by group", [panel], _missing(shares))


class ScenarioTable(NamedTuple):
    """A table with a column for each policy and a line for each scenario.

    Attributes:
        title: of the table.
        value: quantity with its unit.
        field: of ``Stretch``.
        paper: the paper's values by log.
        digits: after the decimal point.
    """

    title: str
    value: str
    field: Literal["waits", "makespans"]
    paper: Mapping[str, Sequence[float]]
    digits: int


SCENARIO_TABLES: Mapping[str, ScenarioTable] = {
    "table 5": ScenarioTable(
        "Table 5: mean waits by scenario", "mean wait, minutes", "waits", PAPER_WAITS, 0
    ),
    "table 6": ScenarioTable(
        "Table 6: makespans by scenario", "makespan, days", "makespans", PAPER_MAKESPANS, 2
    ),
}

FIGURES: Mapping[str, int] = {CURIE: 3, GAIA: 4}
"""Number of the figure of each log."""


def _scenario_table_of(name: str) -> Make:
    return lambda sources: _scenario_table(name, _stretches(sources, list(_paths(sources))))


def _figure_of(log: str) -> Make:
    """Waits on a log, by policy and estimates."""

    def make(sources: ExhibitInput) -> Exhibit:
        if log not in logs_in(sources.logs):
            raise StudyError(
                f"Fig. {FIGURES[log]} needs {log}'s log, which is not in the directory."
            )
        return _figure(log, _stretches(sources, [log])[log])

    return make


EXHIBITS: Exhibits = {
    "figure 1": figure_1,
    "figure 3": _figure_of(CURIE),
    "figure 4": _figure_of(GAIA),
    "table 2": table_2,
    "table 3": table_3,
    "table 5": _scenario_table_of("table 5"),
    "table 6": _scenario_table_of("table 6"),
}


def _stretches(sources: ExhibitInput, logs: Sequence[str]) -> Mapping[str, StretchesByPolicy]:
    """All stretches of some logs, by log and policy."""
    runs = [
        run
        for run in scenario_runs(sources.logs, sources.limit)
        if run.group.split(", ")[0] in logs
    ]
    results = Results(sources.play(Simulation.play, runs))
    return {
        log: {policy: stretches_of(results, log, policy) for policy in POLICIES} for log in logs
    }


def _scenario_table(name: str, played: Mapping[str, StretchesByPolicy]) -> Exhibit:
    table = SCENARIO_TABLES[name]
    panels = [
        Panel(
            title=f"{log}: median of the stretches",
            places=SCENARIO_NUMBERS,
            series=[
                Series(
                    meaning,
                    _medians([getattr(each, table.field) for each in found[policy]]),
                    table.paper[log],
                )
                for policy, meaning in POLICIES.items()
            ],
            along="scenario",
            value=table.value,
            digits=table.digits,
        )
        for log, found in played.items()
    ]
    return Exhibit(table.title, panels, _missing(played))


def _figure(log: str, found: StretchesByPolicy) -> Exhibit:
    """One panel for each policy, as the paper's figure: bars by order and estimates."""
    panels = []
    for policy, meaning in POLICIES.items():
        medians = _medians([each.waits for each in found[policy]])
        series = [
            Series(
                {"exact": "perfect estimates", "requested": "requests"}[estimates],
                medians[3 * number : 3 * number + 3],
                PAPER_WAITS[log][3 * number : 3 * number + 3],
            )
            for number, estimates in enumerate(ESTIMATES)
        ]
        panels.append(
            Panel(
                title=f"{meaning}, median of {len(found[policy])} stretches",
                places=[{"psp-aging": "PSP+AGING"}.get(order, order.upper()) for order in ORDERS],
                series=series,
                value="mean wait, minutes",
                digits=0,
            )
        )
    return Exhibit(f"Fig. {FIGURES[log]}: mean waits on {log}", panels)


def _medians(values: Sequence[Sequence[float]]) -> list[Value]:
    medians: list[Value] = np.median(np.array(values), axis=0).tolist()
    return medians


def _jobs_of(sources: ExhibitInput) -> Mapping[str, Trace]:
    """The jobs of more than one core that ran, of every log that is there."""
    found = {}
    for name, path in _paths(sources).items():
        jobs, removed = clean(read_swf(path), SIMULATION_RULES)
        found[name] = jobs.select(jobs.processors > 1).select(slice(sources.limit))
        if not len(found[name]):
            raise NoJobError(path.name, "counted", removed)
    return found


def _paths(sources: ExhibitInput) -> Mapping[str, Path]:
    """The paper's logs that are there.

    Raises:
        StudyError: there is none.
    """
    found = logs_in(sources.logs)
    if not found:
        raise StudyError(f"The logs of {' and '.join(LOGS)} are not in the directory.")
    return found


def _core_shares(jobs: Trace) -> list[Value]:
    cores = np.where(jobs.requested_processors > 0, jobs.requested_processors, jobs.processors)
    classes = np.searchsorted(list(CORES.values()), cores, side="left")
    shares: list[Value] = (np.bincount(classes, minlength=len(CORES)) / len(jobs)).tolist()
    return shares


def _group_shares(jobs: Trace) -> list[Value]:
    """Shares of users by the group of their mean usage."""
    usage = np.clip(jobs.run / jobs.requested_time, 0, 1)
    users, number = np.unique(jobs.user, return_inverse=True)
    means = np.bincount(number, usage) / np.bincount(number)
    names = [group_of(float(mean)).name for mean in means]
    return [names.count(group.name) / len(users) for group in GROUPS]


def _missing(found: Mapping[str, object]) -> str:
    missing = [name for name in LOGS if name not in found]
    return f"Not in the directory: {', '.join(missing)}.\n" if missing else ""
