"""Completions as newline-delimited JSON, a stream of any size."""

from collections.abc import AsyncIterator
from typing import NamedTuple, cast

from pydantic import ValidationError

from service.contract.bodies import CompletionBody, refusal
from service.contract.decoding import msgspec_first
from service.contract.repeated_keys import each_key_once
from service.errors import InvalidFieldError, InvalidLineError
from service.store import ReportedCompletion

LONGEST_LINE = 1 << 16
"""Most bytes of a line; a completion with the longest fields takes less than half of them."""

_validate = each_key_once(msgspec_first(CompletionBody))


class Line(NamedTuple):
    """A line that is not blank, and its number in the stream, from 1."""

    number: int
    text: bytes


async def lines_of(blocks: AsyncIterator[bytes]) -> AsyncIterator[list[Line]]:
    """The lines that each block of bytes completes.

    Only the beginning of a line that is too long is kept, which is enough to refuse the line.
    """
    number = 0
    rest = b""
    async for block in blocks:
        if not (rest or block.strip()):
            number += block.count(b"\n")
            continue
        *complete, tail = block.split(b"\n")
        if complete:
            complete[0] = rest + complete[0]
            yield [Line(n, text) for n, text in enumerate(complete, number + 1) if text.strip()]
            number += len(complete)
            rest = b""
        rest = (rest + tail)[: LONGEST_LINE + 1]
    if rest.strip():
        yield [Line(number + 1, rest)]


def report_of(line: Line) -> ReportedCompletion:
    """The completion that a line holds.

    Raises:
        InvalidLineError: the line is not a completion.
    """
    if len(line.text) > LONGEST_LINE:
        raise InvalidLineError(
            f"It is longer than {LONGEST_LINE} bytes.", field="line", line=line.number
        )
    try:
        return cast("CompletionBody", _validate(line.text)).reported()
    except ValidationError as error:
        reason: Exception = refusal(error)
    except InvalidFieldError as error:
        reason = error
    field = reason.field if isinstance(reason, InvalidFieldError) else "line"
    raise InvalidLineError(str(reason), field=field, line=line.number)
