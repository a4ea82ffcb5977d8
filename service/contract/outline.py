"""A look at large bodies before they are validated, because nonsense takes seconds to describe."""

from collections.abc import Callable, Iterable
from typing import Any, get_args

import msgspec

from service.errors import InvalidFieldError

LARGE = 1 << 16
"""Bytes; a smaller body, or part of one, is validated in milliseconds."""

BYTES_PER_PART = 8
"""With fewer for each object and list it is nonsense: one field with its value is longer."""

MOST_VALUES = 1_000_000
"""Of a body; a batch of ten thousand runs with all their fields has a fifth of that."""

NOTHING = msgspec.Raw(b"")

_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


def plausible(validate: Callable[[bytes], Any], fields: Iterable[str]) -> Callable[[bytes], Any]:
    """A validator like ``validate`` that raises InvalidFieldError at once for large nonsense.

    Args:
        validate: the validator.
        fields: that an object may have.
    """
    raw = [(name, msgspec.Raw, NOTHING) for name in fields]
    outline = msgspec.defstruct("Outline", raw, forbid_unknown_fields=True)
    decode = msgspec.json.Decoder(outline).decode

    def validated(body: bytes) -> Any:
        if len(body) > LARGE:
            check_parts(body)
            check_outline(body, decode)
        return validate(body)

    return validated


def fields_of(body_type: Any) -> set[str]:
    """The fields of a model, or of several models of which a body may be any."""
    models = get_args(body_type) or (body_type,)
    return {name for model in models for name in getattr(model, "model_fields", ())}


def check_parts(body: bytes) -> None:
    """Refuse a body that is no object, or that is made of millions of empty ones.

    Raises:
        InvalidFieldError: it is.
    """
    if not body.lstrip(b" \t\r\n").startswith(b"{"):
        raise InvalidFieldError("Input should be an object.", "body")
    if body.count(b",") >= MOST_VALUES:
        raise InvalidFieldError(f"The body has more than {MOST_VALUES:,} values.", "body")
    parts = body.count(b"{") + body.count(b"[")
    if parts * BYTES_PER_PART > len(body):
        raise InvalidFieldError(f"The body has {parts:,} objects and lists, all but empty.", "body")


def check_outline(body: bytes, decode: Callable[[bytes], Any]) -> None:
    """Refuse an unknown field of the body, a value that is too long, and one nested too deeply.

    Raises:
        InvalidFieldError: there is one.
    """
    try:
        outline = decode(body)
    except msgspec.ValidationError as error:
        _, _, quoted = str(error).partition("unknown field `")
        if not quoted:
            return
        raise InvalidFieldError("There is no such field.", quoted.partition("`")[0]) from error
    except RecursionError as error:
        raise InvalidFieldError("The body is nested too deeply.", "body") from error
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return
    for name in outline.__struct_fields__:
        value = getattr(outline, name)
        if memoryview(value).nbytes > LARGE:
            check_items(name, value)


def check_items(name: str, value: msgspec.Raw) -> None:
    """Refuse a long value that is no list, or a list with a long item.

    Raises:
        InvalidFieldError: it is one.
    """
    try:
        items = _items(value)
    except msgspec.MsgspecError as error:
        raise InvalidFieldError(f"It is longer than {LARGE} bytes.", name) from error
    for place, item in enumerate(items):
        if memoryview(item).nbytes > LARGE:
            raise InvalidFieldError(f"It is longer than {LARGE} bytes.", f"{name}.{place}")
