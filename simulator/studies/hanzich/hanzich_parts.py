"""What the study plays: workloads in every setting, and the deviations that come of them."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from simulator.shared_nodes.policies import SHARED_POLICIES
from simulator.studies.hanzich.hanzich_findings import Scores, by_cell
from simulator.studies.hanzich.nas import LOCAL_SHARES
from simulator.studies.hanzich.scoring import Conditions, Deviation, score
from simulator.studies.study import Played

SEEDS_AT_ONCE = 10
"""Played by a process before it takes others."""

SEEDS = 100
"""Workloads in each setting, if nobody says how many."""

COLUMNS = tuple(product(SHARED_POLICIES, ("mpl-mpl", "cpu-cpu")))
"""Of Table 1."""

PAPER = {
    0.25: (144.33, 99.67, 69.67, 63.33, 6.33, 23.00, 23.00, 15.33, 12.67, 8.67),
    0.5: (58.67, 59.67, 55.00, 31.33, 14.00, 18.67, 20.50, 21.33, 22.00, 21.67),
    1.0: (46.33, 45.00, 54.00, 46.67, 34.33, 8.67, 16.67, 28.33, 25.33, 18.33),
}
"""Its values in the paper, by local share, in the order of ``COLUMNS``."""


class Part(NamedTuple):
    """A few workloads in one setting."""

    setting: Conditions
    seeds: range


def parts(
    paths: Sequence[Path], limit: int | None, *, seeds: int = SEEDS, scale: float = 1.0
) -> list[Part]:
    """Every setting with every workload.

    Args:
        paths: none are taken.
        limit: jobs of each workload, or all.
        seeds: workloads in each setting; at least 2.
        scale: how many times longer the benchmarks run than supposed.
    """
    assert not paths  # noqa: S101 - the study takes nothing
    settings = [Conditions(*each, scale, limit) for each in product(SHARED_POLICIES, LOCAL_SHARES)]
    return [Part(setting, chosen) for setting, chosen in product(settings, _chunks(seeds))]


def _chunks(seeds: int) -> Iterator[range]:
    for first in range(0, seeds, SEEDS_AT_ONCE):
        yield range(first, min(seeds, first + SEEDS_AT_ONCE))


def play(part: Part) -> list[Mapping[str, Deviation]]:
    """The deviations of every combination, workload by workload."""
    return score(*part)


def scores_of(played: Played) -> Scores:
    """The deviations of all workloads by cell."""
    scored: dict[Conditions, list[Mapping[str, Deviation]]] = {}
    for part, found in played:
        scored.setdefault(part.setting, []).extend(found)
    return by_cell(scored)
