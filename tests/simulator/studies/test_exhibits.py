"""Figures and tables of the papers made again, and what is counted for them."""

import csv
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from workloads import log_of, stretched_logs

from simulator.reports.exhibit import Exhibit, Panel, Series
from simulator.reports.pictures import draw
from simulator.studies import STUDIES
from simulator.studies.klusacek.klusacek_simulations import name_of, runs
from simulator.studies.rocchetti.stretches import Finding, ScenarioStretch, counted, whole_orders
from simulator.studies.study import ExhibitInput, StudyError
from simulator.studies.tang.tang_simulations import Months, MonthSimulation
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
def sources(logs):
    """As a command that makes one exhibit after the other has them: what was played is kept."""
    with ThreadPoolExecutor(1) as executor:
        yield ExhibitInput(paths=[logs], limit=120, executor=executor)


@pytest.mark.parametrize(
    ("paper", "name"), [(paper, name) for paper in PAPERS for name in STUDIES[paper].exhibits]
)
def test_every_exhibit_is_text_numbers_and_a_picture(paper, name, sources, tmp_path):
    exhibit = STUDIES[paper].exhibits[name](sources)
    number = name.split()[1]
    assert exhibit.title.startswith((f"Fig. {number}:", f"Table {number}:"))
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


def test_brackets_beside_a_site_s_own_log_are_said_to_be_the_papers(logs, sources):
    own = replace(sources, options={"log": logs / "ALCF-Theta-2023.swf.gz"}, results={})
    table = STUDIES["tang"].exhibits["table 2"]
    assert "In brackets: the paper's numbers, which are of Intrepid." in table(own).text()
    assert "which are of Intrepid" not in table(sources).text()


def test_a_log_of_the_paper_is_taken_when_its_file_is_there(logs):
    played = {name_of(logs / run.trace) for run in runs(logs, 50)}
    assert played == {"CTC-SP2", "SDSC-SP2", "CERIT-SC", "FH1"}


@pytest.mark.parametrize(
    ("paper", "name", "empty"),
    [("klusacek", "figure 4", "10 "), ("tang", "table 2", "user+walltime ")],
)
def test_a_log_too_small_for_a_figure_leaves_gaps_and_no_number_that_is_none(
    paper, name, empty, sources, tmp_path
):
    exhibit = STUDIES[paper].exhibits[name](replace(sources, limit=8, results={}))
    draw(exhibit, tmp_path / "picture.png")
    lines = exhibit.panels[0].text().splitlines()
    assert [line.split()[1] for line in lines if line.startswith(empty)] == ["-"]


def test_a_figure_of_a_log_that_is_not_there_says_so(tmp_path):
    with ThreadPoolExecutor(1) as executor:
        without = ExhibitInput(paths=[tmp_path], limit=None, executor=executor)
        with pytest.raises(StudyError, match="FH1 and FH2"):
            STUDIES["klusacek"].exhibits["figure 11"](without)
        for name, log in {
            "figure 3": "Curie", "figure 4": "Gaia", "table 2": "Curie and Gaia",
            "table 3": "Curie and Gaia", "table 5": "Curie and Gaia", "table 6": "Curie and Gaia",
        }.items():  # fmt: skip
            with pytest.raises(StudyError, match=log):
                STUDIES["rocchetti"].exhibits[name](without)


def test_a_finding_is_counted_over_stretches_with_an_interval():
    less = Finding("PSP waits less than FCFS", 2, 1)
    found = counted(less, [(100, 50), (100, 50), (100, 200), (0, 0)])
    assert found.held == 2
    assert found.ratio == pytest.approx(2 ** (-1 / 3))  # halves, halves, doubles
    assert found.lower == pytest.approx(0.5)
    assert found.upper == pytest.approx(2)
    assert counted(less._replace(grows=True), [(100, 50), (100, 200)]).held == 1
    assert np.isnan(counted(less, [(0, 0)]).ratio)


def test_a_month_in_which_nobody_waits_any_more_is_gained_whole():
    requests, predicted = (
        Months(values=np.array([waits], dtype=float), jobs=[5, 5, 5], outlived=0.0)
        for waits in ((10, 20, 0), (0, 15, 3))
    )
    assert predicted.gains(requests)[0, :2].tolist() == [100, 25]
    assert np.isnan(predicted.gains(requests)[0, 2])


def test_whole_orders_are_those_of_the_paper_in_waits_and_makespans():
    as_the_paper = ScenarioStretch("Curie", "a", 9, (3, 2, 1, 6, 5, 4), (1, 2, 3, 4, 5, 6))
    not_exact = ScenarioStretch("Curie", "b", 9, (3, 1, 2, 6, 5, 4), (1, 3, 2, 6, 5, 4))
    assert list(whole_orders([as_the_paper, not_exact]).values()) == [1, 2, 1, 1, 1]


def months(directory, jobs, **known):
    """Return a simulation of a log of Intrepid, month by month."""
    write_swf(log_of(jobs, 4), directory / "log.swf")
    usual = {"order": "fcfs", "estimates": "requested", "anew": False}
    return MonthSimulation(
        log="Intrepid",
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
