"""Klusáček & Soysal 2020: better estimates under conservative backfilling and on named nodes."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from simulator.reports.comparison import Outcome
from simulator.reports.tables import text_table
from simulator.scheduling.measures import node_notice, wait_error
from simulator.scheduling.semantics import Semantics
from simulator.studies.simulations import Results, Run, scheduling_study

CTC, SDSC = "CTC-SP2-1996-3.1-cln.swf.gz", "SDSC-SP2-1998-4.2-cln.swf.gz"
STAND_IN = "CERIT-SC-wagap-2013.swf.gz"
LOGS = (CTC, SDSC, STAND_IN)

MORE_LOGS: Mapping[str, str] = {"FH1": "*FH1*.swf*", "FH2": "*FH2*.swf*"}
"""The paper's other logs, and how their files are looked for; the study takes what it finds."""

ESTIMATES = ("exact", "requested", "max-usage")

PINNING = (0, 3600, 7200)
"""Seconds: none, 1 h and 2 h."""

FEW_JOBS = 5000
"""Without backfilling the queue of these logs never empties, and waits grow with the log."""

HEADS = (
    "log, policy", "estimates", "passed", "in gap", "wait", "no wait", "wait > 4 h",
    "wait error", "median", "90 %",
)  # fmt: skip

NODE_HEADS = (
    "log, jobs, nodes", "estimates", "T_node", "median", "T_node > 0", "> 10 min", "wait", "median",
)  # fmt: skip


class Span(NamedTuple):
    """How much of a log is played on named nodes."""

    name: str
    limit: int | None


def runs(logs: Path, limit: int | None) -> Sequence[Run]:
    """Conservative backfilling with three estimates; FCFS on nodes, pinned or not."""
    paths = [logs / log for log in LOGS] + [*_more(logs).values()]
    conservative = [
        Run(
            trace=str(path),
            semantics=Semantics(policy="conservative"),
            estimates=estimates,
            limit=limit,
            group=f"{name_of(path)}, conservative",
        )
        for path in paths
        for estimates in ESTIMATES
    ]
    # On the stand-in hardly anybody waits.
    on_nodes = [path for path in paths if path.name != STAND_IN]
    return [*conservative, *(run for path in on_nodes for run in _on_nodes(path, limit))]


def _on_nodes(path: Path, limit: int | None) -> Iterator[Run]:
    """Both spans of a log, with every pinning, and with the start kept as well."""
    for span in spans(limit):
        for pinning in PINNING:
            for pinned in ("nodes", "start") if pinning else ("nodes",):
                for estimates in ESTIMATES:
                    # Exact estimates keep every plan: pinning can change nothing.
                    if estimates == "exact" and pinning:
                        continue
                    yield Run(
                        trace=str(path),
                        semantics=Semantics(policy="fcfs-pinned", pinning=pinning, pinned=pinned),
                        estimates=estimates,
                        limit=span.limit,
                        group=node_group(name_of(path), span, pinning, pinned),
                    )


def spans(limit: int | None) -> Sequence[Span]:
    """The first few jobs, and all jobs that are played."""
    few = Span(f"first {FEW_JOBS:,}", FEW_JOBS)
    if limit is None:
        return few, Span("all", None)
    return (few, Span(f"first {limit:,}", limit)) if limit > FEW_JOBS else (
        Span(f"first {limit:,}", limit),
    )  # fmt: skip


def node_group(log: str, span: Span, pinning: int, pinned: str = "nodes") -> str:
    """Name of the runs that are compared."""
    kept = ", start kept" if pinned == "start" else ""
    return f"{log}, {span.name}, pinning {pinning // 3600} h{kept}"


def _more(logs: Path) -> Mapping[str, Path]:
    """The paper's logs beside CTC and SDSC, as far as they are there."""
    found = {name: sorted(logs.glob(pattern)) for name, pattern in MORE_LOGS.items()}
    return {name: paths[0] for name, paths in found.items() if paths}


def name_of(path: Path) -> str:
    """A log's short name: the paper's, where it has one."""
    for name, pattern in MORE_LOGS.items():
        if path.match(pattern):
            return name
    return "-".join(path.name.split("-")[:2])


def report(results: Results) -> str:
    """Two tables: the schedule and its predictions; the nodes. Then what to think of them."""
    of_schedules, of_nodes = [], []
    for group in results.groups():
        for estimates, each in results.of(group).items():
            if each.schedule.semantics.names_nodes:
                of_nodes.append(_node_line(group, estimates, each))
            else:
                of_schedules.append(_schedule_line(group, estimates, each))
    parts = [text_table(HEADS, of_schedules), text_table(NODE_HEADS, of_nodes)]
    return "\n".join([*parts, _sources(results), NOTES])


def _sources(results: Results) -> str:
    """Which of the paper's logs were played, which not, and what stands in."""
    played = {name_of(Path(run.trace)) for run, _ in results.outcomes}
    missing = [name for name in MORE_LOGS if name not in played]
    lines = ["The paper's logs are CTC-SP2, SDSC-SP2, FH1 and FH2."]
    if missing:
        lines.append(
            f"Missing here: {' and '.join(missing)}. The paper's largest gains are on them; they"
            " are taken when their files lie beside the others."
        )
    lines.append(
        "CERIT-SC is not a log of the paper: it stands in for a machine on which most jobs start at"
        " once."
    )
    return "\n".join(lines) + "\n"


def _schedule_line(group: str, estimates: str, each: Outcome) -> tuple[str, ...]:
    wait = each.schedule.wait
    errors = wait_error(each.schedule.promise, each.schedule.start)
    return (
        group,
        estimates,
        f"{each.measures.backfilled:.1%}",
        f"{np.mean(each.schedule.in_gap):.1%}",
        f"{each.measures.wait:,.0f}",
        f"{np.mean(wait == 0):.1%}",
        f"{np.mean(wait > 4 * 3600):.1%}",
        f"{np.mean(errors):,.0f}",
        f"{np.median(errors):,.0f}",
        f"{np.quantile(errors, 0.9):,.0f}",
    )


def _node_line(group: str, estimates: str, each: Outcome) -> tuple[str, ...]:
    notice = node_notice(each.schedule.nodes_since, each.schedule.start)
    return (
        group,
        estimates,
        f"{np.mean(notice):,.0f}",
        f"{np.median(notice):,.0f}",
        f"{np.mean(notice > 0):.1%}",
        f"{np.mean(notice > 600):.1%}",
        f"{each.measures.wait:,.0f}",
        f"{each.measures.median_wait:,.0f}",
    )


NOTES = """\
notes to come
"""

STUDY = scheduling_study(
    "Three estimates under conservative backfilling, and on named nodes (Klusáček & Soysal 2020)",
    LOGS,
    runs,
    report,
)
