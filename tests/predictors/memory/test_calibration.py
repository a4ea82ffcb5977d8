"""Levels are corrected by the last runs, and by them alone."""

from math import ceil
from random import Random
from statistics import fmean

import numpy as np
import pytest
from distributions import Distribution
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from runs import ended, submission, taught

from predictors.answers import YOUNG
from predictors.base import Question, UncertainPredictor
from predictors.jobs import Completion, Submission
from predictors.memory import calibration, columns, histograms
from predictors.memory.histograms import ALL, ENOUGH, OF_PLACES, histogram_of
from predictors.memory.job_table import JobTable
from predictors.methods.forest_trees import one_leaf
from predictors.methods.least_cost import LeastCost
from predictors.registry import UNCERTAIN, create

SHARES = (0.05, 0.5, 0.9, 0.99)

NO_SCORES = np.empty(0)


def log(jobs: int, seed: int = 7) -> list[Completion]:
    """Runs of ten users in roughly the order of their ends; some wait, some last."""
    random = Random(seed)
    found = []
    for number in range(jobs):
        user = random.randrange(10)
        request = random.choice((1800.0, 7200.0))
        runtime = min(request, random.lognormvariate(5.0 + user / 4, 1.0))
        end = 1e6 + 60.0 * (number + random.randrange(5))
        known = {
            "waited": random.choice((0.0, 600.0, 20_000.0)),
            "application": random.choice(("a", "b", None)),
            "requested_processors": random.choice((1, 8, None)),
        }
        found.append(ended(end, runtime, request=request, user=f"user{user}", **known))
    return found


METHODS = {
    "least-cost": {"history": 1000},
    "attention": {"history": 1000},
    "forest": {"history": 1000, "learned": one_leaf()},
}
every_method = pytest.mark.parametrize("name", METHODS)


def told(runs: list[Completion], name: str = "least-cost") -> UncertainPredictor:
    return taught(create(name, **METHODS[name]), runs)


def asked(method: UncertainPredictor, submission: Submission) -> tuple:
    running = replace(submission)
    return (
        method.ask(submission, Question(explain=True)),
        method.ask(submission, Question(coverage=0.5, underestimation_rate=0.1)),
        method.ask(submission, Question(elapsed=300.0)),
        method.quantiles(running, SHARES),
        method.quantiles(running, SHARES, 100.0),
    )


def held(
    method: UncertainPredictor, runs: list[Completion], question: Question
) -> tuple[float, float]:
    """Share of runs that an interval held, and that were predicted too short."""
    within = short = 0
    for run in runs:
        submission = replace(run.submission, submit_time=run.end_time)
        answer = method.ask(submission, question)
        within += answer.interval.lower <= run.runtime <= answer.interval.upper
        short += answer.predicted_walltime < run.runtime
        method.observe(run)
    return within / len(runs), short / len(runs)


@every_method
@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.95])
def test_an_interval_holds_the_share_of_runs_that_was_asked_for(coverage, name):
    runs = sorted(log(4000), key=lambda run: run.end_time)
    within, _ = held(told(runs[:1000], name), runs[1000:], Question(coverage=coverage))
    assert within == pytest.approx(coverage, abs=0.025)


@every_method
@pytest.mark.parametrize("rate", [0.05, 0.2])
def test_as_many_predictions_are_too_short_as_were_asked_for(rate, name):
    runs = sorted(log(4000), key=lambda run: run.end_time)
    _, short = held(told(runs[:1000], name), runs[1000:], Question(underestimation_rate=rate))
    assert short == pytest.approx(rate, abs=0.02)


@every_method
def test_a_young_cluster_says_so_and_has_the_interval_of_all_that_can_be(name):
    runs = log(ENOUGH + 1400)
    job = submission(1.2e6, request=7200, user="user1")
    young = told(runs[: ENOUGH - 1], name).ask(job, Question())
    assert young.basis.reason == YOUNG
    assert (young.interval.lower, young.interval.upper) == (0, 7200)
    assert told(runs[: ENOUGH - 1], name).quantiles(job, SHARES) is None
    grown = told(runs, name).ask(job, Question())
    assert grown.basis.reason == "history"
    assert grown.interval.upper < 7200


@every_method
def test_runs_that_took_no_time_widen_no_upper_end(name):
    """One run in eight ends at once, the others take 500 to 1,500 s of their hour."""
    random, runs = Random(3), []
    for number in range(1500):
        submit, runtime = 4000.0 * number, random.uniform(500.0, 1500.0) if number % 8 else 0.0
        runs.append(ended(submit + runtime, runtime))
    job = submission(runs[-1].end_time + 1)
    interval = told(runs, name).ask(job, Question(coverage=0.9)).interval
    assert interval.lower < 500
    assert 1300 < interval.upper < 3000


@every_method
def test_a_lower_end_of_a_second_is_told_as_none(name):
    """Every second run ends at once: the lower end holds these."""
    runs = [replace(run, runtime=0.0) if place % 2 else run for place, run in enumerate(log(1200))]
    job = submission(1.2e6, request=7200, user="user1")
    assert told(runs, name).ask(job, Question()).interval.lower == 0


@every_method
def test_a_run_says_nothing_about_jobs_submitted_before_its_end(name):
    runs = log(1500)
    now = runs[1000].end_time
    job = submission(now, request=7200, user="user1")
    known = [run for run in runs if run.end_time <= now]
    assert asked(told(runs, name), job) == asked(told(known, name), job)


@every_method
def test_a_run_that_is_reported_late_counts_as_if_it_had_been_reported_in_time(name):
    runs = log(1500)
    late = runs.pop(1200)
    job = submission(1.2e6, request=7200, user="user1")
    method = told(runs, name)
    asked(method, job)
    method.observe(late)
    in_time = sorted([*runs, late], key=lambda run: run.end_time)
    assert asked(method, job)[1:] == asked(told(in_time, name), job)[1:]


@every_method
def test_the_remembered_part_of_a_long_log_answers_as_all_of_it_does(name):
    whole = told([], name)
    kept = whole.memory.latest_jobs
    runs = log((2 * kept if name == "least-cost" else kept) + 500)
    for place, run in enumerate(runs):
        whole.observe(run)
        if place % 1000 == 0:
            whole.ask(replace(run.submission, submit_time=run.end_time), Question())
    newest = sorted(range(len(runs)), key=lambda place: (runs[place].end_time, place))[-kept:]
    part = told([runs[place] for place in sorted(newest)], name)
    for run in runs[-20:]:
        submission = replace(run.submission, submit_time=run.end_time + 60)
        assert asked(part, submission) == asked(whole, submission)


def test_attention_alone_looks_back_at_where_runs_came_among_those_before_them():
    job = submission(1.2e6, request=7200, user="user1")
    for name in METHODS:
        method = told(LONG_LOG, name)
        method.ask(job, Question())
        found = method._calibration._histograms
        placed = histograms.runs_in(found, OF_PLACES)
        assert histograms.runs_in(found, histogram_of(1, ALL, 0)) > 1000
        assert placed > 1000 if name == "attention" else placed == 0


def test_ranks_and_places_are_the_same_whatever_order_runs_are_reported_in():
    job = submission(1.2e6, request=7200, user="user1")
    runs = sorted(LONG_LOG, key=lambda run: run.end_time)
    runs = [replace(run, end_time=run.end_time + place / 1e3) for place, run in enumerate(runs)]
    mixed = told([], "attention")
    for begin in range(0, len(runs), 50):
        several = runs[begin : begin + 50]
        Random(begin).shuffle(several)
        for run in several:
            mixed.observe(run)
        mixed.ask(job, Question())
    in_order = told(runs, "attention")
    in_order.ask(job, Question())
    assert (mixed._calibration._histograms == in_order._calibration._histograms).all()


@every_method
def test_a_running_job_is_compared_with_those_that_ran_as_long(name):
    method = told(log(3000), name)
    job = submission(1.2e6, request=7200, user="user3")
    fresh, running = (method.ask(job, Question(elapsed=each)) for each in (None, 600.0))
    assert running.interval.lower >= 600
    assert running.median > fresh.median
    assert running.predicted_walltime > 600
    left = method.quantiles(job, SHARES, 600.0)
    assert left == sorted(left)
    assert left[0] >= 600


@every_method
def test_an_explanation_names_the_heaviest_runs_of_the_same_user_alone(name):
    runs = [
        replace(run, submission=replace(run.submission, job_id=f"{run.submission.user}.{place}"))
        for place, run in enumerate(log(600))
    ]
    job = submission(1.2e6, request=7200, user="user3", application="a")
    found = told(runs, name).ask(job, Question(explain=True)).explanation
    weights = [run.weight for run in found]
    assert weights == sorted(weights, reverse=True)
    assert 0 < sum(weights) <= 1
    assert all(run.job_id.startswith("user3.") for run in found)
    assert told(runs, name).ask(job, Question()).explanation is None


@every_method
def test_an_unknown_user_gets_the_request_and_the_interval_of_all_that_can_be(name):
    answer = told(log(600), name).ask(
        Submission(requested_walltime=7200, submit_time=1.2e6), Question()
    )
    assert answer.predicted_walltime == 7200
    assert (answer.interval.lower, answer.interval.upper) == (0, 7200)
    assert answer.median is None
    assert answer.basis.reason == "cold-start"


def test_every_method_that_says_how_sure_it_is_is_held_to_this():
    assert {*METHODS, "auto"} == UNCERTAIN


def corrected(counts: calibration.Counts, kind: int, share: float) -> float:
    return calibration.corrected(counts, calibration.group_weights(counts), kind, share)


def share_within(counts: calibration.Counts, level: float) -> float:
    return calibration.share_within(counts, calibration.group_weights(counts), level)


SEVENTHS = [(step + 0.5) / 7 for step in range(7)]
"""Levels of the quantiles whose mean is the mean runtime."""


def one_by_one(method: LeastCost, submission: Submission, question: Question) -> tuple:
    """Prediction, interval, median and mean, each taken from the distribution by itself."""
    evidence, counts = method.evidence(submission), method._calibration.at(submission)
    request, elapsed = submission.requested_walltime, question.elapsed
    whole = Distribution(values=evidence.values, weights=evidence.weights, request=request)

    def up_to(share: float) -> float:
        if elapsed is None:
            return whole.quantile(corrected(counts, 0, share))
        ended = share_within(counts, whole.levels(elapsed)[1])
        level = corrected(counts, 0, ended + share * (1 - ended))
        return max(min(elapsed, request), whole.quantile(level))

    if elapsed is None:
        spread = corrected(counts, 1, question.coverage)
        lower, upper = whole.quantile(0.5 - spread / 2), whole.quantile(0.5 + spread / 2)
    else:
        lower, upper = (up_to(0.5 + side * question.coverage / 2) for side in (-1, 1))
    if question.underestimation_rate:
        seconds = up_to(1 - question.underestimation_rate)
    else:
        rest = whole if elapsed is None else whole.left(elapsed)
        seconds = (
            rest.estimate(method.price * evidence.mean_runtime) if len(rest.values) else request
        )
    middle, mean = min(upper, max(lower, up_to(0.5))), fmean(map(up_to, SEVENTHS))
    return min(request, max(1.0, seconds)), lower, upper, middle, min(request, max(1.0, mean))


LONG_LOG = log(1500)


@pytest.fixture(scope="module")
def grown() -> LeastCost:
    return told(LONG_LOG)


questions = st.builds(
    Question,
    coverage=st.floats(0.5, 0.99),
    underestimation_rate=st.none() | st.floats(0.01, 0.5),
    elapsed=st.none() | st.floats(0, 8000),
)


@given(place=st.integers(700, 1499), delay=st.floats(-9000, 9000), question=questions)
def test_an_answer_in_one_call_is_the_one_of_every_definition_by_itself(
    grown, place, delay, question
):
    run = LONG_LOG[place]
    job = replace(run.submission, submit_time=run.end_time + delay)
    answer = grown.ask(job, question)
    found = (
        answer.predicted_walltime,
        answer.interval.lower,
        answer.interval.upper,
        answer.median,
        answer.mean,
    )
    assert found == pytest.approx(one_by_one(grown, job, question), rel=1e-9)
    if question.elapsed is None and question.underestimation_rate is None:
        assert answer.predicted_walltime == grown.predict(job).predicted_walltime
    explained = grown.ask(job, replace(question, explain=True))
    assert replace(explained, explanation=None) == answer


@every_method
def test_ranks_made_when_runs_are_observed_are_those_made_when_somebody_asks(name):
    job = submission(1.2e6, request=7200, user="user1")
    early = told([], name)
    for run in LONG_LOG:
        early.observe(run)
        early.ask(replace(job, submit_time=run.end_time - 3000.0), Question())
    assert asked(early, job) == asked(told(LONG_LOG, name), job)


def counted(levels: dict[int, list[float]]) -> histograms.Histograms:
    """Histograms of PIT values, given by familiarity group."""
    found = histograms.no_histograms()
    rows = [(group, level) for group, levels in levels.items() for level in levels]
    numbers = np.full((columns.NUMBERS, len(rows)), -1.0)
    for row, (group, level) in enumerate(rows):
        numbers[columns.FAMILIARITY, row], numbers[columns.PIT, row] = group, level
    none = (0, 0)
    histograms.recount(found, numbers, (none, none, none), (0, len(rows), len(rows), 0))
    return found


def test_jobs_of_new_users_are_corrected_by_those_of_new_users_above_all():
    bins = counted({0: [0.95] * 300, 1: [], 2: [0.5] * 1500})
    new, unseen, familiar = (corrected((bins, group, NO_SCORES), 0, 0.8) for group in range(3))
    assert new == pytest.approx(0.95, abs=1e-3)
    assert familiar == pytest.approx(0.5, abs=1e-3)
    assert unseen == pytest.approx(0.5, abs=1e-3), "without runs like it, all runs count"


@given(levels=st.lists(st.floats(0, 1), min_size=1, max_size=50), share=st.floats(0.01, 0.95))
def test_a_corrected_level_is_the_least_that_the_share_of_runs_and_one_more_did_not_exceed(
    levels, share
):
    bins = counted({0: levels, 1: [], 2: []})
    runs = len(levels)
    wanted = min(1.0, share * (runs + 1) / runs)
    least = sorted(levels)[max(0, ceil((wanted - histograms.ROUNDING) * runs) - 1)]
    assert corrected((bins, 0, NO_SCORES), 0, share) == pytest.approx(least, abs=3e-4)
    below = sum(level < 0.5 for level in levels) / runs
    assert share_within((bins, 0, NO_SCORES), 0.5) == pytest.approx(below)


def test_a_width_that_clearly_did_not_hold_for_the_users_last_runs_is_replaced_by_one_that_did():
    scores = np.arange(64) / 64
    held = calibration.width_that_held
    assert held(scores, 0.9, 0.9) == 0.9
    assert held(scores, 0.9, 0.77) == 0.77, "14 outside, of the 6.4 that may be: no clear miss"
    assert held(scores, 0.9, 0.74) == 58 / 64
    assert held(np.full(64, 0.5), 0.9, 1.0) == 1.0, "too wide is no danger"
    assert held(np.full(3, 0.5), 0.9, 0.1) == 0.5
    assert held(np.full(2, 0.5), 0.9, 0.1) == 0.1, "two runs say nothing"
    assert held(NO_SCORES, 0.9, 0.1) == 0.1


def test_of_nobody_nothing_is_known_even_where_a_row_was_of_somebody():
    """The late run of nobody moves to the row in which the link of ada's third run stood."""
    ada = Submission(requested_walltime=60, submit_time=99.0, user="ada")
    table = JobTable(100)
    for end, user in ((1.0, "ada"), (2.0, "ada"), (4.0, "ada"), (3.0, None)):
        job = replace(ada, user=user)
        table.add(Completion(submission=job, start_time=0.0, end_time=end, runtime=1.0))
    calibration.note_familiarity(table.columns, (0, 0, 4), 100)
    assert table.columns[0][columns.FAMILIARITY, :4].tolist() == [0, 1, 0, 1]


def test_the_last_2_000_ranks_are_counted_in_one_window_and_8_000_in_the_other():
    """The last 500 of 9,000 runs have another rank, which is in both windows once they came."""
    numbers = np.zeros((columns.NUMBERS, 9_000))
    numbers[columns.PIT, 8_500:] = 0.75
    found, new = histograms.no_histograms(), 3 * 4096 // 4
    of_all = [histogram_of(window, ALL, 0) for window in (0, 1)]
    counted = ((0, 0), (0, 0), (0, 0))
    for stop, old_ranks, new_ranks in ((8_500, (2_000, 8_000), 0), (9_000, (1_500, 7_500), 500)):
        counted = histograms.recount(found, numbers, counted, (0, stop, stop, 0))
        assert found[of_all, 0].tolist() == list(old_ranks)
        assert found[of_all, new].tolist() == [new_ranks] * 2
        assert counted == ((stop - 2_000, stop), (stop - 8_000, stop), (stop, stop))


def test_how_much_is_known_of_a_user_is_counted_in_runs_that_had_ended():
    first = Submission(requested_walltime=60, submit_time=0.0, user="ada")
    table = JobTable(100)
    for end in range(1, 15):
        run = Completion(submission=first, start_time=0.0, end_time=float(end), runtime=1.0)
        table.add(run)
    _, stop, _, newest, _ = table.window(first)
    found = [
        calibration.familiarity(table.columns, (0, ended), newest) for ended in (0, 1, 9, 10, 14)
    ]
    assert found == [0, 1, 1, 2, 2]
    assert stop == 14
    assert calibration.familiarity(table.columns, (14, 14), newest) == 0, "too long ago"
