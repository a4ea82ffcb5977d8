"""Every estimator in every setting against the truth, as Fig. 3 and Table 1 of Hanzich et al."""

from collections.abc import Sequence
from itertools import product
from statistics import fmean

from papers.hanzich.findings import FindingVerdict, verdicts
from papers.hanzich.nas import LOCAL_SHARES
from papers.hanzich.scoring import SEEDS, Conditions, Deviation, score
from papers.pivot import ExhibitPlan, Pivot
from papers.study import Inputs, Study, Takes, option
from simulator.shared_nodes.policies import SHARED_POLICIES

TRUTH = (
    "The truth here is simulated, the paper's was measured; it does not say how long its "
    "benchmarks run.\n"
)


def some_local_load(inputs: Inputs) -> list[Deviation]:
    """Return the deviations with a quarter of the nodes with local users."""
    return _deviations(inputs, LOCAL_SHARES[:1])


def every_local_load(inputs: Inputs) -> list[Deviation]:
    """Return the deviations with every local load."""
    return _deviations(inputs, LOCAL_SHARES)


def findings(inputs: Inputs) -> list[FindingVerdict]:
    """Return in how many comparisons each finding of the paper holds."""
    return verdicts(every_local_load(inputs))


def _deviations(inputs: Inputs, shares: Sequence[float]) -> list[Deviation]:
    seeds = inputs.options.get("seeds", SEEDS)
    scale = inputs.options.get("scale", 1.0)
    settings = [
        Conditions(policy, share, seeds, scale, inputs.limit)
        for policy, share in product(SHARED_POLICIES, shares)
    ]
    return [each for scored in inputs.play(score, settings) for each in scored]


FIGURE_3 = Pivot(
    table=some_local_load,
    panel="{local_share:.0%} of the nodes with local load",
    rows="{policy}",
    columns="{estimator}",
    value="at_arrival",
    statistic=fmean,
    along="policy",
    unit="deviation of turnarounds in %",
    digits=1,
)

TABLE_1 = Pivot(
    table=every_local_load,
    where={"estimator": ("mpl-mpl", "cpu-cpu"), "local_share": LOCAL_SHARES},
    panel="{local_share:.0%} of the nodes with local load",
    rows="{policy}",
    columns=lambda each: each.estimator.upper(),
    value="at_arrival",
    statistic=fmean,
    along="policy",
    unit="deviation of turnarounds in %",
    digits=1,
)

COMPARISONS = Pivot(
    table=findings,
    panel="Comparisons in which the finding holds beyond the noise",
    rows="{finding}",
    value={"holds": "holds", "contrary": "contrary", "neither": "neither"},
    along="finding",
    digits=0,
)

POINTS = Pivot(
    table=findings,
    panel="Mean difference in favour of the finding",
    rows="{finding}",
    value={"points": "difference"},
    along="finding",
    unit="points of deviation",
    digits=1,
)

EXECUTIONS = Pivot(
    table=every_local_load,
    where={"local_share": LOCAL_SHARES[0]},
    panel="Execution times alone, {local_share:.0%} of the nodes with local load "
    "(section 1: 41% for the formulas, 37% for the history of others)",
    rows="{policy}",
    columns="{estimator}",
    value="execution",
    statistic=fmean,
    along="policy",
    unit="deviation in %",
    digits=1,
)

STUDY = Study(
    name="hanzich",
    explanation="""Score the turnaround estimates of Hanzich et al. 2005 on simulated shared nodes.

    About every 15 s one of 30 NAS-like jobs arrives at 16 nodes. Up to four jobs and local users
    share each node fairly. At each arrival every combination of the paper's estimators estimates
    the end of every job. Fig. 3, Table 1, and the findings of the text.

    For example:

        python -m papers hanzich --table 1
        python -m papers hanzich --seeds 30 --scale 2 --table findings
    """,
    takes=Takes.NOTHING,
    exhibits={
        "figure 3": ExhibitPlan(
            "Turnaround deviation by estimator (Hanzich et al., Fig. 3)", [FIGURE_3], TRUTH
        ),
        "table 1": ExhibitPlan(
            "Turnaround deviation by local load (Hanzich et al., Table 1)", [TABLE_1], TRUTH
        ),
        "table findings": ExhibitPlan(
            "Findings of Hanzich et al.", [COMPARISONS, POINTS, EXECUTIONS], TRUTH
        ),
    },
    options={
        "seeds": option(int, default=SEEDS, min=2, help="Workloads in each setting."),
        "scale": option(
            float, default=1.0, min=0.01, max=100, help="Factor on the benchmarks' runtimes."
        ),
    },
)
