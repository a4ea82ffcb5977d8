"""Figures and tables of the papers made again, and what is counted for them."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from workloads import log_of, stretched_logs

from papers.klusacek.klusacek_simulations import name_of
from papers.klusacek.klusacek_study import conservative
from papers.rocchetti.stretches import (
    Finding,
    ScenarioRun,
    distinct,
    findings_over,
    held,
    ratio_of,
    whole_orders,
)
from papers.studies import STUDIES
from papers.study import Inputs, StudyError
from papers.tang.tang_simulations import Months, MonthSimulation
from simulator.reports.exhibit import Exhibit, Panel, Series
from simulator.reports.pictures import draw
from simulator.traces.swf import write_swf

PAPERS = ("klusacek", "rocchetti", "tang")


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Generated logs of a few months under the names of the real ones, with FH1 and Gaia too."""
    directory = tmp_path_factory.mktemp("logs")
    names = {log for paper in PAPERS for log in STUDIES[paper].logs}
    names |= {"KIT-FH1-2014.swf.gz", "UniLu-Gaia-2014-2.swf.gz"}
    return stretched_logs(directory, names, jobs=200, times=30)


@pytest.fixture(scope="module")
def inputs(logs):
    """As a command that makes one exhibit after the other has them: what was played is kept."""
    return Inputs(paths=[logs], limit=120, processes=1)


def make(paper, name, inputs):
    return STUDIES[paper].exhibits[name].make(f"{paper} {name}", inputs)


@pytest.mark.parametrize(
    ("paper", "name"), [(paper, name) for paper in PAPERS for name in STUDIES[paper].exhibits]
)
def test_every_exhibit_is_text_numbers_and_a_picture(paper, name, inputs, tmp_path):
    exhibit = make(paper, name, inputs)
    number = name.split()[1]
    assert exhibit.title.startswith((f"Fig. {number}:", f"Table {number}:", number.title()))
    draw(exhibit, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    exhibit.write_csv(tmp_path / "numbers.csv")
    with (tmp_path / "numbers.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["panel"] for row in rows} == {panel.title for panel in exhibit.panels}
    assert all(panel.title in exhibit.text() for panel in exhibit.panels)


def test_a_number_of_the_paper_stands_in_brackets_and_in_a_column_of_its_own(tmp_path):
    series = [Series("ours", [0.5, None], [0.25, None])]
    exhibit = Exhibit("Fig. 1", [Panel(title="p", places=["a", "b"], series=series, shares=True)])
    assert "50.0% (25.0%)" in exhibit.text()
    exhibit.write_csv(tmp_path / "numbers.csv")
    assert (tmp_path / "numbers.csv").read_text() == (
        "panel,place,series,here,paper\np,a,ours,0.5,0.25\np,b,ours,,\n"
    )


def test_brackets_beside_a_site_s_own_log_are_said_to_be_the_papers(logs, inputs):
    own = replace(inputs, options={"log": logs / "KIT-FH1-2014.swf.gz"}, results={})
    ours, theirs = (make("tang", "table 2", each).text() for each in (own, inputs))
    assert "In brackets: the paper's numbers, which are of Intrepid." in ours
    assert "KIT-FH1" in ours
    assert "which are of Intrepid" not in theirs


def test_a_log_of_the_paper_is_taken_when_its_file_is_there(inputs):
    played = {each.log for each in conservative(inputs)}
    assert name_of(inputs.logs / "KIT-FH1-2014.swf.gz") == "FH1"
    assert played == {"CTC-SP2", "SDSC-SP2", "CERIT-SC", "FH1"}


@pytest.mark.parametrize(
    ("paper", "name", "empty"),
    [("klusacek", "figure 4", "10 "), ("tang", "table 2", "user+walltime ")],
)
def test_a_log_too_small_for_a_figure_leaves_gaps_and_no_number_that_is_none(
    paper, name, empty, inputs, tmp_path
):
    exhibit = make(paper, name, replace(inputs, limit=8, results={}))
    draw(exhibit, tmp_path / "picture.png")
    lines = exhibit.panels[0].text().splitlines()
    assert [line.split()[1] for line in lines if line.startswith(empty)] == ["-"]


@pytest.mark.parametrize(
    ("paper", "name", "log"),
    [
        ("klusacek", "figure 11", "FH1 and FH2"),
        ("rocchetti", "figure 3", "Curie"),
        ("rocchetti", "figure 4", "Gaia"),
        *(
            ("rocchetti", f"table {name}", "Curie and Gaia")
            for name in (2, 3, 5, 6, "findings", "slurm")
        ),
    ],
)
def test_an_exhibit_of_a_log_that_is_not_there_says_so(tmp_path, paper, name, log):
    with pytest.raises(StudyError, match=log):
        make(paper, name, Inputs(paths=[tmp_path], limit=None, processes=1))


def test_a_finding_is_counted_over_stretches_with_an_interval():
    less = Finding("PSP waits less than FCFS", 2, 1)
    values = [(100, 50), (100, 50), (100, 200), (0, 0)]
    assert held(less, values) == 2
    ratio = ratio_of(less, values)
    assert ratio.value == pytest.approx(2 ** (-1 / 3))  # halves, halves, doubles
    assert ratio.lower == pytest.approx(0.5)
    assert ratio.upper == pytest.approx(2)
    assert held(less._replace(grows=True), [(100, 50), (100, 200)]) == 1
    assert ratio_of(less, [(0, 0)]).value is None


def scenarios(digest, waits, *, days=8, makespans=(1, 2, 3, 4, 5, 6)):
    """Six scenarios on one stretch of days."""
    return [
        ScenarioRun(
            log="Curie",
            policy="easy",
            days=days,
            load=1.1,
            scenario=number,
            order="fcfs",
            estimates="exact",
            jobs=9,
            digest=digest,
            wait=wait,
            makespan=makespan,
        )
        for number, (wait, makespan) in enumerate(zip(waits, makespans, strict=True), 1)
    ]


def test_equal_stretches_count_once():
    first, same = scenarios("a", (3, 2, 1, 6, 5, 4)), scenarios("a", (3, 2, 1, 6, 5, 4), days=10)
    other = scenarios("b", (3, 1, 2, 6, 5, 4))
    kept = distinct([*first, *same, *other])
    assert [(each.digest, each.days) for each in kept] == [("a", 8)] * 6 + [("b", 8)] * 6
    assert {each.stretches for each in kept} == {2}
    found = {each.finding: each for each in findings_over(kept)}
    assert found["exact: aging waits less than PSP"].held == 1
    assert found["requests: aging waits less than PSP"].held == 2
    assert found["both"].held == 1
    assert {each.stretches for each in found.values()} == {2}


def test_a_month_in_which_nobody_waits_any_more_is_gained_whole():
    requests, predicted = (
        Months(values=np.array([waits], dtype=float), jobs=[5, 5, 5], outlived=0.0)
        for waits in ((10, 20, 0), (0, 15, 3))
    )
    assert predicted.gains(requests)[0, :2].tolist() == [100, 25]
    assert np.isnan(predicted.gains(requests)[0, 2])


def test_whole_orders_are_those_of_the_paper_in_waits_and_makespans():
    waits = [(3, 2, 1, 6, 5, 4), (3, 1, 2, 6, 5, 4)]
    makespans = [(1, 2, 3, 4, 5, 6), (1, 3, 2, 6, 5, 4)]
    assert list(whole_orders(waits, makespans).values()) == [1, 2, 1, 1, 1]


def months(directory, jobs, **known):
    """Return a simulation of a log of Intrepid, month by month."""
    write_swf(log_of(jobs, 4), directory / "log.swf")
    usual = {"order": "fcfs", "estimates": "requested", "anew": False}
    return MonthSimulation(
        trace=str(directory / "log.swf"),
        adjustment="regular",
        lower_bound=0.5,
        min_jobs=10,
        limit=None,
        **usual | known,
    )


def test_months_begin_anew_with_an_empty_machine(tmp_path):
    month = 2_629_800
    jobs = [
        (0, 4, month + 200_000, month + 200_000),  # runs into the second month
        (month + 100_000, 4, 100, 100),
    ]
    run = months(tmp_path, jobs)
    waits = run.play().values[0]
    assert waits.tolist() == [0, 100_000]
    assert replace(run, anew=True).play().values[0].tolist() == [0, 0]


@pytest.mark.parametrize("anew", [True, False])
def test_estimates_of_both_readings_come_from_percentiles_with_threshold_and_minimum(
    tmp_path, anew
):
    # Eleven jobs of one user take a tenth of what they ask for; then one is outlived.
    jobs = [(200 * n, 1, 10, 100) for n in range(11)] + [(5000, 1, 60, 100)]
    run = months(tmp_path, jobs, order="wfp", estimates="p85", anew=anew)
    assert run.play().outlived == pytest.approx(1 / 12)  # 50 s at least, and it runs 60
    assert replace(run, lower_bound=0.6).play().outlived == 0
    assert replace(run, min_jobs=12).play().outlived == 0
