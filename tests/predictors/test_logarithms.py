"""Many logarithms at once are those that the C library gives one by one."""

import numpy as np
import pytest

from predictors.logarithms import take_logarithms, take_logarithms_of_next

HARD = [1.0, 2.0, 0.5, np.sqrt(0.5), np.nextafter(1, 0), np.nextafter(1, 2), 1e-300, 1e300]


@pytest.mark.parametrize("powers", [1, 9, 300])
def test_a_logarithm_is_exact_to_the_last_place(powers):
    random = np.random.default_rng(powers)
    numbers = np.append(10 ** random.uniform(-powers, powers, 10_000), HARD)
    found = numbers.copy()
    take_logarithms(found, len(found))
    expected = np.log(numbers)
    assert (abs(found - expected) <= np.spacing(abs(expected))).all()


def test_a_logarithm_of_one_more_is_exact_where_one_would_swallow_the_number():
    random = np.random.default_rng(1)
    numbers = np.append(10 ** random.uniform(-18, 9, 10_000), 0.0)
    found = numbers.copy()
    take_logarithms_of_next(found, len(found))
    expected = np.log1p(numbers)
    assert (abs(found - expected) <= 2 * np.spacing(expected)).all()


def test_numbers_behind_the_first_ones_stay():
    numbers = np.full(5, 7.0)
    take_logarithms(numbers, 3)
    assert numbers[3:].tolist() == [7.0, 7.0]
