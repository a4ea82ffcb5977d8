"""Which of its candidates auto answers with, and what it says of them."""

from random import Random

import pytest
from msgspec.structs import replace
from runs import ended, submission

from predictors.auto import KNOWN, STRANGERS, Auto
from predictors.base import Question
from predictors.jobs import Completion
from predictors.memory.choice import PRIOR
from predictors.memory.columns import RUNNING
from predictors.memory.running_jobs import Start
from predictors.methods.attention import Attention
from simulator.replay.trace_replay import play_jobs, start_of

HOUR = 3600.0


def log(count, runtime, request, *, users=10, every=600.0):
    """Runs of several users in turn, one after the other; ``runtime`` gives seconds by place."""
    return [
        ended(
            every * place + runtime(place),
            runtime(place),
            user=f"u{place % users}",
            request=request,
            application=f"a{place % users}.out",
        )
        for place in range(count)
    ]


def long_or_short(place):
    return HOUR if Random(place).random() < 0.33 else 60.0


def taught(runs, **parameters):
    auto = Auto(every=0, **parameters)
    for run in runs:
        auto.observe(run)
    return auto


def next_job(runs, user="u1", request=10 * HOUR):
    application = f"a{user[1:]}.out"
    time = runs[-1].end_time + 60.0
    return submission(time, user=user, request=request, application=application)


def test_without_history_the_answer_is_the_request():
    prediction = Auto().predict(submission(0.0, request=HOUR))
    assert (prediction.predicted_walltime, prediction.basis.reason) == (HOUR, "cold-start")


def test_the_request_answers_where_it_has_cost_least():
    """A third of the jobs take all that they ask for, the others next to nothing; none can tell."""
    runs = log(1_500, long_or_short, HOUR)
    dear = taught(runs, price=100.0)
    job = next_job(runs, request=HOUR)
    prediction = dear.ask(job, Question())
    assert prediction.predicted_walltime == HOUR
    assert dear.predict(job).predicted_walltime == HOUR
    cheap = taught(runs, price=0.0)
    jobs = [next_job(runs, f"u{number}", request=HOUR) for number in range(10)]
    assert min(cheap.predict(each).predicted_walltime for each in jobs) < 600.0
    assert {dear.predict(each).predicted_walltime for each in jobs} == {HOUR}


def test_a_rate_or_a_running_job_is_answered_by_the_distribution():
    runs = log(1_500, long_or_short, HOUR)
    auto, job = taught(runs, price=100.0), next_job(runs, request=HOUR)
    attention = Attention(price=100.0)
    for run in runs:
        attention.observe(run)
    for question in (Question(underestimation_rate=0.4), Question(elapsed=30.0)):
        answer = auto.ask(job, question)
        of_attention = attention.ask(job, question)
        assert (answer.median, answer.interval) == (of_attention.median, of_attention.interval)


def test_costs_name_every_candidate_and_the_first_is_the_measure():
    runs = log(400, lambda _: 600.0, 10 * HOUR)
    auto = taught(runs)
    known = auto.costs(next_job(runs))
    assert list(known) == [each.name for each in KNOWN[:6]]
    assert known["attention"] == 0.0
    assert known["request"] > 10.0
    strangers = auto.costs(next_job(runs, user="u99"))
    assert set(strangers) == {each.name for each in STRANGERS[:3]}


def test_the_answers_follow_from_the_runs_wherever_a_process_began():
    """A predictor that is asked all the time, and one that is asked at the end."""
    runs = log(900, lambda place: 60.0 + 97.0 * (place % 31), 2 * HOUR, users=13)
    asked, silent = Auto(price=3.0, every=0), taught(runs, price=3.0)
    for run in runs:
        asked.predict(run.submission)
        asked.observe(run)
    for user in ("u1", "u12", "new"):
        job = (
            next_job(runs, user=user, request=HOUR)
            if user != "new"
            else submission(runs[-1].end_time + 60.0, user="new", request=HOUR)
        )
        assert asked.ask(job, Question()) == silent.ask(job, Question())
        assert asked.costs(job) == silent.costs(job)


def test_costs_count_from_the_first_runs_on():
    """Jobs that ask for six times what they need: the request is found to cost more at once."""
    before, after = (
        taught(runs).costs(next_job(runs, "u1", request=HOUR))["request"]
        for runs in (log(2, lambda _: 600.0, HOUR), log(100, lambda _: 600.0, HOUR))
    )
    assert PRIOR[2] == before < 1.0 < after


def burst_of(auto, runs, *, siblings, hours):
    """Let jobs like those of u1 begin, none of which has ended some hours later."""
    time = runs[-1].end_time + 60.0
    for place in range(siblings):
        job = replace(next_job(runs), job_id=f"burst{place}")
        auto.started(Start(job, time, known_from=time))
    return replace(next_job(runs), submit_time=time + hours * HOUR)


@pytest.mark.parametrize("price", [0.0, 1.0, 10.0])
def test_a_distribution_that_running_jobs_have_refuted_is_refuted_in_the_answer(price):
    """All of a user's jobs took 45 s; hundreds of like jobs have been running for hours."""
    runs = log(1_500, lambda place: 45.0 + place % 3, 10 * HOUR)
    auto = taught(runs, price=price)
    before = auto.ask(next_job(runs), Question())
    assert before.predicted_walltime < 120.0
    job = burst_of(auto, runs, siblings=300, hours=3.0)
    answer = auto.ask(job, Question())
    assert answer.predicted_walltime > 3 * HOUR
    assert answer.median > 3 * HOUR
    assert auto.predict(job).predicted_walltime == answer.predicted_walltime
    assert auto.quantiles(job, (0.5,))[0] > 3 * HOUR
    renewed = auto.ask(job, Question(elapsed=60.0))
    assert renewed.predicted_walltime > 3 * HOUR
    assert renewed.median > 3 * HOUR
    for other in (replace(job, user="u2"), replace(job, application="other.out")):
        assert auto.ask(other, Question()).predicted_walltime < 120.0


def test_the_forest_knows_of_the_running_jobs_also_when_it_is_renewed():
    runs = log(100, lambda place: 45.0 + place % 3, 10 * HOUR)
    auto = taught(runs)
    auto.renew(None)
    job = burst_of(auto, runs, siblings=300, hours=3.0)
    assert auto.forest.running.like(job)[RUNNING] == 300


def test_jobs_that_began_just_now_change_no_answer():
    runs = log(1_500, lambda place: 45.0 + place % 3, 10 * HOUR)
    auto = taught(runs)
    without = auto.ask(next_job(runs), Question())
    job = burst_of(auto, runs, siblings=3, hours=0.001)
    assert auto.ask(job, Question()).predicted_walltime == without.predicted_walltime


def test_what_ran_at_a_submission_costs_candidates_and_may_answer():
    """Jobs come in fives that take equally long: 60 s, or an hour; four run when the fifth comes.

    The last four of each five are submitted when the first has run for two minutes, if it still
    does: then it is one of an hour.
    """
    runs, auto = [], Auto(price=1.0, every=0)
    for place in range(400):
        begin, runtime = 7_000.0 * place, long_or_short(place)
        for number, waits in enumerate((0.0, 120.0, 120.0)):
            job = submission(
                begin + waits, user=f"u{place % 5}", request=2 * HOUR, job_id=f"{place}.{number}"
            )
            runs.append(run_of(job, runtime))
    play_jobs(
        runs,
        ended=lambda place: auto.observe(runs[place]),
        submitted=lambda _: None,
        started=lambda place: auto.started(start_of(runs[place])),
    )
    time = runs[-1].end_time + 600.0
    first = submission(time, user="u1", request=2 * HOUR, job_id="new")
    without = auto.ask(replace(first, submit_time=time + 120.0), Question())
    known, _ = auto.cluster_costs()
    assert known["attention, running jobs 3x"] < known["attention, running jobs"] < 0.0
    auto.started(Start(first, time, known_from=time))
    with_it = auto.ask(replace(first, submit_time=time + 120.0), Question())
    assert with_it.median > without.median


def run_of(job, runtime):
    start = job.submit_time
    return Completion(submission=job, start_time=start, end_time=start + runtime, runtime=runtime)
