"""The figures and tables of a paper that a study can make again, by their numbers.

``walltimed experiment PAPER --figure N`` and ``--table N`` make them; ``docs/papers.md`` says of
every figure, table and equation how far it agrees.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simulator.reports.exhibit import Exhibit
from simulator.scheduling.processes import in_order


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What an exhibit is made from; results are kept for the next exhibit that needs them.

    Attributes:
        paths: the directory of the logs, or the traces.
        limit: the first ``limit`` jobs of each log, or all.
        executor: plays the parts.
        options: of the study, by name.
    """

    paths: Sequence[Path]
    limit: int | None
    executor: Executor
    options: Mapping[str, Any] = field(default_factory=dict)
    known: dict[tuple[str, Hashable], Any] = field(default_factory=dict)

    @property
    def logs(self) -> Path:
        """The directory of the logs."""
        return self.paths[0]

    def play(self, play: Callable[[Any], Any], parts: Sequence[Hashable]) -> list[tuple[Any, Any]]:
        """The parts with their results, in the order of the parts."""
        name = getattr(play, "__qualname__", repr(play))
        wanted = [part for part in dict.fromkeys(parts) if (name, part) not in self.known]
        for part, result in zip(wanted, in_order(self.executor, play, wanted), strict=True):
            self.known[name, part] = result
        return [(part, self.known[name, part]) for part in parts]


Make = Callable[[Sources], Exhibit]
"""Makes one figure or table."""

Exhibits = Mapping[str, Make]
"""Of one paper, by ``figure 5`` or ``table 2``."""
