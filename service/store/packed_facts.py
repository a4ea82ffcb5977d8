"""Further facts of a submission at rest: two bytes, and four for each text and count.

Two bytes hold a bit for each fact that is known, in the order of ``Facts``, and above them the
value of the last one. Four bytes each follow for these facts: the hash of a text, or a count.
Features take the rest: a byte for the kind of the value and the name, the value in four bytes, or
in eight where a number needs them. The name of a feature is a number if it is in ``NAMED``, else
its text.

So Slurm's filter stores 40 bytes at most, with rule and input size of a workflow.
"""

from collections.abc import Iterator
from functools import cache, lru_cache
from struct import Struct
from typing import Any

from predictors.facts import FACTS, FEATURE, TEXTS, Facts, Feature, hash_number, hash_text

NAMED = ("rule", "input_bytes")
"""Names of features that take no room, those that ``walltimed_step.py`` sends; only ever longer."""

COUNTED = tuple(name for name in FACTS if name not in {"interactive", "features"})
"""Facts of four bytes."""

INTERACTIVE = 1 << len(COUNTED)
IS_INTERACTIVE = INTERACTIVE << 1
HEADER = Struct("<H")

WORD, WHOLE, DOUBLE = range(3)
"""Kinds of features: a hash, a whole number of 32 bits, and another number."""

VALUES = tuple(Struct(f"<{code}") for code in "Iid")
LARGEST_WHOLE, LARGEST_COUNT = 2**31 - 1, 2**32 - 1

_TEXTS = frozenset(TEXTS)
_number_of, _text_of = lru_cache(4_096)(hash_number), lru_cache(4_096)(hash_text)


def packed(facts: Facts | None) -> bytes | None:
    """Return facts as they are stored, None for none; of texts without a key the hash is stored."""
    if facts is None:
        return None
    known, numbers = 0, []
    for place, name in enumerate(COUNTED):
        value = getattr(facts, name)
        if value is not None:
            known |= 1 << place
            is_text = name in _TEXTS
            numbers.append(_number_of(name, value) if is_text else min(value, LARGEST_COUNT))
    if facts.interactive is not None:
        known |= INTERACTIVE | (IS_INTERACTIVE if facts.interactive else 0)
    form, _ = _form_of(known)
    parts = (_packed_feature(*feature) for feature in facts.features.items())
    return HEADER.pack(known) + form.pack(*numbers) + b"".join(parts)


def unpacked(content: bytes | None) -> Facts | None:
    """Return stored facts."""
    if content is None:
        return None
    (known,) = HEADER.unpack_from(content)
    form, names = _form_of(known)
    numbers = form.unpack_from(content, HEADER.size)
    found: dict[str, Any] = {
        name: _text_of(number) if name in _TEXTS else number
        for name, number in zip(names, numbers, strict=True)
    }
    return Facts(
        **found,
        interactive=bool(known & IS_INTERACTIVE) if known & INTERACTIVE else None,
        features=dict(_features(content, HEADER.size + form.size)),
    )


@cache
def _form_of(known: int) -> tuple[Struct, tuple[str, ...]]:
    """Return the form of the facts of four bytes that are known, and their names."""
    names = tuple(name for place, name in enumerate(COUNTED) if known >> place & 1)
    return Struct(f"<{len(names)}I"), names


def _packed_feature(name: str, value: Feature) -> bytes:
    kind, number = _kind_and_number(name, value)
    known = NAMED.index(name) + 1 if name in NAMED else 0
    text = b"" if known else name.encode("utf-8", "surrogatepass")
    length = b"" if known else len(text).to_bytes(2, "little")
    return bytes((kind | known << 2,)) + length + text + VALUES[kind].pack(number)


def _kind_and_number(name: str, value: Feature) -> tuple[int, float]:
    if isinstance(value, str):
        return WORD, _number_of(f"{FEATURE}{name}", value)
    if abs(value) <= LARGEST_WHOLE and value == int(value):
        return WHOLE, int(value)
    return DOUBLE, value


def _features(content: bytes, place: int) -> Iterator[tuple[str, Feature]]:
    """Yield the features that begin at a place."""
    while place < len(content):
        kind, known = content[place] & 3, content[place] >> 2
        place += 1
        if known:
            name = NAMED[known - 1]
        else:
            end = place + 2 + int.from_bytes(content[place : place + 2], "little")
            name, place = content[place + 2 : end].decode("utf-8", "surrogatepass"), end
        (value,) = VALUES[kind].unpack_from(content, place)
        place += VALUES[kind].size
        yield name, _text_of(value) if kind == WORD else float(value)
