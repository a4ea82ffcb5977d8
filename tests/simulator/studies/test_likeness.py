"""How the study of likeness compares methods, by figures that are worked out by hand."""

from math import isnan

import pytest
from msgspec.structs import replace

from predictors.methods.attention import Attention
from predictors.methods.attention_weights import Weights, shipped
from simulator.replay.tradeoff import Point, curve_of
from simulator.studies.likeness import (
    PRICES,
    REFERENCE_PRICES,
    Likeness,
    play,
    runs,
    tables,
    write,
)
from simulator.studies.study import StudyError, runs_of


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
        "further": [Point("price=30", 0.02, 560.0)],
        "auto": attention,
        "rounds": (2, 1, 5),
        "mean_runtime": 1000.0,
        "reference": curve_of("least-cost", reference),
        "published": [
            Point("last-two", 0.3, 250.0),
            Point("knn, beta=0.3", 0.06, 700.0),
            Point("percentile=95", 0.01, 900.0),
        ],
    }
    return Likeness(**known | changed)


def test_an_error_is_compared_where_least_cost_underestimates_as_often():
    assert log().gains(log().attention) == pytest.approx([-0.1, 0.0, -0.25, -0.2, 0.1])


def test_a_published_method_is_compared_at_its_own_rate_where_attention_has_it():
    last_two, knn, percentile = (log().over(point) for point in log().published)
    assert last_two == pytest.approx(150 / 250 - 1)
    # Half way between 330 s at 10% and, at a further price, 560 s at 2%.
    assert knn == pytest.approx(445 / 700 - 1)
    assert isnan(percentile), "attention is never so seldom too short"


def test_auto_is_compared_with_the_least_of_error_and_price_of_what_is_too_short():
    dear = log(auto=[Point("price", 0.2, 500.0)] * len(PRICES))
    regrets = dict(zip(PRICES, dear.regrets(), strict=True))
    assert regrets[0] == (pytest.approx(500 / 90 - 1), "frozen")
    # 500 s and 0.2 jobs of 3,000 s; the least is attention's 200 s and 0.2 of 3,000 s.
    assert regrets[3] == (pytest.approx(1100 / 800 - 1), "frozen")
    # 900 s and 0.01 jobs of 10,000 s: only the method of a paper is so seldom too short.
    assert regrets[10] == (pytest.approx(2500 / 1000 - 1), "percentile=95")


def test_a_limit_is_one_on_what_is_played_and_not_on_what_is_learned_from(tmp_path):
    """Ten jobs are played; of the 60 of the other log each is drawn of whose user one is known."""
    job = "{0} {1} 0 60 1 -1 -1 1 600 -1 1 7 1 1 1 1 -1 -1"
    lines = [job.format(place, 100 * place) for place in range(60)]
    for name in ("hill.swf", "valley.swf"):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    hill, valley = runs([tmp_path / "hill.swf", tmp_path / "valley.swf"], 10, jobs=1000)
    assert (hill.limit, valley.limit) == (10, 10)
    assert hill.teaching.others.tolist() == list(range(59, 118))
    assert valley.teaching.others.tolist() == list(range(59))


@pytest.fixture
def site(tmp_path):
    """A log of 60 jobs of one user; every other one runs for two minutes instead of one."""
    job = "{0} {1} 0 {2} 1 -1 -1 1 600 -1 1 7 1 1 1 1 -1 -1"
    lines = [job.format(place, 100 * place, 60 + 60 * (place % 2)) for place in range(60)]
    (tmp_path / "site.swf").write_text("\n".join(lines) + "\n")
    return tmp_path / "site.swf"


def test_shipped_weights_are_played_to_one_log_without_learning(site):
    (part,) = runs([site], None, weights="shipped")
    found = play(part)
    attention, waiting, wrong, short = Attention(price=1.0), [], [], []
    for run in runs_of(site):
        for ended in [each for each in waiting if each.end_time <= run.submission.submit_time]:
            attention.observe(ended)
            waiting.remove(ended)
        predicted = attention.predict(run.submission).predicted_walltime
        wrong.append(abs(predicted - run.runtime))
        short.append(predicted < run.runtime)
        waiting.append(run)
    at_one = found.attention[PRICES.index(1.0)]
    assert at_one.error == pytest.approx(sum(wrong) / 60)
    assert at_one.underestimation_rate == pytest.approx(sum(short) / 60)
    assert found.further[-1].underestimation_rate < at_one.underestimation_rate


def test_weights_of_a_file_are_played_but_not_to_a_log_that_they_know(site, tmp_path):
    known = replace(shipped(), origin={"logs": [{"name": "site"}]})
    (tmp_path / "known.npz").write_bytes(known.to_bytes())
    with pytest.raises(StudyError, match="learned from site"):
        runs([site], None, weights=str(tmp_path / "known.npz"))
    other = site.rename(tmp_path / "other.swf")
    (part,) = runs([other], 20, weights=str(tmp_path / "known.npz"))
    assert (part.limit, Weights.from_bytes(part.teaching).origin) == (20, known.origin)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"weights": "nowhere.npz"}, "nowhere.npz cannot be used"),
        ({"weights": __file__}, "cannot be used: This is no file of weights"),
        ({"weights": "shipped", "seed": 2}, "leave --jobs, --passes, --seed"),
        ({}, "at least two logs"),
    ],
)
def test_what_cannot_be_played_is_said(site, options, said):
    with pytest.raises(StudyError, match=said):
        runs([site], None, **options)


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
