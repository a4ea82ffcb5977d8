"""Charts as the page's script draws them, and as the tables below them say."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

Unit = Literal["duration", "share", "count", "moment"]


class Line(Struct, frozen=True, kw_only=True):
    """One line.

    Attributes:
        label: in the legend.
        values: one for each place of the chart; None leaves a gap.
        colour: a name of the palette.
        dash: whether the line is dashed.
        heavy: whether it is the one to look at first.
        fill: whether the space below is tinted.
    """

    label: str
    values: Sequence[float | None]
    colour: str
    dash: bool = False
    heavy: bool = False
    fill: bool = False


class Chart(Struct, frozen=True, kw_only=True):
    """Lines over time.

    Attributes:
        name: of the element.
        title: what is drawn.
        says: how to read it, in a sentence.
        x: Unix seconds.
        series: the lines.
        unit: of the values.
        empty: said in the place of a chart of fewer than two points.
        by: what a place is.
        most: the upper end of the axis; None: what the values need.
        marks: Unix seconds of dotted lines across.
        bands: pairs of places in ``series``, from 1, between which the space is tinted.
    """

    name: str
    title: str
    says: str
    x: Sequence[float]
    series: Sequence[Line]
    unit: Unit
    empty: str
    by: Literal["day", "moment"] = "moment"
    most: float | None = None
    marks: Sequence[float] = ()
    bands: Sequence[tuple[int, int]] = ()

    @property
    def heading(self) -> str:
        """Of the first column of the table."""
        return "Day" if self.by == "day" else "Time"

    @property
    def is_drawable(self) -> bool:
        """Whether there are at least two points of one line."""
        return any(sum(value is not None for value in line.values) > 1 for line in self.series)

    @property
    def data(self) -> dict[str, Any]:
        """What the script needs."""
        needed: dict[str, Any] = msgspec.to_builtins(self)
        for name in ("name", "title", "says", "empty"):
            del needed[name]
        return needed
