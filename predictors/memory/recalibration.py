"""Recalibrates requested levels with the places of PIT values of earlier runs: equation 8.

Correction by the PIT values of ended runs is right for jobs like these runs. Jobs that are
submitted now may differ: where many jobs wait, the last ended runs are the short ones, and of a
burst of like jobs none has ended. So each run is looked at as it was seen at its submission. Its
PIT_PLACE is the share of PIT values of runs that had ended then, up to its own; its
NONCONFORMITY_PLACE is the same share of nonconformity scores. If levels had been right, places were
uniform. The requested level is replaced by a quantile of a mixture: half of it is the distribution
of the last places, half the uniform distribution.

The places of a run follow from the LONGEST_WINDOW runs before it in the table.

References:
    A. P. Dawid, "Statistical theory: the prequential approach", J. Royal Statistical Society A
    147(2), 1984.
    V. Kuleshov, N. Fenner and S. Ermon, "Accurate uncertainties for deep learning using calibrated
    regression", ICML 2018.
"""

from math import inf

from predictors.compiled import compiled, compiled_for_threads
from predictors.memory.columns import (
    END,
    FAMILIARITY,
    NONCONFORMITY,
    NONCONFORMITY_PLACE,
    PIT,
    PIT_PLACE,
    SUBMIT,
    Floats,
    rows_until,
)
from predictors.memory.histograms import (
    BINS,
    ENOUGH,
    LONGEST_WINDOW,
    OF_PLACES,
    WINDOWS,
    Histograms,
    Mixture,
    bin_of,
    cdf,
    quantile,
    runs_in,
)

RECALIBRATED = 10_000
"""Number of last runs whose places count. From 8,000 to 20,000 it matters little."""

DAMPING = 0.5
"""Share of the last places in the mixture."""

BORROWED = 1_000
"""Weight of all runs, in runs, beside those of the job's own familiarity group."""


@compiled
def weights_of(group: int, everybody: int) -> tuple[float, float]:
    """Return the weight of a run in its group, and among all runs, in a window that counts half.

    Args:
        group: number of runs of the job's group in the window.
        everybody: number of all runs in it.
    """
    weight = 0.5 / (group + BORROWED)
    return weight, weight * BORROWED / max(1, everybody)


@compiled_for_threads
def note_places(numbers: Floats, rows: tuple[int, int, int]) -> None:
    """Note the places of each of the rows; -1 where fewer than ENOUGH earlier runs have PIT values.

    Args:
        numbers: of the runs; the LONGEST_WINDOW rows before each have PIT values.
        rows: first row of all; begin and end of the rows to note.
    """
    oldest, begin, end = rows
    for row in range(begin, end):
        numbers[PIT_PLACE, row] = numbers[NONCONFORMITY_PLACE, row] = -1.0
        if numbers[PIT, row] < 0:
            continue
        first = max(oldest, row - LONGEST_WINDOW)
        stop = rows_until(numbers[END], first, row, numbers[SUBMIT, row])
        middle = max(first, stop - WINDOWS[0])
        latest = _up_to(numbers, (middle, stop), row)
        before = _up_to(numbers, (first, middle), row)
        everybody, group = latest[0] + before[0], latest[1] + before[1]
        if everybody < ENOUGH:
            continue
        shorter, longer = weights_of(latest[1], latest[0]), weights_of(group, everybody)
        for kind, place in enumerate((PIT_PLACE, NONCONFORMITY_PLACE)):
            alike, of_all = latest[3 + 2 * kind], latest[2 + 2 * kind]
            share = shorter[0] * alike + shorter[1] * of_all
            alike, of_all = alike + before[3 + 2 * kind], of_all + before[2 + 2 * kind]
            numbers[place, row] = share + longer[0] * alike + longer[1] * of_all


@compiled
def _up_to(
    numbers: Floats, among: tuple[int, int], row: int
) -> tuple[int, int, int, int, int, int]:
    """Return how many rows have a PIT value, one up to that of ``row``, a score up to its score.

    Each number is followed by that of rows in the same familiarity group.
    """
    pit, score = _end_of_bin(numbers[PIT, row]), _end_of_bin(numbers[NONCONFORMITY, row])
    familiarity = numbers[FAMILIARITY, row]
    everybody = alike = lower = lower_alike = narrower = narrower_alike = 0
    for other in range(among[0], among[1]):
        if numbers[PIT, other] < 0:
            continue
        is_alike = int(numbers[FAMILIARITY, other] == familiarity)
        is_lower = int(numbers[PIT, other] < pit)
        is_narrower = int(numbers[NONCONFORMITY, other] < score)
        everybody += 1
        alike += is_alike
        lower += is_lower
        lower_alike += is_lower & is_alike
        narrower += is_narrower
        narrower_alike += is_narrower & is_alike
    return everybody, alike, lower, lower_alike, narrower, narrower_alike


@compiled
def _end_of_bin(value: float) -> float:
    """Return the upper end of a value's bin, infinite for the last bin."""
    cell = bin_of(value) + 1
    return cell / BINS if cell < BINS else inf


@compiled
def recalibrated(histograms: Histograms, kind: int, share: float) -> float:
    """Return the share to request so that ``share`` of jobs are within.

    Args:
        histograms: of the last runs.
        kind: 0 for PIT values, 1 for nonconformity scores.
        share: between 0 and 1; returned as it is with fewer than ENOUGH places.
    """
    runs = runs_in(histograms, OF_PLACES)
    return quantile(histograms, _mixture(kind, runs), share) if runs >= ENOUGH else share


@compiled
def inverse(histograms: Histograms, share: float) -> float:
    """Return the share of jobs within a level for which ``share`` was requested."""
    runs = runs_in(histograms, OF_PLACES)
    return cdf(histograms, _mixture(0, runs), share) if runs >= ENOUGH else share


@compiled
def _mixture(kind: int, runs: int) -> Mixture:
    """Return the damped distribution of ``runs`` places."""
    unused = OF_PLACES
    weights = (DAMPING / runs, 0.0, 0.0, 0.0)
    return Mixture((OF_PLACES + kind, unused, unused, unused), weights, 1.0 - DAMPING)
