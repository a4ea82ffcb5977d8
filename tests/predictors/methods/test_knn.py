"""Knn against a straightforward reading of its definition, and by hand."""

import itertools
import math

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from runs import ended, submission, taught

from predictors.jobs import Completion, Submission
from predictors.memory import job_table
from predictors.memory.columns import FEATURES
from predictors.memory.job_table import LATE_JOBS, TEMPLATE_ATTRIBUTES, InternedNames, JobTable
from predictors.methods.knn import Knn, KnnParameters, nearest
from predictors.methods.knn_search import inverse_ranges

TEMPLATES = [
    subset
    for size in range(len(TEMPLATE_ATTRIBUTES) + 1)
    for subset in itertools.combinations(TEMPLATE_ATTRIBUTES, size)
]


def told(completions, **parameters):
    return taught(Knn(**{"beta": 0.0} | parameters), completions)


def by_definition(completions, job, parameters):
    """The sorted neighbours of a job, written down as the docstring of Knn says it."""
    ended = [(c.end_time, order, c) for order, c in enumerate(completions)]
    ended = sorted(one for one in ended if one[0] <= job.submit_time)
    recent = [c for _, _, c in ended[::-1]]

    def spread(feature):
        values = [getattr(c.submission, feature) for c in recent[: parameters.scaling]]
        values = [value for value in values if value is not None]
        return max(values) - min(values) if values else 0.0

    spreads = {
        feature: spread(feature)
        for feature in ("requested_processors", "requested_walltime", "requested_memory")
    }

    def distance(c):
        total = 0.0
        for feature, width in spreads.items():
            ours, theirs = getattr(job, feature), getattr(c.submission, feature)
            known = ours is not None and theirs is not None
            inverse = 1 / width if width else 0.0
            apart = abs(theirs - ours) * inverse if known else 1.0
            total += min(1.0, apart**2)
        return total

    def similar(c):
        return all(
            getattr(job, name) is not None and getattr(job, name) == getattr(c.submission, name)
            for name in parameters.template
        )

    matching = [c for c in recent[: parameters.history] if similar(c)]
    return sorted(matching, key=distance)[: parameters.neighbours]


def expected(completions, job, parameters):
    neighbours = by_definition(completions, job, parameters)
    if not neighbours:
        return 0, job.requested_walltime
    runtimes = [c.runtime for c in neighbours]
    mean = sum(runtimes) / len(runtimes)
    deviation = math.sqrt(sum((r - mean) ** 2 for r in runtimes) / len(runtimes))
    seconds = mean + parameters.alpha * deviation + parameters.beta * job.requested_walltime
    return len(neighbours), min(job.requested_walltime, max(1.0, seconds))


names = st.sampled_from([None, "a", "b"])
jobs = st.builds(
    Submission,
    requested_walltime=st.sampled_from([600.0, 3600.0, 7200.0]),
    submit_time=st.integers(0, 30).map(float),
    user=names,
    group=names,
    queue=names,
    application=names,
    requested_processors=st.sampled_from([None, 1, 4, 16]),
    requested_memory=st.sampled_from([None, 0.0, 512.0]),
)
runs = st.builds(
    Completion,
    submission=jobs,
    start_time=st.just(0.0),
    end_time=st.integers(0, 30).map(float),
    runtime=st.floats(0, 9000),
)
parameter_sets = st.builds(
    KnnParameters,
    template=st.sampled_from(TEMPLATES),
    history=st.integers(1, 12),
    neighbours=st.integers(1, 6),
    alpha=st.floats(-1, 3),
    beta=st.floats(0, 1),
    scaling=st.integers(1, 12),
)


@examples(200)
@given(st.lists(runs, max_size=40), jobs, parameter_sets)
def test_knn_answers_what_its_definition_says(completions, job, parameters):
    knn = told(completions).retuned(parameters)
    count, seconds = expected(completions, job, parameters)
    answer = knn.predict(job)
    assert answer.basis.jobs == count
    assert answer.predicted_walltime == pytest.approx(seconds, rel=1e-12)


@examples(100)
@given(st.lists(runs, max_size=60), jobs, st.integers(1, 9), st.sampled_from([(), ("user",)]))
def test_only_the_jobs_kept_count(completions, job, kept, template):
    """Late reports and rows that were moved back leave exactly the newest, in their order."""
    recent = JobTable(kept)
    for one in completions:
        recent.add(one)
    newest = [
        c
        for _, _, c in sorted((c.end_time, order, c) for order, c in enumerate(completions))[-kept:]
    ]
    assert len(recent) == len(newest)
    parameters = KnnParameters(template=template, history=5, neighbours=3, scaling=4)
    neighbours = by_definition(newest, job, parameters)
    count, mean, _ = nearest(recent, job, parameters.columns, (5, 3, 4))
    assert count == len(neighbours)
    assert mean * count == pytest.approx(sum(c.runtime for c in neighbours))


def test_a_user_whose_jobs_were_all_left_behind_leaves_none_to_the_next_of_that_number():
    """Rows of the first user are gone, her number is the third's, and the rows were moved back."""
    recent = JobTable(2)
    for end, user in enumerate(["ada", "bob", "bob", "eve", "bob", "eve", "eve", "ada"]):
        recent.add(ended(float(end), 100.0 * end, user=user))
    assert nearest(recent, submission(9.0, user="eve"), (0,), (2, 2, 2)) == (1, 600.0, 0.0)
    assert nearest(recent, submission(9.0, user="ada"), (0,), (2, 2, 2)) == (1, 700.0, 0.0)
    assert nearest(recent, submission(9.0, user="bob"), (0,), (2, 2, 2)) == (0, 0.0, 0.0)


def test_features_are_scaled_over_several_blocks_of_rows():
    """More rows than one block: the summaries of blocks say what a scan of the rows says."""
    completions = [
        ended(float(i), 10.0 * i, request=100.0 + (i * 37) % 1000, requested_processors=i % 129)
        for i in range(1, 400)
    ]
    for scaling in (1, 63, 64, 65, 200, 399):
        parameters = KnnParameters(template=(), neighbours=4, scaling=scaling)
        job = submission(399.0, request=555.0, requested_processors=77)
        knn = told(completions).retuned(parameters)
        assert knn.predict(job).predicted_walltime == pytest.approx(
            expected(completions, job, parameters)[1], rel=1e-12
        )


@pytest.mark.parametrize("is_late", [False, True])
def test_ranges_are_those_of_all_rows(is_late):
    """Each block keeps the bounds of all its rows, also of those that are put between others."""
    requests = [100.0 + (place * 37) % 1000 for place in range(200)]
    ends = [float(place ^ 1 if is_late else place) for place in range(200)]
    table = JobTable(1000)
    for end, request in zip(ends, requests, strict=True):
        processors = int(1 + request) % 129
        table.add(ended(end, 10.0, request=request, requested_processors=processors))
    numbers, _, bounds = table.columns
    for first, stop in ((0, 64), (0, 200), (1, 199), (63, 130), (64, 192)):
        rows = numbers[:FEATURES, first:stop]
        ranges = rows.max(axis=1) - rows.min(axis=1)
        expected_ = [1 / each if each > 0 else 0.0 for each in ranges]
        assert inverse_ranges(numbers, bounds, first, stop) == pytest.approx(expected_, nan_ok=True)


def test_the_nearest_jobs_of_the_user_are_averaged():
    knn = told(
        [
            ended(10.0, 100.0, request=600.0),
            ended(20.0, 200.0, request=3500.0),
            ended(30.0, 300.0, request=3700.0),
            ended(40.0, 999.0, request=3600.0, user="bob"),
        ],
        neighbours=2,
        alpha=1.0,
        beta=0.01,
    )
    answer = knn.predict(submission())
    assert answer.predicted_walltime == 250.0 + 50.0 + 36.0
    assert answer.basis.jobs == 2
    assert answer.basis.reason == "history"


def test_a_job_beyond_the_range_of_the_scaling_runs_is_as_near_as_one_at_its_edge():
    """The first run is nearer in walltime, but both differ by the whole range: the later counts."""
    knn = told([ended(10.0, 100.0, request=600.0), ended(20.0, 200.0, request=500.0)], neighbours=1)
    assert knn.predict(submission(request=550.0)).predicted_walltime == 200.0
    assert knn.predict(submission(request=590.0)).predicted_walltime == 100.0
    assert knn.predict(submission(request=9000.0)).predicted_walltime == 200.0


def test_a_feature_that_was_constant_in_the_scaling_runs_counts_nothing():
    """Both runs requested four processors, so a job of 64 is told apart by walltime alone."""
    runs = [
        ended(10.0, 100.0, request=600.0, requested_processors=4),
        ended(20.0, 200.0, request=500.0, requested_processors=4),
    ]
    job = submission(request=600.0, requested_processors=64)
    assert told(runs, neighbours=1).predict(job).predicted_walltime == 100.0


def test_a_submission_more_than_2000_completions_back_sees_fewer_runs():
    """Of 9,100 runs the last 7,000 are stored; the runtime of each is its number."""
    runs = [ended(float(n), float(n)) for n in range(1, 9_101)]
    knn = told(runs, history=5000, neighbours=1000)
    assert 2 * LATE_JOBS == 2000
    assert knn.predict(submission(2_600.0)).basis.jobs == 500, "of 2,600 that had ended"
    assert knn.predict(submission(7_100.0)).basis.jobs == 1000


def test_equally_near_jobs_count_newest_end_first_then_latest_observed():
    completions = [ended(20.0, 1.0), ended(30.0, 2.0), ended(30.0, 4.0)]
    completions.append(ended(10.0, 8.0))
    assert told(completions, neighbours=1).predict(submission()).predicted_walltime == 4.0
    assert told(completions, neighbours=2).predict(submission()).predicted_walltime == 3.0


def test_state_stays_bounded_and_forgotten_users_leave_no_trace():
    knn = told((ended(float(i), 10.0, user=f"u{i}") for i in range(20_000)), history=10)
    recent = knn._recent
    assert len(recent) == recent.capacity == 5_000 + 2 * LATE_JOBS
    assert len(recent._interned[0]) == recent.capacity
    assert len(recent._interned[0]._texts) <= recent.capacity + 1
    assert recent._interned[0].find("u0") == job_table.UNKNOWN
    assert recent._interned[0].find("u19999") != job_table.UNKNOWN


def test_a_number_goes_to_the_next_string_only_when_nobody_uses_it():
    interned = InternedNames()
    first = interned.acquire("a")
    assert interned.acquire("a") == first
    interned.release(first)
    assert interned.find("a") == first
    interned.release(first)
    assert interned.find("a") == job_table.UNKNOWN
    assert interned.acquire("b") == first
    assert len(interned) == 1


def test_other_parameters_see_what_was_and_will_be_learned():
    knn = told([ended(10.0, 100.0)])
    other = knn.retuned(KnnParameters(template=(), history=1, beta=0.0))
    other.observe(ended(20.0, 300.0, user="bob"))
    assert other.predict(submission()).predicted_walltime == 300.0
    assert other.parameters["template"] == []
    assert knn.predict(submission()).predicted_walltime == 100.0


def test_parameters_that_look_further_back_than_jobs_are_kept_are_refused():
    with pytest.raises(ValueError, match="history must be at most 5000"):
        Knn().retuned(KnnParameters(history=6000))
    assert Knn(history=6000).memory.latest_jobs == 6000 + 2 * LATE_JOBS


def test_a_template_that_names_an_attribute_twice_is_refused():
    with pytest.raises(ValueError, match="template"):
        Knn(template=["user", "user"])
