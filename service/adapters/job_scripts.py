"""Job scripts of Slurm and PBS: the fields of a submission that their first lines ask for."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from service.adapters.pbs import cores_of
from service.adapters.values import count, kibibytes
from terminal.console import ExitCode
from terminal.words import clock, slurm_walltime

LONGEST = 10_000
"""Lines of a script that are read."""

_SBATCH, _PBS = "#SBATCH", "#PBS"
_NO_LIMIT = frozenset({"UNLIMITED", "INFINITE", "0"})
_NEXT_COMPONENT = frozenset({"hetjob", "packjob"})
_CHUNK = re.compile(r"(\d+)?:?(.*)")

SLURM_OPTIONS: Mapping[str, str] = {
    "t": "time",
    "n": "ntasks",
    "c": "cpus-per-task",
    "N": "nodes",
    "p": "partition",
    "A": "account",
    "J": "job-name",
}
"""Long names of the options of sbatch that matter here."""


class ScriptError(ValueError):
    """Raised for a script that its resource manager would refuse; the message names the line."""

    exit_code = ExitCode.USAGE


class Word(NamedTuple):
    """A word of a script, and the number of its line."""

    text: str
    line: int


def request_in(script: str) -> dict[str, Any]:
    """Return the fields of a submission that a script contains.

    For example, ``#SBATCH -t 2:00:00 -n 8`` gives a requested walltime of 7,200 s on 8 processors.

    Raises:
        ScriptError: the walltime of a line is none.
    """
    lines = script.splitlines()[:LONGEST]
    components = [*map(slurm_options, _components(_words(lines, _SBATCH)))]
    if any(components):
        return _together([*map(from_slurm, components)])
    words = _words((line.strip() for line in lines), _PBS)
    return from_pbs([word.text for word in words])


def _words(lines: Iterable[str], mark: str) -> list[Word]:
    """Return the words behind ``mark`` up to the first command, as resource managers read them.

    Slurm passes over a mark that is indented.
    """
    words: list[Word] = []
    for number, line in enumerate(lines, 1):
        bare = line.strip()
        if bare and not bare.startswith("#"):
            break
        if line.startswith(mark):
            try:
                texts = shlex.split(bare.removeprefix(mark), comments=True)
            except ValueError:  # a quote is not closed
                continue
            words += [Word(text, number) for text in texts]
    return words


def _components(words: Sequence[Word]) -> list[list[Word]]:
    """Return the words of each component of a heterogeneous job; other jobs have one component."""
    components: list[list[Word]] = [[]]
    for word in words:
        if word.text in _NEXT_COMPONENT:
            components.append([])
        else:
            components[-1].append(word)
    return components


def _together(requests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return one request for components that start together: summed processors, longest limit."""
    first, *others = requests
    if not others:
        return dict(first)
    limits = [each["requested_walltime"] for each in requests if "requested_walltime" in each]
    processors = [each["requested_processors"] for each in requests]
    memory = [each.get("requested_memory", 0.0) * each["requested_processors"] for each in requests]
    return {
        **first,
        **_given(
            requested_walltime=max(limits, default=None),
            requested_processors=sum(processors),
            requested_memory=sum(memory) / sum(processors) if all(memory) else None,
        ),
    }


def slurm_options(words: Sequence[Word]) -> dict[str, str]:
    """Return the options of sbatch by their long names; the last of repeated ones counts.

    Raises:
        ScriptError: the walltime is none.
    """
    found = dict(_slurm_options(words))
    if time := found.get("time"):
        _check_walltime(time)
    return {name: value.text for name, value in found.items()}


def _slurm_options(words: Sequence[Word]) -> Iterator[tuple[str, Word]]:
    rest = iter(words)
    for word, line in rest:
        nothing = Word("", line)
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            name = _OTHER_NAMES.get(name, name)
            is_whole = equals or name not in _TAKING_VALUES
            yield name, Word(value, line) if is_whole else next(rest, nothing)
        elif word.startswith("-") and (name := SLURM_OPTIONS.get(word[1:2], "")):
            value = word[2:].removeprefix("=")
            yield name, Word(value, line) if value else next(rest, nothing)


def _check_walltime(time: Word) -> None:
    """Refuse a walltime that sbatch would refuse."""
    if time.text and time.text.upper() not in _NO_LIMIT and not slurm_walltime(time.text):
        raise ScriptError(f"--time={time.text} in line {time.line} is no walltime such as 6:00:00.")


_OTHER_NAMES = {"tasks-per-node": "ntasks-per-node"}
_TAKING_VALUES = frozenset({*SLURM_OPTIONS.values(), "mem", "mem-per-cpu", "ntasks-per-node"})


def from_slurm(options: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a submission from sbatch's options."""
    nodes = count(options.get("nodes", "").partition("-")[0]) or 1
    tasks = count(options.get("ntasks")) or nodes * (count(options.get("ntasks-per-node")) or 1)
    processors = tasks * (count(options.get("cpus-per-task")) or 1)
    memory = kibibytes(options.get("mem-per-cpu"), unit="m")
    if memory is None and (per_node := kibibytes(options.get("mem"), unit="m")):
        memory = per_node * nodes / processors
    return _given(
        requested_walltime=slurm_walltime(options["time"]) if options.get("time") else None,
        requested_processors=processors,
        requested_memory=memory,
        queue=options.get("partition", "").partition(",")[0],
        project=options.get("account"),
        application=options.get("job-name"),
    )


def from_pbs(words: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a submission from qsub's options."""
    options = dict(_pbs_options(words))
    resources = dict(_resources(options.get("l", "")))
    processors, chunked = _chunks(resources.get("select", ""))
    counts = (cores_of(resources.get("nodes")), *map(count, map(resources.get, ("procs", "ncpus"))))
    processors = processors or max(each or 1 for each in counts)
    memory = chunked or kibibytes(resources.get("mem"), unit="")
    return _given(
        requested_walltime=clock(resources.get("walltime")),
        requested_processors=processors,
        requested_memory=memory / processors if memory else None,
        queue=options.get("q", "").partition("@")[0],
        project=options.get("P") or options.get("A"),
        application=options.get("N"),
    )


def _pbs_options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield options of one letter; all ``-l`` options come as one."""
    limits: list[str] = []
    rest = iter(words)
    for word in rest:
        if len(word) < 2 or not word.startswith("-"):
            continue
        value = word[2:] or next(rest, "")
        if word[1] == "l":
            limits.append(value)
        else:
            yield word[1], value
    yield "l", ",".join(limits)


def _resources(limits: str) -> Iterator[tuple[str, str]]:
    for limit in limits.split(","):
        name, equals, value = limit.partition("=")
        if equals:
            yield name.strip(), value.strip()


def _chunks(select: str) -> tuple[int, float]:
    """Return the processors and KiB of ``2:ncpus=8:mem=4gb+1:ncpus=1``."""
    processors, memory = 0, 0.0
    for chunk in select.split("+") if select else ():
        match = _CHUNK.fullmatch(chunk)
        number = int(match[1] or 1) if match else 1
        parts = dict(part.partition("=")[::2] for part in chunk.split(":"))
        processors += number * (count(parts.get("ncpus")) or 1)
        memory += number * (kibibytes(parts.get("mem"), unit="") or 0.0)
    return processors, memory


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}
