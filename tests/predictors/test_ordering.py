"""Sorting and searching, against numpy's."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from predictors.ordering import ascending, place_after, place_of

numbers = st.lists(st.integers(0, 20).map(float), max_size=40)


@given(numbers)
def test_equal_values_stay_in_their_order(values):
    column = np.array(values)
    assert ascending(column).tolist() == np.argsort(column, kind="stable").tolist()


@given(numbers, st.integers(-1, 21).map(float))
def test_a_sought_value_is_placed_before_and_after_its_equals(values, sought):
    column = np.sort(np.array(values))
    assert place_of(column, sought) == np.searchsorted(column, sought)
    assert place_after(column, sought) == np.searchsorted(column, sought, side="right")
