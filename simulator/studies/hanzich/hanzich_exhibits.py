"""Fig. 3 and Table 1 of Hanzich et al. 2005, made again."""

from collections.abc import Mapping, Sequence
from itertools import product

from simulator.reports.exhibit import Exhibit, Panel, Series
from simulator.shared_nodes.policies import SHARED_POLICIES
from simulator.studies.hanzich.hanzich_findings import (
    COLUMNS,
    PAPER,
    Cell,
    DeviationsByCell,
    mean,
    scores_of,
)
from simulator.studies.hanzich.nas import LOCAL_SHARES
from simulator.studies.hanzich.scoring import SCORED, SEEDS, Conditions, Workloads, play
from simulator.studies.study import ExhibitInput, Exhibits

TRUTH = (
    "The truth here is simulated, the paper's was measured; it does not say how long its "
    "benchmarks run.\n"
)


def figure_3(sources: ExhibitInput) -> Exhibit:
    """Every estimator under every policy, a quarter of the nodes with local users."""
    return figure_of(_scores(sources, LOCAL_SHARES[:1]))


def figure_of(scores: DeviationsByCell) -> Exhibit:
    """The bars of Fig. 3; those of which Table 1 has a number have the paper's too."""
    panel = _panel(scores, LOCAL_SHARES[0], {name: name for name in SCORED})
    return Exhibit("Turnaround deviation by estimator (Hanzich et al., Fig. 3)", [panel], TRUTH)


def table_1(sources: ExhibitInput) -> Exhibit:
    """MPL-MPL and CPU-CPU under every policy, by local load."""
    return table_of(_scores(sources, LOCAL_SHARES))


def table_of(scores: DeviationsByCell) -> Exhibit:
    """A panel for each local load."""
    names = {"mpl-mpl": "MPL-MPL", "cpu-cpu": "CPU-CPU"}
    panels = [_panel(scores, share, names) for share in LOCAL_SHARES]
    return Exhibit("Turnaround deviation by local load (Hanzich et al., Table 1)", panels, TRUTH)


def _panel(scores: DeviationsByCell, share: float, names: Mapping[str, str]) -> Panel:
    """The mean deviations of estimators, which are called as in ``names``, by policy."""
    return Panel(
        title=f"{share:.0%} of the nodes with local load",
        places=list(SHARED_POLICIES),
        series=[
            Series(
                name,
                [_mean(scores, Cell(policy, share, estimator)) for policy in SHARED_POLICIES],
                [_paper(policy, share, estimator) for policy in SHARED_POLICIES],
            )
            for estimator, name in names.items()
        ],
        along="policy",
        value="deviation of turnarounds in %",
        digits=1,
    )


def _scores(sources: ExhibitInput, shares: Sequence[float]) -> DeviationsByCell:
    """The deviations of every policy with these local loads."""
    seeds = range(sources.options.get("seeds", SEEDS))
    scale = sources.options.get("scale", 1.0)
    settings = [
        Conditions(policy, share, scale, sources.limit)
        for policy, share in product(SHARED_POLICIES, shares)
    ]
    return scores_of(sources.play(play, [Workloads(setting, seeds) for setting in settings]))


def _mean(scores: DeviationsByCell, cell: Cell) -> float:
    return mean([each.at_arrival for each in scores[cell]]).value


def _paper(policy: str, share: float, estimator: str) -> float | None:
    """The paper's number, for the two estimators of its Table 1."""
    if (policy, estimator) not in COLUMNS:
        return None
    return PAPER[share][COLUMNS.index((policy, estimator))]


EXHIBITS: Exhibits = {"figure 3": figure_3, "table 1": table_1}
