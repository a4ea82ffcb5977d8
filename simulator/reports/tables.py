"""Tables of plain text, for the terminal and for files beside results."""

from collections.abc import Sequence


def text_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns under their heads; the first column is aligned left, the others right."""
    lines = [list(heads), *map(list, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    rule = ["-" * width for width in widths]
    return "\n".join(_aligned(line, widths) for line in [lines[0], rule, *lines[1:]]) + "\n"


def _aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (
        cell.rjust(width) if column else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(line, widths, strict=True))
    )
    return "  ".join([first, *others]).rstrip()
