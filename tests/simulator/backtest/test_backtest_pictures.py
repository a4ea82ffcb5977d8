"""Pictures of a backtest show what they are about, whatever else is in them."""

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure

from simulator.backtest import backtest_pictures


@pytest.mark.parametrize(("longest", "scale"), [(9, "linear"), (900, "symlog")])
def test_a_month_of_far_longer_waits_leaves_those_of_others_to_be_seen(longest, scale):
    believed = SimpleNamespace(
        months=("2022-11", "2022-12", "2023-01", "2023-02"),
        logged_by_month=3600.0 * np.array([longest, 8, 6, np.nan]),
        simulated_by_month=np.full(4, 7200.0),
    )
    figure = Figure()
    backtest_pictures._believed_by_month(figure, SimpleNamespace(believed=believed))
    assert figure.axes[0].get_yscale() == scale


def test_estimates_without_a_colour_are_drawn_grey_and_never_as_a_method():
    for name in ("by-request", "tomorrow:window=3"):
        assert backtest_pictures._for_page(
            f'<svg stroke="{backtest_pictures._colour(name)}"/>'
        ) == ('<svg stroke="var(--quiet)"/>')
