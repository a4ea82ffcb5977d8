"""Rocchetti et al. 2017: its figures and tables, made again."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from predictors.accuracy_groups import GROUPS, STEP_SECONDS, aged_priority, group_of
from simulator.reports.exhibit import Exhibit, Panel, Series, Value
from simulator.studies.exhibits import Exhibits, Sources
from simulator.studies.rocchetti.rocchetti_paper import (
    CORES,
    PAPER_CORES,
    PAPER_GROUPS,
    PAPER_MAKESPANS,
    PAPER_WAITS,
)
from simulator.studies.rocchetti.stretches import (
    CURIE,
    ESTIMATES,
    GAIA,
    LOGS,
    ORDERS,
    POLICIES,
    Stretch,
    logs_in,
    scenario_runs,
    stretches_of,
)
from simulator.studies.simulations import Results, Simulation
from simulator.studies.study import StudyError
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


def figure_1(_sources: Sources) -> Exhibit:
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
    )
    return Exhibit(
        "Fig. 1: aging priorities, in steps of 150 s",
        [panel],
        "The text has neither the groups nor the requests of j1 and j4: they are inferred. 2 h and"
        " 12 h come nearest to 61 and 58; that j4 waits 18.8 % of its request would mean 10 h.\n",
    )


def table_2(sources: Sources) -> Exhibit:
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


def table_3(sources: Sources) -> Exhibit:
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


def table_5(sources: Sources) -> Exhibit:
    """Mean waits of the six scenarios."""
    return _table_5(_stretches(sources, list(_paths(sources))))


def table_6(sources: Sources) -> Exhibit:
    """Makespans of the six scenarios."""
    return _table_6(_stretches(sources, list(_paths(sources))))


def scenario_exhibits(results: Results) -> Mapping[str, Exhibit]:
    """The exhibits of scenarios that were played: Tables 5 and 6 and the logs' figures."""
    groups = results.groups()
    played = {
        log: {policy: stretches_of(results, log, policy) for policy in POLICIES}
        for log in LOGS
        if any(group.startswith(f"{log}, ") for group in groups)
    }
    figures = {CURIE: "figure 3", GAIA: "figure 4"}
    return {
        "table 5": _table_5(played),
        "table 6": _table_6(played),
        **{figures[log]: _figure(log, found) for log, found in played.items()},
    }


def figure_3(sources: Sources) -> Exhibit:
    """Waits on Curie, by policy and estimates."""
    return _figure_of(3, CURIE, sources)


def figure_4(sources: Sources) -> Exhibit:
    """Waits on Gaia, by policy and estimates."""
    return _figure_of(4, GAIA, sources)


def _figure_of(number: int, log: str, sources: Sources) -> Exhibit:
    if log not in logs_in(sources.logs):
        raise StudyError(f"Fig. {number} needs {log}'s log, which is not in the directory.")
    [found] = _stretches(sources, [log]).values()
    return _figure(log, found)


EXHIBITS: Exhibits = {
    "figure 1": figure_1,
    "figure 3": figure_3,
    "figure 4": figure_4,
    "table 2": table_2,
    "table 3": table_3,
    "table 5": table_5,
    "table 6": table_6,
}

Found = Mapping[str, Sequence[Stretch]]
"""Stretches by policy."""


def _stretches(sources: Sources, logs: Sequence[str]) -> Mapping[str, Found]:
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


def _table_5(played: Mapping[str, Found]) -> Exhibit:
    panels = [
        Panel(
            title=f"{log}: median of the stretches",
            places=SCENARIO_NUMBERS,
            series=[
                Series(meaning, _medians([each.waits for each in found[policy]]), PAPER_WAITS[log])
                for policy, meaning in POLICIES.items()
            ],
            along="scenario",
            value="mean wait, minutes",
            digits=0,
        )
        for log, found in played.items()
    ]
    return Exhibit("Table 5: mean waits by scenario", panels, _missing(played))


def _table_6(played: Mapping[str, Found]) -> Exhibit:
    panels = [
        Panel(
            title=f"{log}: median of the stretches",
            places=SCENARIO_NUMBERS,
            series=[
                Series(
                    meaning,
                    _medians([each.makespans for each in found[policy]]),
                    PAPER_MAKESPANS[log],
                )
                for policy, meaning in POLICIES.items()
            ],
            along="scenario",
            value="makespan, days",
        )
        for log, found in played.items()
    ]
    return Exhibit("Table 6: makespans by scenario", panels, _missing(played))


def _figure(log: str, found: Found) -> Exhibit:
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
    number = {CURIE: 3, GAIA: 4}[log]
    return Exhibit(f"Fig. {number}: mean waits on {log}", panels)


def _medians(values: Sequence[Sequence[float]]) -> list[Value]:
    medians: list[Value] = np.median(np.array(values), axis=0).tolist()
    return medians


def _jobs_of(sources: Sources) -> Mapping[str, Trace]:
    """The jobs of more than one core that ran, of every log that is there."""
    found = {}
    for name, path in _paths(sources).items():
        jobs, removed = clean(read_swf(path), SIMULATION_RULES)
        found[name] = jobs.select(jobs.processors > 1).select(slice(sources.limit))
        if not len(found[name]):
            raise NoJobError(path.name, "counted", removed)
    return found


def _paths(sources: Sources) -> Mapping[str, Path]:
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
