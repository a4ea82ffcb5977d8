"""Studies: parts that need nothing of each other, and what is made of their results."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from predictors.jobs import Completion
from simulator.reports.exhibit import Exhibit
from simulator.scheduling.processes import in_order
from simulator.scheduling.workload import Workload, first_jobs, prepare
from simulator.traces.cleaning import REPLAY_RULES, NoJobError, clean
from simulator.traces.completions import completions
from simulator.traces.swf import read_header, read_swf
from simulator.traces.trace import Trace, size_of_machine

Played = Sequence[tuple[Any, Any]]
"""The parts of a study with their results, in the order of the parts."""


class Takes(StrEnum):
    """Input of a study."""

    DIRECTORY = "a directory with the logs that the study names"
    TRACES = "traces"
    NOTHING = "nothing: it generates its workloads"


class StudyError(ValueError):
    """Raised when the input or the options of a study cannot be used; the message says why."""


class LogPart(NamedTuple):
    """A part of a study that plays each log once.

    Attributes:
        trace: path of the log.
        limit: number of jobs after cleaning, or None for all.
        name: name of the log, for people.
        options: of the study, such as a method; None without.
    """

    trace: str
    limit: int | None
    name: str = ""
    options: Any = None

    def runs(self) -> list[Completion]:
        """The jobs of the log that can be learned from.

        Raises:
            NoJobError: there is none.
        """
        return runs_of(self.trace, self.limit)


def log_parts(paths: Sequence[Path], limit: int | None, options: Any = None) -> list[LogPart]:
    """A part for each log, with the same options."""
    names = names_of(paths)
    return [LogPart(str(path), limit, names[path], options) for path in paths]


def records_by_log(played: Played) -> dict[str, Any]:
    """Results of a study of ``LogPart``, which are dataclasses, as a JSON object."""
    return {"logs": {part.trace: asdict(found) for part, found in played}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExhibitInput:
    """Input of an exhibit; results are kept for the next exhibit that needs them.

    Attributes:
        paths: the directory of the logs, or the traces.
        limit: number of jobs of each log, or None for all.
        executor: plays the parts.
        options: of the study, by name.
        results: results by name of the function and part.
    """

    paths: Sequence[Path]
    limit: int | None
    executor: Executor
    options: Mapping[str, Any] = field(default_factory=dict)
    results: dict[tuple[str, Hashable], Any] = field(default_factory=dict)

    @property
    def logs(self) -> Path:
        """The directory of the logs."""
        return self.paths[0]

    def play(self, play: Callable[[Any], Any], parts: Sequence[Hashable]) -> list[tuple[Any, Any]]:
        """The parts with their results, in the order of the parts."""
        name = play.__qualname__
        wanted = [part for part in dict.fromkeys(parts) if (name, part) not in self.results]
        for part, result in zip(wanted, in_order(self.executor, play, wanted), strict=True):
            self.results[name, part] = result
        return [(part, self.results[name, part]) for part in parts]


Make = Callable[[ExhibitInput], Exhibit]
"""Makes one figure or table."""

Exhibits = Mapping[str, Make]
"""Figures and tables of a paper, by ``figure 5`` or ``table 2``; ``docs/papers.md`` says of each
how far it agrees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A study: ``walltimed experiment`` has a command of the same name for each.

    Attributes:
        title: what is studied, and in which paper.
        takes: input of the study.
        logs: file names that must lie in the directory, for studies that take one.
        runs: returns the parts, given the paths (of the directory or the traces), a limit on the
            jobs of each log after cleaning, and the study's own options by name.
        play: returns the result of one part; both can be sent to another process.
        tables: returns the tables of the results, beside a paper's figures.
        notes: returns the legend of the tables; printed below them.
        records: returns the results as JSON values.
        simulates: whether each trace must tell the size of its machine.
        exhibits: the figures and tables of the paper that can be made alone.
    """

    title: str
    takes: Takes
    runs: Callable[..., Sequence[Any]]
    play: Callable[[Any], Any]
    tables: Callable[[Played], str]
    notes: Callable[[Played], str] = lambda _: ""
    records: Callable[[Played], Any] = records_by_log
    logs: Sequence[str] = ()
    simulates: bool = False
    exhibits: Exhibits = field(default_factory=dict)

    def report(self, played: Played) -> str:
        """The tables and the notes."""
        notes = self.notes(played)
        return f"{self.tables(played)}\n{notes}" if notes else self.tables(played)


def play_all(study: Study, parts: Sequence[Any], executor: Executor) -> Iterator[tuple[Any, Any]]:
    """Play every part on an executor: processes of this machine, or a cluster's workers.

    The results come in the order of the parts, and are the same wherever they were made.
    """
    yield from zip(parts, in_order(executor, study.play, parts), strict=True)


def first_word(path: Path) -> str:
    """The name of a file up to its first dot."""
    return path.name.split(".")[0]


def names_of(paths: Sequence[Path]) -> Mapping[Path, str]:
    """Return the first word of each log that no other log begins with, else its path."""
    counts = Counter(map(first_word, set(paths)))
    return {
        path: first_word(path) if counts[first_word(path)] == 1 else str(path) for path in paths
    }


def runs_of(trace: str | Path, limit: int | None = None) -> list[Completion]:
    """The first ``limit`` jobs of a trace that can be learned from; all without a limit.

    Raises:
        NoJobError: there is none.
    """
    return list(completions(_jobs_of(trace).select(slice(limit))))


def _jobs_of(trace: str | Path) -> Trace:
    jobs, removed = clean(read_swf(str(trace)), REPLAY_RULES)
    if not len(jobs):
        raise NoJobError(Path(trace).name, "played", removed)
    return jobs


def require_jobs(study: Study, paths: Sequence[Path]) -> None:
    """Refuse logs without a job that a study can use, before it takes minutes for the others.

    Raises:
        NoJobError: it names the first of them, and why its jobs cannot be used.
    """
    for path in paths:
        if study.simulates:
            workload_of(path)
        else:
            _jobs_of(path)


def require_machines(paths: Sequence[Path]) -> None:
    """Refuse logs that do not tell the size of their machine, before any of them is simulated.

    Raises:
        StudyError: it names the first of them, and says what to do.
    """
    for path in paths:
        header = read_header(path)
        if header is not None and size_of_machine(header) is None:
            raise StudyError(
                f"{path.name} does not tell the size of its machine: put a line such as "
                '"; MaxProcs: 1024" at its beginning.'
            )


def workload_of(trace: str | Path, limit: int | None = None) -> Workload:
    """The first ``limit`` jobs of a trace that can be simulated; all without a limit.

    Raises:
        NoJobError: there is none.
    """
    workload = prepare(first_jobs(read_swf(str(trace)), limit))
    if not len(workload):
        raise NoJobError(Path(trace).name, "simulated", workload.counts)
    return workload
