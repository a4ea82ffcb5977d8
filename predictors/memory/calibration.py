"""Corrects levels with the PIT values of ended runs: equation 7 of docs/attention.md.

The weights of past runs say which runtime is more likely than which, but not that 90% of all jobs
end below the quantile of 0.9. So each ended run gets two numbers from the distribution that was
predicted for it. PIT is its PIT value, the lowest level whose quantile reaches its runtime.
NONCONFORMITY is its nonconformity score, the width of the narrowest central interval that holds its
runtime. The level for a share of jobs is that quantile of the last runs' PIT values, and the width
of a central interval that quantile of their scores (windowed split conformal prediction).

How far a distribution can be trusted depends on the user's history. So runs are put into three
familiarity groups: no, one to nine, or more earlier runs of the user. Runs of the job's own
group count beside some of all runs (Mondrian conformal prediction, damped).

Many runs of one user, such as a job array, can make these widths wrong for others. So a width that
did not hold for the user's own last runs is replaced by a quantile of their scores. A known user
without any run among those that are scored gets the widest interval.

PIT values are no state of their own: that of a run follows from the runs before it in the table
that had ended when it was submitted. So they are the same in every process and after any restart.
A running job that outlives its prediction is not in the table, and counts when it ends.

Reference:
    V. Vovk, A. Gammerman and G. Shafer, "Algorithmic learning in a random world", Springer 2005.
"""

from collections.abc import Callable
from math import inf

import numpy as np

from predictors.compiled import compiled, compiled_for_threads, of_same_types
from predictors.jobs import Submission
from predictors.memory import choice, recalibration
from predictors.memory.choice import CostSums
from predictors.memory.columns import (
    END,
    FAMILIARITY,
    NONCONFORMITY,
    PREVIOUS,
    SUBMIT,
    Columns,
    Floats,
    RowWindow,
    is_known,
    rows_until,
)
from predictors.memory.histograms import (
    ALL,
    LONGEST_WINDOW,
    WINDOWS,
    Histograms,
    Mixture,
    Ranges,
    RowSpan,
    cdf,
    histogram_of,
    no_histograms,
    quantile,
    recount,
    runs_in,
)
from predictors.memory.job_table import LATE_JOBS, UNCHANGED, JobTable, WeakCall

MANY_RUNS = 10
"""Runs of a user from which on a job is in the last familiarity group."""

FAMILIAR = 2
"""The last familiarity group."""

_NOT_COUNTED: Ranges = ((0, 0), (0, 0), (0, 0))

FEWEST_SEARCHED = 1_000
"""Fewest of the cluster's last runs that a method may be told to search."""

KEPT_RUNS = 192
"""Number of each user's last runs that a table keeps, whatever others have run since."""

OWN_RUNS = 64
"""Number of the user's last runs for which an interval has to have held."""

Counts = tuple[Histograms, int, Floats]
"""Histograms of the last runs, the familiarity group of the job, and nonconformity scores of the
user's last runs."""

Calibrated = tuple[Histograms, int, CostSums]
"""Histograms of the last runs, ``Calibration.scored``, and sums of the costs of candidates."""

GroupWeights = tuple[float, float, float, float]
"""Weight of a run in the job's group and among all runs, in the shorter and the longer window."""

NOTHING = no_histograms()
"""Shared empty histograms, never written to."""

ScoreRows = Callable[[int, int], None]
"""Writes PIT and NONCONFORMITY of rows, from the first on and before the second; -1 where nothing
was predicted."""


def capacity_for(history: int, *, recalibrated: int = 0) -> int:
    """Return the number of runs that the table of a method has to store.

    Args:
        history: number of last runs that the method looks at for one job.
        recalibrated: number of runs used for recalibration.
    """
    return history + LONGEST_WINDOW + recalibrated + 2 * LATE_JOBS


class Calibration:
    """Counts the PIT values and scores of a table's runs.

    Args:
        recent: the runs, ``capacity_for`` of them; no other Calibration may write to this table.
        score: method of the owner that computes PIT values and scores.
        recalibrated: number of last runs used for recalibration.
        has_costs: whether ``score`` also writes the costs of candidates.

    A run that ended long before others and comes late changes the scores of all runs behind it.

    Attributes:
        scored: number of last rows that have scores.
    """

    def __init__(
        self, recent: JobTable, score: ScoreRows, *, recalibrated: int = 0, has_costs: bool = False
    ) -> None:
        self._recent = recent
        self._changes = recent.watch()
        self._score = WeakCall(score)
        self._recalibrated = recalibrated
        self._has_costs = has_costs
        self.scored = LONGEST_WINDOW + recalibrated
        self._history = recent.capacity - capacity_for(0, recalibrated=recalibrated)
        self._scored, self._placed = RowRange(), RowRange()
        self._counted = _NOT_COUNTED
        self._histograms = NOTHING
        self._costs = choice.no_sums()
        self._is_asked = self._is_changed = False
        self._newest = inf

    @property
    def costs(self) -> CostSums:
        """The costs of candidates over the runs that are counted."""
        return self._costs

    def at(self, submission: Submission) -> Counts:
        """Return the counts of the runs that had ended when a job was submitted."""
        window = self._recent.window(submission)
        histograms = self.histograms_at(window)
        return counts_of(self._recent.columns, window, (histograms, self.scored, self._costs))

    def histograms_at(self, window: RowWindow) -> Histograms:
        """Return the histograms for a window, with the costs of its runs; NOTHING without any."""
        if window.time < self._newest or self._changes.first != UNCHANGED:
            if window.stop == window.first:
                return NOTHING
            ends = self._recent.columns[0][END]
            stop = rows_until(ends, window.first, window.stop, window.time)
            self._count(window.first, stop)
        self._is_asked = True
        return self._histograms

    def observed(self) -> None:
        """Count the run that has just been put into the table, so that the next request is quick.

        A run that follows others without a request between waits with them for the next request.
        """
        if self._is_asked:
            self._is_asked = False
            self._count(self._recent.first, self._recent.first + len(self._recent))

    def _count(self, first: int, stop: int) -> None:
        """Count the rows from ``first`` on and before ``stop``."""
        self._note_changes()
        table = self._recent
        numbers, moved = table.columns[0], table.moved
        placed = max(first, stop - self._recalibrated)
        self._score_rows(max(first, placed - LONGEST_WINDOW), stop)
        self._forget_counts()
        for begin, end in self._placed.missing(placed + moved, stop + moved):
            recalibration.note_places(numbers, (table.first, begin - moved, end - moved))
        before, rows = self._counted, (first, placed, stop, moved)
        self._counted = recount(self._histograms, numbers, before, rows)
        if self._has_costs:
            self._sum_costs(before[1], self._counted[1])
        is_whole = stop == table.first + len(table)
        self._newest = float(numbers[END, stop - 1]) if is_whole else inf

    def _sum_costs(self, before: RowSpan, after: RowSpan) -> None:
        """Slide the sums of costs from some rows to others; rows are counted with those moved."""
        table, moved = self._recent, self._recent.moved
        self._costs = choice.with_room(self._costs, table.users)
        spans = [(first - moved, stop - moved) for first, stop in (before, after)]
        choice.slide_costs(self._costs.users, self._costs.cluster, table.columns, *spans)

    def _note_changes(self) -> None:
        """Note the first row at which a run was inserted."""
        changed = self._changes.take()
        self._scored.forget(changed)
        self._placed.forget(changed)
        self._is_changed |= changed < self._counted[0][1]

    def _forget_counts(self) -> None:
        """Forget the counts of rows at which a run was inserted."""
        if self._histograms is NOTHING:
            self._histograms = no_histograms()
        if self._is_changed:
            self._histograms[:] = 0
            self._counted, self._is_changed = _NOT_COUNTED, False

    def _score_rows(self, first: int, stop: int) -> None:
        """Compute PIT values, scores and familiarity groups of the rows that lack them."""
        table, moved = self._recent, self._recent.moved
        for begin, end in self._scored.missing(first + moved, stop + moved):
            rows = (begin - moved, end - moved)
            self._score(*rows)
            note_familiarity(table.columns, (table.first, *rows), self._history)
            if self._has_costs:
                choice.note_weights(table.columns, (table.first, *rows), self._history)


class RowRange:
    """A range of rows with computed numbers; rows are counted with those moved."""

    def __init__(self) -> None:
        self._first = self._stop = 0

    def forget(self, changed: int) -> None:
        """Forget the rows from ``changed`` on."""
        self._stop = max(self._first, min(self._stop, changed))

    def missing(self, first: int, stop: int) -> list[tuple[int, int]]:
        """Return first and end of rows that are not in the range, and extend it by them.

        A range that lies apart from the rows is forgotten.
        """
        if first > self._stop or stop < self._first or self._first == self._stop:
            self._first = self._stop = first
        missing = [(first, self._first), (self._stop, stop)]
        self._first, self._stop = min(first, self._first), max(stop, self._stop)
        return [(begin, end) for begin, end in missing if begin < end]


@compiled
def counts_at(columns: Columns, window: RowWindow, calibrated: Calibrated) -> Counts:
    """Return the counts for a window's user, from those of all jobs."""
    histograms, scored, _ = calibrated
    group = familiarity_at(columns, window)
    scores = own_scores(columns, window, scored)
    if group == FAMILIAR and len(scores) == 0:
        scores = np.ones(OWN_RUNS)
    return histograms, group, scores


counts_of = of_same_types(counts_at)
"""``counts_at`` for calls from Python."""


@compiled
def own_scores(columns: Columns, window: RowWindow, scored: int) -> Floats:
    """Return the scores of the user's last runs, of those among the last ``scored`` rows."""
    stop = rows_until(columns[0][END], window.first, window.stop, window.time)
    first = max(window.first, stop - scored)
    found, count, row = np.empty(OWN_RUNS), 0, window.newest
    while row >= first and count < OWN_RUNS:
        score = columns[0][NONCONFORMITY, row]
        if row < stop and score >= 0.0:
            found[count] = score
            count += 1
        row = columns[1][PREVIOUS, row]
    return found[:count]


@compiled
def familiarity_at(columns: Columns, window: RowWindow) -> int:
    """Return the familiarity group of a window's user by the ended rows."""
    stop = rows_until(columns[0][END], window.first, window.stop, window.time)
    found, row = 0, window.newest
    while is_known(columns, window, row) and found < MANY_RUNS:
        found += row < stop
        row = columns[1][PREVIOUS, row]
    return group_of(found)


@compiled
def familiarity(columns: Columns, rows: tuple[int, int], newest: int) -> int:
    """Return the familiarity group of the user whose rows are linked backwards from ``newest``."""
    first, stop = rows
    found, row = 0, newest
    while row >= first and found < MANY_RUNS:
        found += row < stop
        row = columns[1][PREVIOUS, row]
    return group_of(found)


@compiled
def group_of(runs: int) -> int:
    """Return the familiarity group of a user with a number of runs."""
    return 0 if runs == 0 else 1 if runs < MANY_RUNS else FAMILIAR


@compiled_for_threads
def note_familiarity(columns: Columns, rows: tuple[int, int, int], history: int) -> None:
    """Note for each of the rows the familiarity group of its user at its submission.

    Args:
        rows: first row of all; begin and end of the rows to note.
        history: number of rows before a row that are looked at.
    """
    oldest, begin, end = rows
    numbers, attributes, _ = columns
    for row in range(begin, end):
        first = max(oldest, row - history)
        stop = rows_until(numbers[END], first, row, numbers[SUBMIT, row])
        numbers[FAMILIARITY, row] = familiarity(columns, (first, stop), attributes[PREVIOUS, row])


@compiled
def runs_counted(counts: Counts) -> int:
    """Return the number of runs with PIT values in the longer window."""
    return runs_in(counts[0], histogram_of(len(WINDOWS) - 1, ALL, 0))


@compiled
def group_weights(counts: Counts) -> GroupWeights:
    """Return the weights of runs, the same for all levels of one job."""
    histograms, group, _ = counts
    shorter = recalibration.weights_of(
        runs_in(histograms, histogram_of(0, group, 0)), runs_in(histograms, histogram_of(0, ALL, 0))
    )
    longer = recalibration.weights_of(
        runs_in(histograms, histogram_of(1, group, 0)), runs_in(histograms, histogram_of(1, ALL, 0))
    )
    return shorter[0], shorter[1], longer[0], longer[1]


@compiled
def corrected(counts: Counts, weights: GroupWeights, kind: int, share: float) -> float:
    """Return the level, or interval width, within which ``share`` of jobs are.

    Args:
        counts: of at least ``histograms.ENOUGH`` runs.
        weights: by ``group_weights``.
        kind: 0 for levels, 1 for widths of central intervals.
        share: less than 1; of n runs it is taken as (n + 1) / n of it.
    """
    histograms, group, own = counts
    runs = float(runs_counted(counts))
    level = recalibration.recalibrated(histograms, kind, share) * (runs + 1.0) / runs
    found = quantile(histograms, _mixture(group, weights, kind), min(1.0 - 1e-9, level))
    return found if kind == 0 else width_that_held(own, share, found)


@compiled
def width_that_held(scores: Floats, share: float, width: float) -> float:
    """Return a width that held for a user's last runs: the given one, unless it clearly did not.

    Clearly means for twice as many runs as may be outside, and two more. Fewer may be chance.

    Args:
        scores: nonconformity scores of these runs.
        share: of runs that are to be within the width.
        width: by the last runs of the cluster.
    """
    outside = 0
    for score in scores:
        outside += score > width
    runs = len(scores)
    if outside <= 2.0 + 2.0 * (1.0 - share) * runs:
        return width
    return float(np.sort(scores)[min(runs - 1, int(share * (runs + 1)))])


@compiled
def share_within(counts: Counts, weights: GroupWeights, level: float) -> float:
    """Return the share of jobs whose PIT value is at most ``level``."""
    histograms, group, _ = counts
    share = cdf(histograms, _mixture(group, weights, 0), level)
    return recalibration.inverse(histograms, share)


@compiled
def _mixture(group: int, weights: GroupWeights, kind: int) -> Mixture:
    """Return the distribution of PIT values or scores for jobs of a familiarity group."""
    histograms = (
        histogram_of(0, group, kind),
        histogram_of(0, ALL, kind),
        histogram_of(1, group, kind),
        histogram_of(1, ALL, kind),
    )
    return Mixture(histograms, weights, 0.0)
