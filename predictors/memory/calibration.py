"""Corrects levels by where the runtimes of ended runs fell in what was predicted for them.

The weights of past runs say what is more likely than what; that 90% of all jobs end below the
quantile of 0.9 they do not say. So each ended run is ranked in the distribution that was
predicted for it, by two numbers: LEVEL, the lowest level whose quantile reached its runtime, and
SPREAD, the width of the narrowest central interval that held it. Of the last runs 90% have a LEVEL
up to some number: the quantile at that number is what 90% of jobs like them end below. An interval
with a coverage of 90% is in the same way as wide as 90% of the last runs needed. (Windowed split
conformal prediction: V. Vovk, A. Gammerman and G. Shafer, "Algorithmic learning in a random
world", 2005; of the windows the shorter follows the cluster, the longer rides out bursts of like
jobs, and each counts a half.)

How far a distribution can be trusted depends on how much was known of the user: nothing, little or
much. Last runs of whose users as much was known tell more than others do, and together with them
some of all runs (Mondrian conformal prediction, damped).

A method may look back further, at how good the levels were that this came to: see ``hindsight``.

Ranks are no state of their own. The rank of a run follows from the runs before it in the table,
those alone that had ended when it was submitted, among those that the method keeps. So it is found
when it is asked for, and it is the same in every process, in any order, after any restart.
A job that has not ended yet is not in the table, even if it has outlived its prediction: that is
seen when it ends.
"""

from collections.abc import Callable
from math import inf

from predictors.compiled import compiled
from predictors.jobs import Submission
from predictors.memory.columns import (
    END,
    KNOWN,
    PREVIOUS,
    SUBMIT,
    Columns,
    Window,
    rows_until,
)
from predictors.memory.hindsight import (
    Places,
    no_places,
    note_places,
    recount_places,
    share_got,
    share_to_ask,
)
from predictors.memory.job_table import LATE_JOBS, UNCHANGED, JobTable
from predictors.memory.rank_counts import (
    ALL,
    ENOUGH,
    LONGEST_WINDOW,
    WINDOWS,
    Counted,
    Ranks,
    Shares,
    no_ranks,
    rank_of,
    ranked_in,
    recount,
    share_up_to,
    shares_of,
)

MUCH = 10
"""With as many runs of its user before it, much is known of a job; with none, nothing."""

MUCH_KNOWN = 2
"""What ``known`` says of a user of whom much is known."""

_NO_ROWS = (0, 0)
_UNCOUNTED: Counted = (_NO_ROWS, _NO_ROWS)

Bins = tuple[Ranks, Places]
"""What was counted of the last runs."""

Counts = tuple[Bins, int]
"""The same, and the group of the job that is asked about."""

NOTHING: Bins = (no_ranks(), no_places())
"""Nothing was counted; shared, and never written to."""

Rank = Callable[[int, int], None]
"""Ranks the rows from the first on and before the second: writes LEVEL and SPREAD, -1 where
nothing was predicted."""


def rows_kept(history: int, *, looked_back: int = 0) -> int:
    """How many runs the table of a method has to keep.

    Args:
        history: how many the method looks at for one job.
        looked_back: of how many it is told how good their levels were.
    """
    return history + LONGEST_WINDOW + looked_back + 2 * LATE_JOBS


class Calibration:
    """What a table's ranks say about a method's levels.

    Args:
        recent: the runs, as many as ``rows_kept`` tells. Nobody else may watch the table.
        rank: of the method.
        looked_back: how many of the last runs tell how good the corrected levels were.

    Attributes:
        history: how many rows before a run tell how much was known of its user.
    """

    def __init__(self, recent: JobTable, rank: Rank, *, looked_back: int = 0) -> None:
        self._recent = recent
        self._rank = rank
        self._looked_back = looked_back
        self.history = recent.kept - rows_kept(0, looked_back=looked_back)
        self._ranked, self._placed = Noted(), Noted()
        self._counted = _UNCOUNTED
        self._counted_places = _NO_ROWS
        self._counts: Bins = NOTHING
        self._is_asked = False
        self._newest = inf

    def at(self, submission: Submission) -> Counts:
        """How the runs that had ended when a job was submitted are spread over the levels."""
        window = self._recent.window(submission)
        bins = self.bins(window)
        return bins, known_at(self._recent.columns, window, self.history)

    def bins(self, window: Window) -> Bins:
        """The runs that had ended in time, counted by their ranks.

        Of a cluster with fewer runs than would correct anything nothing is counted: a count takes
        more room than all of its runs.

        Args:
            window: first row, end of the rows, and the time by which a run must have ended.
        """
        first, stop, time, _ = window
        if time < self._newest or self._recent.changed_from != UNCHANGED:
            if stop - first < ENOUGH:
                return NOTHING
            ends = self._recent.columns[0][END]
            self._count(first, rows_until(ends, first, stop, time))
        self._is_asked = True
        return self._counts

    def observed(self) -> None:
        """Rank the run that has just been put into the table, before anybody asks.

        A run that follows others about which nobody asked waits with them until somebody does.
        """
        if self._is_asked:
            self._is_asked = False
            self._count(self._recent.first, self._recent.first + len(self._recent))

    def _count(self, first: int, stop: int) -> None:
        """Rank and count the rows from ``first`` on and before ``stop``."""
        if self._counts is NOTHING:
            self._counts = (no_ranks(), no_places())
        self._forget_changes()
        table = self._recent
        numbers, moved = table.columns[0], table.moved
        placed = max(first, stop - self._looked_back)
        self._rank_rows(max(first, placed - LONGEST_WINDOW), stop)
        for begin, end in self._placed.lacking(placed + moved, stop + moved):
            note_places(numbers, (table.first, begin - moved, end - moved))
        ranks, places = self._counts
        self._counted = recount(ranks, numbers, self._counted, (first, stop, moved))
        before = self._counted_places
        self._counted_places = recount_places(places, numbers, before, (placed, stop, moved))
        is_whole = stop == table.first + len(table)
        self._newest = float(numbers[END, stop - 1]) if is_whole else inf

    def _forget_changes(self) -> None:
        """Take back what a run that was put before others has made wrong."""
        changed, self._recent.changed_from = self._recent.changed_from, UNCHANGED
        self._ranked.forget(changed)
        self._placed.forget(changed)
        if changed < self._counted[0][1]:
            for counts in self._counts:
                counts[:] = 0
            self._counted, self._counted_places = _UNCOUNTED, _NO_ROWS

    def _rank_rows(self, first: int, stop: int) -> None:
        """Rank those of the rows that are not ranked yet."""
        table, moved = self._recent, self._recent.moved
        for begin, end in self._ranked.lacking(first + moved, stop + moved):
            rows = (begin - moved, end - moved)
            self._rank(*rows)
            note_known(table.columns, (table.first, *rows), self.history)


class Noted:
    """The rows that something has been noted for, in numbers that stay the same."""

    def __init__(self) -> None:
        self._first = self._stop = 0

    def forget(self, changed: int) -> None:
        """Forget the rows from ``changed`` on."""
        self._stop = max(self._first, min(self._stop, changed))

    def lacking(self, first: int, stop: int) -> list[tuple[int, int]]:
        """First and end of those of the rows that lack it; from now on they have it.

        Rows that lie apart from these are forgotten.
        """
        if first > self._stop or stop < self._first or self._first == self._stop:
            self._first = self._stop = first
        lacking = [(first, self._first), (self._stop, stop)]
        self._first, self._stop = min(first, self._first), max(stop, self._stop)
        return [(begin, end) for begin, end in lacking if begin < end]


@compiled
def known_at(columns: Columns, window: Window, history: int) -> int:
    """How much the last ``history`` rows that had ended in time say of the window's user."""
    first, stop, time, newest = window
    stop = rows_until(columns[0][END], first, stop, time)
    return known(columns, (max(first, stop - history), stop), newest)


@compiled
def known(columns: Columns, rows: tuple[int, int], newest: int) -> int:
    """How much rows say of the user whose rows are linked backwards from ``newest``: 0, 1 or 2."""
    first, stop = rows
    found, row = 0, newest
    while row >= first and found < MUCH:
        found += row < stop
        row = columns[1][PREVIOUS, row]
    return 0 if found == 0 else 1 if found < MUCH else MUCH_KNOWN


@compiled
def note_known(columns: Columns, rows: tuple[int, int, int], history: int) -> None:
    """Note for each of the rows how much was known of its user when it was submitted.

    Args:
        columns: the runs.
        rows: the first of all, and those to note it for: from one on and before another.
        history: how many rows before a row are looked at.
    """
    oldest, begin, end = rows
    numbers, attributes, _ = columns
    for row in range(begin, end):
        first = max(oldest, row - history)
        stop = rows_until(numbers[END], first, row, numbers[SUBMIT, row])
        numbers[KNOWN, row] = known(columns, (first, stop), attributes[PREVIOUS, row])


@compiled
def ranked(counts: Counts) -> int:
    """How many runs are ranked."""
    return ranked_in(counts[0][0], ALL, len(WINDOWS) - 1)


@compiled
def shares_of_runs(counts: Counts) -> Shares:
    """What ``corrected`` needs to know of all runs; once for all that is asked about a job."""
    (ranks, _), group = counts
    return shares_of((ranks, group))


@compiled
def corrected(counts: Counts, of_runs: Shares, kind: int, share: float) -> float:
    """The level, or spread, up to which ``share`` of jobs are.

    Args:
        counts: at least ENOUGH runs are ranked.
        of_runs: what ``shares_of_runs`` says of them.
        kind: 0 for levels, 1 for spreads.
        share: less than 1.
    """
    (ranks, places), group = counts
    return rank_of((ranks, group), of_runs, kind, share_to_ask(places, kind, share))


@compiled
def share_within(counts: Counts, level: float) -> float:
    """The share of jobs whose LEVEL is up to ``level``."""
    (ranks, places), group = counts
    return share_got(places, share_up_to((ranks, group), level))
