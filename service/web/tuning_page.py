"""The page Tuning: proposals of background rounds, and which of them were adopted."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from predictors.tuning.forest_learning import FEWEST_RUNS
from predictors.tuning.plan import FEWEST_JOBS
from service.contract.answers import TuningAnswer
from service.operations.history_showing import ChangeRow, VerdictColour, change_row
from service.web.frame import Frame, PageQuery, PageSources

ORIGINS = {
    "history": "by the service, as enough jobs had ended",
    "request": "by a caller",
    "command": "by the command walltimed tune",
}


class TuningRow(Struct, frozen=True, kw_only=True):
    """One round.

    Attributes:
        answer: the round as the API has it.
        verdict: in a word or a few.
        changes: what it did about each subject.
    """

    answer: TuningAnswer
    kind: VerdictColour
    verdict: str
    origin: str
    changes: Sequence[ChangeRow]

    @property
    def seconds(self) -> float | None:
        """Duration of the round in seconds; None before its end."""
        ended = self.answer.finished_at
        return None if ended is None else ended - self.answer.started_at


def view(sources: PageSources, frame: Frame, _query: PageQuery, _facts: None) -> dict[str, Any]:
    """Return the latest rounds of a cluster."""
    found = sources.rounds(frame.cluster)
    return {
        "sentence": sentence(found),
        "in_force": sources.store.tunings.adopting(frame.cluster),
        "is_automatic": sources.settings.tuning == "automatic",
        "fewest_jobs": FEWEST_JOBS,
        "fewest_of_forest": FEWEST_RUNS,
        "rounds": [row_of(each) for each in found],
    }


def sentence(rounds: Sequence[TuningAnswer]) -> str:
    """Return the page in a sentence."""
    if not rounds:
        return (
            "In the background, walltimed tests whether other settings would predict jobs better."
        )
    adopted = sum(1 for each in rounds if has_adopted(each))
    return (
        f"{len(rounds)} round{'s' if len(rounds) > 1 else ''}, {adopted} of which put a forest or "
        "parameters in force."
    )


def has_adopted(each: TuningAnswer) -> bool:
    """Return whether a round put anything in force."""
    actions = {change.action for change in each.changes}
    return bool(each.adopted) or not actions.isdisjoint({"adopted", "learned"})


def row_of(each: TuningAnswer) -> TuningRow:
    """Return a round as the page shows it."""
    kind, verdict = verdict_of(each)
    return TuningRow(
        answer=each,
        kind=kind,
        verdict=verdict,
        origin=ORIGINS.get(each.origin, each.origin),
        changes=[change_row(change) for change in each.changes],
    )


def verdict_of(each: TuningAnswer) -> tuple[VerdictColour, str]:
    """Return how a round ended, and the colour of that."""
    if each.state == "failed":
        return "bad", "failed"
    if each.state != "done":
        return "", each.state
    return ("good", "in force") if has_adopted(each) else ("", "kept: no gain on later runs")
