"""Which names of applications are alike."""

import re
from functools import lru_cache

_DIGITS = re.compile(r"\d+")


@lru_cache(maxsize=10_000)
def without_digits(name: str | None) -> str | None:
    """``step_12.sh`` as ``step_#.sh``; a name of digits alone is a number that means something."""
    if name is None or name.isdigit():
        return name
    return _DIGITS.sub("#", name)
