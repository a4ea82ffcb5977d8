"""Completions as newline-delimited JSON, a stream of any size."""

import re
from collections.abc import AsyncIterator
from typing import NamedTuple, cast

from pydantic import ValidationError

from service.contract.bodies import CompletionBody, refusal
from service.contract.decoding import msgspec_first
from service.errors import InvalidFieldError, InvalidLineError
from service.store import ReportedCompletion

LONGEST_LINE = 1 << 16
"""Most bytes of a line; a completion with the longest fields takes less than half of them."""

_LINE = re.compile(rb"\S[^\n]*")
"""A line from its first character that is no white space: runs of blank lines cost one step."""

_validate = msgspec_first(CompletionBody)


class NumberedLine(NamedTuple):
    """A line that is not blank, and its number in the stream, from 1."""

    number: int
    text: bytes


async def lines_of(blocks: AsyncIterator[bytes]) -> AsyncIterator[list[NumberedLine]]:
    """Yield the lines that each block of bytes completes.

    Of a line that is too long only the beginning is stored, enough to refuse the line.
    """
    number = 0
    rest = b""
    async for block in blocks:
        text = rest + block
        end = text.rfind(b"\n") + 1
        lines, counted = [], 0
        for found in _LINE.finditer(text, 0, end):
            number += text.count(b"\n", counted, found.start())
            counted = found.start()
            lines.append(NumberedLine(number + 1, found[0]))
        number += text.count(b"\n", counted, end)
        if lines:
            yield lines
        rest = text[end:].lstrip()[: LONGEST_LINE + 1]
    if rest:
        yield [NumberedLine(number + 1, rest)]


def report_of(line: NumberedLine) -> ReportedCompletion:
    """Decode the completion of a line.

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
