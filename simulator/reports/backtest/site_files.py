"""The long columns of a site in files, which every process that plays it maps into memory.

So the columns of a million jobs are in memory once, whoever looks at them, and the operating system
may drop what nobody looks at.
"""

from collections.abc import Callable
from ctypes import CDLL
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from simulator.reports.backtest.site import BacktestSite
from simulator.traces.trace import SWF_FIELDS

_COLUMNS = (*SWF_FIELDS, "line")

M_MMAP_THRESHOLD = -3
"""The parameter of glibc's ``mallopt``, as ``malloc.h`` defines it."""

LONG_COLUMN = 1 << 18
"""Bytes from which an array is given back as soon as it is dropped."""


@dataclass(frozen=True, slots=True)
class SiteFiles:
    """A site whose long columns are files; small enough to be sent to another process.

    Attributes:
        shell: the site without its long columns.
        directory: where the files are.
    """

    shell: BacktestSite
    directory: Path

    @classmethod
    def written(cls, site: BacktestSite, directory: Path) -> Self:
        """Write the long columns of a site into an empty directory."""

        def write(name: str, column: Any) -> Any:
            np.save(directory / f"{name}.npy", column)
            return column[:0].copy()  # keeps nothing of the long column

        return cls(_with_columns(site, write), directory)

    def mapped(self) -> BacktestSite:
        """The site again, with its columns mapped into memory."""
        return _with_columns(
            self.shell, lambda name, _: np.load(self.directory / f"{name}.npy", mmap_mode="r")
        )


def _with_columns(site: BacktestSite, column_of: Callable[[str, Any], Any]) -> BacktestSite:
    """The site with another array for each of its long columns, by name and by what it was."""
    trace = site.trace
    columns = {name: column_of(name, getattr(trace, name)) for name in _COLUMNS}
    return replace(
        site,
        trace=replace(trace, **columns),
        machine_of_line=column_of("machines", site.machine_of_line),
        groupings=[
            replace(each, codes=column_of(f"group-{each.kind}", each.codes))
            for each in site.groupings
        ],
    )


def give_back_what_is_dropped() -> None:
    """Let this process give the memory of long arrays back to the system when it drops them.

    glibc does so at first, but after the first long array it keeps what is dropped, for the next
    one. A play makes and drops arrays of many lengths: between them a third of the process's memory
    would lie idle. Another C library is left as it is.
    """
    set_option = getattr(CDLL(None), "mallopt", None)
    if set_option:
        set_option(M_MMAP_THRESHOLD, LONG_COLUMN)
