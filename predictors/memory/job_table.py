"""The most recent jobs of a cluster as flat columns, in order of their end."""

import math

import numpy as np

from predictors.jobs import Completion, Submission
from predictors.memory import columns
from predictors.memory.columns import (
    ANY,
    ATTRIBUTES,
    BLOCK,
    END,
    FEATURES,
    PREVIOUS,
    TOTAL,
    Columns,
    Features,
)

LATE_JOBS = 1_000
"""Runs that may have ended after the submission that is asked about without costing it any."""

TEMPLATE_ATTRIBUTES = ("user", "group", "queue", "application")
"""What a template can be made of (Xu et al. 2019, section 1), in the order of the columns."""

UNKNOWN = -1
"""The id of an attribute that a job does not have."""

NEW = -2
"""The id of an attribute that no kept job has."""


class Interned:
    """Small numbers for strings, taken back when the last user of a string is gone."""

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
        """The number of a string, in use once more; UNKNOWN for None."""
        if text is None:
            return UNKNOWN
        number = self._ids.get(text)
        if number is None:
            number = self._number(text)
        self._uses[number] += 1
        return number

    def release(self, number: int) -> None:
        """One use less; a number that nobody uses is given to the next new string."""
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
    """Keeps the ``kept`` jobs that ended last, of equal ends those observed last.

    The rows lie in the middle of arrays twice as long: a job that ends last is appended, the
    oldest is left behind, and only when the end of the arrays is reached are the rows moved back
    to their beginning. A job that is reported late is put between the others.

    The rows of each user are linked, so that a search for one user's jobs passes the others by.
    """

    def __init__(self, kept: int) -> None:
        capacity = 2 * kept + 1
        self.kept = kept
        # What belongs to one job lies together: a search jumps from job to job.
        self._numbers = np.full((TOTAL + 1, capacity), np.nan, order="F")
        self._attributes = np.full((ATTRIBUTES + 1, capacity), UNKNOWN, np.int32, order="F")
        self._newest = np.full(kept + 1, UNKNOWN, dtype=np.int32)
        bounds = np.full((2 * FEATURES, capacity // BLOCK + 1), np.nan)
        self._columns = (self._numbers, self._attributes, bounds)
        self._interned = tuple(Interned() for _ in TEMPLATE_ATTRIBUTES)
        self._first = 0
        self._stop = 0

    def __len__(self) -> int:
        """How many jobs are kept now."""
        return self._stop - self._first

    @property
    def columns(self) -> Columns:
        """The arrays themselves; the rows begin at 0 as long as no job has been left behind."""
        return self._columns

    def ids_of(self, submission: Submission) -> tuple[int, ...]:
        """What a job's attributes are in the columns; UNKNOWN for those no kept job has."""
        return tuple(
            interned.find(getattr(submission, attribute))
            for interned, attribute in zip(self._interned, TEMPLATE_ATTRIBUTES, strict=True)
        )

    def window(self, submission: Submission) -> tuple[int, int, float, int]:
        """First row, end of the rows, when the job is submitted, and the last row of its user."""
        user = self._interned[0].find(submission.user)
        newest = UNKNOWN if user == UNKNOWN else int(self._newest[user])
        return self._first, self._stop, float(submission.submit_time), newest

    def alike(self, submission: Submission) -> tuple[int, int]:
        """The ids of a job's queue and application; unknown ones are alike, new ones are not."""
        _, _, queues, applications = self._interned
        return _id_or_new(queues, submission.queue), _id_or_new(
            applications, submission.application
        )

    def add(self, completion: Completion) -> None:
        """Keep a job that has ended, unless as many newer ones are kept already."""
        if len(self) == self.kept:
            if completion.end_time < self._numbers[END, self._first]:
                return
            self._forget_oldest()
        if self._stop == self._numbers.shape[1]:
            self._move_back()
        submission = completion.submission
        users, groups, queues, applications = self._interned
        ids = (
            users.acquire(submission.user),
            groups.acquire(submission.group),
            queues.acquire(submission.queue),
            applications.acquire(submission.application),
        )
        row = (
            *features_of(submission),
            float(completion.runtime),
            float(completion.end_time),
            float(submission.submit_time),
        )
        window = (self._first, self._stop)
        columns.insert(self._columns, window, row, ids, self._newest)
        self._stop += 1

    def matching(
        self, submission: Submission, template: tuple[int, ...]
    ) -> tuple[int, int, int, int] | None:
        """The ids that a run must have to share the attributes of ``template`` with a job.

        Args:
            submission: the job.
            template: columns of the attributes; the others may be ANY.

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

    def _forget_oldest(self) -> None:
        oldest = self._attributes[:ATTRIBUTES, self._first].tolist()
        for interned, number in zip(self._interned, oldest, strict=True):
            interned.release(number)
        self._first += 1

    def _move_back(self) -> None:
        rows = slice(self._first, self._stop)
        count = len(self)
        self._numbers[:, :count] = self._numbers[:, rows]
        self._attributes[:, :count] = self._attributes[:, rows]
        for places in (self._attributes[PREVIOUS, :count], self._newest):
            np.maximum(places - self._first, UNKNOWN, out=places)
        self._first, self._stop = 0, count
        columns.summarise(self._numbers, self._columns[2], 0, count)


def _id_or_new(interned: Interned, text: str | None) -> int:
    found = interned.find(text)
    return NEW if found == UNKNOWN and text is not None else found


def features_of(submission: Submission) -> Features:
    """What jobs are compared by: processors, request and memory, NaN where unknown."""
    processors, memory = submission.requested_processors, submission.requested_memory
    return (
        math.nan if processors is None else float(processors),
        float(submission.requested_walltime),
        math.nan if memory is None else float(memory),
    )
