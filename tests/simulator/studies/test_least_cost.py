"""The study of prices: what least-cost costs where others underestimate as often."""

import json
from math import isnan

import pytest
from typer.testing import CliRunner

from service.cli import app
from simulator.replay.tradeoff import Point, curve_of
from simulator.studies.least_cost import PRICES, PriceComparison, compare, tables
from simulator.traces.cleaning import REPLAY_RULES, clean
from simulator.traces.completions import completions
from simulator.traces.swf import write_swf
from simulator.traces.synth import SyntheticLog, synthesise


@pytest.fixture(scope="module")
def found():
    jobs, _ = clean(synthesise(SyntheticLog(jobs=600, processors=64, seed=5)), REPLAY_RULES)
    return compare(list(completions(jobs)))


def test_methods_are_compared_where_they_underestimate_equally_often():
    curve = curve_of("least-cost", [Point("price=1", 0.2, 300.0), Point("price=0", 0.4, 100.0)])
    there = PriceComparison(jobs=1, published=[], curve=curve)
    assert there.ratio(Point("a", 0.3, 400.0)) == pytest.approx(0.5)
    assert there.ratio(Point("b", 0.5, 200.0)) == pytest.approx(0.5)
    assert isnan(there.ratio(Point("c", 0.1, 400.0)))
    assert isnan(there.ratio(Point("never errs", 0.2, 0.0)))
    assert there.default.error == 300.0


def test_a_higher_price_underestimates_fewer_jobs(found):
    by_setting = {point.setting: point.underestimation_rate for point in found.curve.points}
    shares = [by_setting[f"price={price:g}"] for price in PRICES]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 2 * shares[-1]


def test_every_method_and_price_is_told(found):
    text = tables(found)
    for point in [*found.published, *found.curve.points]:
        assert point.setting in text
    assert found.jobs == 600


def test_the_command_prints_for_people_and_for_machines(tmp_path):
    trace = tmp_path / "log.swf"
    write_swf(synthesise(SyntheticLog(jobs=80, processors=64, seed=5)), trace)
    printed = CliRunner().invoke(app, ["experiment", "least-cost", str(trace)])
    assert printed.exit_code == 0
    assert "published method" in printed.stdout
    answer = CliRunner().invoke(app, ["experiment", "least-cost", "--json", str(trace)])
    assert len(json.loads(answer.stdout)["logs"][str(trace)]["curve"]["points"]) == len(PRICES)
