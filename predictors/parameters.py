"""Checks names and values of parameters; errors name the parameter."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches

SIMILARITY = 0.7
"""Least similarity (difflib's ratio) of a suggestion."""


def whole_number(name: str, value: object, least: int, most: int) -> int:
    """Return ``value``.

    Raises:
        ValueError: it is no integer from ``least`` to ``most``; the message names the parameter.
    """
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    raise ValueError(f"{name} must be a whole number from {least} to {most}, not {value!r}.")


def number(name: str, value: object, least: float, most: float) -> float:
    """Return ``value``.

    Raises:
        ValueError: it is NaN or no number from ``least`` to ``most``; the message names the
            parameter.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most:
        return value
    raise ValueError(f"{name} must be a number from {least:g} to {most:g}, not {value!r}.")


def choice(name: str, value: object, choices: Collection[str]) -> str:
    """Return ``value``.

    Raises:
        ValueError: it is none of ``choices``; the message names the parameter and lists them.
    """
    if isinstance(value, str) and value in choices:
        return value
    raise ValueError(f"{name} must be one of {', '.join(choices)}, not {value!r}.")


def suggestion(word: str, names: Iterable[str], *, similarity: float = SIMILARITY) -> str | None:
    """Return the name that is most similar to a misspelt one; None if none is similar."""
    found = get_close_matches(word, list(names), n=1, cutoff=similarity)
    return found[0] if found else None


def unknown(kind: str, word: str, names: Iterable[str]) -> str:
    """Return the message for an unknown name, with a suggestion or else all names."""
    names = list(names)
    similar = suggestion(word, names)
    if similar is not None:
        return f"There is no {kind} {word!r}; did you mean {similar!r}?"
    listed = f"there are {', '.join(names)}" if names else "there are none"
    return f"There is no {kind} {word!r}; {listed}."
