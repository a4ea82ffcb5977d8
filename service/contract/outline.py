"""A look at large bodies before they are validated, because nonsense takes seconds to describe."""

from service.errors import InvalidFieldError

LARGE = 1 << 16
"""Bytes; a smaller body is validated in milliseconds."""

BYTES_PER_PART = 8
"""Least average length of an object or list: one field with its value is longer."""

FIELDS_PER_PART = 64
"""Most fields on average of an object or list; a run has 20."""

MOST_VALUES = 1_000_000
"""Of a body; a batch of ten thousand runs with all their fields has a fifth of that."""


def check_outline(body: bytes) -> None:
    """Refuse a body that is no object, or has too many objects, lists, fields or values.

    Raises:
        InvalidFieldError: the body is refused.
    """
    if not body.lstrip(b" \t\r\n").startswith(b"{"):
        raise InvalidFieldError("Input should be an object.", "body")
    if body.count(b",") >= MOST_VALUES:
        raise InvalidFieldError(f"The body has more than {MOST_VALUES:,} values.", "body")
    parts = body.count(b"{") + body.count(b"[")
    if parts * BYTES_PER_PART > len(body):
        raise InvalidFieldError(f"The body has {parts:,} objects and lists, all but empty.", "body")
    if (fields := body.count(b'":')) > FIELDS_PER_PART * parts:
        raise InvalidFieldError(f"The body has too many fields, {fields:,}.", "body")
