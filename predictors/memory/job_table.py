"""The most recent jobs of a cluster as flat columns, in order of their end."""

import math

import numpy as np

from predictors.jobs import Completion, PastRun, Submission
from predictors.memory import columns
from predictors.memory.columns import (
    ANY,
    ATTRIBUTES,
    BLOCK,
    END,
    FEATURES,
    NUMBERS,
    PREVIOUS,
    REQUEST,
    RUNTIME,
    Columns,
    Features,
    Ids,
)

LATE_JOBS = 1_000
"""Number of runs that may have ended after a submission before its search finds fewer runs."""

TEMPLATE_ATTRIBUTES = ("user", "group", "queue", "application")
"""The attributes that a template may contain (Xu et al. 2019, section 1), in column order."""

UNCHANGED = 1 << 62
"""More than the number of any row, for those who watch a table."""

UNKNOWN = -1
"""The id of an attribute that a job does not have."""

NEW = -2
"""The id of an attribute that no kept job has."""


FEWEST_ROWS = 64
"""Number of jobs for which there is room from the beginning."""


class Interned:
    """Small numbers for strings; a number is free again when its string is no longer used."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._texts: list[str] = []
        self._uses: list[int] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        """How many strings are in use."""
        return len(self._ids)

    def find(self, text: str | None) -> int:
        """The number of a string in use, else UNKNOWN."""
        return UNKNOWN if text is None else self._ids.get(text, UNKNOWN)

    def acquire(self, text: str | None) -> int:
        """Count one more use of a string and return its number; UNKNOWN for None."""
        if text is None:
            return UNKNOWN
        number = self._ids.get(text)
        if number is None:
            number = self._number(text)
        self._uses[number] += 1
        return number

    def release(self, number: int) -> None:
        """Count one use less of ``number``; without any use the next new string may have it."""
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


class JobTable:
    """Keeps the ``kept`` jobs that ended last, among equal ends those observed last.

    A job that ends last is appended, and one that is reported late is put between the others.
    While fewer than ``kept`` jobs are known the arrays grow with them, by doubling, so that a
    cluster of few jobs takes a few kilobytes. From then on the rows lie in the middle of arrays
    twice as long: the oldest is left behind, and only when the end of the arrays is reached are
    the rows moved back to their beginning.

    The rows of each user are linked, so that a search for one user's jobs passes the others by.

    Args:
        kept: how many jobs.
        names_jobs: whether the numbers of the jobs are kept too.

    Attributes:
        moved: by how many rows all were moved back so far: added to a row it gives a number that
            stays the same as long as no job is put before it.
        changed_from: the least of these numbers at which a job was put since somebody who watches
            the table has set it higher.
    """

    def __init__(self, kept: int, *, names_jobs: bool = False) -> None:
        self.kept = kept
        self.moved = 0
        self.changed_from = 0
        self._names_jobs = names_jobs
        self._first = 0
        self._stop = 0
        self._interned = tuple(Interned() for _ in TEMPLATE_ATTRIBUTES)
        self._newest = np.full(FEWEST_ROWS, UNKNOWN, dtype=np.int32)
        self._take_room(min(FEWEST_ROWS, 2 * kept + 1))

    def __len__(self) -> int:
        """How many jobs are kept now."""
        return self._stop - self._first

    @property
    def columns(self) -> Columns:
        """The arrays themselves; the rows begin at 0 as long as no job has been left behind."""
        return self._columns

    def ids_of(self, submission: Submission) -> tuple[int, ...]:
        """The ids of a job's attributes in the columns; UNKNOWN for those that no kept job has."""
        users, groups, queues, applications = self._interned  # a loop takes three times as long
        return (
            users.find(submission.user),
            groups.find(submission.group),
            queues.find(submission.queue),
            applications.find(submission.application),
        )

    def window(self, submission: Submission) -> tuple[int, int, float, int]:
        """The first row, the end of the rows, the submit time and the last row of the user."""
        user = self._interned[0].find(submission.user)
        newest = UNKNOWN if user == UNKNOWN else int(self._newest[user])
        return self._first, self._stop, float(submission.submit_time), newest

    def alike(self, submission: Submission) -> tuple[int, int]:
        """The ids of a job's queue and application; unknown ones are alike, new ones differ."""
        _, _, queues, applications = self._interned
        return _id_or_new(queues, submission.queue), _id_or_new(
            applications, submission.application
        )

    def add(self, completion: Completion) -> None:
        """Keep a job that has ended, unless the table is full of jobs that ended later."""
        if len(self) == self.kept:
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
        self._name(place, submission.job_id)
        self._stop += 1
        self.changed_from = min(self.changed_from, self.moved + place)

    @property
    def first(self) -> int:
        """The row of the job that ended first."""
        return self._first

    def run_at(self, row: int) -> PastRun:
        """The run of a row, as it is told to its user; nothing is said of its weight."""
        number = self._numbers[:, row].tolist()
        return PastRun(
            job_id=self._jobs[row] if len(self._jobs) else None,
            runtime=number[RUNTIME],
            requested_walltime=number[REQUEST],
            end_time=number[END],
            weight=0.0,
        )

    def matching(
        self, submission: Submission, template: tuple[int, ...]
    ) -> tuple[int, int, int, int] | None:
        """The ids that a run must have to share the attributes of ``template`` with a job.

        Args:
            submission: the job.
            template: columns of the attributes that the run must share; the others are ANY.

        Returns:
            None where an attribute of the job is unknown, or no kept run has it.
        """
        ids = [ANY, ANY, ANY, ANY]
        for column in template:
            wanted = getattr(submission, TEMPLATE_ATTRIBUTES[column])
            ids[column] = self._interned[column].find(wanted)
            if ids[column] == UNKNOWN:
                return None
        return ids[0], ids[1], ids[2], ids[3]

    def _name(self, place: int, job: str | None) -> None:
        if len(self._jobs):
            if place < self._stop:
                self._jobs[place + 1 : self._stop + 1] = self._jobs[place : self._stop]
            self._jobs[place] = job

    def _forget_oldest(self) -> None:
        oldest = self._attributes[:ATTRIBUTES, self._first].tolist()
        for interned, number in zip(self._interned, oldest, strict=True):
            interned.release(number)
        self._first += 1

    def _make_room(self) -> None:
        """Make the arrays longer, or, once they are as long as they may be, move the rows back."""
        rows = self._stop
        if rows > 2 * self.kept:
            self._move_back()
            return
        numbers, attributes, bounds = self._columns
        jobs = self._jobs
        self._take_room(min(2 * rows, 2 * self.kept + 1))
        self._jobs[: len(jobs)] = jobs
        for longer, before in zip(self._columns, (numbers, attributes, bounds), strict=True):
            longer[:, : before.shape[1]] = before

    def _take_room(self, rows: int) -> None:
        """New arrays for as many rows."""
        # What belongs to one job lies together: a search jumps from job to job.
        self._numbers = np.full((NUMBERS, rows), np.nan, order="F")
        self._attributes = np.full((ATTRIBUTES + 1, rows), UNKNOWN, np.int32, order="F")
        bounds = np.full((2 * FEATURES, rows // BLOCK + 1), np.nan)
        self._columns = (self._numbers, self._attributes, bounds)
        self._jobs = np.full(rows if self._names_jobs else 0, None, dtype=object)

    def _move_back(self) -> None:
        rows = slice(self._first, self._stop)
        count = len(self)
        self._numbers[:, :count] = self._numbers[:, rows]
        self._attributes[:, :count] = self._attributes[:, rows]
        if len(self._jobs):
            self._jobs[:count] = self._jobs[rows]
        for places in (self._attributes[PREVIOUS, :count], self._newest):
            np.maximum(places - self._first, UNKNOWN, out=places)
        self.moved += self._first
        self._first, self._stop = 0, count
        columns.summarise(self._numbers, self._columns[2], 0, count)


def _longer(ids: Ids, length: int, filling: int) -> Ids:
    longer = np.full(length, filling, dtype=ids.dtype)
    longer[: len(ids)] = ids
    return longer


def _id_or_new(interned: Interned, text: str | None) -> int:
    found = interned.find(text)
    return NEW if found == UNKNOWN and text is not None else found


def features_of(submission: Submission) -> Features:
    """The features by which jobs are compared: processors, request and memory, NaN if unknown."""
    processors, memory = submission.requested_processors, submission.requested_memory
    return (
        math.nan if processors is None else float(processors),
        float(submission.requested_walltime),
        math.nan if memory is None else float(memory),
    )
