"""Gains and losses in waits of users, accounts, queues, job sizes and months."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.backtest.gains import GainInterval
from simulator.backtest.plays import Play
from simulator.backtest.site import WEEKS, Grouping

FEWEST_JOBS = 10
"""Fewest jobs of a group that is compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChange:
    """Change of the mean wait of a group; means are over the repetitions, in seconds.

    Attributes:
        today: mean wait by requests.
        predicted: mean wait by predictions.
        saved: seconds less than by requests for each job, over the repetitions.
    """

    name: str
    jobs: int
    today: float
    predicted: float
    saved: GainInterval

    @property
    def hours(self) -> float:
        """Hours of waiting saved over all jobs of the group."""
        return self.saved.mean * self.jobs / 3600

    @property
    def is_better(self) -> bool:
        """Whether the group waits less in every repetition."""
        return self.saved.low > 0

    @property
    def is_worse(self) -> bool:
        """Whether the group waits longer in every repetition."""
        return self.saved.high < 0


@dataclass(frozen=True, slots=True)
class GroupChanges:
    """The changes of all groups of one kind, in the order of the grouping."""

    kind: str
    changes: Sequence[GroupChange]

    @property
    def better(self) -> int:
        """Number of groups that wait less in every repetition."""
        return sum(change.is_better for change in self.changes)

    @property
    def worse(self) -> int:
        """Number of groups that wait longer in every repetition."""
        return sum(change.is_worse for change in self.changes)

    def largest(self, count: int) -> Sequence[GroupChange]:
        """Return the ``count`` largest gains in hours, then as many of the largest losses."""
        ordered = sorted(self.changes, key=lambda change: -change.hours)
        gains = [change for change in ordered if change.hours > 0][:count]
        losses = [change for change in ordered if change.hours < 0][-count:]
        return [*gains, *losses]

    def sentence(self) -> str:
        """Return a sentence with the numbers of groups that gain and lose."""
        alike = len(self.changes) - self.better - self.worse
        return (
            f"Of {len(self.changes):,} {self.kind} with at least {FEWEST_JOBS} jobs, "
            f"{self.better:,} wait less in every repetition, {self.worse:,} wait longer in every "
            f"repetition; for {alike:,} it is open."
        )


def changes_of(
    groupings: Sequence[Grouping], today: Sequence[Play], plays: Sequence[Play]
) -> Iterator[GroupChanges]:
    """Yield the changes of each kind that has more than one group with enough jobs."""
    for grouping in groupings:
        if grouping.kind == WEEKS:
            continue
        found = GroupChanges(grouping.kind, list(_changes(grouping, today, plays)))
        if len(found.changes) > 1:
            yield found


def _changes(
    grouping: Grouping, today: Sequence[Play], plays: Sequence[Play]
) -> Iterator[GroupChange]:
    kind = grouping.kind
    before = np.array([play.groups[kind].wait for play in today])
    after = np.array([play.groups[kind].wait for play in plays])
    jobs = today[0].groups[kind].jobs
    saved = before - after
    for number in np.flatnonzero(jobs >= FEWEST_JOBS).tolist():
        # A shaken month may have lost its last job to the next one.
        waits = saved[:, number][~np.isnan(saved[:, number])]
        yield GroupChange(
            name=grouping.names[number],
            jobs=int(jobs[number]),
            today=float(np.nanmean(before[:, number])),
            predicted=float(np.nanmean(after[:, number])),
            saved=GainInterval.of(waits.tolist()),
        )
