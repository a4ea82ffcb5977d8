from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predictors.correction import CORRECTIONS, next_estimate, request_at_once, tsafrir_steps

MINUTE, HOUR, DAY = 60, 3600, 86400

positive = st.floats(min_value=0, max_value=1e300, exclude_min=True)
every_correction = pytest.mark.parametrize("correct", CORRECTIONS.values(), ids=CORRECTIONS)


@st.composite
def jobs(draw):
    """(predicted, requested, elapsed) of a running job."""
    requested = draw(positive)
    predicted = draw(st.floats(min_value=0, max_value=requested, exclude_min=True))
    return predicted, requested, draw(st.floats(min_value=0, max_value=requested))


def test_doubling_goes_on_until_the_elapsed_time_is_exceeded_or_the_request_reached():
    # an estimate of 10 min in a request of 1 h: 10, 20, 40, 60
    estimates = [next_estimate(600, 3600, minutes * MINUTE) for minutes in (9, 10, 20, 39, 40, 60)]
    assert estimates == [600, 1200, 2400, 2400, 3600, 3600]


def test_the_request_at_once_is_taken_when_the_prediction_expires():
    assert [request_at_once(600, 3600, elapsed) for elapsed in (599, 600)] == [600, 3600]


def test_tsafrirs_steps_grow_from_a_minute_to_a_hundred_hours():
    # an estimate of 10 min in a request of a year; the estimates are 11, 15, 25 and 40 min, ...
    def at(elapsed):
        return tsafrir_steps(10 * MINUTE, 365 * DAY, elapsed)

    assert [at(minutes * MINUTE) for minutes in (9, 10, 11, 15, 25, 40)] == [
        minutes * MINUTE for minutes in (10, 11, 15, 25, 40, 70)
    ]
    last = 10 * MINUTE + 100 * HOUR
    assert at(last - 1) == last
    assert at(last) == 365 * DAY
    assert tsafrir_steps(10 * MINUTE, 12 * MINUTE, 11 * MINUTE) == 12 * MINUTE


@every_correction
@given(job=jobs())
def test_an_estimate_exceeds_the_elapsed_time_or_is_the_request(correct, job):
    predicted, requested, elapsed = job
    estimate = correct(predicted, requested, elapsed)
    assert predicted <= estimate <= requested
    assert estimate > elapsed or estimate == requested


@every_correction
@given(job=jobs())
def test_a_prediction_that_was_not_outlived_stands(correct, job):
    predicted, requested, _ = job
    assert correct(predicted, requested, predicted / 2) == predicted or predicted / 2 == predicted


@given(job=jobs(), share=st.floats(0, 1))
def test_doubling_may_start_from_any_earlier_estimate(job, share):
    predicted, requested, elapsed = job
    earlier = next_estimate(predicted, requested, elapsed * share)
    assert next_estimate(earlier, requested, elapsed) == next_estimate(
        predicted, requested, elapsed
    )


@every_correction
@pytest.mark.parametrize(
    ("predicted", "requested", "elapsed"),
    [(5e-324, 1e308, 0), (5e-324, 1e308, 1e308), (1e300, 1.7e308, 1e304), (1e25, 1e30, 2e25)],
)
def test_extreme_numbers_end_too(correct, predicted, requested, elapsed):
    assert predicted <= correct(predicted, requested, elapsed) <= requested


@every_correction
@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("predicted_walltime", (3601, 3600, 10)),
        ("predicted_walltime", (0, 3600, 10)),
        ("predicted_walltime", (nan, 3600, 10)),
        ("requested_walltime", (1, 0, 10)),
        ("requested_walltime", (1, inf, 10)),
        ("requested_walltime", (1, nan, 10)),
        ("elapsed", (1, 3600, -1)),
        ("elapsed", (1, 3600, nan)),
        ("elapsed", (1, 3600, inf)),
    ],
)
def test_what_no_job_can_have_is_refused_by_name(correct, field, arguments):
    with pytest.raises(ValueError, match=field):
        correct(*arguments)
