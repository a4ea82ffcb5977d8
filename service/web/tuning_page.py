"""The page Tuning: proposals of background rounds, and which of them were adopted."""

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from service.contract.answers import ChangeAnswer, TuningAnswer, VerdictAnswer
from service.web.frame import Frame, PageQuery, PageSources
from service.web.wording import in_words

ORIGINS = {
    "history": "by the service, as enough jobs had ended",
    "request": "by a caller",
    "command": "by the command walltimed tune",
}

SUBJECTS = {
    "knn": "parameters of knn",
    "forest": "trees of forest",
    "price": "price of an underestimate",
    "auto": "who answers for auto",
}

VerdictColour = Literal["good", "careful", "bad", ""]
"""The colour of a verdict."""

KINDS: dict[str, VerdictColour] = {
    "adopted": "good",
    "kept": "",
    "dropped": "careful",
    "renewed": "",
}


class ChangeRow(Struct, frozen=True, kw_only=True):
    """Outcome of a round for one thing that is learned of the cluster."""

    subject: str
    action: str
    kind: VerdictColour
    before: str
    after: str
    gain: str


class TuningRow(Struct, frozen=True, kw_only=True):
    """One round.

    Attributes:
        answer: the round as the API has it.
        verdict: in a word or a few.
        origin: reason of the round.
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
        f"{len(rounds)} round{'s' if len(rounds) > 1 else ''}, {adopted} of which found what won "
        "on later runs and put it in force."
    )


def has_adopted(each: TuningAnswer) -> bool:
    """Return whether a round put anything in force."""
    return bool(each.adopted) or any(change.action == "adopted" for change in each.changes)


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
    return ("good", "adopted") if has_adopted(each) else ("", "kept: no gain on later runs")


def change_row(change: ChangeAnswer) -> ChangeRow:
    """Return a change in words; one that was dropped is judged on the runs since its adoption."""
    judged = change.review if change.action == "dropped" else change.verdict
    return ChangeRow(
        subject=SUBJECTS.get(change.subject, change.subject),
        action=change.action,
        kind=KINDS[change.action],
        before=in_words(change.before),
        after=in_words(change.after),
        gain=gain_text(judged),
    )


def gain_text(verdict: VerdictAnswer | None) -> str:
    """Return the gain in cost on runs that a change was not made on, with twice its noise."""
    if verdict is None:
        return "-"
    noise = "" if verdict.error is None else f" ± {2 * verdict.error:.1%}"
    return f"{verdict.gain:+.1%}{noise} on {verdict.jobs:,} runs"
