"""Reads the records that scontrol prints."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

Words = Mapping[str, str]
"""The values of a record by their names."""


def blocks(text: str, key: str) -> Iterator[Words]:
    """Yield the words ``name=value`` of each record that begins with a key."""
    for block in re.split(rf"^(?={key}=)", text, flags=re.MULTILINE):
        words = dict(re.findall(r"(?:^|\s)([A-Za-z:]+)=(\S*)", block))
        if key in words:
            yield words


def ranges_of(members: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield begin and end of the ranges of ascending numbers."""
    for _, equal in groupby(enumerate(members), lambda pair: pair[1] - pair[0]):
        numbers = [number for _, number in equal]
        yield numbers[0], numbers[-1] + 1
