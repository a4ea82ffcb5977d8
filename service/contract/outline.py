"""A look at large bodies before they are validated, because nonsense takes seconds to describe."""

from collections.abc import Callable
from typing import Any

from service.errors import InvalidFieldError

LARGE = 1 << 16
"""Bytes; a smaller body of any kind is validated in milliseconds."""

BYTES_PER_PART = 16
"""With fewer for each object and list it is nonsense: one field with its value is longer."""


def plausible(validate: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    """A validator like ``validate`` that raises InvalidFieldError at once for large nonsense."""

    def validated(body: bytes) -> Any:
        if len(body) > LARGE:
            check_outline(body)
        return validate(body)

    return validated


def check_outline(body: bytes) -> None:
    """Refuse a body that is no object, or that is made of millions of empty ones.

    Raises:
        InvalidFieldError: it is.
    """
    if not body.lstrip(b" \t\r\n").startswith(b"{"):
        raise InvalidFieldError("Input should be an object.", "body")
    parts = body.count(b"{") + body.count(b"[")
    if parts * BYTES_PER_PART > len(body):
        raise InvalidFieldError(f"The body has {parts:,} objects and lists, all but empty.", "body")
