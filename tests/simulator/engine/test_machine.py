"""The corrections of the scheduling loop are those of the predictors, in whole seconds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predictors.correction import CORRECTIONS
from simulator.engine.machine import CORRECTION_NUMBERS, corrected

every_correction = pytest.mark.parametrize("name", CORRECTIONS)


def test_both_have_the_same_names():
    assert list(CORRECTION_NUMBERS) == list(CORRECTIONS)


@every_correction
@given(
    first=st.integers(1, 10**6),
    above=st.integers(0, 10**6),
    share=st.floats(0, 1, exclude_max=True),
)
def test_below_the_request_they_are_equal(name, first, above, share):
    request = first + above
    elapsed = int(request * share)
    in_the_loop = getattr(corrected, "py_func", corrected)(
        CORRECTION_NUMBERS[name], first, request, elapsed
    )
    assert in_the_loop == CORRECTIONS[name](float(first), float(request), float(elapsed))
