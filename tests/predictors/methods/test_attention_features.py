"""What attention's network is shown of a job: every number by hand.

The numbers are part of what the weights mean: with others, those that are shipped say nothing.
"""

from math import e, log, log1p

import numpy as np
import pytest
from runs import HOUR, ended, taught

from predictors.jobs import Submission
from predictors.methods import attention_decision, attention_features, attention_support
from predictors.methods.attention import Attention
from predictors.methods.attention_features import CONTEXT, FEATURES
from predictors.methods.attention_network import NOTHING_LEARNED

NOW = 100_000.0


def submission(at=NOW, *, request=HOUR, user="ada", **known):
    return Submission(requested_walltime=request, submit_time=at, user=user, **known)


def knowing(runs):
    return taught(Attention(weights=NOTHING_LEARNED, history=1000), runs)


def shown(runs, job=None):
    """Values, features by name, and context by name."""
    features, values, context = knowing(runs).network_inputs(job or submission())
    named = dict(zip(FEATURES, features.tolist(), strict=True))
    return values.tolist(), named, dict(zip(CONTEXT, context.tolist(), strict=True))


def context_of(runs, job=None):
    return shown(runs, job)[2]


def feature_of(name, runs, job=None):
    """One feature of the newest run."""
    return shown(runs, job)[1][name][0]


def about(**known):
    return {"requested_processors": 4, "application": "a", "queue": "q"} | known


def test_every_feature_of_the_runs_of_a_user():
    """The atoms: the runs, the newest first; two of them scaled; the request."""
    runs = [
        ended(50_000.0, 10.0, requested_memory=100.0, **about()),
        ended(60_000.0, 7200.0, request=7200.0, **about(queue="r", requested_processors=16)),
        ended(99_000.0, 2700.0, request=3700.0, **about(application="b", queue=None)),
        ended(99_970.0, 20.0, requested_memory=200.0, **about()),
    ]
    values, found, _ = shown(runs, submission(requested_memory=200.0, **about()))
    scaled = 2700 * 3600 / 3700
    assert values == pytest.approx([20, 2700, 3600, 10, scaled, 3600, 3600])
    no = [0] * 7
    nearby = log(3700 / 3600)
    expected = {
        "own run": [1, 1, 1, 1, 1, 1, 0],
        "other user of the same group": no,
        "same request": [1, 0, 0, 1, 0, 0, 0],
        "distance of the requests": [0, nearby, log(2), 0, nearby, log(2), 0],
        "difference of the requests": [0, -nearby, -log(2), 0, -nearby, -log(2), 0],
        "same processors": [1, 1, 0, 1, 1, 0, 0],
        "distance of the processors": [0, 0, log(4), 0, 0, log(4), 0],
        "same application": [1, 0, 1, 1, 0, 1, 0],
        "another application": [0, 1, 0, 0, 1, 0, 0],
        "same queue": [1, 0, 0, 1, 0, 0, 0],
        "another queue": [0, 0, 1, 0, 0, 1, 0],
        "own like run": [1, 0, 0, 1, 0, 0, 0],
        "time since its end": [
            *(log1p(ago / 3600) / 2 for ago in (30, 1000, 40_000, 50_000, 1000, 40_000)),
            0,
        ],
        "time since its submission": [
            *(log1p(ago / 600) / 2 for ago in (50, 3700, 47_200, 50_010, 3700, 47_200)),
            0,
        ],
        "rank": [*(log(rank) / 2 for rank in (1, 2, 3, 4, 2, 3)), 0],
        "rank if it is like the job": [0, 0, 0, log(4) / 2, 0, 0, 0],
        "rank among like runs": [0, 0, 0, log(2) / 2, 0, 0, 0],
        "the user's last run": [1, 0, 0, 0, 0, 0, 0],
        "it used its whole request": [0, 0, 1, 0, 0, 1, 0],
        "it took less than a minute": [1, 0, 0, 1, 0, 0, 0],
        "share of its request that it used": [2, log(37 / 27) / 2, 0, 2, log(37 / 27) / 2, 0, 0],
        "share of the new request that the value is": [
            *(log(3600 / value) / 2 for value in (20, 2700, 3600, 10, scaled, 3600)),
            0,
        ],
        "own run, submitted within a minute": [1, 0, 0, 0, 0, 0, 0],
        "scaled": [0, 0, 0, 0, 1, 1, 0],
        "run of another user": no,
        "the request": [0, 0, 0, 0, 0, 0, 1],
        "the request, and nothing is known of the user": no,
        "same memory": [1, 0, 0, 0, 0, 0, 0],
        "distance of the memory": [0, 0, 0, log(2), 0, 0, 0],
        "the user's last like run": [1, 0, 0, 0, 0, 0, 0],
        "difference of the requests, same application": [0, 0, -log(2), 0, 0, -log(2), 0],
        "nearly the same request": [1, 1, 0, 1, 1, 0, 0],
        "difference of the value to that of the last like run": [
            *(log(value / 20) / 2 for value in (20, 2700, 3600, 10, scaled, 3600)),
            0,
        ],
        "distance of the value to that of the last like run": [
            *(abs(log(value / 20)) / 2 for value in (20, 2700, 3600, 10, scaled, 3600)),
            0,
        ],
        "share of the atoms within 5%": [part / 7 for part in (1, 2, 3, 1, 2, 3, 3)],
        "share of the atoms within 40%": [part / 7 for part in (1, 5, 5, 1, 5, 5, 5)],
    }
    assert set(expected) == set(FEATURES)
    for name, numbers in expected.items():
        assert found[name] == pytest.approx(numbers, abs=1e-6), name


def test_every_feature_that_differs_for_runs_of_others():
    """The newest has bob's request, processors and application, and is no run of ada's."""
    runs = [
        ended(NOW - 2000.0, 100.0, user="eve", request=2 * HOUR, group="h", **about()),
        ended(NOW - 10.0, 20.0, user="bob", group="g", **about()),
    ]
    values, found, context = shown(runs, submission(group="g", **about()))
    assert values == [20, 100, 50, HOUR]
    expected = {
        "own run": [0, 0, 0, 0],
        "other user of the same group": [1, 0, 0, 0],
        "own like run": [0, 0, 0, 0],
        "rank": [log(2) / 2, log(3) / 2, log(3) / 2, 0],
        "rank if it is like the job": [log(2) / 2, 0, 0, 0],
        "rank among like runs": [log(100) / 2, 0, 0, 0],
        "the user's last run": [0, 0, 0, 0],
        "own run, submitted within a minute": [0, 0, 0, 0],
        "scaled": [0, 0, 1, 0],
        "run of another user": [1, 1, 1, 0],
        "the request": [0, 0, 0, 1],
        "the request, and nothing is known of the user": [0, 0, 0, 1],
        "the user's last like run": [0, 0, 0, 0],
        # There is no like run of hers: what is compared is the first atom.
        "difference of the value to that of the last like run": [0, log(5) / 2, log(2.5) / 2, 0],
    }
    for name, numbers in expected.items():
        assert found[name] == pytest.approx(numbers, abs=1e-6), name
    assert context["nothing is known of the user"] == 1
    assert context["time since the user's last run ended"] == 0


@pytest.mark.parametrize(
    ("name", "runtime", "past", "job", "expected"),
    [
        ("distance of the requests", 60.0, {"request": 100 * HOUR}, {}, 3),
        ("difference of the requests", 60.0, {"request": 100 * HOUR}, {}, -3),
        ("difference of the requests", 36.0, {"request": 36.0}, {}, 3),
        ("distance of the processors", 60.0, {"requested_processors": 4096}, {}, 4),
        ("distance of the processors", 60.0, {}, {"requested_processors": 4096}, 4),
        ("distance of the memory", 60.0, {"requested_memory": 1.0}, {"requested_memory": 99.0}, 3),
        ("distance of the memory", 60.0, {}, {"requested_memory": 99.0}, 0),
        ("distance of the memory", 60.0, {"requested_memory": 99.0}, {}, 0),
        ("same memory", 60.0, {}, {}, 0),
        ("share of its request that it used", 0.0, {}, {}, 2),
        ("share of the new request that the value is", 0.0, {}, {}, 3),
        ("share of the new request that the value is", 0.0, {"request": 1.0}, {"request": 1.0}, 0),
        ("share of the new request that the value is", 9e9, {}, {}, 0),
        ("it used its whole request", 3564.0, {}, {}, 1),
        ("it used its whole request", 3563.0, {}, {}, 0),
        ("it took less than a minute", 60.0, {}, {}, 0),
        ("it took less than a minute", 59.0, {}, {}, 1),
        ("nearly the same request", 60.0, {"request": HOUR * e**0.1}, {}, 0),
        ("nearly the same request", 60.0, {"request": HOUR * e**-0.1}, {}, 0),
        ("nearly the same request", 60.0, {"request": HOUR * e**-0.0999}, {}, 1),
        ("another application", 60.0, {"application": "a"}, {}, 0),
        ("another application", 60.0, {}, {"application": "a"}, 0),
        ("same application", 60.0, {}, {}, 0),
        ("own like run", 60.0, {}, {}, 1),
        ("own like run", 60.0, {"application": "a"}, {}, 0),
        ("another queue", 60.0, {"queue": "q"}, {}, 0),
        ("another queue", 60.0, {}, {"queue": "q"}, 0),
        ("same queue", 60.0, {}, {}, 0),
    ],
)
def test_features_to_their_ends(name, runtime, past, job, expected):
    found = feature_of(name, [ended(NOW - 100.0, runtime, **past)], submission(**job))
    assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", ["application", "queue"])
def test_the_second_name_that_was_ever_seen_is_known_as_well(name):
    past = [ended(NOW - 200.0, 60.0, **{name: "x"}), ended(NOW - 100.0, 60.0, **{name: "y"})]
    seen = shown(past, submission(**{name: "y"}))[1]
    assert seen[f"same {name}"] == [1, 0, 0]
    assert seen[f"another {name}"] == [0, 1, 0]


@pytest.mark.parametrize(("seconds", "expected"), [(60.0, 0), (59.0, 1)])
def test_a_run_that_was_submitted_within_a_minute(seconds, expected):
    past = [ended(NOW - seconds + 10.0, 10.0)]
    assert feature_of("own run, submitted within a minute", past) == expected


@pytest.mark.parametrize(("last_like", "other", "expected"), [(1.0, HOUR, 3), (HOUR, 1.0, -3)])
def test_a_value_far_from_the_last_like_run_is_far_and_no_more(last_like, other, expected):
    runs = [ended(1e4, last_like), ended(5e4, other, application="b")]
    found = shown(runs)[1]
    assert found["difference of the value to that of the last like run"][0] == expected
    assert found["distance of the value to that of the last like run"][0] == 3


def test_context_of_a_user_by_hand():
    """Of her four runs two use all of their request, one uses a twentieth, and one less."""
    known = {"requested_processors": 8}
    runs = [
        ended(10_000.0, 1000.0, request=1000.0, **known),
        ended(20_000.0, 950.0, request=1000.0, **known),
        ended(30_000.0, 100.0, request=2000.0, **known),
        ended(40_000.0, 99.0, request=2000.0, **known),
        ended(50_000.0, 3000.0, request=1000.0, user="bob", **known),
    ]
    found = context_of(runs, submission(47_200.0, request=2000.0, **known))
    mean = (1000 + 950 + 100 + 99) / 4
    runtimes = [log(100 / 99), log(9.5), log(100 / 95)]
    usages = [log(100 / 99), log(19), log(100 / 95)]
    expected = {
        "own runs": log(5) / 3,
        "own like runs": log(3) / 2,
        "request": (log(2000) - 9) / 2,
        "processors": log(8) / 4,
        "request in mean runtimes of the cluster": log(2000 / mean) / 2,
        "mean usage of the user": (1 + 0.95 + 0.05 + 0.0495) / 4,
        "share of the user's runs that use all of the request": 1 / 2,
        "share that use hardly any of it": 1 / 4,
        "change of the user's runtimes from run to run": sum(runtimes) / 3,
        "change of the user's usages": sum(usages) / 3,
        "share of the runs whose request is another one than the next one's": 1 / 3,
        "change of runtimes where the request changed": log(9.5),
        "change of usages where the request changed": log(19),
        "how much more runtimes change there than usages do": log(9.5) - log(19),
        "change of runtimes from like run to like run": log(100 / 99),
        "there are two like runs": 1,
        "mean usage on the cluster": (1 + 0.95 + 0.05 + 0.0495) / 4,
        "share of its runs that use all of the request": 1 / 2,
        "share of its runs that use hardly any of it": 1 / 4,
        "nothing is known of the user": 0,
        "time since the user's last run ended": log(3) / 3,
        "same request as the user's last run": 1,
    }
    assert set(CONTEXT) == set(expected)
    for name, number in expected.items():
        assert found[name] == pytest.approx(number, abs=1e-5), name


def numbered(runs, job=None):
    """The context by place."""
    return knowing(runs).network_inputs(job or submission())[2].tolist()


def test_usage_on_the_cluster_is_that_of_all_users():
    """Bob's run took twice its request; one of eve's used a twentieth, and two less."""
    runs = [ended(1000.0, 200.0, request=100.0, user="bob")]
    runs += [ended(2000.0 + at, 5.0 - at, request=100.0, user="eve") for at in range(3)]
    found = numbered(runs)
    assert found[16:19] == pytest.approx([(1 + 0.05 + 0.04 + 0.03) / 4, 1 / 4, 2 / 4])
    assert numbered([])[16:19] == [0, 0, 0]


def test_habits_are_those_of_the_last_runs():
    """The newest uses a hundredth of its request, the one before it two hundredths, and so on."""
    runs = [ended(1000.0 * at, 100.0 - at, request=100.0) for at in range(100)]
    found = numbered(runs)
    assert found[5] == pytest.approx(sum(range(1, 25)) / 24 / 100)
    assert found[16] == pytest.approx(sum(range(1, 65)) / 64 / 100)
    assert found[7] == pytest.approx(4 / 24)
    assert found[18] == pytest.approx(4 / 64)
    assert (found[6], found[17]) == (0, 0)


def test_changes_are_known_from_the_second_run_on():
    one, two = ended(1e4, 100.0), ended(2e4, 300.0)
    name = "change of the user's runtimes from run to run"
    assert context_of([one])[name] == 0
    assert context_of([one, two])[name] == pytest.approx(log(3))
    assert context_of([one])["there are two like runs"] == 0
    assert context_of([one, two])["there are two like runs"] == 1


def test_changes_where_the_request_changed_are_means():
    """Runtimes are twice and three times as long, usages four times as large and half as large."""
    runs = [
        ended(1e4, 10.0, request=1000.0),
        ended(2e4, 20.0, request=500.0),
        ended(3e4, 20.0, request=500.0),
        ended(4e4, 60.0, request=3000.0),
    ]
    found = context_of(runs)
    changed = "share of the runs whose request is another one than the next one's"
    assert found[changed] == pytest.approx(2 / 3)
    of_runtimes, of_usages = (log(2) + log(3)) / 2, (log(4) + log(2)) / 2
    name = "change of {} where the request changed"
    assert found[name.format("runtimes")] == pytest.approx(of_runtimes)
    assert found[name.format("usages")] == pytest.approx(of_usages)


def test_no_change_is_more_than_three():
    """From a second to an hour it is log 3600, more than 8."""
    found = context_of([ended(1e4, 1.0), ended(2e4, HOUR), ended(3e4, HOUR)])
    for name in (
        "change of the user's runtimes from run to run",
        "change of the user's usages",
        "change of runtimes from like run to like run",
    ):
        assert found[name] == pytest.approx(1.5), name


@pytest.mark.parametrize(
    ("runtime", "asked", "expected"), [(2000.0, 2000.0, 2), (100.0, 2000.0, -2)]
)
def test_runtimes_and_usages_differ_by_two_at_most(runtime, asked, expected):
    """All of the request was used in both runs, or the runtime stayed the same: log 20 is 3."""
    found = context_of([ended(1e4, 100.0, request=100.0), ended(2e4, runtime, request=asked)])
    assert found["how much more runtimes change there than usages do"] == expected


def test_a_run_takes_a_second_at_least_and_its_request_at_most_where_like_runs_are_compared():
    """None, a second, ten seconds, and twice the request of 20 s."""
    runs = [ended(1e4 * (at + 1), took, request=20.0) for at, took in enumerate((0.0, 1.0, 10, 40))]
    found = context_of(runs, submission(request=20.0))
    change = (0 + log(10) + log(2)) / 3
    assert found["change of runtimes from like run to like run"] == pytest.approx(change)
    assert found["change of the user's runtimes from run to run"] == pytest.approx(change)
    assert found["mean usage of the user"] == pytest.approx((0.05 + 0.05 + 0.5 + 1) / 4)


def test_the_twelve_last_like_runs_are_compared():
    """Each takes twice as long as the one before, but the first of the twelve."""
    seconds = [1.0, 1.0, 1.0, *(2.0**at for at in range(11))]
    runs = [ended(1e4 * (at + 1), took) for at, took in enumerate(seconds)]
    found = context_of(runs, submission(2e5))
    assert found["change of runtimes from like run to like run"] == pytest.approx(10 * log(2) / 11)
    assert found["own like runs"] == pytest.approx(log(15) / 2)


@pytest.mark.parametrize(
    ("runtime", "asked", "expected"),
    [(1.0, HOUR, 3), (HOUR, 1.0, -3), (0.0, 60.0, log(60) / 2)],
)
def test_a_request_in_mean_runtimes_to_its_ends(runtime, asked, expected):
    found = context_of([ended(1e4, runtime)], submission(request=asked))
    assert found["request in mean runtimes of the cluster"] == pytest.approx(expected)


@pytest.mark.parametrize(("processors", "expected"), [(None, 0), (1, 0), (10**8, 4)])
def test_processors_to_their_ends(processors, expected):
    job = submission(requested_processors=processors)
    assert context_of([ended(1e4, 60.0)], job)["processors"] == expected


def test_the_time_since_the_last_run_to_its_ends():
    name = "time since the user's last run ended"
    assert context_of([ended(NOW, 60.0)])[name] == 0
    assert context_of([ended(1.0, 1.0)], submission(1e9))[name] == 3
    assert context_of([ended(1e4, 60.0), ended(NOW - HOUR, 60.0)])[name] == pytest.approx(
        log(2) / 3
    )


def test_the_request_of_the_last_run_is_another_one():
    name = "same request as the user's last run"
    runs = [ended(1e4, 60.0), ended(2e4, 60.0, request=60.0)]
    assert context_of(runs)[name] == 0
    assert context_of(runs, submission(request=60.0))[name] == 1


def test_the_shipped_weights_were_learned_with_these_numbers_of_runs():
    """With others the network sees another picture of a user, and has to be learned anew."""
    support, context = attention_support, attention_features
    assert (support.RECENT, support.LIKE, support.SAME_APPLICATION) == (40, 12, 8)
    assert (support.SCALED, support.NEWCOMER) == (24, 16)
    assert (support.SEARCHED, support.SEARCHED_OF_OTHERS) == (192, 256)
    assert (support.FRESH, support.SAME_GROUP, support.SAME_REQUEST) == (10, 8, 6)
    assert (context.HABIT, context.CLUSTER, attention_decision.KERNEL_RUNS) == (24, 64, 128)


def rows_of(runs, job=None):
    """The runs that are atoms, by how many are newer, in the order of atoms."""
    rows = knowing(runs).evidence(job or submission()).rows
    newest = len(runs) - 1
    return sorted({newest - row for row in rows.tolist() if row >= 0})


@pytest.mark.parametrize(("place", "expected"), [(191, [191]), (192, [])])
def test_192_runs_of_a_user_are_looked_at(place, expected):
    """All but one are of another application."""
    runs = [ended(10.0 * at, 5.0, application="ab"[at == 299 - place]) for at in range(300)]
    job = submission(application="b")
    assert [row for row in rows_of(runs, job) if row >= 40] == expected
    assert context_of(runs, job)["own runs"] == pytest.approx(log(193) / 3)


def test_older_runs_are_atoms_if_they_are_like_the_job_or_of_its_application():
    """Behind 40 runs of another application: twelve of the like ones, eight of the others."""
    runs = [ended(1000.0 + 10 * at, 5.0, application="b") for at in range(40)]
    like = [ended(500.0 + 10 * at, 5.0, application="a") for at in range(15)]
    same = [ended(10.0 * at, 5.0, application="a", request=60.0) for at in range(10)]
    job = submission(application="a")
    assert rows_of([*same, *like, *runs], job) == [*range(52), *range(55, 63)]
    # Whose application nobody knows is no other run's.
    unknown = [ended(10.0 * at, 5.0, request=60.0) for at in range(60)]
    assert rows_of(unknown) == list(range(40))


def test_24_runs_with_another_request_are_atoms_twice():
    runs = [ended(1000.0 * at, 60.0, request=7200.0) for at in range(30)]
    values, found, _ = shown(runs)
    assert sum(found["scaled"]) == 24
    assert values == [60.0] * 30 + [30.0] * 24 + [HOUR]


def of_others(count, *, end=NOW, **known):
    """Runs of as many users, a second after each other."""
    return [ended(end - count + at, 0.5, user=f"u{at}", **known) for at in range(count)]


@pytest.mark.parametrize(("own", "others"), [(15, 10), (16, 0)])
def test_somebody_with_fewer_than_16_runs_is_told_by_others(own, others):
    runs = of_others(30, request=60.0) + [ended(NOW, 1.0) for _ in range(own)]
    found = shown(runs)[1]
    assert sum(found["run of another user"]) == 2 * others
    assert sum(found["own run"]) == own


def test_runs_of_others_that_are_atoms():
    """The last ten; behind them six with the request, and eight of the group.

    Those with the request count among the ten, too, as do those of the group.
    """
    assert rows_of(of_others(300, request=60.0)) == list(range(10))
    strangers, with_request = of_others(30, request=60.0), of_others(30, end=5e4)
    assert rows_of([*with_request, *strangers]) == [*range(10), *range(30, 36)]
    assert rows_of(with_request) == list(range(10))
    job, grouped = submission(group="g"), of_others(30, end=5e4, request=60.0, group="g")
    assert rows_of([*grouped, *strangers], job) == [*range(10), *range(30, 38)]
    assert rows_of(grouped, job) == list(range(10))
    assert rows_of([*grouped, *strangers]) == list(range(10))


def test_of_a_burst_of_one_user_the_last_run_tells():
    """All but the first of those that follow each other are left out, unless of the group."""
    bursts = [ended(10.0 * at, 5.0, user=f"u{at // 10}", request=60.0) for at in range(50)]
    assert rows_of(bursts) == [0, 10, 20, 30, 40]
    grouped = [ended(10.0 * at, 5.0, user="bob", request=60.0, group="g") for at in range(20)]
    assert rows_of(grouped, submission(group="g")) == list(range(8))


@pytest.mark.parametrize(("place", "expected"), [(255, [0, 255]), (256, [0])])
def test_256_runs_of_others_are_looked_at(place, expected):
    """All but one are of one user."""
    runs = [ended(10.0 * at, 5.0, user="bob", request=60.0) for at in range(299 - place)]
    runs += [ended(3000.0, 5.0, user="eve", request=60.0)]
    runs += [ended(4000.0 + at, 0.5, user="bob", request=60.0) for at in range(place)]
    assert rows_of(runs) == expected


def test_what_ended_after_the_submission_is_not_seen():
    runs = [ended(1e4, 60.0), ended(2e4, 120.0), ended(3e4, 180.0), ended(4e4, 240.0, user="bob")]
    assert shown(runs, submission(2e4))[0] == [120.0, 60.0, HOUR]
    assert shown(runs, submission(9999.0))[0] == [HOUR]
    assert context_of(runs, submission(9999.0))["nothing is known of the user"] == 1


def test_values_are_near_by_their_quotients():
    """Within e^0.05 and e^0.4 of each other, and not at them."""
    for ratio, close, wide in (
        (e**0.049, 2, 2),
        (e**0.051, 1, 2),
        (e**0.399, 1, 2),
        (e**0.401, 1, 1),
    ):
        found = shown([ended(1e4, 10.0), ended(2e4, 10.0 * ratio)])[1]
        assert found["share of the atoms within 5%"][0] == pytest.approx(close / 3)
        assert found["share of the atoms within 40%"][0] == pytest.approx(wide / 3)


def test_a_user_of_whom_nothing_is_known_has_no_habits():
    found = np.array(numbered([ended(1e4, 60.0, user="bob")]))
    assert found[5:16].tolist() == [0] * 11
    assert found[19:].tolist() == [1, 0, 0]
