"""The page What if: a form that asks when a job would start, and its answer."""

import re
from typing import Any

from msgspec import Struct
from pydantic import ValidationError

from service.contract.bodies import refusal
from service.contract.queue_answers import WhatIfAnswer, WhatIfVariantAnswer
from service.contract.queue_bodies import MOST_VARIANTS, WhatIfRequest
from service.errors import RequestError
from service.operations.what_if import WhatIf
from service.web.frame import Frame, Name, PageQuery, PageSources, duration, share
from terminal.prediction_words import (
    NO_INTERVAL,
    OBSTACLES,
    WITH_RANGE,
    grounds_words,
    likely_words,
    planned_word,
)
from terminal.words import slurm_walltime


class WhatIfForm(PageQuery):
    """The fields as the visitor has filled them in."""

    walltime: Name = ""
    processors: Name = "1"
    queue: Name = ""
    application: Name = ""
    user: Name = ""
    others: Name = ""


class RequestRow(Struct, frozen=True):
    """Forecast of one request."""

    name: str
    variant: WhatIfVariantAnswer
    likely: str
    obstacle: str | None


class WhatIfOutcome(Struct, frozen=True, kw_only=True):
    """An answer, or why there is none; neither before the form is filled in."""

    trouble: str | None = None
    answer: WhatIfAnswer | None = None


async def ask(what_if: WhatIf, frame: Frame, form: WhatIfForm) -> WhatIfOutcome:
    """Ask the operation for the visitor; this is for the process that serves."""
    if not form.walltime.strip():
        return WhatIfOutcome()
    caller = frame.visitor.caller
    try:
        return WhatIfOutcome(
            answer=await what_if.ask(frame.cluster, request_of(form, frame), caller)
        )
    except ValidationError as error:
        return WhatIfOutcome(trouble=str(refusal(error)))
    except (RequestError, ValueError) as error:
        return WhatIfOutcome(trouble=str(error))


def view(
    _sources: PageSources, _frame: Frame, form: WhatIfForm, outcome: WhatIfOutcome
) -> dict[str, Any]:
    """Return the form and its answer."""
    shown = {"title": "What if", "form": form, "trouble": outcome.trouble, "answer": outcome.answer}
    if outcome.answer is None:
        return shown
    basis, method = outcome.answer.basis, outcome.answer.method
    return shown | {
        "rows": rows(outcome.answer),
        "sentence": sentence(outcome.answer),
        "word": planned_word(
            outcome.answer.as_written.likely, plans=outcome.answer.plans_by_predictions
        ).capitalize(),
        "has_range": basis.reason in WITH_RANGE,
        "grounds": grounds_words(basis.jobs, basis.reason, method),
        "no_range": NO_INTERVAL.get(outcome.answer.no_interval or ""),
    }


def request_of(form: WhatIfForm, frame: Frame) -> WhatIfRequest:
    """Convert the form to a request of the API.

    Raises:
        ValueError: a walltime cannot be read.
    """
    others = [text for text in re.split(r"[,;\s]+", form.others) if text][:MOST_VARIANTS]
    submission = {
        "requested_walltime": seconds_of(form.walltime),
        "requested_processors": _whole(form.processors),
        "queue": form.queue.strip() or None,
        "application": form.application.strip() or None,
        "user": (form.user.strip() or None) if frame.visitor.sees_everybody else None,
    }
    return WhatIfRequest.model_validate(
        {
            "submission": {name: value for name, value in submission.items() if value is not None},
            "variants": [{"requested_walltime": seconds_of(text)} for text in others],
            "explain": True,
        }
    )


def _whole(text: str) -> int:
    if not text.strip().isdecimal():
        raise ValueError("Processors are a whole number.")
    return int(text)


def seconds_of(text: str) -> float:
    """Return the seconds of a walltime as Slurm takes it: 90 (minutes), 1:30:00 or 1-06:00:00.

    Raises:
        ValueError: it is no walltime.
    """
    seconds = slurm_walltime(text.strip())
    if seconds is None:
        raise ValueError(
            f"{text.strip()!r} is no walltime: write 90 (minutes), 1:30:00 or 2-00:00."
        )
    return seconds


def rows(answer: WhatIfAnswer) -> list[RequestRow]:
    """Return a row for each request that was played."""
    named = [("as written", answer.as_written)]
    if answer.suggested is not None:
        named.append((f"suggested: holds {share(answer.share)} of like runs", answer.suggested))
    named += [(f"with {duration(each.requested_walltime)}", each) for each in answer.variants]
    return [
        RequestRow(name, each, likely_words(each.likely), OBSTACLES.get(each.obstacle or ""))
        for name, each in named
    ]


def sentence(answer: WhatIfAnswer) -> str:
    """Summarise the prediction of the request as it is written."""
    written = answer.as_written
    likely = "the job's likely runtime is not known"
    if written.likely is not None:
        likely = f"the job would likely run {likely_words(written.likely)}"
    return f"With {duration(written.requested_walltime)} {likely}."
