import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predictors.measures import (
    NoJobsError,
    accuracy,
    classes,
    coverage,
    error_per_group,
    measure,
    ordered_share,
)


def seconds(*values):
    return np.array(values, dtype=float)


#                  NA: the   NA and     OE      exact,   UE: 30 min  BE: 30 min
#                  request   too short          so OE    too short   and a second
PREDICTED = seconds(7200,    600,       3600,   1000,    1800,       1800)  # fmt: skip
REQUESTED = seconds(7200,    600,       7200,   2000,    7200,       7200)  # fmt: skip
ACTUAL    = seconds(1800,    900,       2700,   1000,    3600,       3601)  # fmt: skip


def test_measures_worked_by_hand():
    measures = measure(PREDICTED, REQUESTED, ACTUAL)
    assert measures.jobs == 6
    assert measures.mean_absolute_error == pytest.approx((5400 + 300 + 900 + 1800 + 1801) / 6)
    assert measures.median_absolute_error == pytest.approx((900 + 1800) / 2)
    shares = [1 / 4, 2 / 3, 3 / 4, 1, 1 / 2, 1800 / 3601]
    assert measures.accuracy == pytest.approx(sum(shares) / 6)
    assert measures.median_accuracy == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert measures.underestimation_rate == pytest.approx(3 / 6)
    assert measures.unused_ratio == pytest.approx((5400 + 900) / (1800 + 900 + 2700 + 1000 + 7201))
    assert measures.interval_coverage is None


def test_every_job_is_of_one_class():
    assert [flags.tolist().count(True) for flags in classes(PREDICTED, REQUESTED, ACTUAL)] == [
        2,
        2,
        1,
        1,
    ]
    assert np.sum(classes(PREDICTED, REQUESTED, ACTUAL), axis=0).tolist() == [1] * 6


def test_accuracy_is_one_for_an_exact_prediction_even_of_zero_seconds():
    assert accuracy(seconds(0, 5, 1, 4), seconds(0, 5, 0, 1)).tolist() == [1, 1, 0, 0.25]


@given(st.lists(st.tuples(st.floats(0, 1e9), st.floats(0, 1e9)), min_size=1))
def test_accuracy_is_symmetric_and_between_zero_and_one(pairs):
    predicted, actual = (seconds(*side) for side in zip(*pairs, strict=True))
    values = accuracy(predicted, actual)
    assert np.array_equal(values, accuracy(actual, predicted))
    assert ((values >= 0) & (values <= 1)).all()


def test_coverage_counts_the_jobs_that_had_an_interval():
    lower, upper = seconds(0, np.nan, 10, 10), seconds(5, np.nan, 20, 20)
    assert coverage(lower, upper, seconds(5, 7, 21, 10)) == pytest.approx(2 / 3)
    assert coverage(seconds(np.nan), seconds(np.nan), seconds(1)) is None
    measures = measure(*[seconds(1)] * 3, lower=seconds(0), upper=seconds(2))
    assert measures.interval_coverage == 1


def test_errors_are_averaged_per_group():
    errors = error_per_group(
        seconds(1, 2, 3), seconds(2, 2, 9), np.array([0, 0, 2], dtype=np.int64), 3
    )
    assert errors.tolist() == [0.5, 0, 6]


def test_nothing_is_not_measured():
    with pytest.raises(NoJobsError):
        measure(seconds(), seconds(), seconds())


def test_measures_are_json():
    assert measure(PREDICTED, REQUESTED, ACTUAL).as_dict()["jobs"] == 6


def test_pairs_count_as_much_as_their_runtimes_differ():
    actual = np.array([100.0, 200.0, 800.0])  # pairs differ by 100, 700 and 600
    assert ordered_share(actual, actual) == 1.0
    assert ordered_share(-actual, actual) == 0.0
    assert ordered_share(np.ones(3), actual) == 0.5
    first_two_swapped = np.array([2.0, 1.0, 3.0])
    assert ordered_share(first_two_swapped, actual) == pytest.approx(1300 / 1400)


def test_only_clearly_different_neighbours_are_pairs():
    assert np.isnan(ordered_share(np.array([1.0, 2.0]), np.array([100.0, 199.0])))
    assert np.isnan(ordered_share(np.ones(1), np.ones(1)))
    far = np.full(102, 100.0)
    far[0], far[101] = 100.0, 200.0  # 101 submissions apart; its neighbours are pairs with it
    lengths = far.copy()
    lengths[0] = 300.0
    assert ordered_share(lengths, far) == 1.0
