"""Studies: inputs, the parts that are played, and the tables of runs that exhibits are made of."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import typer

from predictors.jobs import Completion
from simulator.scheduling.parallel import in_parallel
from simulator.traces.completions import usable_runs
from terminal.exit_codes import ExitCode
from terminal.progress import progress_bar

if TYPE_CHECKING:
    from papers.pivot import ExhibitPlan

Part = TypeVar("Part", bound=Hashable)
Result = TypeVar("Result")


class Takes(StrEnum):
    """Input of a study."""

    DIRECTORY = "a directory with the logs that the study names"
    TRACES = "traces"
    NOTHING = "nothing: it generates its workloads"


class StudyError(ValueError):
    """Raised when the input or the options of a study cannot be used; the message says why."""

    exit_code = ExitCode.USAGE


class LogPart(NamedTuple):
    """A part of a study that plays each log once.

    Attributes:
        trace: path of the log.
        limit: number of jobs after cleaning, or None for all.
        options: of the study; None without.
    """

    trace: str
    limit: int | None
    options: Any = None

    def runs(self) -> list[Completion]:
        """Return the jobs of the log that can be learned from.

        Raises:
            NoJobError: there is none.
        """
        return usable_runs(self.trace, self.limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Input of a study; results are kept for the next table that needs them.

    Attributes:
        paths: the directory of the logs, or the traces.
        limit: number of jobs of each log, or None for all.
        options: of the study, by name.
        processes: number of processes that play the parts; None: one per core.
        distributed: cluster that plays them, as ``in_parallel`` takes it.
        results: results by function and part.
    """

    paths: Sequence[Path]
    limit: int | None
    options: Mapping[str, Any] = field(default_factory=dict)
    processes: int | None = None
    distributed: str | None = None
    results: dict[tuple[Callable[..., Any], Hashable], Any] = field(default_factory=dict)

    @property
    def logs(self) -> Path:
        """The directory of the logs."""
        return self.paths[0]

    def play(self, function: Callable[[Part], Result], parts: Iterable[Part]) -> list[Result]:
        """Return the results of a function for each part, in the order of the parts."""
        parts = list(parts)
        wanted = [part for part in dict.fromkeys(parts) if (function, part) not in self.results]
        played = in_parallel(
            function, wanted, processes=self.processes, distributed=self.distributed
        )
        with progress_bar("plays") as progress:
            task = progress.add_task("", total=len(wanted))
            for part, result in zip(wanted, played, strict=True):
                self.results[function, part] = result
                progress.advance(task)
        return [self.results[function, part] for part in parts]


Table = Callable[[Inputs], Sequence[Any]]
"""Makes a flat table of runs: dataclasses of one kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A study of a paper: ``python -m papers`` has a command for each.

    Attributes:
        name: name of the command.
        explanation: text of ``--help``; its first line is the summary.
        takes: input of the study.
        exhibits: figures and tables, by ``figure 5`` or ``table 2``; ``papers/README.md`` says of
            each how far it agrees.
        logs: file names that must lie in the directory, for studies that take one.
        further_logs: file names that the kept exhibits were made with, too, where they lie there.
        options: of this study alone: annotation and default by parameter.
    """

    name: str
    explanation: str
    takes: Takes
    exhibits: Mapping[str, "ExhibitPlan"]
    logs: Sequence[str] = ()
    further_logs: Sequence[str] = ()
    options: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)


def option(kind: Any, *names: str, default: Any = None, **described: Any) -> tuple[Any, Any]:
    """Return an option of a study: its annotation and its default."""
    return Annotated[kind, typer.Option(*names, **described)], default
