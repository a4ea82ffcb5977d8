"""How anything that is learned of a cluster is put in force, and taken back: one rule for all.

What is proposed was made on older runs and has to win on the later ones, by more than their noise.
What was adopted before is looked at again on the runs that have ended since, beside what it
replaced; where it loses by half of what a proposal has to win by, that comes back.
"""

from collections.abc import Sequence
from math import inf
from typing import Any, Generic, Literal, Protocol, TypeVar

from msgspec import Struct

from predictors.tuning.verdict import Verdict

Content = TypeVar("Content")


class Ended(Protocol):
    """A run that has ended."""

    @property
    def end(self) -> float:
        """Unix seconds."""
        ...


Run_contra = TypeVar("Run_contra", bound=Ended, contravariant=True)
Action = Literal["adopted", "kept", "dropped"]


class Held(Struct, Generic[Content], frozen=True, kw_only=True):
    """What is in force.

    Attributes:
        now: what is in force.
        before: what it replaced; None where nothing was adopted that could be dropped.
        since: when the last of the runs ended that it was adopted on, Unix seconds.
    """

    now: Content
    before: Content | None = None
    since: float = -inf


class Change(Struct, frozen=True, kw_only=True):
    """What a round did about one thing that is learned.

    Attributes:
        subject: what it is about.
        action: ``adopted``: the proposal is in force; ``kept``: what was in force still is;
            ``dropped``: what an earlier round had adopted has lost, and what it replaced is back.
        before: what was in force, in words and numbers.
        after: what was proposed; of a change that is dropped, what is back in force.
        verdict: of the proposal, on later runs; None where there was nothing to judge.
        review: of what was adopted before, on the runs that have ended since.
    """

    subject: str
    action: Action
    before: Any
    after: Any
    verdict: Verdict | None = None
    review: Verdict | None = None


class Subject(Protocol[Content, Run_contra]):
    """One thing that is learned of a cluster."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    def propose(self, now: Content, older: Sequence[Run_contra]) -> Content | None:
        """Make something that may be better than what is in force; None: nothing is."""
        ...

    def judge(self, old: Content, new: Content, later: Sequence[Run_contra]) -> Verdict:
        """What the new one gains over the old one."""
        ...

    def described(self, content: Content) -> Any:
        """In words and numbers, as JSON."""
        ...


def settle(
    subject: Subject[Content, Run_contra],
    held: Held[Content],
    older: Sequence[Run_contra],
    later: Sequence[Run_contra],
) -> tuple[Change, Held[Content]]:
    """Drop what has lost, else adopt a proposal that wins; answers what is in force then.

    Args:
        subject: says what is better.
        held: what is in force.
        older: runs to make a proposal on.
        later: runs to judge it by.
    """
    review = None
    if held.before is not None:
        since = [noted for noted in (*older, *later) if noted.end > held.since]
        review = subject.judge(held.before, held.now, since)
        if review.loses:
            return _change(subject, "dropped", held, held.before, review=review), Held(
                now=held.before
            )
    found = subject.propose(held.now, older)
    if found is None:
        return _change(subject, "kept", held, None, review=review), held
    verdict = subject.judge(held.now, found, later)
    if not verdict.wins:
        return _change(subject, "kept", held, found, review=review, verdict=verdict), held
    newest = max(noted.end for noted in later)
    adopted = Held(now=found, before=held.now, since=newest)
    return _change(subject, "adopted", held, found, review=review, verdict=verdict), adopted


def _change(  # noqa: PLR0913 - all that is said of a change
    subject: Subject[Content, Run_contra],
    action: Action,
    held: Held[Content],
    after: Content | None,
    *,
    verdict: Verdict | None = None,
    review: Verdict | None = None,
) -> Change:
    return Change(
        subject=subject.name,
        action=action,
        before=subject.described(held.now),
        after=None if after is None else subject.described(after),
        verdict=verdict,
        review=review,
    )
