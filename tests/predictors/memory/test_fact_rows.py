"""Further facts in the table of runs: their gains by hand, what they do to answers, and when."""

import math

import numpy as np
import pytest
from msgspec.structs import replace

from predictors.base import Question
from predictors.facts import Facts
from predictors.jobs import Completion, Submission
from predictors.memory import fact_rows
from predictors.memory.columns import NOWHERE
from predictors.memory.fact_rows import GAINS, LEAST_GAIN, OWN, STEEPNESS, WEIGHT
from predictors.memory.job_table import JobTable
from predictors.methods.least_cost import LeastCost

HOUR = 3600.0
SCRIPT, FIRST_FEATURE = OWN.index("script_hash"), len(OWN)


def run(number: int, seconds: float, *, user="ada", **facts) -> Completion:
    """The n-th run of a user, each a day after the one before."""
    known = Facts(**facts) if facts else None
    job = Submission(
        requested_walltime=24 * HOUR,
        submit_time=number * 24 * HOUR,
        user=user,
        application="cfd",
        facts=known,
        job_id=str(number),
    )
    start = job.submit_time
    return Completion(
        submission=job, start_time=start, end_time=start + seconds, runtime=float(seconds)
    )


def by_law(count: int, *, seed: int = 1, are_noise: bool = False) -> list[Completion]:
    """Runs whose runtime is that of their script times their size, or has nothing to do with it."""
    random = np.random.default_rng(seed)
    found = []
    for number in range(count):
        script, size = int(random.integers(3)), float(2 ** random.uniform(0, 4))
        seconds = 60.0 * 8**script * size
        if are_noise:
            script, size = int(random.integers(3)), float(2 ** random.uniform(0, 4))
        features = {"size": size, "rule": f"r{random.integers(3)}"}
        user = f"u{random.integers(4)}"
        found.append(run(number, seconds, user=user, script_hash=f"s{script}", features=features))
    return found


def without(completion: Completion) -> Completion:
    return replace(completion, submission=replace(completion.submission, facts=None))


def error(runs, predictor) -> float:
    errors = []
    for each in runs:
        predicted = predictor.predict(each.submission).predicted_walltime
        errors.append(abs(predicted - each.runtime))
        predictor.observe(each)
    return sum(errors[len(errors) // 2 :])


def test_a_gain_is_the_error_that_the_newest_run_with_the_same_value_would_have_saved():
    table = JobTable(9_000)
    table.add(run(1, math.expm1(4), script_hash="a"))
    table.add(run(2, math.expm1(7), script_hash="b"))
    table.add(run(3, math.expm1(5), script_hash="a"))
    gains = table.facts[2, GAINS : GAINS + len(OWN)]
    assert gains[SCRIPT] == 1.0, "|5 - 7| less |5 - 4|"
    assert np.isnan(np.delete(gains, SCRIPT)).all()
    assert table.facts[2, WEIGHT] == pytest.approx(1 / math.sqrt(3))
    weight = round(1024 / math.sqrt(3))
    assert table._fact_sums[:, SCRIPT].tolist() == [weight, weight, weight**2]
    assert not fact_rows.weights_of(table._fact_sums).any(), "one run is not certain"


def test_a_fact_weighs_by_its_mean_gain_less_two_standard_errors():
    sums = np.zeros((3, fact_rows.PLACES))
    sums[:, SCRIPT] = 100.0 * 1024, 0.5 * 100 * 1024, 100 * (0.5 * 1024) ** 2
    expected = STEEPNESS * (0.5 - 2 * 0.05 - LEAST_GAIN)
    assert fact_rows.weights_of(sums)[SCRIPT] == pytest.approx(expected)
    sums[1, SCRIPT] *= -1
    assert not fact_rows.weights_of(sums).any()


def test_a_gain_of_numbers_is_that_of_the_run_with_the_nearest_number():
    table = JobTable(9_000)
    for number, (log, size) in enumerate([(4, 10.0), (7, 1000.0), (5, 12.0)], start=1):
        table.add(run(number, math.expm1(log), features={"size": size}))
    assert table.facts[2, GAINS + FIRST_FEATURE] == 1.0


def test_sums_over_rows_are_those_that_are_added_row_by_row():
    table = JobTable(9_000)
    for each in by_law(600):
        table.add(each)
    rows = table.facts[200 : table._stop].copy()
    rows[7] = np.nan  # as of a run before the first facts
    added = np.zeros((fact_rows.SUMS, fact_rows.PLACES))
    for row in range(len(rows)):
        fact_rows.add_gains(added, rows, row, 1.0)
    assert added.any()
    assert fact_rows.gains_of(rows).tobytes() == added.tobytes()
    assert not fact_rows.gains_of(rows[:0]).any()


def test_a_run_that_had_not_ended_at_the_submission_says_nothing():
    table = JobTable(9_000)
    table.add(run(1, 100, script_hash="a"))
    late = run(2, 7 * 24 * HOUR, script_hash="b")
    last = run(3, 100, script_hash="a")
    table.add(last)
    before = table.facts[1].copy()
    table.add(late)
    assert np.isnan(before[GAINS:WEIGHT]).all()
    assert table.facts[1].tobytes() == before.tobytes()


def test_features_of_other_names_are_not_compared():
    one, other = Facts(features={"size": 2.0}), Facts(features={"rank": 2.0})
    numbers = np.array([fact_rows.numbers_of(each) for each in (one, other)])
    assert np.isnan(fact_rows.distance(numbers, 0, numbers[1], FIRST_FEATURE))
    assert fact_rows.distance(numbers, 0, numbers[0], FIRST_FEATURE) == 0.0
    word = fact_rows.numbers_of(Facts(features={"size": "2"}))
    assert np.isnan(fact_rows.distance(numbers, 0, word, FIRST_FEATURE))


def test_counts_are_compared_by_their_ratio_and_texts_for_equality():
    one = fact_rows.numbers_of(Facts(gpus=4, qos="high", interactive=True))
    other = fact_rows.numbers_of(Facts(gpus=8, qos="low"))
    rows = np.array([one])
    found = [fact_rows.distance(rows, 0, other, OWN.index(name)) for name in ("gpus", "qos")]
    assert found == [pytest.approx(math.log(2)), 1.0]
    assert np.isnan(fact_rows.distance(rows, 0, other, OWN.index("interactive")))
    zero = fact_rows.numbers_of(Facts(gpus=0))
    assert fact_rows.distance(rows, 0, zero, OWN.index("gpus")) == 3.0


def test_facts_that_determine_runtimes_lower_the_error_by_a_third():
    runs = by_law(1_200)
    with_facts = error(runs, LeastCost())
    assert with_facts < 0.65 * error(list(map(without, runs)), LeastCost())


def test_facts_that_are_noise_change_no_answer():
    runs = by_law(600, are_noise=True)
    told, silent = LeastCost(), LeastCost()
    for each in runs:
        told.observe(each)
        silent.observe(without(each))
    assert not fact_rows.weights_of(told._recent._fact_sums).any()
    question = Question(explain=True)
    for each in by_law(30, seed=2):
        later = replace(each.submission, submit_time=1e9)
        assert told.ask(later, question) == silent.ask(replace(later, facts=None), question)


def test_a_table_without_facts_holds_none():
    table = JobTable(9_000)
    for each in by_law(100):
        table.add(without(each))
    assert table.facts.nbytes == 0
    assert not table.facts_of(by_law(1)[0].submission)[2].any()


def test_runs_that_end_later_change_no_answer():
    runs = by_law(400)
    predictor = LeastCost()
    for each in runs[:300]:
        predictor.observe(each)
    job = replace(by_law(1, seed=3)[0].submission, user="u1", submit_time=300 * 24 * HOUR)
    before = predictor.ask(job, Question(explain=True))
    for each in runs[301:]:
        predictor.observe(each)
    assert predictor.ask(job, Question(explain=True)) == before


def test_the_newest_runs_alone_give_the_same_answers():
    runs = by_law(9_000 + 4_000)
    whole, part = LeastCost(history=1_000), LeastCost(history=1_000)
    for each in runs:
        whole.observe(each)
    for each in runs[-part.memory.latest_jobs :]:
        part.observe(each)
    assert whole._recent._fact_sums.tolist() == part._recent._fact_sums.tolist()
    job = replace(by_law(1, seed=3)[0].submission, user="u1", submit_time=1e12)
    assert whole.predict(job) == part.predict(job)


def test_the_sums_are_those_of_the_last_runs():
    table = JobTable(9_000)
    for each in by_law(fact_rows.JUDGED + 300):
        table.add(each)
    sums = np.zeros_like(table._fact_sums)
    for row in range(300, fact_rows.JUDGED + 300):
        fact_rows.add_gains(sums, table.facts, row, 1.0)
    assert sums.tolist() == table._fact_sums.tolist()
    copied = table.copy()
    copied.add(run(9_999, 60, script_hash="s1"))
    assert len(copied) == len(table) + 1
    assert sums.tolist() == table._fact_sums.tolist()


def test_an_explanation_names_the_facts_that_made_runs_alike():
    predictor = LeastCost()
    for each in by_law(600):
        predictor.observe(each)
    job = replace(by_law(1, seed=3)[0].submission, user="u1", submit_time=600 * 24 * HOUR)
    found = predictor.ask(job, Question(explain=True)).explanation
    assert "script_hash" in found[0].shared
    assert all("rule" not in each.shared for each in found)
    silent = predictor.ask(replace(job, facts=None), Question(explain=True)).explanation
    assert {each.shared for each in silent} == {()}


def test_the_statistic_of_a_text_is_over_earlier_runs_of_the_user_alone():
    table = JobTable(9_000)
    table.add(run(1, math.expm1(4), script_hash="a"))
    table.add(run(2, math.expm1(8), script_hash="b"))
    table.add(run(3, math.expm1(2), script_hash="a", user="bob"))
    table.add(run(4, math.expm1(5), script_hash="a", gpus=4))
    found = np.zeros((4, fact_rows.PLACES), np.float32)
    fact_rows.describe_rows(table.columns, table.facts, (table.first, 0, 4), 1_000, found)
    assert found[3, SCRIPT] == pytest.approx((4 + (4 + 8) / 2) / 2)
    assert found[3, OWN.index("gpus")] == 4.0
    assert found[0, SCRIPT] == found[2, SCRIPT] == found[1, SCRIPT] == -1.0
    assert table.window(run(5, 1, user="eve").submission).newest == NOWHERE
