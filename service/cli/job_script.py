"""Read the request of a job script, in its lines for Slurm or PBS."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from service.adapters.pbs import cores_of
from service.adapters.values import clock, count, kibibytes, slurm_walltime
from simulator.cli.console import CommandError, ExitCode

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


def request_in(script: str) -> dict[str, Any]:
    """Return the fields of a submission that a script contains.

    Raises:
        CommandError: the walltime of a line is none.
    """
    lines = script.splitlines()[:LONGEST]
    components = [*map(slurm_options, _components(_words(lines, _SBATCH)))]
    for options in components:
        check_walltime(options.get("time"), lines)
    if any(components):
        return _together([*map(from_slurm, components)])
    return from_pbs(_words((line.strip() for line in lines), _PBS))


def check_walltime(written: str | None, lines: Sequence[str]) -> None:
    """Refuse a walltime that sbatch would refuse, and name its line.

    Raises:
        CommandError: it is none.
    """
    if not written or written.upper() in _NO_LIMIT or slurm_walltime(written):
        return
    number = next(place for place, line in enumerate(lines, 1) if written in line)
    raise CommandError(
        f"--time={written} in line {number} is no walltime such as 6:00:00.", ExitCode.USAGE
    )


def _words(lines: Iterable[str], mark: str) -> list[str]:
    """Return the words behind ``mark`` up to the first command, as resource managers read them.

    Slurm passes over a mark that is indented.
    """
    words: list[str] = []
    for line in lines:
        bare = line.strip()
        if bare and not bare.startswith("#"):
            break
        if line.startswith(mark):
            try:
                words += shlex.split(bare.removeprefix(mark), comments=True)
            except ValueError:  # a quote is not closed
                continue
    return words


def _components(words: Sequence[str]) -> list[list[str]]:
    """Return the words of each component of a heterogeneous job; other jobs have one component."""
    components: list[list[str]] = [[]]
    for word in words:
        if word in _NEXT_COMPONENT:
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


def slurm_options(words: Sequence[str]) -> dict[str, str]:
    """Return the options of sbatch by their long names; the last of repeated ones counts."""
    found: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            name = _OTHER_NAMES.get(name, name)
            found[name] = value if equals or name not in _TAKING_VALUES else next(rest, "")
        elif word.startswith("-") and (name := SLURM_OPTIONS.get(word[1:2], "")):
            found[name] = word[2:].removeprefix("=") or next(rest, "")
    return found


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
