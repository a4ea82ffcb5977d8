"""Pivots of hand-made records."""

from dataclasses import dataclass
from statistics import fmean, median

import pytest

from papers.pivot import ExhibitPlan, Pivot, PublishedNumber, only, published
from papers.studies import STUDIES
from papers.study import Inputs

INPUTS = Inputs(paths=[], limit=None)


@dataclass(frozen=True)
class Run:
    """A simulation with its wait."""

    log: str
    policy: str
    estimates: str
    wait: float | None
    work: float = 1.0


RUNS = [
    Run("CTC", "easy", "exact", 1.0),
    Run("CTC", "easy", "requested", 2.0),
    Run("CTC", "easy", "requested", 4.0),
    Run("CTC", "fcfs", "requested", None),
    Run("SDSC", "easy", "exact", 10.0, 3.0),
]


def pivot(**known):
    usual = {
        "table": lambda _: RUNS,
        "panel": "{log}",
        "rows": "{policy}",
        "columns": lambda each: each.estimates.upper(),
        "value": "wait",
        "statistic": fmean,
    }
    return Pivot(**{**usual, **known})


def cells(panel):
    return {
        series.name: dict(zip(panel.places, series.values, strict=True)) for series in panel.series
    }


def test_records_become_panels_places_and_series_in_their_order():
    ctc, sdsc = pivot().panels(INPUTS, ())
    assert (ctc.title, sdsc.title) == ("CTC", "SDSC")
    assert list(cells(ctc)) == ["EXACT", "REQUESTED"]
    # The mean of a cell; none of a cell without a record, or without a number.
    assert cells(ctc) == {
        "EXACT": {"easy": 1.0, "fcfs": None},
        "REQUESTED": {"easy": 3.0, "fcfs": None},
    }


def test_conditions_choose_records_and_order_them():
    ctc, sdsc = pivot(where={"estimates": ("requested", "exact"), "policy": "easy"}).panels(
        INPUTS, ()
    )
    assert list(cells(ctc)) == ["REQUESTED", "EXACT"]
    assert ctc.places == sdsc.places == ["easy"]
    [only] = pivot(where={"log": "SDSC"}).panels(INPUTS, ())
    assert only.title == "SDSC"


def test_a_statistic_is_scaled():
    [ctc, _] = pivot(statistic=max, scale=60).panels(INPUTS, ())
    assert cells(ctc)["REQUESTED"]["easy"] == 240.0
    assert cells(pivot(statistic=median).panels(INPUTS, ())[0])["REQUESTED"]["easy"] == 3.0


def test_two_values_of_a_cell_without_a_statistic_are_refused():
    with pytest.raises(ValueError, match="2 values"):
        pivot(statistic=only).panels(INPUTS, ())
    [sdsc] = pivot(statistic=only, where={"log": "SDSC"}).panels(INPUTS, ())
    assert cells(sdsc) == {"EXACT": {"easy": 10.0}}


def test_several_fields_are_several_series():
    [_, sdsc] = pivot(value={"wait": "wait", "work done": "work"}).panels(INPUTS, ())
    assert cells(sdsc) == {"wait": {"easy": 10.0}, "work done": {"easy": 3.0}}


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (PublishedNumber("CTC", "easy", "EXACT", 5.0), {("CTC", "easy", "EXACT")}),
        (
            PublishedNumber("", "fcfs", "", 5.0),
            {("CTC", "fcfs", "EXACT"), ("CTC", "fcfs", "REQUESTED")},
        ),
        (PublishedNumber("S", "", "EX", 5.0), {("SDSC", "easy", "EXACT")}),
        (PublishedNumber("", "eas", "", 5.0), set()),
    ],
)
def test_a_published_number_stands_in_the_cells_that_it_names(number, expected):
    found = {
        (panel.title, place, series.name)
        for panel in pivot().panels(INPUTS, [number])
        for series in panel.series
        for place, value in zip(panel.places, series.paper, strict=True)
        if value == 5.0
    }
    assert found == expected


def test_a_remark_may_depend_on_the_inputs():
    plan = ExhibitPlan("Waits", [pivot()], lambda inputs: f"limit {inputs.limit}")
    assert plan.make("a table", INPUTS).remark == "limit None"


def test_every_published_number_is_of_an_exhibit():
    exhibits = {f"{name} {each}" for name, study in STUDIES.items() for each in study.exhibits}
    assert set(published()) <= exhibits
