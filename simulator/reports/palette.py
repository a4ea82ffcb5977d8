"""One palette: a method has the same colour in every picture of every page.

Colours are chosen so that colour-blind readers can tell them apart, in a light and in a dark
variant. Pages take them as custom properties (``css``), PNG pictures take the light ones.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import cycle
from typing import NamedTuple


class Colour(NamedTuple):
    """A colour on a light and on a dark page."""

    light: str
    dark: str


METHODS: Mapping[str, Colour] = {
    "requested": Colour("#c8443c", "#ff8a80"),
    "auto": Colour("#c2277f", "#ff85c8"),
    "max-usage": Colour("#1f77b4", "#6cb6ff"),
    "percentile": Colour("#23884f", "#5fd08f"),
    "last-two": Colour("#c77d00", "#ffb84d"),
    "knn": Colour("#8e63b5", "#c9a2f2"),
    "least-cost": Colour("#0e8a9c", "#4fd0e0"),
    "attention": Colour("#8c6d46", "#d6b486"),
    "forest": Colour("#5f6b00", "#c3d04a"),
    "exact": Colour("#1b1b1b", "#ececec"),
}
"""By the name of the method; ``requested`` is today, ``exact`` the true runtimes."""

SURFACES: Mapping[str, Colour] = {
    "page": Colour("#ffffff", "#14181c"),
    "panel": Colour("#f4f6f8", "#1e242a"),
    "text": Colour("#1b1b1b", "#ececec"),
    "quiet": Colour("#56606a", "#a3adb8"),
    "grid": Colour("#dfe3e8", "#353d46"),
    "good": Colour("#1a7f43", "#5fd08f"),
    "bad": Colour("#b3261e", "#ff8a80"),
    "careful": Colour("#8a5a00", "#ffc14d"),
}
"""The parts of a page: its ground, panels on it, text, lines, and good and bad news."""

UNKNOWN = SURFACES["quiet"]
"""For a method without a colour of its own: grey, so that it is not taken for another method."""

OTHERS = tuple(colour for name, colour in METHODS.items() if name not in {"requested", "exact"})
"""For lines that are no method, or a further line of a method in one picture."""


def name_of_method(label: str) -> str:
    """Return the method of a label such as ``easy, percentile:key=user``."""
    return label.rpartition(", ")[2].partition(":")[0]


def colour_of(label: str) -> Colour:
    """Return the colour of a method, with any parameters; grey for an unknown method."""
    return METHODS.get(name_of_method(label), UNKNOWN)


def colours_of(labels: Iterable[str]) -> list[str]:
    """Return light colours for lines in one picture.

    A line of a known method has the colour of its method. Where two lines would have the same
    colour, and for other lines, the next colour that is not yet used is taken.
    """
    labels = list(labels)
    names = [name_of_method(label) for label in labels]
    own = {name: METHODS[name].light for name in names if name in METHODS}
    spare = _spare(set(own.values()))
    seen: set[str] = set()
    chosen = []
    for name in names:
        chosen.append(own[name] if name in own and name not in seen else next(spare))
        seen.add(name)
    return chosen


def _spare(used: set[str]) -> Iterator[str]:
    free = [colour.light for colour in OTHERS if colour.light not in used]
    return cycle(free or [colour.light for colour in OTHERS])


def css() -> str:
    """Return custom properties such as ``--method-knn`` and ``--text``, for both themes."""
    light = "".join(f"--{name}:{colour.light};" for name, colour in _properties())
    dark = "".join(f"--{name}:{colour.dark};" for name, colour in _properties())
    return (
        f":root{{color-scheme:light dark;{light}}}"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
    )


def _properties() -> Iterator[tuple[str, Colour]]:
    yield from SURFACES.items()
    for name, colour in METHODS.items():
        yield f"method-{name}", colour
