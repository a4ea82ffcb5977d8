"""The paper's own numbers, from its text and tables."""

from collections.abc import Mapping

GAINS: Mapping[str, Mapping[str, tuple[float | None, float | None, float | None]]] = {
    "wfp, regular": {"p95": (15, None, None), "p85": (15, 16, 19)},
    "wfp, selective": {"p85": (22, 22, 28)},
    "fcfs, regular": {"p95": (2, None, None), "p70": (None, -8, None)},
    "fcfs, selective": {"p85": (20, 22, 15), "p70": (20, 20, 15)},
}
"""Gains in percent in wait, slowdown and weighted wait (section 6.2, Figs. 14 to 17)."""

TRACE: Mapping[str, float] = {
    "jobs": 275_858,
    "days": 911,
    "average run time, s": 5199,
    "average request, s": 9096,
    "users": 503,
}
"""Table 1, with the days from January 2009 to June 2011."""

USAGES: Mapping[str, float] = {
    "close to 1": 0.12,
    "above 0.8": 0.25,
    "below 0.5": 0.50,
    "below 0.2": 0.28,
}
"""Shares of jobs by R that the text reads off Fig. 1 (section 3.2)."""

SPREADS: Mapping[str, float] = {
    "all jobs": 0.335,
    "project": 0.308,
    "user": 0.294,
    "user+project": 0.285,
    "user+project+walltime": 0.253,
}
"""Average standard deviation of R within groups of at least 10 jobs (Table 2)."""

MEAN_USAGE = 0.50
"""Of all jobs; by quarter 0.42 to 0.59 (section 3.2)."""

BEST_ACCURACY = 0.679
"""Of the triple key at the 70th percentile over all history (section 4.2.2)."""

ACCURACIES: Mapping[str, Mapping[int, float]] = {
    "requests": {50: 0.50, 60: 0.64},
    "maximum": {60: 0.70},
    "median": {50: 0.68, 60: 0.83},
    "p85": {50: 0.71, 60: 0.86},
}
"""Accuracy that a given percentage of the jobs does not exceed (Fig. 11)."""
