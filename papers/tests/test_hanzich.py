"""The study in small: what it plays, how it counts, and that it can be repeated."""

from itertools import pairwise
from statistics import fmean

import pytest

from papers.hanzich import hanzich_study
from papers.hanzich.findings import (
    Cell,
    FindingVerdict,
    mean,
    scores_of,
    students_quantile,
    verdicts,
)
from papers.hanzich.nas import CHARACTERISTICS, JOBS, idle_cluster, workload
from papers.hanzich.scoring import SCORED, Conditions, Deviation, score
from papers.pivot import published
from papers.study import Inputs


@pytest.fixture(scope="module")
def inputs():
    return Inputs(paths=[], limit=None, options={"seeds": 2}, processes=1)


@pytest.fixture(scope="module")
def scores(inputs):
    return scores_of(hanzich_study.every_local_load(inputs))


def test_the_mix_is_that_of_the_paper():
    arrivals = [workload(seed) for seed in range(50)]
    gaps = [b.time - a.time for jobs in arrivals for a, b in pairwise(jobs)]
    assert {len(jobs) for jobs in arrivals} == {JOBS}
    assert fmean(gaps) == pytest.approx(15, rel=0.1)
    sizes = {arrival.job.tasks for jobs in arrivals for arrival in jobs}
    assert sizes == {2, 4, 8}
    counts = [sum(a.benchmark == "BT" for a in jobs) for jobs in arrivals]
    assert set(counts) <= {7, 8}
    bound = fmean(a.job.computation_bound for jobs in arrivals for a in jobs)
    assert bound == pytest.approx(0.5, abs=0.1)


def test_applications_are_characterised_in_isolation_and_need_about_that():
    arrivals = [arrival for seed in range(50) for arrival in workload(seed, scale=2.0)]
    for arrival in arrivals:
        known = CHARACTERISTICS[arrival.benchmark, arrival.job.tasks]
        assert arrival.job.execution_time == 2 * known.seconds
        assert arrival.job.cpu_share == known.cpu_share
        assert arrival.job.memory == 1024 * known.megabytes
    factors = [arrival.needed_cpu_time / arrival.job.cpu_time for arrival in arrivals]
    assert fmean(factors) == pytest.approx(1.0, abs=0.01)
    assert fmean((factor - 1) ** 2 for factor in factors) ** 0.5 == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize(("share", "nodes"), [(0.25, 4), (0.5, 8), (1.0, 16)])
def test_local_users_are_on_their_share_of_the_nodes(share, nodes):
    cluster = idle_cluster(share, seed=3)
    assert [node.cpu for node in cluster.nodes].count(0.15) == nodes
    assert sum(node.tasks for node in cluster.nodes) == nodes
    assert {node.load.memory for node in cluster.nodes} == {512 * 1024}
    used = [node.load.used_memory / node.load.memory for node in cluster.nodes]
    assert sum(used) == pytest.approx(0.35 * nodes, rel=1e-5)


def test_scores_can_be_repeated_and_seeds_are_independent():
    alone, both = (score(Conditions("uniform", 0.5, seeds, jobs=8)) for seeds in (1, 2))
    assert [each.seed for each in both] == [0] * len(SCORED) + [1] * len(SCORED)
    assert alone == both[: len(SCORED)]


def test_every_combination_is_scored_in_every_setting(scores):
    assert len(scores) == 5 * 3 * len(SCORED)
    assert all(len(seeds) == 2 for seeds in scores.values())


def test_where_nodes_are_not_shared_cpu_errs_by_the_variation_of_runs_alone(scores):
    """0.90 of a CPU and a local user's 0.15 are all but one CPU: Eq 5 is exact but for BT."""
    for share in (0.25, 0.5, 1.0):
        deviation = fmean(d.at_arrival for d in scores[Cell("basic", share, "cpu-cpu")])
        assert 1 < deviation < 10
        assert deviation < fmean(d.at_arrival for d in scores[Cell("basic", share, "mpl-mpl")])


def made_up(uniform, normal):
    """Deviations of which only those of Uniform and Normal differ, each by seed."""
    return [
        Deviation(
            policy=policy,
            local_share=share,
            estimator=name,
            seed=seed,
            at_arrival=value,
            signed=-value,
            adjusted=value,
            execution=value,
        )
        for policy in ("uniform", "normal", "uniform-backfilling", "normal-backfilling", "basic")
        for share in (0.25, 0.5, 1.0)
        for name in SCORED
        for seed, value in enumerate(uniform if policy.startswith("uniform") else normal)
    ]


@pytest.mark.parametrize(
    ("uniform", "normal", "holds", "contrary", "difference"),
    [
        ([10, 20, 31], [20, 30, 40], 36, 0, 29 / 3),
        ([20, 30, 40], [10, 20, 31], 0, 36, -29 / 3),
        ([10, 40, 25], [20, 30, 40], 0, 0, 5.0),
    ],
)
def test_a_finding_holds_where_the_paired_difference_is_beyond_the_noise(
    uniform, normal, holds, contrary, difference
):
    found = {v.finding: v for v in verdicts(made_up(uniform, normal))}
    assert found["Uniform deviates less than Normal"] == FindingVerdict(
        finding="Uniform deviates less than Normal",
        holds=holds,
        contrary=contrary,
        comparisons=36,
        difference=pytest.approx(difference),
    )


def test_estimates_that_are_too_early_are_not_pessimistic():
    found = {v.finding: v for v in verdicts(made_up([10, 11, 12], [10, 11, 12]))}
    pessimistic = found["Under backfilling estimates are pessimistic"]
    assert (pessimistic.holds, pessimistic.contrary, pessimistic.difference) == (0, 36, -11)


def test_the_margin_is_that_of_95_percent():
    found = mean([1.0, 2.0, 3.0, 4.0])
    assert found.value == 2.5
    assert found.margin == pytest.approx(3.1824 * 1.2910 / 2, abs=1e-3)


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (29, 2.045), (30, 2.042), (120, 1.980)],
)
def test_quantiles_are_those_of_the_tables_of_students_t(freedom, quantile):
    assert students_quantile(freedom) == pytest.approx(quantile, abs=5e-4)


def test_the_papers_main_finding_has_its_sign():
    """FCFS deviates less than backfilling, since nodes take only what they can bear."""
    worse, better = (
        [each.at_arrival for each in score(Conditions(policy, 0.25, 12))
         if each.estimator == "cpu-cpu"]
        for policy in ("normal-backfilling", "normal")
    )  # fmt: skip
    differences = [one - other for one, other in zip(worse, better, strict=True)]
    assert mean(differences).value > mean(differences).margin > 0


def test_the_error_of_execution_times_is_that_between_start_and_end(scores):
    """The error without shared nodes is the variation of runs, which no formula knows."""
    execution = fmean(d.execution for d in scores[Cell("basic", 0.25, "cpu-cpu")])
    assert 4 < execution < 12
    assert execution < fmean(d.execution for d in scores[Cell("normal", 0.25, "mpl-mpl")])


def test_figure_and_table_have_the_papers_numbers_in_their_places(inputs):
    exhibits = hanzich_study.STUDY.exhibits
    [panel] = exhibits["figure 3"].make("hanzich figure 3", inputs).panels
    places = dict(zip(panel.places, range(5), strict=True))
    by_name = {series.name: series for series in panel.series}
    assert set(by_name) == set(SCORED)
    assert by_name["cpu-cpu"].paper[places["uniform"]] == 8.67
    assert by_name["mpl-mpl"].paper[places["normal-backfilling"]] == 144.33
    assert set(by_name["proportional-cpu"].paper) == {None}
    table = exhibits["table 1"].make("hanzich table 1", inputs)
    assert [panel.title[:4] for panel in table.panels] == ["25% ", "50% ", "100%"]
    drawn = [value for panel in table.panels for one in panel.series for value in one.paper]
    assert sorted(drawn) == sorted(each.value for each in published()["hanzich table 1"])
    assert len(drawn) == 30


def test_every_finding_is_a_line_of_the_table_of_findings(inputs):
    exhibit = hanzich_study.STUDY.exhibits["table findings"].make("findings", inputs)
    comparisons, points, executions = exhibit.panels
    assert comparisons.places == points.places
    assert len(points.places) == 10
    counts = zip(*(series.values for series in comparisons.series), strict=True)
    assert [sum(each) for each in counts] == [
        each.comparisons for each in hanzich_study.findings(inputs)
    ]
    assert {series.name for series in executions.series} == set(SCORED)
