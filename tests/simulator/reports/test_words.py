"""How reports say durations."""

import pytest

from simulator.reports.words import duration


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(40, "40 s"), (89 * 60, "89 min"), (91 * 60, "1.5 h"), (99.6 * 3600, "4.2 days")],
)
def test_a_duration_has_the_unit_of_its_size(seconds, said):
    assert duration(seconds) == said


def test_a_duration_beside_another_has_its_unit():
    assert duration(91 * 60, beside=89 * 60) == "91 min"
    assert duration(89 * 60, beside=91 * 60) == "1.5 h"
