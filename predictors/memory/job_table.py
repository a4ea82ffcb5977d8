"""The most recent jobs of a cluster as flat columns, in order of their end."""

import math
from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from predictors.facts import Facts
from predictors.jobs import Completion, PastRun, Submission
from predictors.memory import columns, fact_rows
from predictors.memory.columns import (
    ANY,
    ATTRIBUTES,
    BLOCK,
    END,
    FEATURES,
    IDS,
    NEW,
    NOBODY,
    NONE_KEPT,
    NOWHERE,
    NUMBERS,
    NUMBERS_WITH_COSTS,
    ORDINAL,
    PREVIOUS,
    REQUEST,
    RUNTIME,
    UNKNOWN,
    Columns,
    Features,
    Floats,
    Ids,
    JobQuery,
    RowWindow,
    Running,
)

LATE_JOBS = 1_000
"""Number of runs that may have ended after a submission before a search finds fewer runs."""

TEMPLATE_ATTRIBUTES = ("user", "group", "queue", "application")
"""The attributes that a template may contain (Xu et al. 2019, section 1), in column order."""

UNCHANGED = 1 << 62
"""Value of ``RowChanges.first`` as long as no row has changed."""

FEWEST_ROWS = 32
"""Number of rows of a new table."""

FEWEST_USERS = 4
"""Number of users that a new table has room for: sums by user are as long."""


class InternedNames:
    """Ids (small numbers) of strings; an id is free again when its string is no longer used."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._texts: list[str] = []
        self._uses: list[int] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        """Return the number of strings in use."""
        return len(self._ids)

    def find(self, text: str | None) -> int:
        """Return the id of a string in use, else UNKNOWN."""
        return UNKNOWN if text is None else self._ids.get(text, UNKNOWN)

    def find_or_new(self, text: str | None) -> int:
        """Return the id of a string in use, else NEW; UNKNOWN for None."""
        return UNKNOWN if text is None else self._ids.get(text, NEW)

    def acquire(self, text: str | None) -> int:
        """Count one more use of a string and return its id; UNKNOWN for None."""
        if text is None:
            return UNKNOWN
        number = self._ids.get(text)
        if number is None:
            number = self._number(text)
        self._uses[number] += 1
        return number

    def release(self, number: int) -> None:
        """Count one use less of the id ``number``, which is free again without any."""
        if number == UNKNOWN:
            return
        self._uses[number] -= 1
        if not self._uses[number]:
            del self._ids[self._texts[number]]
            self._free.append(number)

    def _number(self, text: str) -> int:
        if self._free:
            number = self._free.pop()
            self._texts[number] = text
        else:
            number = len(self._texts)
            self._texts.append(text)
            self._uses.append(0)
        self._ids[text] = number
        return number


class RowChanges:
    """The rows of a table that changed since its observer looked.

    Attributes:
        first: the least number (a row plus ``JobTable.moved``) at which a run was inserted.
    """

    def __init__(self) -> None:
        self.first = 0

    def take(self) -> int:
        """Return ``first``, and begin anew."""
        first, self.first = self.first, UNCHANGED
        return first


class WeakCall:
    """Calls a method without keeping its owner alive, which else would hold itself and its rows."""

    __slots__ = ("_function", "_owner")

    def __init__(self, method: Callable[..., None]) -> None:
        bound: Any = method
        self._function, self._owner = bound.__func__, ref(bound.__self__)

    def __call__(self, *arguments: object) -> None:
        """Call the method; the owner is the caller's."""
        self._function(self._owner(), *arguments)


class JobTable:
    """Stores the ``capacity`` runs that ended last, among equal end times those observed last.

    A run that ends last is appended; one that is reported late is inserted by its end time. The
    arrays grow by doubling until they have twice the capacity, so that a small cluster takes a few
    kilobytes. From then on the oldest rows are left behind, and when the end of the arrays is
    reached, all rows move back to their beginning.

    The rows of each user are linked, so that a search for one user's runs skips the others. Each
    user's last runs can be kept, however many runs of others have ended since. At most ``capacity``
    such rows lie before the first row, and only links lead to them.

    Args:
        capacity: number of runs.
        kept: number of each user's last runs that are kept in any case.
        names_jobs: whether job ids are stored too.
        has_costs: whether costs of candidates are stored too.

    Attributes:
        running: like jobs that ran at a run's submission, by row; empty without costs.
        facts: further facts by row, see ``fact_rows``; empty until a run has some.
        moved: number of rows by which all rows were moved back so far. A row plus ``moved`` is a
            number that stays the same until a run is inserted before it.
    """

    def __init__(
        self, capacity: int, *, kept: int = 0, names_jobs: bool = False, has_costs: bool = False
    ) -> None:
        self._rows = NUMBERS_WITH_COSTS if has_costs else NUMBERS
        self.capacity = capacity
        self.kept = kept
        self.moved = 0
        self._changes: list[ref[RowChanges]] = []
        self._names_jobs, self._has_costs = names_jobs, has_costs
        self._first = 0
        self._stop = 0
        self._interned = tuple(InternedNames() for _ in TEMPLATE_ATTRIBUTES)
        self._newest = np.full(FEWEST_USERS, UNKNOWN, dtype=np.int32)
        self.facts: fact_rows.FactRows = np.empty((0, fact_rows.WIDTH), np.float32)
        self._fact_sums = np.zeros((fact_rows.SUMS, fact_rows.PLACES))
        self._fact_weights: Floats | None = None
        self._take_room(min(FEWEST_ROWS, 2 * capacity + 1))

    def __len__(self) -> int:
        """Return the number of stored runs."""
        return self._stop - self._first

    @property
    def columns(self) -> Columns:
        """The arrays themselves; the first row is ``first``."""
        return self._columns

    @property
    def users(self) -> int:
        """The number that is larger than the id of every user."""
        return len(self._newest)

    def ids_of(self, submission: Submission) -> tuple[int, int, int, int]:
        """Return the ids of a job's attributes; UNKNOWN also for those that no stored run has."""
        users, groups, queues, applications = self._interned  # a loop takes three times as long
        return (
            users.find(submission.user),
            groups.find(submission.group),
            queues.find(submission.queue),
            applications.find(submission.application),
        )

    def window(self, submission: Submission) -> RowWindow:
        """Return the rows that may count for a job."""
        newest, ordinal = self._newest_of(self._interned[0].find(submission.user)), NONE_KEPT
        if self.kept and newest != NOWHERE:
            ordinal = int(self._attributes[ORDINAL, newest]) - self.kept + 1
        return RowWindow(self._first, self._stop, float(submission.submit_time), newest, ordinal)

    def rows_of(
        self, user: str | None, application: str | None
    ) -> tuple[tuple[int, int, int], int, int]:
        """Return first row, end of the rows and the user's last row; ids of both names."""
        users, _, _, applications = self._interned
        number = users.find(user)
        rows = (self._first, self._stop, self._newest_of(number))
        return rows, number, applications.find(application)

    def job(self, submission: Submission) -> JobQuery:
        """Return a job as methods compare it with the stored runs."""
        return self.job_named(submission, submission.group, submission.application)

    def job_named(
        self, submission: Submission, group: str | None, application: str | None
    ) -> JobQuery:
        """Like ``job``, with another group and application."""
        users, groups, queues, applications = self._interned
        memory = submission.requested_memory
        return JobQuery(
            users.find_or_new(submission.user),
            groups.find_or_new(group),
            queues.find_or_new(submission.queue),
            applications.find_or_new(application),
            float(submission.requested_walltime),
            float(submission.requested_processors or 1),
            math.nan if memory is None else float(memory),
            float(submission.submit_time),
        )

    def add(self, completion: Completion, running: Running = NOBODY) -> None:
        """Store a run that has ended, unless the table is full of runs that ended later.

        Args:
            completion: the run.
            running: like jobs that ran at its submission.
        """
        if len(self) == self.capacity:
            if completion.end_time < self._numbers[END, self._first]:
                return
            self._forget_oldest()
        if self._stop == self._numbers.shape[1]:
            self._make_room()
        submission = completion.submission
        users, groups, queues, applications = self._interned
        ids = (
            users.acquire(submission.user),
            groups.acquire(submission.group),
            queues.acquire(submission.queue),
            applications.acquire(submission.application),
        )
        if ids[0] >= len(self._newest):
            self._newest = _longer(self._newest, 2 * len(self._newest), UNKNOWN)
        row = (
            *features_of(submission),
            float(completion.runtime),
            float(completion.end_time),
            float(submission.submit_time),
        )
        window = (self._first, self._stop)
        place = columns.insert(self._columns, window, row, ids, self._newest)
        if self._names_jobs:
            self._put(self._jobs, place, submission.job_id)
        if self._has_costs:
            self._put(self.running, place, running)
        self._stop += 1
        if submission.facts is not None or len(self.facts):
            self._note_facts(place, submission.facts)
        for reference in self._changes:
            if changes := reference():
                changes.first = min(changes.first, self.moved + place)

    def _note_facts(self, place: int, facts: Facts | None) -> None:
        """Store the facts of a run, and count what they would have saved for the last runs."""
        if not len(self.facts):
            rows = self._numbers.shape[1]
            self.facts = np.full((rows, fact_rows.WIDTH), np.nan, np.float32)
        self._fact_weights = None
        self.facts[place + 1 : self._stop] = self.facts[place : self._stop - 1]
        self.facts[place, : fact_rows.GAINS] = fact_rows.numbers_of(facts)
        oldest = max(self._first, place - (self.capacity - fact_rows.JUDGED))
        fact_rows.note_gains(self._columns, self.facts, place, oldest)
        begin = self._stop - fact_rows.JUDGED
        if place >= begin:
            fact_rows.add_gains(self._fact_sums, self.facts, place, 1.0)
            if begin > self._first:
                fact_rows.add_gains(self._fact_sums, self.facts, begin - 1, -1.0)

    def facts_that_count(self) -> NDArray[np.bool_]:
        """Return for each fact whether it has a weight by all stored runs."""
        return fact_rows.weights_of(self._fact_sums) > 0.0

    def facts_of(self, submission: Submission) -> fact_rows.JobFacts:
        """Return the facts of runs and of a job, with the weights by the runs that had ended."""
        if submission.facts is None or not len(self.facts):
            return self.facts, fact_rows.NO_NUMBERS, fact_rows.NO_WEIGHTS
        return self.facts, fact_rows.numbers_of(submission.facts), self._weights_for(submission)

    def _weights_for(self, submission: Submission) -> Floats:
        time, row = submission.submit_time, self._stop - 1
        if row < self._first or self._numbers.item(END, row) <= time:
            if self._fact_weights is None:
                self._fact_weights = fact_rows.weights_of(self._fact_sums)
            return self._fact_weights
        return self._fact_weights_before(time)

    def _fact_weights_before(self, time: float) -> Floats:
        """Return the weight of each fact by the last runs that had ended at a time."""
        oldest = max(self._first, self._stop - fact_rows.JUDGED)
        ends = self._numbers[END, oldest : self._stop]
        later = oldest + int(np.searchsorted(ends, time, side="right"))
        return fact_rows.weights_of(
            self._fact_sums - fact_rows.gains_of(self.facts[later : self._stop])
        )

    def watch(self) -> RowChanges:
        """Return the changes of rows from now on; all present rows count as changed."""
        changes = RowChanges()
        self._changes = [*(each for each in self._changes if each()), ref(changes)]
        return changes

    def copy(self) -> "JobTable":
        """Return a table with the same runs, without observers."""
        other = copy(self)
        other._become_own()  # noqa: SLF001 - of this class
        return other

    def has_later(self, end_time: float, runs: int) -> bool:
        """Return whether more than a number of runs ended after a time."""
        row = self._stop - 1 - runs
        return row >= self._first and end_time < self._numbers.item(END, row)

    def outcomes(self) -> tuple[Floats, Floats, Floats]:
        """Return runtimes, requests and ends of the runs, in order of their ends."""
        rows = self._numbers[:, self._first : self._stop]
        return rows[RUNTIME], rows[REQUEST], rows[END]

    @property
    def first(self) -> int:
        """The row of the run that ended first."""
        return self._first

    def _newest_of(self, user: int) -> int:
        """Return the last row of a user, by id."""
        return NOWHERE if user == UNKNOWN else int(self._newest.item(user))

    def run_at(self, row: int, weight: float) -> PastRun:
        """Return the run of a row for an explanation, with its weight."""
        number = self._numbers[:, row].tolist()
        return PastRun(
            job_id=self._jobs[row] if len(self._jobs) else None,
            runtime=number[RUNTIME],
            requested_walltime=number[REQUEST],
            end_time=number[END],
            weight=weight,
        )

    def matching(
        self, submission: Submission, template: tuple[int, ...]
    ) -> tuple[int, int, int, int] | None:
        """Return the ids of runs that share the attributes of ``template`` with a job.

        Args:
            template: columns of the attributes to share; the ids of the others are ANY.

        Returns:
            The ids; None where an attribute of the job is unknown, or no stored run has it.
        """
        ids = [ANY, ANY, ANY, ANY]
        for column in template:
            value = getattr(submission, TEMPLATE_ATTRIBUTES[column])
            ids[column] = self._interned[column].find(value)
            if ids[column] == UNKNOWN:
                return None
        return ids[0], ids[1], ids[2], ids[3]

    def _put(self, values: NDArray[Any], place: int, value: object) -> None:
        """Insert the value of a run at its place."""
        if place < self._stop:
            values[place + 1 : self._stop + 1] = values[place : self._stop]
        values[place] = value

    def _forget_oldest(self) -> None:
        if not self.kept:
            self._release(self._attributes[:ATTRIBUTES, self._first].tolist())
        self._first += 1

    def _release(self, ids: Sequence[int]) -> None:
        """Release the names of a row's attributes."""
        for interned, number in zip(self._interned, ids, strict=True):
            interned.release(number)

    def _make_room(self) -> None:
        """Drop rows that nothing leads to; where this is not enough, make the arrays longer."""
        if self._first:
            self._move_back()
        rows = self._numbers.shape[1]
        if rows - self._stop > self.capacity // 2:
            return
        numbers, attributes, bounds = self._columns
        jobs, running, facts = self._jobs, self.running, self.facts
        self._take_room(min(2 * rows, 2 * (self.capacity + self._first) + 1))
        self._jobs[: len(jobs)] = jobs
        self.running[: len(running)] = running
        if len(facts):
            self.facts = np.full((self._numbers.shape[1], fact_rows.WIDTH), np.nan, np.float32)
            self.facts[: len(facts)] = facts
        for longer, before in zip(self._columns, (numbers, attributes, bounds), strict=True):
            longer[:, : before.shape[1]] = before

    def _take_room(self, rows: int) -> None:
        """Create arrays for a number of rows."""
        # What belongs to one job lies together: a search jumps from job to job.
        self._numbers = np.full((self._rows, rows), np.nan, order="F")
        self._attributes = np.full((IDS, rows), UNKNOWN, np.int32, order="F")
        bounds = np.full((2 * FEATURES, rows // BLOCK + 1), np.nan)
        self._columns = (self._numbers, self._attributes, bounds)
        self._jobs = np.full(rows if self._names_jobs else 0, None, dtype=object)
        self.running = np.zeros((rows if self._has_costs else 0, len(NOBODY)), np.float32)

    def _become_own(self) -> None:
        """Replace everything that is shared with the table that this one is a shallow copy of."""
        numbers, attributes, bounds = (each.copy("K") for each in self._columns)
        self._columns = (numbers, attributes, bounds)
        self._numbers, self._attributes = numbers, attributes
        self._newest, self._jobs = self._newest.copy(), self._jobs.copy()
        self.running = self.running.copy()
        self.facts, self._fact_sums = self.facts.copy(), self._fact_sums.copy()
        self._interned = deepcopy(self._interned)
        self._changes = []

    def _move_back(self) -> None:
        """Move the rows to the beginning of the arrays, without those that nothing leads to."""
        attributes, rows = self._attributes, (self._first, self._stop)
        stays = columns.rows_to_keep(attributes, self._newest, rows, (self.kept, self.capacity))
        if self.kept:
            for ids in attributes[:ATTRIBUTES, : self._stop].T[~stays].tolist():
                self._release(ids)
        places = np.where(stays, np.cumsum(stays) - 1, NOWHERE)
        count, dropped = int(stays.sum()), int((~stays).sum())
        for links in (attributes[PREVIOUS, : self._stop], self._newest):
            links[:] = np.where(links < 0, NOWHERE, places[links])
        self._numbers[:, :count] = self._numbers[:, : self._stop][:, stays]
        attributes[:, :count] = attributes[:, : self._stop][:, stays]
        for values in (self._jobs, self.running, self.facts):
            if len(values):
                values[:count] = values[: self._stop][stays]
        self.moved += dropped
        self._first, self._stop = self._first - dropped, count
        columns.link_others(attributes, 0, count)
        columns.summarise(self._numbers, self._columns[2], 0, count)


def _longer(ids: Ids, length: int, filling: int) -> Ids:
    longer = np.full(length, filling, dtype=ids.dtype)
    longer[: len(ids)] = ids
    return longer


def features_of(submission: Submission) -> Features:
    """Return the features by which knn compares jobs."""
    processors, memory = submission.requested_processors, submission.requested_memory
    return (
        math.nan if processors is None else float(processors),
        float(submission.requested_walltime),
        math.nan if memory is None else float(memory),
    )
