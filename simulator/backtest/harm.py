"""Harm by predictions: the longest wait, and users, sizes, lengths and queues that wait longer."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from simulator.backtest.plays import Play
from simulator.backtest.winners import GroupChange, GroupChanges
from terminal.words import duration, listed, share

LONGEST_WAIT_FACTOR = 1.25
"""Bound of the growth of the longest wait."""

LONGER = 1.1
"""A group waits longer if its mean wait grows by more than this factor in every repetition."""

LONGER_SECONDS = 60.0
"""Growth of a mean wait up to which there is no harm."""

MOST_USERS = 0.2
"""Bound of the share of users that wait longer."""

FEWEST_JOBS_SHARE = 0.01
"""A class of jobs with a smaller share of all jobs does not decide a verdict."""

CLASSES = ("job sizes", "requests", "queues")


class Harm(NamedTuple):
    """Jobs that wait longer with predictions; times are seconds.

    Attributes:
        longest_today: mean over the repetitions of the longest wait today.
        longest_predicted: mean over the repetitions of the longest wait with predictions.
        longer_share: share of the groups that wait longer, by kind of group.
        classes: classes of jobs, with at least ``FEWEST_JOBS_SHARE`` of all, that wait longer.
    """

    longest_today: float
    longest_predicted: float
    longer_share: dict[str, float]
    classes: Sequence[str]

    @property
    def longest_factor(self) -> float:
        """The longest wait with predictions, as a multiple of today's."""
        return self.longest_predicted / max(self.longest_today, LONGER_SECONDS)

    @property
    def reasons(self) -> list[str]:
        """Phrases on each bound that is exceeded; empty if there is no harm."""
        found = []
        if self.longest_factor > LONGEST_WAIT_FACTOR:
            found.append(
                f"the longest wait would grow from {duration(self.longest_today)} to "
                f"{duration(self.longest_predicted)}"
            )
        users = self.longer_share.get("users", 0.0)
        if users > MOST_USERS:
            found.append(f"{share(users)} of the users would wait longer")
        if self.classes:
            found.append(f"{listed(self.classes)} would wait longer by more than a tenth")
        return found

    def sentence(self) -> str:
        """Return a sentence on the longest wait, and on the shares that wait longer."""
        parts = [
            f"{share(part)} of the {kind if kind != 'requests' else 'lengths'}"
            for kind, part in self.longer_share.items()
            if kind in {"users", *CLASSES}
        ]
        text = (
            f"The longest wait would be {self.longest_factor:.2f} times today's "
            f"({duration(self.longest_predicted)}; bound {LONGEST_WAIT_FACTOR})."
        )
        return f"{text} Waiting longer by more than a tenth: {listed(parts)}." if parts else text


def harm_of(
    today: Sequence[Play], predicted: Sequence[Play], changes: Sequence[GroupChanges]
) -> Harm:
    """Return the harm by the method in force."""
    longest = [float(np.mean([play.longest_wait for play in each])) for each in (today, predicted)]
    fewest = FEWEST_JOBS_SHARE * today[0].jobs
    classes = [
        _class_name(kind.kind, each.name)
        for kind in changes
        if kind.kind in CLASSES
        for each in kind.changes
        if waits_longer(each) and each.jobs >= fewest
    ]
    shares = {
        each.kind: float(np.mean([waits_longer(group) for group in each.changes]))
        for each in changes
        if each.kind != "months"
    }
    return Harm(longest[0], longest[1], shares, classes)


def _class_name(kind: str, name: str) -> str:
    if kind == "requests":
        return f"jobs that ask for {name}"
    return f"jobs of {name} processors" if kind == "job sizes" else f"jobs of {name}"


def waits_longer(group: GroupChange) -> bool:
    """Whether a group waits longer by more than a tenth and a minute, in every repetition."""
    longer = group.predicted > max(LONGER * group.today, group.today + LONGER_SECONDS)
    return group.is_worse and longer
