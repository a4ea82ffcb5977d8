"""Decodes bodies of many objects several times as fast as their models validate them.

Large bodies are looked at before, because pydantic takes seconds to describe large nonsense.
"""

import types
from collections.abc import Callable, Iterator
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from pydantic import AwareDatetime, BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

from service.contract.fields import OneOf, Whole
from service.errors import InvalidFieldError

_BOUNDS = ("gt", "ge", "lt", "le", "min_length", "max_length")

LARGE = 1 << 16
"""Bytes; a smaller body is validated in milliseconds."""

BYTES_PER_PART = 8
"""Least average length of an object or list: one field with its value is longer."""

FIELDS_PER_PART = 64
"""Most fields on average of an object or list; a run has 20."""

MOST_VALUES = 1_000_000
"""Most values of a body; a batch of ten thousand runs with all fields has a fifth of that."""

_SUSPICIOUS = (b"\\", b"\x7f", b"\xc2", b"\xe2\x80")
"""Without any of these, JSON holds none of the characters that ``fields.Text`` refuses."""


def msgspec_first(model: type[BaseModel]) -> Callable[[bytes], Any]:
    """Return a validator like ``TypeAdapter(model).validate_json``, but faster for most bodies.

    A msgspec struct is derived from the model's fields and bounds. The struct accepts less than
    the model: no RFC 3339 times and no escapes. The model validates every body that the struct
    refuses. So the model alone decides whether a body is valid, and words the errors.

    The result has the model's fields and methods, but need not be an instance of it.
    """
    decode = msgspec.json.Decoder(struct_of(model)).decode
    validate = TypeAdapter(model).validate_json

    def validated(body: bytes) -> Any:
        for part in _SUSPICIOUS:
            if part in body:
                return validate(body)
        try:
            return decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return validate(body)

    return validated


def struct_of(model: type[BaseModel]) -> type[msgspec.Struct]:
    """Build a struct with the fields, defaults, bounds and methods of a model."""
    fields = [
        (name, _type(field.annotation, field.metadata), *_default(field))
        for name, field in model.model_fields.items()
    ]
    methods = {
        name: value
        for kind in reversed(model.__mro__[: model.__mro__.index(BaseModel)])
        for name, value in vars(kind).items()
        if isinstance(value, types.FunctionType)
    }
    return msgspec.defstruct(
        f"Decoded{model.__name__}",
        fields,
        namespace=methods,
        forbid_unknown_fields=True,
        kw_only=True,
        gc=False,
    )


def _default(field: FieldInfo) -> tuple[Any, ...]:
    return () if field.is_required() else (field.default,)


def _type(annotation: Any, metadata: list[Any]) -> Any:
    """Convert an annotation of pydantic to one of msgspec that accepts as much or less."""
    for item in metadata:
        if isinstance(item, OneOf):
            return Literal[item.names]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(arguments[0], [*arguments[1:], *metadata])
    if origin in (Union, types.UnionType):
        return reduce(or_, (_type(each, []) for each in arguments if not _is_time(each)))
    if origin is list:
        annotation = list[_type(arguments[0], [])]  # type: ignore[misc] # built, not written
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return struct_of(annotation)
    bounds = dict(_bounds(metadata))
    return Annotated[annotation, msgspec.Meta(**bounds)] if bounds else annotation


def _is_time(annotation: Any) -> bool:
    return AwareDatetime in (annotation, *get_args(annotation)[:1])


def _bounds(metadata: list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield bounds by their names in msgspec, which pydantic shares."""
    for item in metadata:
        if isinstance(item, Whole):
            yield from (("ge", item.least), ("le", item.most))
        elif isinstance(item, FieldInfo):
            yield from _bounds(item.metadata)
        else:
            for name in _BOUNDS:
                if (bound := getattr(item, name, None)) is not None:
                    yield name, bound


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
