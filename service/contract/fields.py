"""The types of request fields, with their bounds."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AwareDatetime, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from predictors.jobs import LATEST_TIME, LONGEST, MOST_MEMORY
from predictors.registry import METHODS


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


Text = Annotated[
    str,
    Field(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$"),
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
Processors = Annotated[int, Whole(1, 2**31 - 1)]
Kibibytes = Annotated[float, Field(gt=0, le=MOST_MEMORY, allow_inf_nan=False)]


def unix_seconds(time: float | datetime) -> float:
    """Convert a time of either form to Unix seconds."""
    return time.timestamp() if isinstance(time, datetime) else time
