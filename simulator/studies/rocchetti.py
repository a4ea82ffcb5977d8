"""Rocchetti et al. 2017: priorities by the accuracy of users' requests, six scenarios."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from predictors.accuracy_groups import GROUPS
from simulator.reports.comparison import Outcome
from simulator.reports.tables import text_table
from simulator.scheduling.semantics import Semantics
from simulator.studies.simulations import Results, Run, scheduling_study

LOG = "CEA-Curie-2011-2.1-cln.swf.gz"

PROCESSORS = 4096

STRETCHES = ((12, 1.25), (8, 2.0), (20, 1.25))
"""Days in a row, and their work as a multiple of what the machine can do in them.

The paper's makespans are 15 to 18 days: twelve days with work for fifteen are the first choice,
eight with work for sixteen make longer queues. The third shows how much depends on the choice.
"""

ORDERS = ("fcfs", "psp", "psp-aging")
ESTIMATES = ("exact", "requested")

PAPER_WAITS = (4569, 3785, 2617, 4609, 3706, 2336)
"""Minutes, scenarios 1 to 6 on Curie (Table 5)."""

PAPER_MAKESPANS = (16.19, 15.33, 17.19, 16.17, 17.04, 17.71)
"""Days (Table 6)."""

PAPER_SHARES = (0.14, 0.07, 0.09, 0.10, 0.18, 0.16, 0.11, 0.07, 0.04, 0.04)
"""Of the groups g1 to g10 on Curie (Table 3)."""

NOTES = """\
The paper simulates "a representative subset" of Curie's jobs of more than one core, which it does
not name, on 4,096 cores with Slurm's simulator. Ours are the days in a row whose jobs of 2 to 4,096
cores come nearest to a multiple of what these cores can do, under EASY. So the numbers cannot be
the same; what can is the order of the scenarios: FCFS waits longest, PSP less, PSP with aging
least, with exact estimates (1 to 3) and with requests (4 to 6).

With exact estimates it is so in every stretch. With requests it is so in the two stretches with
waits as long as the paper's. In the first, where they are half as long, scenarios 5 and 6 change
places, and that is no noise: of 20 repetitions with submissions moved by up to a minute 6 was below
5 in none. Aging grows with wait over request, so it serves the jobs that request an hour at most,
more than half of all, and those that request more than twelve pay. In the first stretch the former
wait 252 min even without aging (10 with it) while the latter go from 3,096 to 4,194; in the second
they wait 2,528 min without it, 916 with it, and there is something to win.
Makespans hardly differ, in the paper and here. Group shares are of jobs at their submission in the
first stretch, the paper's are of its own; a user without history is in g5.
"""

SCENARIO_HEADS = (
    "scenario", "order", "estimates", "wait, min", "paper", "makespan, d", "paper", "backfilled",
)  # fmt: skip


def runs(logs: Path, limit: int | None) -> Sequence[Run]:
    """The six scenarios of Table 4, in every stretch."""
    return [
        Run(
            trace=str(logs / LOG),
            semantics=Semantics(policy="easy", order=order),
            estimates=estimates,
            processors=PROCESSORS,
            limit=limit,
            days=days,
            load=load,
            least_processors=2,
            group=f"{days} days, {order}",
        )
        for days, load in STRETCHES
        for estimates in ESTIMATES
        for order in ORDERS
    ]


def report(results: Results) -> str:
    """The scenarios in every stretch, and who is in which group."""
    parts = []
    for days, load in STRETCHES:
        played = [(run, each) for run, each in results.outcomes if run.days == days]
        jobs = len(played[0][1].schedule.workload)
        parts += [
            f"{days} days with work for {days * load:g}: {jobs:,} jobs\n",
            text_table(SCENARIO_HEADS, [_line(*one) for one in enumerate(played)]),
        ]
    return "\n".join([*parts, _shares(results), NOTES])


def _line(number: int, played: tuple[Run, Outcome]) -> tuple[str, ...]:
    """A scenario, beside the paper's."""
    run, each = played
    return (
        str(number + 1),
        run.semantics.order,
        run.estimates,
        f"{each.measures.wait / 60:,.0f}",
        f"{PAPER_WAITS[number]:,}",
        f"{each.measures.makespan / 86400:.2f}",
        f"{PAPER_MAKESPANS[number]:.2f}",
        f"{each.measures.backfilled:.1%}",
    )


def _shares(results: Results) -> str:
    """Of jobs by the group of their user when they are submitted."""
    priorities = np.asarray(
        results.of(f"{STRETCHES[0][0]} days, psp")["requested"].schedule.priority
    )
    counted = Counter(priorities.tolist())
    lines = [
        (
            group.name,
            str(group.priority),
            f"{counted[group.priority] / len(priorities):.2f}",
            f"{paper:.2f}",
        )
        for group, paper in zip(GROUPS, PAPER_SHARES, strict=True)
    ]
    return text_table(("group", "priority", "jobs", "paper"), lines)


STUDY = scheduling_study(
    "Six scenarios of priorities by accuracy (Rocchetti et al. 2017)", (LOG,), runs, report
)
