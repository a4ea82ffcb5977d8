"""Decides whether a round adopts a proposal for knn, or reverts an earlier one.

A proposal is made on older runs, and is adopted if it wins on later ones by more than noise. An
adopted value is judged again on the runs that have ended since, against the value that it replaced,
which comes back if the adopted one loses by half of what a proposal has to win by.
"""

from collections.abc import Sequence
from math import inf
from typing import Any, Generic, Literal, Protocol, TypeVar

import numpy as np
from msgspec import Struct, to_builtins
from numpy.typing import NDArray

from predictors.memory.columns import Floats

BLOCKS = 10
"""Number of periods into which the later runs are divided."""

ONE_SIDED = 1.65
"""Standard errors of a one-sided test at a level of 5%. On five public logs 1 and 1.5 adopted a
method that lost more than 1% later, and 2 missed a quarter of the gains
(results/notebook/forest.md)."""

_NOTHING = 1e-12


class Demand(Struct, frozen=True, kw_only=True):
    """The least gain that counts.

    Attributes:
        least_gain: relative gain.
        errors: number of standard errors that the gain has to exceed.
    """

    least_gain: float = 0.002
    errors: float = ONE_SIDED


class Verdict(Struct, frozen=True, kw_only=True):
    """The gain of a change on runs that it was not made on.

    Attributes:
        gain: relative, of the mean cost; negative where the change loses.
        error: standard error of the gain; None where it is unknown.
        wins: whether the gain exceeds the demand.
        loses: whether the gain is below minus half the demand, enough to revert an adopted value.
    """

    cases: int
    gain: float
    error: float | None
    wins: bool
    loses: bool


NO_CASES = Verdict(cases=0, gain=0.0, error=None, wins=False, loses=False)
"""The verdict without later runs."""


def compare(before: Floats, after: Floats, users: Sequence[str], demand: Demand) -> Verdict:
    """Judge a change by the costs of the later runs.

    Args:
        before: costs without the change, in the order in which the runs ended.
        after: costs with it.
        demand: the least gain that counts.
    """
    if not len(before):
        return NO_CASES
    scale = max(abs(float(before.mean())), _NOTHING)
    gains = (before - after) / scale
    return verdict_of(gains, users, demand)


def verdict_of(gains: Floats, users: Sequence[str], demand: Demand) -> Verdict:
    """Judge a change by the gain of each of the later runs, relative to the mean cost."""
    if not len(gains):
        return NO_CASES
    gain, error = float(gains.mean()), noise(gains, users)
    needed = max(demand.least_gain, demand.errors * error) if demand.errors else demand.least_gain
    return Verdict(
        cases=len(gains),
        gain=gain,
        error=error if np.isfinite(error) else None,
        wins=gain > needed,
        loses=-gain > needed / 2,
    )


def noise(gains: Floats, users: Sequence[str]) -> float:
    """Return the standard error of the mean of gains that depend on each other.

    Runs of one user are alike, and so are runs of one day. So the runs of a user in one of BLOCKS
    periods count as one observation; in a second estimate all runs of a period do. The larger of
    the two errors is returned.
    """
    blocks = np.arange(len(gains)) * BLOCKS // max(1, len(gains))
    _, owners = np.unique(np.array(users), return_inverse=True)
    return max(standard_error(gains, blocks), standard_error(gains, owners * BLOCKS + blocks))


def standard_error(gains: Floats, groups: NDArray[np.int64]) -> float:
    """Return the standard error of a mean of gains that depend on each other within a group."""
    _, owners = np.unique(groups, return_inverse=True)
    sums = np.bincount(owners, weights=gains - gains.mean())
    if len(sums) < 2:
        return float("inf")
    return float(np.sqrt((sums**2).sum() * len(sums) / (len(sums) - 1)) / len(gains))


Content = TypeVar("Content")


class Ended(Protocol):
    """A run that has ended."""

    @property
    def end(self) -> float:
        """Unix seconds."""
        ...


Run_contra = TypeVar("Run_contra", bound=Ended, contravariant=True)
Action = Literal["adopted", "kept", "dropped", "learned", "renewed"]


class Adopted(Struct, Generic[Content], frozen=True, kw_only=True):
    """An adopted value and the one it replaced.

    Attributes:
        before: the value it replaced; None if there is none to return to.
        since: end of the last run that the adoption was judged by, Unix seconds.
    """

    now: Content
    before: Content | None = None
    since: float = -inf


class RoundChange(Struct, frozen=True, kw_only=True):
    """A round's decision about one tunable.

    Attributes:
        subject: name of the tunable.
        action: ``adopted``: the proposal is in force; ``kept``: the value in force stays;
            ``dropped``: an earlier adoption has lost, and the value it replaced is back;
            ``learned``: a forest was learned on the newest runs, and is in force (``renewed`` in
            rounds before release 0.3).
        before: the value in force before, as JSON.
        after: the proposal; of a dropped adoption the value that is back.
        verdict: of the proposal on later runs; None without a proposal, and for forests.
        review: of the earlier adoption, on the runs that have ended since.
    """

    subject: str
    action: Action
    before: Any
    after: Any
    verdict: Verdict | None = None
    review: Verdict | None = None


class Tunable(Protocol[Content, Run_contra]):
    """A value that rounds learn for a cluster."""

    @property
    def name(self) -> str:
        """Name in plans and in stored rounds."""
        ...

    def propose(self, now: Content, older: Sequence[Run_contra]) -> Content | None:
        """Return a value that may be better than the one in force; None without any."""
        ...

    def judge(self, old: Content, new: Content, later: Sequence[Run_contra]) -> Verdict:
        """Judge the gain of a new value over an old one."""
        ...


def adopt_or_revert(
    tunable: Tunable[Content, Run_contra],
    adopted: Adopted[Content],
    older: Sequence[Run_contra],
    later: Sequence[Run_contra],
) -> tuple[RoundChange, Adopted[Content]]:
    """Revert an adoption that has lost, else adopt a proposal that wins.

    Args:
        tunable: proposes and judges.
        adopted: the value in force.
        older: runs to make a proposal on.

    Returns:
        The change, and the value in force after it.
    """
    review = None
    if adopted.before is not None:
        since = [run for run in (*older, *later) if run.end > adopted.since]
        review = tunable.judge(adopted.before, adopted.now, since)
        if review.loses:
            return _change(tunable, "dropped", adopted, adopted.before, review=review), Adopted(
                now=adopted.before
            )
    proposal = tunable.propose(adopted.now, older)
    if proposal is None:
        return _change(tunable, "kept", adopted, None, review=review), adopted
    verdict = tunable.judge(adopted.now, proposal, later)
    if not verdict.wins:
        return _change(tunable, "kept", adopted, proposal, review=review, verdict=verdict), adopted
    newest = max(run.end for run in later)
    after = Adopted(now=proposal, before=adopted.now, since=newest)
    return _change(tunable, "adopted", adopted, proposal, review=review, verdict=verdict), after


def as_json(content: Any) -> Any:
    """Return a value as it is stored in a round: its summary, if it has one."""
    return content.summary() if hasattr(content, "summary") else to_builtins(content)


def _change(  # noqa: PLR0913 - all parts of a change
    tunable: Tunable[Content, Run_contra],
    action: Action,
    adopted: Adopted[Content],
    after: Content | None,
    *,
    verdict: Verdict | None = None,
    review: Verdict | None = None,
) -> RoundChange:
    return RoundChange(
        subject=tunable.name,
        action=action,
        before=as_json(adopted.now),
        after=as_json(after),
        verdict=verdict,
        review=review,
    )
