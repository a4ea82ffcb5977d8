"""The types of request fields, with their bounds, and a decoder of bodies of many objects.

The decoder is several times as fast as the models' validation. Large bodies are looked at before,
because pydantic takes seconds to describe large nonsense.
"""

import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from pydantic import (
    AwareDatetime,
    BaseModel,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    TypeAdapter,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from predictors.facts import MOST_FEATURES
from predictors.jobs import LATEST_TIME, LONGEST, MOST_MEMORY, MOST_PROCESSORS
from predictors.registry import METHODS
from service.errors import InvalidFieldError
from terminal.words import LONGEST_NAME, PRINTABLE


@dataclass(frozen=True)
class ErrorSentence:
    """Makes a field fail with one sentence, not with a pattern or one error per member."""

    sentence: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Return the field's schema with the sentence as its only error."""
        return core_schema.custom_error_schema(
            handler(source), custom_error_type="sentence", custom_error_message=self.sentence
        )


def exactly(number: float) -> int:
    """Convert a whole ``number`` to int; ``multiple_of`` of pydantic would accept 1e-42 as 0.

    Raises:
        ValueError: it has a fraction.
    """
    if not number.is_integer():
        raise ValueError
    return int(number)


@dataclass(frozen=True)
class Whole:
    """Whole numbers within bounds. As in JSON Schema, 4.0 is valid, because Lua writes 4 so."""

    least: int
    most: int

    def __get_pydantic_core_schema__(
        self, _source: Any, _handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Return the schema of an integer, or of a number without a fraction."""
        written_so = core_schema.int_schema(ge=self.least, le=self.most, strict=True)
        with_point = core_schema.float_schema(ge=self.least, le=self.most, strict=True)
        return core_schema.union_schema(
            [written_so, core_schema.no_info_after_validator_function(exactly, with_point)],
            custom_error_type="whole",
            custom_error_message=f"Input should be a whole number from {self.least} to {self.most}",
        )

    def __get_pydantic_json_schema__(
        self, _schema: CoreSchema, _handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return the JSON schema of an integer with bounds."""
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True)
class DescribedBy:
    """Gives a field that holds a struct the schema of an answer with the same fields."""

    answer: type

    def __get_pydantic_core_schema__(
        self, _source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Return the schema of the answer."""
        return handler(self.answer)


LIVE_POLICIES = ("fcfs", "easy", "easy-sjbf", "conservative")
"""Policies of live queues, some of those of the simulator."""


@dataclass(frozen=True)
class OneOf:
    """A text that is one of ``names``; the documentation and the error list them."""

    names: tuple[str, ...]

    def __get_pydantic_core_schema__(
        self, _source: Any, _handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Return the schema of a literal."""
        return core_schema.literal_schema(list(self.names))


LONGEST_LINE = 4096
"""Characters of a path or command line, as Linux bounds a path."""

LARGEST_NUMBER = 1e15

Text = Annotated[
    str,
    Field(min_length=1, max_length=LONGEST_NAME, pattern=PRINTABLE),
    ErrorSentence("Input should be a string of 1 to 256 printable characters"),
]
JobId = Annotated[
    Text | Annotated[int, Whole(0, 2**53 - 1)],
    ErrorSentence("Input should be a string of 1 to 256 printable characters or a whole number"),
]
Method = Annotated[Text, Field(json_schema_extra={"enum": sorted(METHODS)})]
Duration = Annotated[float, Field(ge=0, le=LONGEST, allow_inf_nan=False)]
PositiveDuration = Annotated[float, Field(gt=0, le=LONGEST, allow_inf_nan=False)]
Coverage = Annotated[float, Field(ge=0.5, le=0.99, allow_inf_nan=False)]
UnderestimationRate = Annotated[float, Field(ge=0.01, le=0.5, allow_inf_nan=False)]
Time = Annotated[
    Annotated[float, Field(ge=0, le=LATEST_TIME, allow_inf_nan=False)]
    | Annotated[
        AwareDatetime,
        Field(ge=datetime(1970, 1, 1, tzinfo=UTC), le=datetime.fromtimestamp(LATEST_TIME, UTC)),
    ],
    ErrorSentence("Input should be Unix seconds in [0, 1e11] or an RFC 3339 time"),
]
Processors = Annotated[int, Whole(1, MOST_PROCESSORS)]
Gpus = Annotated[int, Whole(0, MOST_PROCESSORS)]
Kibibytes = Annotated[float, Field(gt=0, le=MOST_MEMORY, allow_inf_nan=False)]
Line = Annotated[
    str,
    Field(min_length=1, max_length=LONGEST_LINE, pattern=PRINTABLE),
    ErrorSentence(f"Input should be a string of 1 to {LONGEST_LINE} printable characters"),
]
Feature = Annotated[
    Annotated[float, Field(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER, allow_inf_nan=False)]
    | Annotated[str, Field(min_length=1, max_length=LONGEST_NAME, pattern=PRINTABLE)],
    ErrorSentence("Input should be a number in [-1e15, 1e15] or 1 to 256 printable characters"),
]
FeatureName = Annotated[
    str,
    Field(min_length=1, max_length=64, pattern=PRINTABLE),
    ErrorSentence("A feature's name should have 1 to 64 printable characters"),
]
Features = Annotated[
    dict[FeatureName, Feature],
    Field(max_length=MOST_FEATURES, json_schema_extra={"additionalProperties": False}),
]


def unix_seconds(time: float | datetime) -> float:
    """Convert a time of either form to Unix seconds."""
    return time.timestamp() if isinstance(time, datetime) else time


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
    if origin is dict:
        names, values = (_type(each, []) for each in arguments)
        annotation = dict[names, values]  # type: ignore[valid-type] # built, not written
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
