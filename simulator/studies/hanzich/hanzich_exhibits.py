"""Fig. 3 and Table 1 of Hanzich et al. 2005, made again."""

from itertools import product

from simulator.reports.exhibit import Exhibit, Panel, Series
from simulator.shared_nodes.policies import SHARED_POLICIES
from simulator.studies.exhibits import Exhibits, Sources
from simulator.studies.hanzich.hanzich_findings import Cell, Scores, by_cell, mean
from simulator.studies.hanzich.hanzich_parts import COLUMNS, PAPER, SEEDS, Part, play
from simulator.studies.hanzich.nas import LOCAL_SHARES
from simulator.studies.hanzich.scoring import SCORED, Conditions

DEVIATION = "deviation of turnarounds in %"

TRUTH = (
    "The truth here is simulated, the paper's was measured; it does not say how long its "
    "benchmarks run.\n"
)


def figure_3(sources: Sources) -> Exhibit:
    """Every estimator under every policy, a quarter of the nodes with local users."""
    return figure_of(scores_of(sources, LOCAL_SHARES[:1]))


def figure_of(scores: Scores) -> Exhibit:
    """The bars of Fig. 3; those of which Table 1 has a number have the paper's too."""
    share = LOCAL_SHARES[0]
    series = [
        Series(
            name,
            [_mean(scores, Cell(policy, share, name)) for policy in SHARED_POLICIES],
            [_paper(policy, share, name) for policy in SHARED_POLICIES],
        )
        for name in SCORED
    ]
    panel = Panel(
        title=f"{share:.0%} of the nodes with local load",
        places=list(SHARED_POLICIES),
        series=series,
        along="policy",
        value=DEVIATION,
        digits=1,
    )
    return Exhibit("Turnaround deviation by estimator (Hanzich et al., Fig. 3)", [panel], TRUTH)


def table_1(sources: Sources) -> Exhibit:
    """MPL-MPL and CPU-CPU under every policy, by local load."""
    return table_of(scores_of(sources, LOCAL_SHARES))


def table_of(scores: Scores) -> Exhibit:
    """A panel for each local load."""
    panels = [
        Panel(
            title=f"{share:.0%} of the nodes with local load",
            places=list(SHARED_POLICIES),
            series=[
                Series(
                    name.upper(),
                    [_mean(scores, Cell(policy, share, name)) for policy in SHARED_POLICIES],
                    [_paper(policy, share, name) for policy in SHARED_POLICIES],
                )
                for name in ("mpl-mpl", "cpu-cpu")
            ],
            along="policy",
            value=DEVIATION,
            digits=1,
        )
        for share in LOCAL_SHARES
    ]
    return Exhibit("Turnaround deviation by local load (Hanzich et al., Table 1)", panels, TRUTH)


def scores_of(sources: Sources, shares: tuple[float, ...]) -> Scores:
    """The deviations of every policy with these local loads."""
    seeds = sources.options.get("seeds", SEEDS)
    scale = sources.options.get("scale", 1.0)
    settings = [
        Conditions(policy, share, scale, sources.limit)
        for policy, share in product(SHARED_POLICIES, shares)
    ]
    played = sources.play(play, [Part(setting, range(seeds)) for setting in settings])
    return by_cell({part.setting: found for part, found in played})


def _mean(scores: Scores, cell: Cell) -> float:
    return mean([each.at_arrival for each in scores[cell]]).value


def _paper(policy: str, share: float, estimator: str) -> float | None:
    """The paper's number, for the two estimators of its Table 1."""
    if (policy, estimator) not in COLUMNS:
        return None
    return PAPER[share][COLUMNS.index((policy, estimator))]


EXHIBITS: Exhibits = {"figure 3": figure_3, "table 1": table_1}
