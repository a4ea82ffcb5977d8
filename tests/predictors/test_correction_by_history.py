"""A running job compared with those of its user that ran longer."""

from functools import partial

from hypothesis import given
from hypothesis import strategies as st
from runs import HOUR, ended, submission, taught

from predictors.correction import next_estimate
from predictors.correction_by_history import FEWEST, WINDOW, HistoryCorrection

job = partial(submission, request=10 * HOUR)


def after(*hours, user="ada"):
    """Return what has learned of runs that took so many of ten hours."""
    known = {"request": 10 * HOUR, "user": user}
    runs = (ended(float(end), runtime * HOUR, **known) for end, runtime in enumerate(hours, 1))
    return taught(HistoryCorrection(), runs)


def test_runs_that_were_shorter_tell_nothing_any_more():
    survivors = after(1, 1, 1, 1, 1, 1, 5, 6, 7, 8)
    assert survivors.next_estimate(HOUR, job(), 2 * HOUR) == 2 * HOUR * 2  # four are too few
    survivors = after(1, 1, 1, 1, 1, 1, 5, 6, 7, 8, 8)
    assert survivors.next_estimate(HOUR, job(), 2 * HOUR) == 8 * HOUR
    survivors = after(*range(1, 10))
    assert survivors.next_estimate(HOUR, job(), 2 * HOUR) == 8 * HOUR  # of 3, 4, ..., 9 the sixth


def test_runs_count_as_shares_of_their_request():
    survivors = after(*[5] * FEWEST)
    assert survivors.next_estimate(60.0, job(request=HOUR), 600.0) == HOUR / 2


def test_a_prediction_that_was_not_outlived_stands():
    assert after(*[5] * 20).next_estimate(HOUR, job(), HOUR / 2) == HOUR


def test_at_the_request_there_is_nothing_left_to_estimate():
    assert after(*[10] * 20).next_estimate(HOUR, job(), 11 * HOUR) == 10 * HOUR


def test_without_history_it_doubles():
    assert HistoryCorrection().next_estimate(HOUR, job(), 3 * HOUR) == next_estimate(
        HOUR, 10 * HOUR, 3 * HOUR
    )
    assert after(*[5] * 20, user="bob").next_estimate(HOUR, job(), HOUR) == 2 * HOUR


def test_runs_that_ended_after_the_submission_do_not_count():
    assert after(*[5] * 20).next_estimate(HOUR, job(4.0), HOUR) == 2 * HOUR


def test_only_the_last_runs_count():
    survivors = after(*[9] * WINDOW, *[5] * WINDOW)
    assert survivors.next_estimate(HOUR, job(), HOUR) == 5 * HOUR


@given(
    st.lists(st.floats(min_value=0, max_value=12), max_size=30),
    st.floats(min_value=0.01, max_value=10),
    st.floats(min_value=0, max_value=20),
)
def test_an_estimate_exceeds_what_has_passed_or_is_the_request(hours, predicted, elapsed):
    estimate = after(*hours).next_estimate(predicted * HOUR, job(), elapsed * HOUR)
    assert elapsed * HOUR < estimate <= 10 * HOUR or estimate == 10 * HOUR
