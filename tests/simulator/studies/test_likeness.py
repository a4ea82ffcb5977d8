"""How the study of likeness compares methods, by figures that are worked out by hand."""

from math import isnan

import pytest

from simulator.replay.tradeoff import Point, curve_of
from simulator.studies.likeness import PRICES, REFERENCE_PRICES, Likeness, runs, tables, write


def log(**changed):
    """Least-cost has an error of 100 s at 50% too short, and 300 s at 10%; between them a line."""
    rates = (0.5, 0.4, 0.3, 0.2, 0.1)
    attention = [
        Point(f"price={price:g}", rate, error)
        for price, rate, error in zip(PRICES, rates, (90, 150, 150, 200, 330), strict=True)
    ]
    dear = [0.5, 0.5, 0.4, 0.3, 0.2, *[0.1] * 5]
    reference = [
        Point(f"least-cost, price={price:g}", rate, 350 - 500 * rate)
        for price, rate in zip(REFERENCE_PRICES, dear, strict=True)
    ]
    known = {
        "name": "hill.swf",
        "jobs": 1000,
        "attention": attention,
        "adapted": attention,
        "auto": attention,
        "rounds": (2, 1, 5),
        "mean_runtime": 1000.0,
        "reference": curve_of("least-cost", reference),
        "published": [Point("last-two", 0.3, 250.0), Point("knn, beta=0.3", 0.05, 700.0)],
    }
    return Likeness(**known | changed)


def test_an_error_is_compared_where_least_cost_underestimates_as_often():
    assert log().gains(log().attention) == pytest.approx([-0.1, 0.0, -0.25, -0.2, 0.1])


def test_a_published_method_is_compared_at_its_own_rate_where_attention_has_it():
    last_two, knn = (log().over(point) for point in log().published)
    assert last_two == pytest.approx(150 / 250 - 1)
    assert isnan(knn), "attention is never so seldom too short"


def test_auto_is_compared_with_the_least_of_error_and_price_of_what_is_too_short():
    dear = log(auto=[Point("price", 0.2, 500.0)] * len(PRICES))
    regrets = dict(zip(PRICES, dear.regrets(), strict=True))
    assert regrets[0] == (pytest.approx(500 / 90 - 1), "frozen")
    # 500 s and 0.2 jobs of 3,000 s; the least is attention's 200 s and 0.2 of 3,000 s.
    assert regrets[3] == (pytest.approx(1100 / 800 - 1), "frozen")
    # 700 s and 0.05 jobs of 10,000 s: only the method of a paper is so seldom too short.
    assert regrets[10] == (pytest.approx(2500 / 1200 - 1), "knn, beta=0.3")


def test_a_limit_is_one_on_what_is_played_and_not_on_what_is_learned_from(tmp_path):
    """Ten jobs are played; of the 60 of the other log each is drawn of whose user one is known."""
    job = "{0} {1} 0 60 1 -1 -1 1 600 -1 1 7 1 1 1 1 -1 -1"
    lines = [job.format(place, 100 * place) for place in range(60)]
    for name in ("hill.swf", "valley.swf"):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    hill, valley = runs([tmp_path / "hill.swf", tmp_path / "valley.swf"], 10, jobs=1000)
    assert (hill.limit, valley.limit) == (10, 10)
    assert hill.others.tolist() == list(range(59, 118))
    assert valley.others.tolist() == list(range(59))


def test_tables_and_a_picture_of_every_trade_off_are_written(tmp_path):
    found = [log(), log(name="valley")]
    text = tables(found)
    assert "2 - 1 / 5" in text
    worst = next(line for line in text.splitlines() if line.startswith("worst"))
    assert worst.split()[1:] == ["-10.0%", "+0.0%", "-25.0%", "-20.0%", "+10.0%"]
    write(tmp_path, "likeness", text, [(None, each) for each in found])
    picture = (tmp_path / "trade-offs.svg").read_text()
    for name in ("hill", "valley", "attention, adapted", "last-two", "knn"):
        assert f"<!-- {name} -->" in picture
    assert text in (tmp_path / "table.txt").read_text()
