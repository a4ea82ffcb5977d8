"""Says what follows from the stretches of Rocchetti et al. 2017, beside what the paper says."""

from collections.abc import Mapping, Sequence

import numpy as np

from simulator.reports.words import listed, paragraph
from simulator.studies.rocchetti.rocchetti_findings import (
    MAKESPANS,
    PAPER_MAKESPANS,
    PAPER_WAITS,
    WAITS,
    Finding,
    FindingCount,
    counted,
    whole_orders,
)
from simulator.studies.rocchetti.stretches import (
    CURIE,
    DAYS,
    LOADS,
    LOGS,
    POLICIES,
    ScenarioStretch,
    StretchesByPolicy,
)

FEWEST = 5
"""Stretches; an interval of fewer means nothing."""

LONG_WAIT = 3000
"""Minutes; about what the paper's scenarios wait."""


def sentences(played: Mapping[str, StretchesByPolicy]) -> str:
    """Paragraphs about the logs that were played."""
    cores = ", ".join(f"{LOGS[log].cores:,} cores for {log}" for log in played)
    parts = [
        paragraph(
            'The paper plays "a representative subset" of each log, which it does not name, on'
            f" fewer cores than there were ({cores}), and does not say whether its Slurm"
            f" backfilled. Ours are all distinct stretches of {min(DAYS)} to {max(DAYS)} days whose"
            " jobs of more than one core, and no more than there are, come nearest to"
            f" {min(LOADS)} to {max(LOADS)} times what these cores can do in them. They overlap, so"
            " that the intervals (bootstrap over stretches) are narrower than they should be. Aging"
            " goes by the request, also where estimates are exact.",
            'A finding is "reproduced" or "contrary" where its interval does not hold 1, else'
            f' "open", as it is with fewer than {FEWEST} stretches.',
        )
    ]
    for log, by_policy in played.items():
        parts += [_findings(log, policy, found) for policy, found in by_policy.items()]
        parts += [_levels(log, by_policy), _own_words(log)]
    return "\n\n".join(parts) + "\n"


def _findings(log: str, policy: str, stretches: Sequence[ScenarioStretch]) -> str:
    waits = [each.waits for each in stretches]
    makespans = [each.makespans for each in stretches]
    said = [_said(finding, counted(finding, waits), len(waits)) for finding in WAITS[3:]]
    said += [_said(finding, counted(finding, makespans), len(waits)) for finding in MAKESPANS[2:]]
    orders = whole_orders(stretches)["requests: makespan FCFS < PSP < aging"]
    return paragraph(
        f"{log}, {POLICIES[policy]}, by requests:",
        "; ".join(said) + f". Makespans grow with both steps in {orders} of {len(stretches)}.",
        _long_waits(stretches),
        _exact(stretches),
    )


def _said(finding: Finding, found: FindingCount, stretches: int) -> str:
    return (
        f"{finding.text.removeprefix('requests: ')} {verdict(finding, found, stretches)}"
        f" ({found.held} of {stretches}, ratio {found.ratio:.2f})"
    )


def verdict(finding: Finding, found: FindingCount, stretches: int) -> str:
    """Whether a finding is ``reproduced``, ``contrary`` or ``open``."""
    if stretches < FEWEST or not (found.lower > 1 or found.upper < 1):
        return "open"
    return "reproduced" if (found.lower > 1) == finding.grows else "contrary"


def _long_waits(stretches: Sequence[ScenarioStretch]) -> str:
    long = [each.waits for each in stretches if each.waits[3] > LONG_WAIT]
    if not long:
        return ""
    fails = sum(waits[5] >= waits[4] for waits in long)
    return (
        f"FCFS waits exceed {LONG_WAIT:,} minutes in {len(long)}; in {fails} of these aging does"
        " not wait less than PSP."
    )


def _exact(stretches: Sequence[ScenarioStretch]) -> str:
    same = all(np.allclose(each.waits[:3], each.waits[3:]) for each in stretches)
    return "Exact estimates change no wait." if same else ""


def _levels(log: str, by_policy: StretchesByPolicy) -> str:
    said = []
    for policy, stretches in by_policy.items():
        ratios = np.median([each.waits for each in stretches], axis=0) / PAPER_WAITS[log]
        said.append(f"{min(ratios):.1f} to {max(ratios):.1f} times ({POLICIES[policy]})")
    return paragraph(
        f"{log}, level of the waits: the medians of scenarios 1 to 6 are {listed(said)} those"
        " of the paper."
    )


def _own_words(log: str) -> str:
    """The paper's tables beside its own text."""
    waits, makespans = PAPER_WAITS[log], PAPER_MAKESPANS[log]
    pairs = [
        f"{order} {exact:,} and {requested:,}"
        for order, exact, requested in zip(
            ("FCFS", "PSP", "aging"), waits[:3], waits[3:], strict=True
        )
    ]
    least = makespans.index(min(makespans)) + 1
    return paragraph(
        f"The paper's own tables for {log}: waits by exact estimates and by requests are"
        f" {listed(pairs)} minutes, so with requests FCFS waits {waits[3] / waits[4]:.2f} times as"
        " long as PSP" + (" (its text: 1.75 times)." if log == CURIE else "."),
        "Its text says that the makespan grows with PSP and again with aging; the least of its"
        f" Table 6 is that of scenario {least}.",
    )
