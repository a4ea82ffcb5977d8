"""What every registered predictor keeps; a new one is in here as soon as it is registered."""

import json
from math import inf, isfinite
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from runs import ended, taught

from predictors.base import (
    DEFAULT_METHOD,
    SHORTEST_ESTIMATE,
    USUAL,
    Predictor,
    Question,
    UncertainPredictor,
)
from predictors.jobs import Completion, Submission
from predictors.memory.user_runs import SLACK
from predictors.methods.forest_trees import one_leaf
from predictors.registry import PREDICTORS, UNCERTAIN, UnknownMethodError, create

pytestmark = pytest.mark.lengthy(25)

DAY = 86400.0

VARIANTS = {
    "max-usage": [{"window": 2, "margin_seconds": 30, "factor": 1.5}],
    "percentile": [
        {"key": "user", "min_jobs": 1, "lower_bound": 0},
        {"key": "project", "min_jobs": 2, "window_days": None, "percentile": 50},
        {"key": "double", "min_jobs": 1, "window_days": 7, "percentile": 100},
        {"key": "triple", "min_jobs": 1, "window_days": 60, "percentile": 0, "lower_bound": 0},
    ],
    "least-cost": [{"price": 0, "window": 3, "history": 1000}],
    "forest": [{"learned": one_leaf()}, {"learned": one_leaf(attention=0.5), "history": 1000}],
    "knn": [{"template": ["user", "application"], "history": 20, "neighbours": 3, "alpha": 0.5}],
}
"""Parameters beside the defaults, under which few jobs are history enough."""

CASES = [
    pytest.param((name, parameters), id=f"{name}-{place}")
    for name in PREDICTORS
    for place, parameters in enumerate([{}, *VARIANTS.get(name, [])])
]
every_predictor = pytest.mark.parametrize("case", CASES)

requests = st.sampled_from((0.5, 60.0, 3600.0, 86400.0, 366 * DAY))
submissions = st.builds(
    Submission,
    requested_walltime=requests,
    submit_time=st.integers(0, 100).map(lambda day: day * DAY),
    user=st.sampled_from(("ann", "bob", None)),
    project=st.sampled_from(("x", "y", None)),
    group=st.sampled_from(("g", None)),
    queue=st.sampled_from(("short", None)),
    application=st.sampled_from(("a.out", "b.out", None)),
    requested_processors=st.sampled_from((1, 64, None)),
    requested_memory=st.sampled_from((1.0, 1e6, None)),
)


@st.composite
def completions(draw, first_day=0, last_day=100):
    """A run that ended at midnight, so that several end together; it may outrun its request."""
    submission = draw(submissions)
    runtime = submission.requested_walltime * draw(st.sampled_from((0.0, 0.1, 0.3, 1.0, 1.7)))
    end = draw(st.integers(first_day, last_day)) * DAY
    return Completion(
        submission=submission, start_time=end - runtime, end_time=end, runtime=runtime
    )


logs = st.lists(completions(), max_size=40)

QUESTIONS = (
    USUAL,
    Question(coverage=0.5, underestimation_rate=0.1),
    Question(elapsed=1000.0, explain=True),
)


def said(predictor: Predictor, submission: Submission) -> tuple:
    """All that a predictor answers about a job."""
    answers = (predictor.predict(submission),)
    if predictor.name not in UNCERTAIN:
        return answers
    asked = (predictor.ask(submission, question) for question in QUESTIONS)
    return (*answers, *asked, predictor.quantiles(submission, (0.1, 0.9), 60.0))


def fold(case: tuple[str, dict], log: list[Completion]) -> Predictor:
    name, parameters = case
    return taught(create(name, **parameters), log)


@every_predictor
def test_it_is_a_predictor_that_knows_its_name_and_its_parameters_in_json(case):
    name, parameters = case
    predictor = create(name, **parameters)
    assert isinstance(predictor, Predictor)
    assert isinstance(predictor, UncertainPredictor) == (name in UNCERTAIN)
    assert predictor.name == name
    in_force = json.loads(json.dumps(predictor.parameters, allow_nan=False))
    learned = {"learned": parameters["learned"]} if "learned" in parameters else {}  # no JSON
    assert create(name, **in_force | learned).parameters == predictor.parameters


@every_predictor
@given(log=logs, submission=submissions)
def test_a_prediction_is_finite_positive_and_at_most_the_request(case, log, submission):
    prediction = fold(case, log).predict(submission)
    request = submission.requested_walltime
    assert isfinite(prediction.predicted_walltime)
    assert min(SHORTEST_ESTIMATE, request) <= prediction.predicted_walltime <= request
    assert prediction.requested_walltime == request
    assert prediction.method == case[0]
    assert 0 <= prediction.basis.jobs <= len(log)
    assert prediction.basis.reason


@every_predictor
@given(log=logs, submission=submissions)
def test_an_answer_with_an_interval_is_the_same_prediction(case, log, submission):
    plain, *answers = said(fold(case, log), submission)
    request = submission.requested_walltime
    for question, answer in zip(QUESTIONS, answers[:-1], strict=False):
        if question == USUAL:
            assert answer.predicted_walltime == plain.predicted_walltime
            assert answer.basis.jobs == plain.basis.jobs
        assert isfinite(answer.predicted_walltime)
        assert min(SHORTEST_ESTIMATE, request) <= answer.predicted_walltime <= request
        interval = answer.interval
        assert max(0.0, min(question.elapsed or 0.0, request)) <= interval.lower <= interval.upper
        assert interval.upper <= max(request, question.elapsed or 0.0)
        assert interval.coverage == question.coverage
        if answer.median is not None:
            assert interval.lower <= answer.median <= interval.upper
            assert min(SHORTEST_ESTIMATE, request) <= answer.mean <= request
        assert (answer.explanation is not None) == question.explain


@every_predictor
@given(log=logs, asked=st.lists(st.tuples(st.integers(0, 40), submissions), max_size=10))
def test_asking_changes_no_answer(case, log, asked):
    questions = [submission for _, submission in asked]
    silent = fold(case, log)
    disturbed = create(case[0], **case[1])
    for place, completion in enumerate(log):
        for moment, submission in asked:
            if moment == place:
                said(disturbed, submission)
        disturbed.observe(completion)
    once = [said(silent, submission) for submission in questions]
    assert [said(disturbed, submission) for submission in questions] == once
    assert [said(silent, submission) for submission in reversed(questions)] == once[::-1]


@every_predictor
@given(
    past=st.lists(completions(last_day=50), max_size=30),
    future=st.lists(completions(first_day=51), max_size=SLACK),
    submission=submissions,
    order=st.randoms(use_true_random=False),
)
def test_a_completion_says_nothing_about_jobs_submitted_before_its_end(
    case, past, future, submission, order
):
    submission = replace(submission, submit_time=min(submission.submit_time, 50 * DAY))
    mixed = merged(past, future, order)
    assert said(fold(case, mixed), submission) == said(fold(case, past), submission)


def merged(past: list[Completion], future: list[Completion], order: Random) -> list[Completion]:
    """Both logs in one, each in its own order."""
    left, right, both = list(past), list(future), []
    while left or right:
        take = left if not right or (left and order.random() < 0.5) else right
        both.append(take.pop(0))
    return both


@every_predictor
@given(submission=submissions)
def test_without_history_the_answer_is_the_request(case, submission):
    prediction = create(case[0], **case[1]).predict(submission)
    assert prediction.predicted_walltime == submission.requested_walltime
    assert prediction.basis.jobs == 0
    assert prediction.basis.reason == ("request" if case[0] == "requested" else "cold-start")


@every_predictor
def test_what_is_unknown_matches_nothing(case):
    unknown = Submission(requested_walltime=3600, submit_time=100 * DAY)
    run = Completion(submission=unknown, start_time=0, end_time=60, runtime=60)
    prediction = fold(case, [run] * 20).predict(unknown)
    assert prediction.predicted_walltime == 3600
    assert prediction.basis.jobs == 0


def long_log(seed: int) -> list[Completion]:
    """200 completions of few users in an order that is only roughly that of their ends."""
    random = Random(seed)
    log = []
    for number in range(200):
        request = random.choice((600.0, 3600.0, 86400.0))
        runtime = request * random.choice((0.0, 0.2, 0.5, 0.9, 1.2))
        end = (number + random.randrange(-30, 30)) * DAY / 2
        known = {
            "user": random.choice(("ann", "ann", "bob", None)),
            "project": random.choice(("x", "x", "y", None)),
            "application": random.choice(("a.out", "b.out")),
            "requested_processors": random.choice((1, 64, None)),
        }
        log.append(ended(end, runtime, request=request, **known))
    return log


def remembered(predictor: Predictor, log: list[Completion]) -> list[Completion]:
    """The part of a log that ``predictor.memory`` asks for, in log order."""
    memory = predictor.memory
    newest_first = sorted(
        range(len(log)), key=lambda place: (log[place].end_time, place), reverse=True
    )
    keep = set(newest_first[: memory.latest_jobs])
    seen: dict[str, int] = {}
    for place in newest_first:
        user = log[place].submission.user
        seen[user] = seen.get(user, 0) + 1
        since = log[newest_first[0]].end_time - memory.window_seconds
        if seen[user] <= memory.jobs_per_user or log[place].end_time >= since:
            keep.add(place)
    return [completion for place, completion in enumerate(log) if place in keep]


@every_predictor
@given(seed=st.integers(0, 2**32), later=st.sampled_from((0.0, 1.0, 3 * DAY, 40 * DAY)))
def test_the_remembered_part_of_a_log_answers_as_all_of_it_does(case, seed, later):
    log = long_log(seed)
    whole = fold(case, log)
    part = fold(case, remembered(whole, log))
    newest = max(completion.end_time for completion in log)
    for completion in log[-20:]:
        submission = replace(completion.submission, submit_time=newest + later)
        assert said(part, submission) == said(whole, submission)


@pytest.mark.parametrize("name", PREDICTORS)
def test_an_unknown_parameter_is_named(name):
    with pytest.raises(ValueError, match="windw"):
        create(name, windw=5)


def test_an_unknown_method_is_named_with_those_there_are():
    with pytest.raises(UnknownMethodError, match=r"'magic'.*max-usage"):
        create("magic")


def test_the_default_method_is_registered_and_bounded_in_what_it_remembers():
    assert create(DEFAULT_METHOD).memory.window_seconds < inf
