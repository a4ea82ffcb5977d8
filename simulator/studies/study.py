"""What every study is: parts that need nothing of each other, and what is made of their results."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from predictors.jobs import Completion
from simulator.reports.page import page, preformatted, section
from simulator.scheduling.processes import in_order
from simulator.scheduling.workload import Workload, first_jobs, prepare
from simulator.studies.exhibits import Exhibits
from simulator.traces.cleaning import REPLAY_RULES, NoJobError, clean
from simulator.traces.completions import completions
from simulator.traces.files import write_whole
from simulator.traces.swf import read_header, read_swf
from simulator.traces.trace import Trace, size_of_machine

Played = Sequence[tuple[Any, Any]]
"""The parts of a study with their results, in the order of the parts."""


class Takes(StrEnum):
    """What a study is given."""

    DIRECTORY = "a directory with the logs that the study names"
    TRACES = "traces"
    NOTHING = "nothing: it generates its workloads"


class StudyError(ValueError):
    """A study cannot be made of what it was given; the message says why."""


def write_text(directory: Path, title: str, text: str, played: Played) -> None:  # noqa: ARG001
    """Write the tables as ``table.txt`` and ``index.html``: a study without pictures."""
    directory.mkdir(parents=True, exist_ok=True)
    write_whole(directory / "table.txt", f"{title}\n\n{text}")
    shown = page(title, {}, [section("Tables", preformatted(text))])
    write_whole(directory / "index.html", shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A study: ``walltimed experiment`` has a command of the same name for each.

    Attributes:
        title: what is studied, and in which paper.
        takes: what the study is given.
        logs: file names that must lie in the directory, for studies that take one.
        runs: the parts, given the paths (of the directory or the traces), a limit on the jobs of
            each log after cleaning, and the study's own options by name.
        play: the result of one part; both can be sent to another process.
        report: the tables, with a paper's figures and what to think of the difference.
        records: the same for machines, as JSON values.
        write: writes title, tables and pictures into a directory.
        simulates: whether each trace must tell the size of its machine.
        exhibits: the figures and tables of the paper that can be made alone.
    """

    title: str
    takes: Takes
    runs: Callable[..., Sequence[Any]]
    play: Callable[[Any], Any]
    report: Callable[[Played], str]
    records: Callable[[Played], Any]
    logs: Sequence[str] = ()
    write: Callable[[Path, str, str, Played], None] = write_text
    simulates: bool = False
    exhibits: Exhibits = field(default_factory=dict)


def play_all(study: Study, parts: Sequence[Any], executor: Executor) -> Iterator[tuple[Any, Any]]:
    """Play every part on an executor: processes of this machine, or a cluster's workers.

    The results come in the order of the parts, and are the same wherever they were made.
    """
    yield from zip(parts, in_order(executor, study.play, parts), strict=True)


Naming = Callable[[Path], str]
"""A name of a log."""


def first_word(path: Path) -> str:
    """The name of a file up to its first dot."""
    return path.name.split(".")[0]


def names_of(paths: Sequence[Path], ways: Sequence[Naming] = (first_word,)) -> Mapping[Path, str]:
    """Each log by the first of the ways that tells it apart from the others; else by its path."""
    ways = (*ways, str)
    counts = [Counter(map(way, set(paths))) for way in ways]
    return {
        path: next(
            way(path) for way, count in zip(ways, counts, strict=True) if count[way(path)] == 1
        )
        for path in paths
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
