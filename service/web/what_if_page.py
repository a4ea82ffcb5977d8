"""The form that asks when a job would start, and its answer."""

import re
from collections.abc import Sequence

from msgspec import Struct
from pydantic import ValidationError

from service.adapters.values import walltime
from service.contract.bodies import refusal
from service.contract.queue_answers import WhatIfAnswer, WhatIfVariantAnswer
from service.contract.queue_bodies import MOST_VARIANTS, WhatIfRequest
from service.errors import RequestError
from service.operations.queues.what_if import WhatIf
from service.web.frame import Visitor
from service.web.wording import duration, share

OBSTACLES = {
    "no-queue": "no queue was handed over for this cluster",
    "too-large": "there are not so many processors",
    "no-forecast": "the queue has not been forecast yet",
}


class WhatIfForm(Struct, frozen=True, kw_only=True):
    """The fields as the visitor has filled them in."""

    walltime: str = ""
    processors: str = "1"
    queue: str = ""
    application: str = ""
    user: str = ""
    others: str = ""

    @property
    def is_filled_in(self) -> bool:
        """Whether there is something to ask."""
        return bool(self.walltime.strip())


class RequestRow(Struct, frozen=True):
    """What would come of one request."""

    name: str
    variant: WhatIfVariantAnswer
    obstacle: str | None


class WhatIfShown(Struct, frozen=True, kw_only=True):
    """What the page shows: the form, and an answer or why there is none."""

    form: WhatIfForm
    trouble: str | None = None
    answer: WhatIfAnswer | None = None
    rows: Sequence[RequestRow] = ()


class WhatIfPage:
    """Asks for the visitor."""

    def __init__(self, what_if: WhatIf) -> None:
        self._what_if = what_if

    async def show(self, cluster: str, visitor: Visitor, form: WhatIfForm) -> WhatIfShown:
        """The answer to a form."""
        if not form.is_filled_in:
            return WhatIfShown(form=form)
        try:
            answer = await self._what_if.ask(cluster, request_of(form, visitor), visitor.caller)
        except ValidationError as error:
            return WhatIfShown(form=form, trouble=str(refusal(error)))
        except (RequestError, ValueError) as error:
            return WhatIfShown(form=form, trouble=str(error))
        return WhatIfShown(form=form, answer=answer, rows=rows(answer))


def request_of(form: WhatIfForm, visitor: Visitor) -> WhatIfRequest:
    """The form as the API takes it.

    Raises:
        ValueError: a walltime cannot be read.
    """
    others = [text for text in re.split(r"[,;\s]+", form.others) if text][:MOST_VARIANTS]
    submission = {
        "requested_walltime": seconds_of(form.walltime),
        "requested_processors": _whole(form.processors),
        "queue": form.queue.strip() or None,
        "application": form.application.strip() or None,
        "user": (form.user.strip() or None) if visitor.caller.only is None else None,
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
    seconds = walltime(text.strip())
    if seconds is None:
        raise ValueError(
            f"{text.strip()!r} is no walltime: write 90 (minutes), 1:30:00 or 2-00:00."
        )
    return seconds


def rows(answer: WhatIfAnswer) -> list[RequestRow]:
    """All requests that were played."""
    named = [("as written", answer.as_written)]
    if answer.suggested is not None:
        named.append((f"suggested: holds {share(answer.share)} of like runs", answer.suggested))
    named += [(f"with {duration(each.requested_walltime)}", each) for each in answer.variants]
    return [RequestRow(name, each, OBSTACLES.get(each.obstacle or "")) for name, each in named]
