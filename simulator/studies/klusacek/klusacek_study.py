"""Klusáček & Soysal 2020: better estimates under conservative backfilling and on named nodes.

Figures 3, 6, 11 and 13 are of FH1 and FH2, as the text says of Figure 6; 4, 7, 12 and 14 are of CTC
and SDSC, as it says of Figure 7.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from predictors.measures import error_per_group
from predictors.methods.max_usage import MaxUsage
from simulator.replay.trace_replay import InProcess, Replay, replay
from simulator.reports.comparison import Outcome
from simulator.reports.exhibit import Exhibit, Panel, Series, Value
from simulator.reports.method_summary import user_numbers
from simulator.reports.pictures import DURATIONS
from simulator.reports.schedule_report import (
    Times,
    class_panel,
    node_notices_of,
    wait_errors_of,
    waits_of,
)
from simulator.reports.tables import text_table
from simulator.studies.klusacek.klusacek_simulations import (
    CTC,
    ESTIMATES,
    LOGS,
    MORE_LOGS,
    PINNING,
    SDSC,
    STAND_IN,
    conservative_runs,
    more_logs,
    name_of,
    node_runs,
    runs,
    spans,
)
from simulator.studies.simulations import Results, Simulation, scheduling_study
from simulator.studies.study import ExhibitInput, Exhibits, LogPart, Make, StudyError
from terminal.words import listed

NAMES = {"exact": "exact", "requested": "requests", "max-usage": "predictor"}

TENTHS = 10


def figure_2(sources: ExhibitInput) -> Exhibit:
    """Distributions of walltimes."""
    places = [seconds for seconds in DURATIONS if seconds > 1]
    panels = []
    for path, played in _replays(sources, [*_archive(sources), *_karlsruhe(sources)]):
        columns = {
            "actual": played.actual,
            "requests": played.requested,
            "predictor": played.answers["max-usage"].predicted,
        }
        panels.append(
            Panel(
                title=name_of(path),
                places=[DURATIONS[seconds] for seconds in places],
                series=[
                    Series(name, [float(np.mean(values <= seconds)) for seconds in places])
                    for name, values in columns.items()
                ],
                along="walltime",
                value="share of jobs that are no longer",
                kind="lines",
                shares=True,
                digits=1,
            )
        )
    return Exhibit("Fig. 2: actual, requested and predicted walltimes", panels, _missing(sources))


def user_errors(number: int, logs: Callable[[ExhibitInput], Sequence[Path]]) -> Make:
    """Figures 3 and 4: average absolute errors of users."""

    def make(sources: ExhibitInput) -> Exhibit:
        panels = [_user_panel(*each) for each in _replays(sources, _some(logs(sources), number))]
        return Exhibit(f"Fig. {number}: average absolute errors of users", panels)

    return make


def _user_panel(path: Path, played: Replay) -> Panel:
    users, count = user_numbers(played)
    predicted = played.answers["max-usage"].predicted
    requests = error_per_group(played.requested, played.actual, users, count) / 3600
    predictor = error_per_group(predicted, played.actual, users, count) / 3600
    order = np.argsort(-requests, kind="stable")
    better = float(np.mean(predictor < requests))
    return Panel(
        title=f"{name_of(path)}: closer for {better:.0%} of {count:,} users",
        places=[f"{tenth + 1}" for tenth in range(TENTHS)],
        series=[
            Series(name, [_mean(part) for part in np.array_split(errors[order], TENTHS)])
            for name, errors in (("requests", requests), ("predictor", predictor))
        ],
        along="tenths of users, by the error of their requests",
        value="mean absolute error, h",
    )


def _mean(errors: Times) -> Value:
    """None for a tenth without a user: a log may have fewer than ten."""
    return float(errors.mean()) if len(errors) else None


def figure_5(sources: ExhibitInput) -> Exhibit:
    """Backfilled jobs, by both readings."""
    played = _conservative(sources, [*_archive(sources), *_stand_in(sources)])
    readings: dict[str, Callable[[Any], float]] = {
        "planned at arrival into a gap": lambda each: float(np.mean(each.schedule.in_gap)),
        "started past a waiting job": lambda each: each.measures.backfilled,
    }
    panels = [
        Panel(
            title=title,
            places=[name_of(path) for path, _ in played],
            series=[
                Series(NAMES[estimates], [reading(each[estimates]) for _, each in played])
                for estimates in ESTIMATES
            ],
            value="share of jobs",
            shares=True,
        )
        for title, reading in readings.items()
    ]
    remark = "The paper's text has no numbers: exact and predictor slightly above requests.\n"
    return Exhibit("Fig. 5: backfilled jobs", panels, remark + _missing(sources))


def distributions(
    number: int,
    what: str,
    logs: Callable[[ExhibitInput], Sequence[Path]],
    times: Callable[[Any], Times],
    estimates: Sequence[str] = ESTIMATES,
) -> Make:
    """Figures 6, 7 and 9: a distribution under conservative backfilling."""

    def make(sources: ExhibitInput) -> Exhibit:
        panels = [
            class_panel(name_of(path), {NAMES[one]: times(each[one].schedule) for one in estimates})
            for path, each in _conservative(sources, _some(logs(sources), number))
        ]
        return Exhibit(f"Fig. {number}: {what}", panels, _missing(sources))

    return make


def on_nodes(
    number: int,
    what: str,
    logs: Callable[[ExhibitInput], Sequence[Path]],
    times: Callable[[Any], Times],
) -> Make:
    """Figures 11 to 14: a distribution for every pinning interval and all estimates."""

    def make(sources: ExhibitInput) -> Exhibit:
        panels = []
        span = spans(sources.limit, sources.options.get("node_jobs"))[-1]
        for path in _some(logs(sources), number):
            results = Results(sources.play(Simulation.play, node_runs(path, [span])))
            columns = {}
            for pinning in PINNING:
                for run, each in results.outcomes:
                    if run.semantics.pinning == pinning and run.semantics.pinned == "nodes":
                        hours = f", {pinning // 3600} h" if pinning else ", none"
                        exact = run.estimates == "exact"
                        name = "exact" if exact else f"{NAMES[run.estimates]}{hours}"
                        columns[name] = times(each.schedule)
            panels.append(class_panel(f"{name_of(path)}, {span.name} jobs", columns))
        remark = "With exact estimates pinning changes nothing.\n" + _missing(sources)
        return Exhibit(f"Fig. {number}: {what}", panels, remark)

    return make


def _replays(sources: ExhibitInput, paths: Sequence[Path]) -> Iterator[tuple[Path, Replay]]:
    parts = [LogPart(str(path), sources.limit) for path in paths]
    played = [replayed for _, replayed in sources.play(_replayed, parts)]
    yield from zip(paths, played, strict=True)


def _replayed(part: LogPart) -> Replay:
    return replay(part.runs(), InProcess({"max-usage": MaxUsage()}))


def _conservative(sources: ExhibitInput, paths: Sequence[Path]) -> list[tuple[Path, Any]]:
    """Outcomes by estimates, of each log."""
    found = []
    for path in paths:
        results = Results(sources.play(Simulation.play, conservative_runs(path, sources.limit)))
        found.append((path, results.of(results.groups()[0])))
    return found


def _archive(sources: ExhibitInput) -> list[Path]:
    return [sources.logs / CTC, sources.logs / SDSC]


def _karlsruhe(sources: ExhibitInput) -> list[Path]:
    return list(more_logs(sources.logs).values())


def _stand_in(sources: ExhibitInput) -> list[Path]:
    return [*_karlsruhe(sources), sources.logs / STAND_IN]


def _some(paths: Sequence[Path], number: int) -> Sequence[Path]:
    if not paths:
        names = " and ".join(MORE_LOGS)
        raise StudyError(f"Fig. {number} is of {names}, which are not in the directory.")
    return paths


def _missing(sources: ExhibitInput) -> str:
    missing = [name for name in MORE_LOGS if name not in more_logs(sources.logs)]
    text = f"Not in the directory: {' and '.join(missing)}. " if missing else ""
    return f"{text}CERIT-SC, where shown, is no log of the paper.\n"


def _all(sources: ExhibitInput) -> list[Path]:
    return [*_archive(sources), *_stand_in(sources)]


EXHIBITS: Exhibits = {
    "figure 2": figure_2,
    "figure 3": user_errors(3, _stand_in),
    "figure 4": user_errors(4, _archive),
    "figure 5": figure_5,
    "figure 6": distributions(6, "waits", _stand_in, waits_of),
    "figure 7": distributions(7, "waits", _archive, waits_of),
    "figure 9": distributions(9, "errors of predicted waits", _all, wait_errors_of, ESTIMATES[1:]),
    "figure 11": on_nodes(11, "T_node", _karlsruhe, node_notices_of),
    "figure 12": on_nodes(12, "T_node", _archive, node_notices_of),
    "figure 13": on_nodes(13, "waits on nodes", _karlsruhe, waits_of),
    "figure 14": on_nodes(14, "waits on nodes", _archive, waits_of),
}


HEADS = (
    "log, policy", "estimates", "passed", "in gap", "wait", "no wait", "wait > 4 h",
    "wait error", "median", "90 %",
)  # fmt: skip

NODE_HEADS = (
    "log, jobs, nodes", "estimates", "T_node", "median", "T_node > 0", "> 10 min", "wait", "median",
)  # fmt: skip


LEGEND = """\
The paper prints these results as pictures only (Figs. 5 to 7, 9 and 11 to 14). passed: jobs that
were started past a waiting one. in gap: jobs that were planned, when they arrived, before the
planned start of another waiting job. A pinned job keeps its nodes and starts as soon as they are
free; what becomes of it when they are late the paper does not say: here it is unpinned when they
are late by more than the interval. "start kept" is another rule, in which it also waits for its
planned start.
"""


def tables(results: Results) -> str:
    """Two tables: the schedule and its predictions; the nodes."""
    schedules, nodes = [], []
    for group in results.groups():
        for estimates, each in results.of(group).items():
            if each.schedule.semantics.names_nodes:
                nodes.append((group, estimates, *_on_nodes(each)))
            else:
                schedules.append((group, estimates, *_scheduled(each)))
    return f"{text_table(HEADS, schedules)}\n{text_table(NODE_HEADS, nodes)}"


def _scheduled(each: Outcome) -> tuple[str, ...]:
    """Cells of a line of the first table."""
    wait, errors = waits_of(each.schedule), wait_errors_of(each.schedule)
    return (
        _percent(each.measures.backfilled),
        _percent(np.mean(each.schedule.in_gap)),
        f"{each.measures.wait:,.0f}",
        _percent(np.mean(wait == 0)),
        _percent(np.mean(wait > 4 * 3600)),
        f"{np.mean(errors):,.0f}",
        f"{np.median(errors):,.0f}",
        f"{np.quantile(errors, 0.9):,.0f}",
    )


def _on_nodes(each: Outcome) -> tuple[str, ...]:
    """Cells of a line of the second table."""
    notice = node_notices_of(each.schedule)
    return (
        f"{np.mean(notice):,.0f}",
        f"{np.median(notice):,.0f}",
        _percent(np.mean(notice > 0)),
        _percent(np.mean(notice > 600)),
        f"{each.measures.wait:,.0f}",
        f"{each.measures.median_wait:,.0f}",
    )


def _percent(share: Any) -> str:
    return f"{100 * share:.1f}%"


def notes(results: Results) -> str:
    """The logs that were played, and a legend of the tables."""
    played = {name_of(Path(run.trace)) for run, _ in results.outcomes}
    missing = [name for name in MORE_LOGS if name not in played]
    lines = [f"The paper's logs are {listed(PAPER_LOGS)}."]
    if missing:
        lines.append(
            f"Missing here: {' and '.join(missing)}. The paper's largest gains are on them; they"
            " are taken when their files lie beside the others."
        )
    if name_of(Path(STAND_IN)) in played:
        lines.append(
            "CERIT-SC is not a log of the paper: it stands in for a machine on which most jobs"
            " start at once."
        )
    return "\n".join(lines) + f"\n\n{LEGEND}"


PAPER_LOGS = (*(name_of(Path(log)) for log in (CTC, SDSC)), *MORE_LOGS)

STUDY = scheduling_study(
    "Three estimates under conservative backfilling, on named nodes (Klusáček & Soysal 2020)",
    LOGS,
    runs,
    tables,
    notes=lambda played: notes(Results(played)),
    exhibits=EXHIBITS,
)
