"""Tang et al. 2013: its figures and tables, by their numbers.

Those about accuracy need one log only, and ``--log`` names any site's.
"""

from simulator.studies.exhibits import Exhibits
from simulator.studies.tang.tang_accuracy import (
    by_window,
    classes,
    figure_4,
    figure_11,
    figure_13,
)
from simulator.studies.tang.tang_gains import simulated
from simulator.studies.tang.tang_requests import figure_1, figure_2, table_1, table_2

EXHIBITS: Exhibits = {
    "table 1": table_1,
    "table 2": table_2,
    "figure 1": figure_1,
    "figure 2": figure_2,
    "figure 4": figure_4,
    "figure 5": classes(5, ("triple", "double"), (0.0,)),
    "figure 6": classes(6, ("triple",), (0.0, 0.5)),
    "figure 7": classes(7, ("double",), (0.0, 0.5)),
    "figure 8": by_window(8, "accuracy", "accuracy"),
    "figure 9": by_window(9, "badly_underestimated", "share of BE jobs"),
    "figure 10": by_window(10, "underestimated", "share of UE jobs"),
    "figure 11": figure_11,
    "figure 13": figure_13,
    **{f"figure {number}": simulated(number) for number in range(14, 18)},
}
