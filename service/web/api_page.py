"""The API as a page: what the OpenAPI document says, in words, without any script."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from service.web.frame import Frame, PageQuery
from service.web.sources import Sources

Schema = Mapping[str, Any]

BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {}",
    "maxItems": "at most {}",
}

KINDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "null": "null",
    "object": "object",
}

FIRST_ERROR = 400


class Piece(Struct, frozen=True):
    """A part of a line of text.

    Attributes:
        text: of it.
        to: the type that it links to; empty: none.
        is_code: whether it is to be typed as it stands.
    """

    text: str
    to: str = ""
    is_code: bool = False


class FieldRow(Struct, frozen=True):
    """One field of a body or an answer, or one parameter."""

    name: str
    kind: Sequence[Piece]
    meaning: Sequence[Piece]
    is_required: bool


class Example(Struct, frozen=True):
    """What may be sent or answered."""

    title: str
    text: str


class Content(Struct, frozen=True):
    """A body, or an answer of one status."""

    title: str
    about: Sequence[Piece]
    kind: Sequence[Piece]
    examples: Sequence[Example]


class Call(Struct, frozen=True):
    """One call."""

    verb: str
    path: str
    anchor: str
    summary: str
    paragraphs: Sequence[Sequence[Piece]]
    scopes: Sequence[str]
    is_open: bool
    parameters: Sequence[FieldRow]
    bodies: Sequence[Content]
    answers: Sequence[Content]
    errors: Sequence[Content]


class CallGroup(Struct, frozen=True):
    """Calls about one thing."""

    name: str
    about: str
    calls: Sequence[Call]


class TypeRow(Struct, frozen=True):
    """A type of body or answer, and its fields."""

    name: str
    about: Sequence[Piece]
    fields: Sequence[FieldRow]


def view(_sources: Sources, _frame: Frame, _query: PageQuery, document: bytes) -> dict[str, Any]:
    """Return the OpenAPI document in words."""
    return contents(document)


@lru_cache(maxsize=1)
def contents(document: bytes) -> dict[str, Any]:
    """Return the page's content; the document changes with a release only."""
    found = msgspec.json.decode(document)
    return {"title": "API", "groups": groups_of(found), "types": types_of(found)}


def groups_of(document: Mapping[str, Any]) -> list[CallGroup]:
    """All calls by tag, in the order of the tags."""
    calls: dict[str, list[Call]] = {tag["name"]: [] for tag in document["tags"]}
    for path, verbs in document["paths"].items():
        for verb, operation in verbs.items():
            calls[operation["tags"][0]].append(call_of(verb.upper(), path, operation))
    return [
        CallGroup(name=tag["name"], about=tag["description"], calls=calls[tag["name"]])
        for tag in document["tags"]
    ]


def call_of(verb: str, path: str, operation: Mapping[str, Any]) -> Call:
    """One call as it is shown."""
    contents = [content_of(status, each) for status, each in sorted(operation["responses"].items())]
    _, *more = operation["description"].split("\n\n")
    return Call(
        verb=verb,
        path=path,
        anchor=re.sub(r"[^a-z0-9]+", "-", f"{verb} {path}".lower()).strip("-"),
        summary=operation["summary"],
        paragraphs=[prose(paragraph) for paragraph in more],
        scopes=[
            scope for way in operation["security"] for scopes in way.values() for scope in scopes
        ],
        is_open=not operation["security"],
        parameters=[*map(parameter_of, operation.get("parameters", ()))],
        bodies=[*bodies_of(operation.get("requestBody", {}))],
        answers=[each for each in contents if int(each.title) < FIRST_ERROR],
        errors=[each for each in contents if int(each.title) >= FIRST_ERROR],
    )


def parameter_of(parameter: Mapping[str, Any]) -> FieldRow:
    """A parameter of the path or the query."""
    return FieldRow(
        name=parameter["name"],
        kind=kind_of(parameter["schema"]),
        meaning=prose(with_default(parameter["description"], parameter["schema"])),
        is_required=parameter["required"],
    )


def bodies_of(body: Mapping[str, Any]) -> Iterator[Content]:
    """What may be sent, by media type."""
    for media_type, content in body.get("content", {}).items():
        yield Content(
            title=media_type,
            about=prose(content["schema"].get("description", "")),
            kind=kind_of(content["schema"]),
            examples=examples_of(content),
        )


def content_of(status: str, answer: Mapping[str, Any]) -> Content:
    """What is answered with a status."""
    (content,) = answer["content"].values()
    return Content(
        title=status,
        about=prose(answer["description"]),
        kind=kind_of(content["schema"]),
        examples=examples_of(content),
    )


def examples_of(content: Mapping[str, Any]) -> list[Example]:
    """The examples of a body or an answer."""
    if "example" in content:
        return [Example(title="", text=written(content["example"]))]
    examples = content.get("examples", {}).values()
    return [Example(title=each["summary"], text=written(each["value"])) for each in examples]


def written(value: Any) -> str:
    """A value as it goes over the line, but for its line breaks."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def types_of(document: Mapping[str, Any]) -> list[TypeRow]:
    """The types of bodies and answers, by name."""
    return [
        TypeRow(name=name, about=prose(schema["description"]), fields=fields_of(schema))
        for name, schema in sorted(document["components"]["schemas"].items())
    ]


def fields_of(schema: Schema) -> list[FieldRow]:
    """The fields of a type."""
    required = schema.get("required", ())
    return [
        FieldRow(
            name=name,
            kind=kind_of(field),
            meaning=prose(with_default(field["description"], field)),
            is_required=name in required,
        )
        for name, field in schema.get("properties", {}).items()
    ]


def with_default(meaning: str, schema: Schema) -> str:
    """The meaning, and what a field is if it is left out."""
    default = schema.get("default")
    return meaning if default is None else f"{meaning} Default: `{json.dumps(default)}`."


def kind_of(schema: Schema) -> list[Piece]:
    """What a value may be, in words that link to types."""
    return [*merged(pieces(schema))]


def pieces(schema: Schema) -> Iterator[Piece]:
    """The same in as many parts as it comes."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        yield Piece(name, to=f"type-{name}")
    elif members := schema.get("anyOf") or schema.get("oneOf"):
        yield from joined(members, " or ")
    elif "enum" in schema or "const" in schema:
        values = schema.get("enum") or [schema["const"]]
        yield Piece("one of " if len(values) > 1 else "")
        for place, value in enumerate(values):
            yield Piece(", " if place else "")
            yield Piece(str(value), is_code=True)
    elif schema.get("type") == "array":
        yield Piece("list of ")
        yield from joined(schema.get("prefixItems") or [schema.get("items", {})], ", ")
        yield Piece(bounds_of(schema))
    elif schema.get("format") == "date-time":
        yield Piece("RFC 3339 time")
    else:
        yield Piece(KINDS.get(schema.get("type", ""), "any value") + bounds_of(schema))


def joined(members: Sequence[Schema], by: str) -> Iterator[Piece]:
    """The kinds of several schemas."""
    for place, member in enumerate(members):
        yield Piece(by if place else "")
        yield from pieces(member)


def bounds_of(schema: Schema) -> str:
    """The bounds of a value, in brackets."""
    told = [words.format(f"{schema[key]:g}") for key, words in BOUNDS.items() if key in schema]
    return f" ({', '.join(told)})" if told else ""


def merged(parts: Iterator[Piece]) -> Iterator[Piece]:
    """Without those that are empty."""
    return (part for part in parts if part.text)


def prose(text: str) -> list[Piece]:
    """A paragraph, with what stands in backticks as code."""
    parts = re.split(r"`+([^`]+)`+", " ".join(text.split()))
    cut = (Piece(part, is_code=bool(place % 2)) for place, part in enumerate(parts))
    return [*merged(cut)]
