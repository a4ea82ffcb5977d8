"""Reads what studies printed back into the figures that their sentences speak of."""

import re
from collections.abc import Iterator
from math import nan

from simulator.studies.klusacek.klusacek_figures import Figures, NodeFigures, ScheduleFigures
from simulator.studies.tang.tang_sentences import Gains
from simulator.studies.xu_schedules import Line


def cells(text: str) -> Iterator[list[str]]:
    """The cells of every line of a table."""
    for line in text.splitlines():
        yield re.split(r"  +", line.strip())


def number(cell: str) -> float:
    """The number of a cell."""
    return nan if cell == "-" else float(cell.replace(",", "").rstrip("%"))


def klusacek(text: str) -> Figures:
    """Both tables of Klusáček & Soysal 2020."""
    found = Figures([], [])
    for name, *rest in cells(text):
        if len(rest) == 9 and name.endswith(", conservative"):
            estimates, *numbers = rest
            log = name.split(", ", maxsplit=1)[0]
            found.schedules.append(ScheduleFigures(log, estimates, *map(number, numbers)))
        elif len(rest) == 7 and ", pinning " in name:
            estimates, *numbers = rest
            log, span, pinning, *kept = name.split(", ")
            of_line = (int(pinning.split()[1]), bool(kept), estimates)
            found.nodes.append(NodeFigures(log, span, *of_line, *map(number, numbers)))
    return found


def tang(text: str) -> list[Gains]:
    """The gains of Tang et al. 2013: over all, and by month."""
    means, months = {}, {}
    for name, *rest in cells(text):
        if re.fullmatch(r"(Intrepid|Theta), \w+, \w+", name):
            estimates, *numbers = rest
            if (name, estimates) in means:
                months[name, estimates] = [number(cell) for cell in " ".join(numbers).split()]
            else:
                means[name, estimates] = ([number(cell) for cell in numbers[:4]],
                                          number(numbers[-1]))  # fmt: skip
    return [Gains(*key, *means[key], months[key]) for key in means]


def xu_schedules(text: str) -> list[Line]:
    """Both blocks of Xu et al.'s schedules."""
    return [
        Line(name, estimates, *map(number, numbers))
        for name, estimates, *numbers in (row for row in cells(text) if len(row) == 8)
        if ", easy" in name
    ]
