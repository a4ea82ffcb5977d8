"""What attention's network is shown of a job: by hand, and by the definition of its numbers.

The numbers are part of what the weights mean: with others, those that are shipped say nothing.
"""

from math import e, log, log1p
from random import Random

import pytest
import reference_distributions as reference
from msgspec.structs import replace
from runs import HOUR, ended, submission, taught

from predictors.methods import attention_decision, attention_features, attention_support
from predictors.methods.attention import Attention
from predictors.methods.attention_features import CONTEXT, FEATURES
from predictors.methods.attention_network import NOTHING_LEARNED

NOW = 100_000.0


def about(**known):
    return {"requested_processors": 4, "application": "a", "queue": "q"} | known


def shown(runs, job):
    """Values, features by name, and context by name."""
    predictor = taught(Attention(weights=NOTHING_LEARNED, history=1000), runs)
    features, values, context = predictor.network_inputs(job)
    named = dict(zip(FEATURES, features.tolist(), strict=True))
    return values.tolist(), named, dict(zip(CONTEXT, context.tolist(), strict=True))


def test_every_feature_of_the_runs_of_a_user():
    """The atoms: the runs, the newest first; two of them scaled; the request."""
    runs = [
        ended(50_000.0, 10.0, requested_memory=100.0, **about()),
        ended(60_000.0, 7200.0, request=7200.0, **about(queue="r", requested_processors=16)),
        ended(99_000.0, 2700.0, request=3700.0, **about(application="b", queue=None)),
        ended(99_970.0, 20.0, requested_memory=200.0, **about()),
    ]
    values, found, _ = shown(runs, submission(NOW, requested_memory=200.0, **about()))
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
    _, _, found = shown(runs, submission(47_200.0, request=2000.0, **known))
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


def test_the_shipped_weights_were_learned_with_these_numbers_of_runs():
    """With others the network sees another picture of a user, and has to be learned anew."""
    support, context = attention_support, attention_features
    assert (support.RECENT, support.LIKE, support.SAME_APPLICATION) == (40, 12, 8)
    assert (support.SCALED, support.NEWCOMER) == (24, 16)
    assert (support.SEARCHED, support.OF_OTHERS) == (192, (256, 16))
    assert (support.FRESH, support.SAME_GROUP, support.SAME_REQUEST) == (10, 8, 6)
    assert (context.HABIT, context.CLUSTER, attention_decision.KERNEL_RUNS) == (24, (64, 4), 128)


SECONDS = (0.0, 0.5, 1.0, 10.0, 10 * e**0.049, 10 * e**0.051, 10 * e**0.399, 10 * e**0.401, 59, 60)
SHARES = (0.0499, 0.05, 0.3, 0.9499, 0.95, 0.9899, 0.99, 1.0, 2.0)
REQUESTS = (1.0, 20.0, 60.0, HOUR, HOUR * e**0.0999, HOUR * e**0.1001, 2 * HOUR, 1e6)
KNOWN = {
    "project": ("p", None, None),
    "group": ("g", "h", None),
    "queue": ("q", "r", None),
    "application": ("a_1", "a_2", "b", None),
    "requested_processors": (1, 4, 4096, 10**8, None),
    "requested_memory": (0.0, 1.0, 2.0, 99.0, None),
}


def history(random):
    """Runs, one of which or many are alike, of users of whom one or many go on with theirs."""
    usual = {name: random.choice(some) for name, some in KNOWN.items()}
    usual["request"] = random.choice(REQUESTS)
    alike, again, own = random.choice((0, 0.5, 0.97)), random.choice((0, 0.95)), random.random()
    user, end, runs = "bob", 0.0, []
    for _ in range(random.choice((0, 1, 2, 3, 17, 60, 450))):
        known = {name: random.choice(some) for name, some in KNOWN.items()}
        known["request"] = random.choice(REQUESTS)
        known |= {name: usual[name] for name in usual if random.random() < alike}
        if random.random() >= again:
            others = f"u{random.randrange(99)}", "eve", None
            user = "ada" if random.random() < own**2 else random.choice(others)
        end += random.choice((0.0, 1.0, 10.0, 10.0, 5000.0))
        used = random.choice(SHARES) * known["request"]
        took = random.choice((used, random.choice(SECONDS)))
        runs.append(ended(end, took, waited=random.choice((0.0, 1e6)), user=user, **known))
    return runs


def job_after(random, runs):
    """A job of ada's; it may be submitted before the last runs end, and be like one of them."""
    last = random.choice(runs[-3:]) if runs else ended(NOW, 1.0)
    at = last.end_time + random.choice((0.0, 0.0, 30.0, 1e9))
    if random.random() < 0.7:
        return replace(last.submission, submit_time=at, user="ada")
    known = {name: random.choice(some) for name, some in KNOWN.items()}
    return submission(at, request=random.choice(REQUESTS), **known)


@pytest.mark.parametrize("seed", range(20))
def test_numbers_are_what_their_definition_says(seed):
    random = Random(seed)
    for _ in range(20):
        runs = history(random)
        check_numbers(runs, job_after(random, runs))


def check_numbers(runs, job):
    before = [run for run in runs if run.end_time <= job.submit_time][::-1]
    known = [reference.Run.of(run.submission, run.end_time, run.runtime) for run in before]
    known, asked = (
        [reference.recognised(run) for run in known],
        reference.recognised(reference.Run.of(job)),
    )
    points, own, _ = reference.support(known, asked)
    values, features, context = shown(runs, job)
    about = reference.context(known, own, points, asked, reference.mean_of_last(known))
    assert context == pytest.approx(dict(zip(CONTEXT, about, strict=True)), rel=1e-4, abs=1e-5)
    if not points:
        assert values == [job.requested_walltime]
        return
    expected = [*(reference.value(point, asked) for point in points), job.requested_walltime]
    assert values == pytest.approx(expected)
    by_name = zip(FEATURES, reference.features(points, expected, asked), strict=True)
    for name, numbers in by_name:
        assert features[name] == pytest.approx(numbers, rel=1e-4, abs=1e-5), name
