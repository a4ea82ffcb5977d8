"""The page Rounds: what background rounds proposed, adopted and dropped, with their figures."""

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from service.contract.answers import TrialAnswer, TuningAnswer
from service.operations.tuning import TuningRounds

ORIGINS = {
    "history": "by the service, as enough jobs had ended",
    "request": "by a caller",
    "command": "by the command walltimed tune",
}


class TrialRow(Struct, frozen=True):
    """One set of parameters on the runs that the search did not see."""

    name: str
    error: float
    underestimated: float
    parameters: str


class RoundShown(Struct, frozen=True, kw_only=True):
    """One round."""

    title: str
    kind: Literal["good", "careful", "bad", ""]
    verdict: str
    origin: str
    asked_at: float
    finished_at: float | None
    seconds: float | None
    error: str | None
    trials: Sequence[TrialRow]
    step: int
    steps: int


class RoundsShown(Struct, frozen=True):
    """What the page shows."""

    sentence: str
    rounds: Sequence[RoundShown]


class RoundsPage:
    """Gathers what the page shows."""

    def __init__(self, rounds: TuningRounds) -> None:
        self._rounds = rounds

    async def show(self, cluster: str) -> RoundsShown:
        """The latest rounds of a cluster."""
        found = (await self._rounds.of_cluster(cluster)).tunings
        return RoundsShown(sentence(found), [shown(each) for each in found])


def sentence(rounds: Sequence[TuningAnswer]) -> str:
    """The page in a sentence."""
    if not rounds:
        return "Rounds look for better parameters in the background."
    adopted = sum(1 for each in rounds if each.adopted)
    return (
        f"{len(rounds)} round{'s' if len(rounds) > 1 else ''}, {adopted} of which won on later "
        "runs and put new parameters in force."
    )


def shown(each: TuningAnswer) -> RoundShown:
    """A round as the page shows it."""
    kind, verdict = verdict_of(each)
    began, ended = each.started_at, each.finished_at
    return RoundShown(
        title="Parameters of knn",
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
        step=each.step,
        steps=each.steps if each.state == "running" else 0,
    )


def verdict_of(each: TuningAnswer) -> tuple[Literal["good", "careful", "bad", ""], str]:
    """How it stands with a round, and the colour of that."""
    if each.state == "failed":
        return "bad", "failed"
    if each.state != "done":
        return "", each.state
    return ("good", "adopted") if each.adopted else ("careful", "dropped: no gain on later runs")


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
