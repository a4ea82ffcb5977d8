"""Finds the word that was probably meant."""

from collections.abc import Iterable
from difflib import get_close_matches

ALIKE = 0.7
"""Words that are less alike (difflib's ratio) are not suggested."""


def meant(word: str, known: Iterable[str], *, alike: float = ALIKE) -> str | None:
    """The known word that is most like ``word``; None if none is."""
    found = get_close_matches(word, list(known), n=1, cutoff=alike)
    return found[0] if found else None


def unknown(what: str, word: str, known: Iterable[str]) -> str:
    """That there is no such thing; with the one that was probably meant, else with all."""
    known = list(known)
    guess = meant(word, known)
    if guess is not None:
        return f"There is no {what} {word!r}; did you mean {guess!r}?"
    listed = f"there are {', '.join(known)}" if known else "there are none"
    return f"There is no {what} {word!r}; {listed}."
