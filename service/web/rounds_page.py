"""The page Rounds: what background rounds proposed, adopted and dropped, with their figures."""

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from service.contract.answers import ChangeAnswer, TrialAnswer, TuningAnswer, VerdictAnswer
from service.operations.tuning import TellingRounds

ORIGINS = {
    "history": "by the service, as enough jobs had ended",
    "request": "by a caller",
    "command": "by the command walltimed tune",
}


SUBJECTS = {
    "knn": "parameters of knn",
    "attention": "weights of attention",
    "price": "price of an underestimate",
    "auto": "who answers for auto",
}

Kind = Literal["good", "careful", "bad", ""]
"""The colour of a verdict."""

KINDS: dict[str, Kind] = {"adopted": "good", "kept": "", "dropped": "careful"}


class TrialRow(Struct, frozen=True):
    """One set of parameters on the runs that the search did not see."""

    name: str
    error: float
    underestimated: float
    parameters: str


class ChangeRow(Struct, frozen=True, kw_only=True):
    """What a round did about one thing that is learned of the cluster."""

    subject: str
    action: str
    kind: Kind
    before: str
    after: str
    gain: str


class RoundShown(Struct, frozen=True, kw_only=True):
    """One round."""

    kind: Kind
    verdict: str
    origin: str
    asked_at: float
    finished_at: float | None
    seconds: float | None
    error: str | None
    trials: Sequence[TrialRow]
    changes: Sequence[ChangeRow]
    step: int
    steps: int


class RoundsShown(Struct, frozen=True):
    """What the page shows."""

    sentence: str
    rounds: Sequence[RoundShown]


class RoundsPage:
    """Gathers what the page shows."""

    def __init__(self, rounds: TellingRounds) -> None:
        self._rounds = rounds

    async def show(self, cluster: str) -> RoundsShown:
        """The latest rounds of a cluster."""
        found = (await self._rounds.of_cluster(cluster)).tunings
        return RoundsShown(sentence(found), [shown(each) for each in found])


def sentence(rounds: Sequence[TuningAnswer]) -> str:
    """The page in a sentence."""
    if not rounds:
        return "Rounds look for something better in the background."
    adopted = sum(1 for each in rounds if has_adopted(each))
    return (
        f"{len(rounds)} round{'s' if len(rounds) > 1 else ''}, {adopted} of which found what won "
        "on later runs and put it in force."
    )


def has_adopted(each: TuningAnswer) -> bool:
    """Whether a round put anything in force."""
    return bool(each.adopted) or any(change.action == "adopted" for change in each.changes)


def shown(each: TuningAnswer) -> RoundShown:
    """A round as the page shows it."""
    kind, verdict = verdict_of(each)
    began, ended = each.started_at, each.finished_at
    return RoundShown(
        kind=kind,
        verdict=verdict,
        origin=ORIGINS.get(each.origin, each.origin),
        asked_at=each.asked_at,
        finished_at=ended,
        seconds=ended - began if ended is not None and began is not None else None,
        error=each.error,
        trials=[
            row(name, trial)
            for name, trial in (("before", each.before), ("found", each.after))
            if trial is not None
        ],
        changes=[change_row(change) for change in each.changes],
        step=each.step,
        steps=each.steps if each.state == "running" else 0,
    )


def verdict_of(each: TuningAnswer) -> tuple[Kind, str]:
    """How it stands with a round, and the colour of that."""
    if each.state == "failed":
        return "bad", "failed"
    if each.state != "done":
        return "", each.state
    return ("good", "adopted") if has_adopted(each) else ("", "kept: no gain on later runs")


def change_row(change: ChangeAnswer) -> ChangeRow:
    """A change in words; a change that was dropped is told by how it did since its adoption."""
    judged = change.review if change.action == "dropped" else change.verdict
    return ChangeRow(
        subject=SUBJECTS.get(change.subject, change.subject),
        action=change.action,
        kind=KINDS[change.action],
        before=_described(change.before),
        after=_described(change.after),
        gain=gain_text(judged),
    )


def gain_text(verdict: VerdictAnswer | None) -> str:
    """The gain in cost on runs that the change was not made on, with twice its noise."""
    if verdict is None:
        return "-"
    noise = "" if verdict.error is None else f" ± {2 * verdict.error:.1%}"
    return f"{verdict.gain:+.1%}{noise} on {verdict.jobs:,} runs"


def _described(content: Any) -> str:
    if content is None:
        return "-"
    return parameters_text(content) if isinstance(content, dict) else _value(content)


def row(name: str, trial: TrialAnswer) -> TrialRow:
    """Parameters with their figures."""
    return TrialRow(
        name, trial.test_error, trial.test_underestimation_rate, parameters_text(trial.parameters)
    )


def parameters_text(parameters: dict[str, Any]) -> str:
    """Parameters on one line."""
    return ", ".join(f"{name} {_value(value)}" for name, value in parameters.items())


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, list | tuple):
        return "+".join(map(str, value)) or "none"
    return str(value)
