import random

import pytest
from msgspec.structs import replace

from predictors.accuracy_groups import Accuracies
from predictors.facts import Facts, starts_after_hits
from predictors.jobs import Completion, Status, Submission
from predictors.limits import CAPACITY, ENOUGH, LimitHits, LimitRisk
from predictors.registry import create

HOUR = 3600.0
LATER = 1e9


def job(user="ada", request=HOUR, submit=LATER, **fields):
    return Submission(
        user=user,
        requested_walltime=request,
        submit_time=submit,
        **{"application": "cfd", "requested_processors": 4} | fields,
    )


def run(place, runtime, user="ada", request=HOUR, status=Status.UNKNOWN, **fields):
    """Return the run of a job that is submitted long after the one before it."""
    submit = 10_000.0 * place
    return Completion(
        submission=job(user, request, submit, **fields),
        start_time=submit,
        end_time=submit + runtime,
        runtime=runtime,
        status=status,
    )


def taught(runs):
    limits = LimitHits()
    for each in runs:
        limits.observe(each)
    return limits


def others(count=ENOUGH, runtime=600.0):
    """Return runs of users who never meet a limit."""
    return [run(place, runtime, user=f"u{place % 20}") for place in range(count)]


@pytest.mark.parametrize(
    ("runtime", "request_", "status", "is_hit"),
    [
        (3540, HOUR, Status.UNKNOWN, True),  # 60 s before the limit
        (3539, HOUR, Status.COMPLETED, False),
        (99_000, 100_000, Status.FAILED, True),  # 1% before the limit
        (98_999, 100_000, Status.FAILED, False),
        (90, 100, Status.UNKNOWN, True),  # a tenth of a short limit
        (60, 100, Status.UNKNOWN, False),
        (1800, HOUR, Status.TIMEOUT, True),  # a limit that was shortened meanwhile
        (3600, HOUR, Status.NODE_FAIL, False),
        (3600, HOUR, Status.OUT_OF_MEMORY, False),
    ],
)
def test_a_run_meets_its_limit_by_its_status_or_by_its_runtime(runtime, request_, status, is_hit):
    assert run(0, runtime, request=request_, status=status).met_limit is is_hit


def test_without_enough_runs_or_a_user_there_is_no_probability_but_a_reason():
    young = taught(others(ENOUGH - 1)).of(job())
    nameless = taught(others()).of(job(user=None))
    assert (young.probability, young.reason) == (None, "young-cluster")
    assert (nameless.probability, nameless.reason) == (None, "no-user")


def test_jobs_like_those_that_were_cut_are_likely_to_be_cut():
    cut = [run(ENOUGH + place, HOUR) for place in range(6)]
    short = [run(ENOUGH + place, 600, application="test") for place in range(6, 9)]
    limits = taught(others() + cut + short)
    found = limits.of(job())
    assert (found.runs, found.hits, found.reason) == (6, 6, "history")
    assert found.probability > 0.4
    assert limits.of(job(user="u1")).probability < 0.1


def test_a_user_without_runs_is_taken_for_like_others():
    found = taught(others()).of(job(user="new"))
    assert found.reason == "others"
    assert found.probability < 0.2


def test_only_runs_that_had_ended_at_the_submission_are_features():
    cut = [run(ENOUGH + place, HOUR) for place in range(6)]
    found = taught(others() + cut).of(job(submit=cut[3].end_time - 1))
    assert (found.runs, found.hits) == (3, 3)


def test_a_job_resubmitted_at_once_after_each_hit_is_a_chain():
    links = [
        replace(
            run(ENOUGH, HOUR),
            submission=job(submit=5e6 + place * 4000),
            start_time=5e6 + place * 4000,
            end_time=5e6 + place * 4000 + HOUR,
        )
        for place in range(4)
    ]
    at_once = links[-1].end_time + 10
    found = taught(others() + links).of(job(submit=at_once))
    assert found.reason == found.longer_reason == "chain"
    cut = [run(ENOUGH + place, HOUR) for place in range(4)]
    assert taught(others() + cut).of(job()).reason == "history"


def test_a_job_that_waits_for_another_is_a_chain_where_the_last_of_its_name_was_cut():
    other = [run(ENOUGH, HOUR), run(ENOUGH + 1, 600, application="post")]
    limits = taught(others() + other)
    assert limits.of(job(), follows=True).reason == "chain"
    assert not limits.of(job(), follows=True).warns(0.0)
    assert limits.of(job()).reason == "history"
    assert limits.of(job(application="post"), follows=True).reason == "history"
    ended = taught([*others(), *other, run(ENOUGH + 2, 600)])
    assert ended.of(job(), follows=True).reason == "history", "the last one ended by itself"


@pytest.mark.parametrize(
    ("dependency", "follows"),
    [
        ("afterany", True),
        ("afternotok:17", True),
        ("singleton", True),
        ("AfterAny:17", True),
        ("afterok", False),
        ("before", False),
        (None, False),
    ],
)
def test_a_dependency_that_a_hit_fulfils_makes_a_chain(dependency, follows):
    assert starts_after_hits(Facts(dependency=dependency)) is follows
    assert not starts_after_hits(None)


def test_a_longer_walltime_stays_within_the_largest_limit_of_the_queue():
    found = LimitRisk(
        probability=0.7, reason="history", longer_walltime=2 * HOUR, longer_reason="history"
    )
    assert found.within(HOUR, None) == found.within(HOUR, 2 * HOUR) == found
    assert found.within(HOUR, 1.5 * HOUR).longer_walltime == 1.5 * HOUR
    none = found.within(HOUR, HOUR)
    assert (none.longer_walltime, none.longer_reason) == (None, "largest-limit")


def test_a_longer_walltime_holds_nine_in_ten_of_cut_and_uncut_runs():
    uncut = [run(ENOUGH + place, 4000 + 100 * place, request=8 * HOUR) for place in range(9)]
    cut = [run(ENOUGH + 10 + place, HOUR) for place in range(6)]
    found = taught(others() + uncut + cut).of(job())
    assert found.longer_reason == "history"
    assert 4800 <= found.longer_walltime <= 1.25 * 4800
    assert found.longer_walltime % 900 == 0


def test_there_is_no_longer_walltime_from_too_few_uncut_runs():
    cut = [run(ENOUGH + place, HOUR) for place in range(9)]
    found = taught(others() + cut).of(job())
    assert (found.longer_walltime, found.longer_reason) == (None, "too-few-uncut")


def test_nothing_longer_is_suggested_where_no_hit_is_likely():
    found = taught(others()).of(job(user="u1"))
    assert (found.longer_walltime, found.longer_reason) == (None, "unlikely")


def mixed(count):
    """Return runs of users with habits of their own, in order of their ends."""
    chance = random.Random(7)
    runs = []
    for place in range(count):
        user = int(chance.expovariate(0.2))
        is_cut = chance.random() < (user % 5) / 5
        runtime = HOUR if is_cut else chance.uniform(1, 3000)
        runs.append(run(place, runtime, f"u{user}", application=f"app{chance.randrange(3)}"))
    return runs


def test_answers_are_the_same_after_a_restart_with_the_last_runs():
    runs = mixed(CAPACITY + 3000)
    whole, restarted = LimitHits(), taught(runs[-CAPACITY:])
    for place, each in enumerate(runs):
        whole.observe(each)
        if place % 7 == 0:
            whole.of(each.submission)
    asked = [job(f"u{user}", application="app1") for user in range(8)]
    assert [whole.of(each) for each in asked] == [restarted.of(each) for each in asked]


def test_answers_do_not_depend_on_when_late_runs_come():
    runs = mixed(5000)
    late = LimitHits()
    for each in runs[:3000] + runs[3400:]:
        late.observe(each)
    late.of(job())
    for each in runs[3000:3400]:
        late.observe(each)
        late.of(job())
    asked = [job(f"u{user}", application="app1") for user in range(8)]
    assert [late.of(each) for each in asked] == [taught(runs).of(each) for each in asked]


def test_shares_of_hits_recalibrate_the_probabilities():
    limits, chance = LimitHits(), random.Random(3)
    expected = hits = 0.0
    for place in range(6000):
        is_cut = chance.random() < 0.6
        each = run(place, HOUR if is_cut else 100, f"u{place % 400}", application=str(place))
        if place > 3000:
            expected += limits.of(each.submission).probability
            hits += is_cut
        limits.observe(each)
    assert expected == pytest.approx(hits, rel=0.05)


def late_running(place, chance, share, user=None):
    """Return a run that came to nine tenths of its limit, and ends there with a probability."""
    request = HOUR + 60 * (place % 97)
    runtime = request if chance.random() < share else chance.uniform(0.9, 0.97) * request
    return run(place, runtime, user or f"u{place % 400}", request, application=str(place))


def at_80_percent(limits, each):
    elapsed = 0.8 * each.submission.requested_walltime
    asked = replace(each.submission, submit_time=each.start_time + elapsed)
    return limits.of(asked, elapsed).probability


def test_hits_of_runs_that_came_so_far_recalibrate_the_probabilities_of_running_jobs():
    limits, chance = taught(others(3000)), random.Random(3)
    expected = hits = 0.0
    for place in range(3000, 7000):
        each = late_running(place, chance, 0.3)
        if place > 5000:
            expected += at_80_percent(limits, each)
            hits += each.met_limit
        limits.observe(each)
    assert expected == pytest.approx(hits, rel=0.1)


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_what_became_of_a_users_own_running_jobs_counts_for_that_user_alone(share):
    chance = random.Random(5)
    calm = [late_running(place, chance, 0.3) for place in range(3000)]
    own = [late_running(place, chance, share, user="ada") for place in range(3000, 3300)]
    limits, before = taught(calm + own), taught(calm)
    asked = late_running(9000, chance, 0.5, user="ada")
    other = late_running(9001, chance, 0.5, user="u7")
    assert at_80_percent(limits, asked) == pytest.approx(share, abs=0.1)
    assert at_80_percent(limits, other) == pytest.approx(at_80_percent(before, other), abs=0.1)


def test_one_user_hardly_moves_the_probabilities_of_others():
    calm = mixed(4000)
    flood = [run(4000 + place, HOUR, "flood", application="app1") for place in range(2500)]
    asked = [job(f"u{user}", application="app1") for user in range(8)]
    before = [taught(calm).of(each).probability for each in asked]
    after = [taught(calm + flood).of(each).probability for each in asked]
    assert max(abs(one - other) for one, other in zip(before, after, strict=True)) < 0.05


def test_an_array_of_one_user_that_is_cut_as_a_whole_moves_no_probability_far():
    """All its jobs are submitted before the first of them ends: nobody could have foreseen it."""
    calm = mixed(4000)
    cut = [run(4000 + place, HOUR, "flood", application="app1") for place in range(5000)]
    submit = cut[0].submission.submit_time
    array = [replace(each, submission=replace(each.submission, submit_time=submit)) for each in cut]
    asked = [job(f"u{user}", application="app1") for user in range(8)]
    before = [taught(calm).of(each).probability for each in asked]
    for length in (500, 2500, 5000):
        after = [taught(calm + array[:length]).of(each).probability for each in asked]
        assert max(abs(one - other) for one, other in zip(before, after, strict=True)) < 0.1


def test_the_longer_a_job_runs_the_likelier_it_is_cut():
    habit = [run(ENOUGH + place, HOUR if place % 3 == 0 else 1200) for place in range(12)]
    limits = taught(others() + habit)
    asked = [limits.of(job(), elapsed).probability for elapsed in (None, 600.0, 1800.0, 3500.0)]
    assert asked == sorted(asked)
    assert asked[0] < 0.5
    assert asked[3] > 0.9


def test_a_running_job_needs_what_runs_that_were_as_long_needed():
    uncut = [run(ENOUGH + place, 4000 + 500 * place, request=8 * HOUR) for place in range(9)]
    cut = [run(ENOUGH + 10 + place, HOUR) for place in range(6)]
    limits = taught(others() + uncut + cut)
    at_start, late = limits.of(job(request=2 * HOUR)), limits.of(job(request=2 * HOUR), 6000.0)
    assert late.probability > at_start.probability
    assert late.longer_walltime >= 8000


@pytest.mark.parametrize("name", ["requested", "max-usage", "percentile", "knn", "last-two"])
def test_a_hit_changes_nothing_in_the_methods_of_papers(name):
    """To them a run that was cut ran for so long; to the model of hits it needed at least that."""
    ended = [run(place, HOUR / 2, status=Status.COMPLETED) for place in range(20)]
    cut = [replace(each, status=Status.TIMEOUT) for each in ended]
    asked = job(request=2 * HOUR)
    answers = []
    for runs in (ended, cut):
        method = create(name)
        for each in runs:
            method.observe(each)
        answers.append(method.predict(asked))
    assert answers[0] == answers[1]
    calm, likely = (taught(others() + runs).of(asked) for runs in (ended, cut))
    assert likely.probability > 2 * calm.probability


def test_a_hit_changes_nothing_in_the_accuracy_of_a_user():
    ended = [run(place, HOUR / 2, status=Status.COMPLETED) for place in range(20)]
    accuracies = Accuracies(), Accuracies()
    for each in ended:
        accuracies[0].observe(each)
        accuracies[1].observe(replace(each, status=Status.TIMEOUT))
    assert accuracies[0].of("ada") == accuracies[1].of("ada")
    assert accuracies[0].of("ada").accuracy == 0.5
