"""How the study of likeness compares methods, by figures that are worked out by hand."""

from math import isnan

import pytest
from msgspec.structs import replace

from predictors.methods.attention import Attention
from predictors.methods.attention_weights import NOTHING_LEARNED, Weights, shipped
from predictors.methods.last_two import LastTwo
from predictors.methods.least_cost import LeastCost
from predictors.tuning.plan import TuningPlan
from predictors.tuning.simulated import SimulatedRounds
from simulator.replay.tradeoff import Point, curve_of
from simulator.studies.likeness import (
    PRICES,
    REFERENCE_PRICES,
    Likeness,
    estimates_of,
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


class Told(SimulatedRounds):
    """Rounds that choose nothing, and keep what they are told."""

    def __init__(self, first: str) -> None:
        attention = Attention(weights=shipped())
        super().__init__(attention, first=first, prices=PRICES, plan=TuningPlan(), every=0)
        self.told = []

    def observe(self, run, said) -> None:
        self.told.append((run, said))
        super().observe(run, said)


@pytest.fixture
def jobs(site):
    """The first 20 runs of the site."""
    return runs_of(site, 20)


def test_every_method_answers_from_the_runs_that_had_ended(jobs):
    """Every other one ends 20 s after the next submission, and says nothing of that job."""
    said = estimates_of(jobs, Told("attention"), NOTHING_LEARNED)
    alone = {
        "last-two": LastTwo(),
        "least-cost, price=0.3": LeastCost(price=0.3),
        "least-cost, price=1000": LeastCost(price=1000.0),
        "frozen, price=3": Attention(weights=NOTHING_LEARNED, price=3.0),
        "adapted, price=3": Attention(price=3.0),
        "adapted, price=30": Attention(price=30.0),
        "adapted, price=1000": Attention(price=1000.0),
        "auto, price=10": Attention(price=10.0),
    }
    for label, method in alone.items():
        waiting, expected = [], []
        for run in jobs:
            now = run.submission.submit_time
            for ended in [each for each in waiting if each.end_time <= now]:
                method.observe(ended)
            waiting = [each for each in waiting if each.end_time > now] + [run]
            expected.append(method.predict(run.submission).predicted_walltime)
        assert said[label] == pytest.approx(expected), label


def test_auto_answers_with_the_method_that_rounds_have_chosen(jobs):
    said = estimates_of(jobs, Told("least-cost"), NOTHING_LEARNED)
    for price in PRICES:
        assert (said[f"auto, price={price:g}"] == said[f"least-cost, price={price:g}"]).all()
    assert (said["auto, price=3"] != said["adapted, price=3"]).any()


def test_rounds_are_told_of_each_run_that_ended_what_was_said_at_its_submission(jobs):
    rounds = Told("attention")
    said = estimates_of(jobs, rounds, NOTHING_LEARNED)
    assert [run for run, _ in rounds.told] == sorted(jobs, key=lambda run: run.end_time)
    for run, answers in rounds.told:
        for method, label in (("attention", "adapted"), ("least-cost", "least-cost")):
            of_run = [said[f"{label}, price={price:g}"][jobs.index(run)] for price in PRICES]
            assert answers[method].tolist() == of_run


def test_points_are_of_the_methods_and_prices_that_they_stand_for(site):
    (part,) = runs([site], 20, weights="shipped")
    found = play(part)
    prices = ["0", "0.3", "1", "3", "10"]
    ours = {"frozen": found.attention, "adapted": found.adapted, "auto": found.auto}
    for kind, points in ours.items():
        assert [point.setting for point in points] == [f"{kind}, price={each}" for each in prices]
    assert [point.setting for point in found.further] == [
        f"adapted, price={each}" for each in ("30", "100", "300", "1000")
    ]
    assert sorted(point.setting for point in found.reference.points) == [
        f"least-cost, price={each}" for each in sorted((*prices, "0.1", "30", "100", "300", "1000"))
    ]
    assert len(found.published) == 7
    assert (found.name, found.jobs, found.mean_runtime, found.rounds) == ("site", 20, 90, (0, 0, 0))


def test_a_run_beyond_its_request_counts_as_the_request(site):
    """Of two jobs that ask for 600 s, which is predicted, one runs for 6,000 s and one for 60 s."""
    site.write_text(site.read_text().splitlines()[0].replace(" 60 ", " 6000 ", 1) + "\n")
    with site.open("a") as more:
        more.write("1 100 0 60 1 -1 -1 1 600 -1 1 7 1 1 1 1 -1 -1\n")
    (part,) = runs([site], None, weights="shipped")
    found = play(part)
    assert found.mean_runtime == 330
    assert {(point.underestimation_rate, point.error) for point in found.adapted} == {(0.0, 270.0)}


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
