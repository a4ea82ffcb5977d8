"""Job scripts of Slurm and PBS: the fields of a submission that their first lines ask for."""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, takewhile
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
    "G": "gpus",
}
"""Long names of the options of sbatch that matter here."""

_FACT_OPTIONS = {"q": "qos", "C": "constraint", "d": "dependency", "a": "array", "D": "chdir"}

_WITH_VALUE = frozenset(
    """
    account acctg-freq array batch bb bbf begin chdir cluster-constraint clusters comment constraint
    container container-id core-spec cores-per-socket cpu-freq cpus-per-gpu cpus-per-task deadline
    delay-boot dependency distribution error exclude export export-file extra extra-node-info gid
    gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task gres gres-flags hint input
    job-name kill-on-invalid-dep licenses mail-type mail-user mcs-label mem mem-bind mem-per-cpu
    mem-per-gpu mincpus network nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu
    ntasks-per-node ntasks-per-socket open-mode output partition power prefer priority profile qos
    reservation segment signal sockets-per-node switches tasks-per-node thread-spec threads-per-core
    time time-min tmp tres-bind tres-per-task uid wait-all-nodes wckey wrap
    """.split()  # noqa: SIM905  a table of words
)
_SWITCHES = frozenset(
    """
    contiguous exclusive get-user-env help hold ignore-pbs nice no-kill no-requeue overcommit
    oversubscribe parsable propagate quiet reboot requeue share spread-job stepmgr test-only usage
    use-min-nodes verbose version wait
    """.split()  # noqa: SIM905  a table of words
)
"""Options of sbatch that take no value, or only one behind ``=``."""

_SLURM_SWITCHES = frozenset("hHIkOQsvVW")
_SLURM_LETTERS = frozenset("aAbBCcDdeFGiJLlmMnNopPqSTtwx")
_PBS_SWITCHES = frozenset("fhIVXz")
_PBS_LETTERS = frozenset("aAbcCdDejJkKlLmMnNopPqrRSTtuvwW")


class ScriptError(ValueError):
    """Raised for a script that its resource manager would refuse; the message names the line."""

    exit_code = ExitCode.USAGE


class Word(NamedTuple):
    """A word of a script, and the number of its line."""

    text: str
    line: int


Notice = Callable[[str], None]
"""Function that takes a sentence about what in a script is not understood."""


def _unheard(_sentence: str) -> None:
    """Drop a sentence."""


def request_in(script: str, notice: Notice = _unheard, *, prefix: str = _PBS) -> dict[str, Any]:
    """Return the fields of a submission that a script contains.

    For example, ``#SBATCH -t 2:00:00 -n 8`` gives a requested walltime of 7,200 s on 8 processors.
    What is not understood is left out, and ``notice`` is called with a sentence about it.

    Args:
        prefix: begins the lines for qsub, as its ``-C`` says; with an empty one there are none.

    Raises:
        ScriptError: the walltime of a line is none.
    """
    components = _slurm_components(script, notice)
    if any(components):
        return _together([*map(from_slurm, components)])
    return from_pbs(_pbs_words(script, prefix, notice), notice)


def options_of_slurm(script: str) -> dict[str, str]:
    """Return the options of sbatch in a script by long names; of the first of components."""
    return _slurm_components(script, _unheard)[0]


def options_of_pbs(script: str, prefix: str) -> dict[str, str]:
    """Return the resources that a script asks qsub for."""
    options = dict(_pbs_options(_pbs_words(script, prefix, _unheard), _unheard))
    return dict(_resources(options.get("l", "")))


def gpus_of_options(options: Mapping[str, str]) -> int:
    """Return the GPUs of all nodes that options of sbatch ask for."""
    return _gpus(options, _nodes(options))


def _lines(script: str) -> list[str]:
    return script.removeprefix("\ufeff").splitlines()[:LONGEST]


def _slurm_components(script: str, notice: Notice) -> list[dict[str, str]]:
    parts = _components(_words(_lines(script), _SBATCH, notice))
    return [slurm_options(part, notice) for part in parts]


def _pbs_words(script: str, prefix: str, notice: Notice) -> list[Word]:
    return _words((line.strip() for line in _lines(script)), prefix, notice)


def _words(lines: Iterable[str], mark: str, notice: Notice) -> list[Word]:
    """Return the words behind ``mark`` up to the first command, as resource managers read them.

    Slurm passes over a mark that is indented.
    """
    words: list[Word] = []
    for number, line in enumerate(lines, 1):
        bare = line.strip()
        is_directive = bool(mark) and line.startswith(mark)
        if bare and not bare.startswith("#") and not is_directive:
            break
        if is_directive:
            try:
                texts = _split(bare.removeprefix(mark), mark)
            except ValueError:
                notice(f"line {number}: a quote is not closed; the line is left out")
                continue
            words += [Word(text, number) for text in texts]
    return words


def _split(text: str, mark: str) -> list[str]:
    """Return the words of a line up to a comment, which begins a word under PBS.

    A backslash at the end of the line, as of shells, does nothing.

    Raises:
        ValueError: a quote is not closed.
    """
    text = text.rstrip("\\")
    if mark == _SBATCH:
        return shlex.split(text, comments=True)
    try:
        words = shlex.split(text)
    except ValueError:
        words = shlex.split(re.split(r"\s#", text)[0])
    return list(takewhile(lambda word: not word.startswith("#"), words))


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
            requested_nodes=sum(each.get("requested_nodes", 1) for each in requests),
            requested_memory=sum(memory) / sum(processors) if all(memory) else None,
        ),
    }


def slurm_options(words: Sequence[Word], notice: Notice = _unheard) -> dict[str, str]:
    """Return the options of sbatch by their long names; the last of repeated ones counts.

    Raises:
        ScriptError: the walltime is none.
    """
    found = dict(_slurm_options(words, notice))
    if time := found.get("time"):
        _check_walltime(time)
    for name in _COUNTS & found.keys():
        if not _first_count(found[name].text):
            text, line = found.pop(name)
            notice(f"line {line}: --{name}={text[:40]} is no number and is left out")
    return {name: value.text for name, value in found.items()}


_COUNTS = frozenset(
    {"ntasks", "nodes", "cpus-per-task", "ntasks-per-node", "ntasks-per-gpu", "cpus-per-gpu"}
)
_FIRST_COUNT = re.compile(r"(\d{1,10})([kKmM]?)(?![\w.])")


def _first_count(written: str) -> int | None:
    """Return the first number of ``4``, ``2-8`` or ``1k``, as sbatch writes numbers of nodes."""
    found = _FIRST_COUNT.match(written)
    return count(int(found[1]) * {"k": 1024, "m": 1 << 20}.get(found[2].lower(), 1) if found else 0)


def _slurm_options(words: Sequence[Word], notice: Notice) -> Iterator[tuple[str, Word]]:
    """Yield options by their long names, of which every unique beginning is understood."""
    rest = iter(words)
    for word, line in rest:
        nothing = Word("", line)
        if word.startswith("--"):
            written, equals, value = word[2:].partition("=")
            name = _long_name(written)
            if name is None:
                notice(f"line {line}: --{written} is no option of sbatch that is known here")
                continue
            is_whole = equals or name in _SWITCHES
            yield (
                _OTHER_NAMES.get(name, name),
                Word(value, line) if is_whole else next(rest, nothing),
            )
        elif word.startswith("-") and len(word) > 1:
            yield from _short_option(word[1:], line, rest, notice)
        else:
            notice(f"line {line}: {word[:40]!r} belongs to no option")


def _long_name(written: str) -> str | None:
    """Return the option of sbatch that a beginning means; None for none or several.

    Of several the only one that matters here counts: releases differ in the others.
    """
    known = _WITH_VALUE | _SWITCHES
    if written in known:
        return written
    fitting = [name for name in known if written and name.startswith(written)]
    important = [name for name in fitting if name in SLURM_OPTIONS.values()]
    chosen = important or fitting
    return chosen[0] if len(chosen) == 1 else None


def _short_option(
    letters: str, line: int, rest: Iterator[Word], notice: Notice
) -> Iterator[tuple[str, Word]]:
    """Yield the option of a letter; switches may stand before it in one word."""
    while letters and letters[0] in _SLURM_SWITCHES:
        letters = letters[1:]
    if not letters:
        return
    if letters[0] not in _SLURM_LETTERS:
        notice(f"line {line}: -{letters[0]} is no option of sbatch that is known here")
        return
    value = letters[1:].removeprefix("=")
    letter = letters[0]
    name = SLURM_OPTIONS.get(letter) or _FACT_OPTIONS.get(letter, letter)
    yield name, Word(value, line) if value else next(rest, Word("", line))


def _check_walltime(time: Word) -> None:
    """Refuse a walltime that sbatch would refuse."""
    if time.text and time.text.upper() not in _NO_LIMIT and not slurm_walltime(time.text):
        raise ScriptError(f"--time={time.text} in line {time.line} is no walltime such as 6:00:00.")


_OTHER_NAMES = {"tasks-per-node": "ntasks-per-node"}


def from_slurm(options: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a submission from sbatch's options."""
    nodes = _nodes(options)
    gpus = _gpus(options, nodes)
    tasks = count(options.get("ntasks")) or (
        gpus * (count(options.get("ntasks-per-gpu")) or 0)
        or nodes * (count(options.get("ntasks-per-node")) or 1)
    )
    if per_gpu := count(options.get("cpus-per-gpu")):
        processors = max(tasks, gpus * per_gpu)
    else:
        processors = tasks * (count(options.get("cpus-per-task")) or 1)
    memory = kibibytes(options.get("mem-per-cpu"), unit="m")
    if memory is None and (per_node := kibibytes(options.get("mem"), unit="m")):
        memory = per_node * nodes / processors
    return _given(
        requested_walltime=slurm_walltime(options["time"]) if options.get("time") else None,
        requested_processors=processors,
        requested_nodes=nodes if nodes > 1 else None,
        exclusive=options.get("exclusive") == "",
        threads_per_core=_threads(options),
        requested_memory=memory,
        queue=options.get("partition", "").partition(",")[0],
        project=options.get("account"),
        application=options.get("job-name"),
    )


def _nodes(options: Mapping[str, str]) -> int:
    """Return the least number of nodes, also by the tasks that fit on each."""
    tasks, per_node = count(options.get("ntasks")), count(options.get("ntasks-per-node"))
    by_tasks = -(-tasks // per_node) if tasks and per_node else 1
    return max(_first_count(options.get("nodes", "")) or 1, by_tasks)


def _threads(options: Mapping[str, str]) -> int | None:
    """Return the processors of each core that are used; None for all of them."""
    if options.get("hint") == "nomultithread":
        return 1
    tasks = count(options.get("ntasks-per-core"))
    by_tasks = tasks * (count(options.get("cpus-per-task")) or 1) if tasks else None
    return count(options.get("threads-per-core")) or by_tasks


def _gpus(options: Mapping[str, str], nodes: int) -> int:
    """Return the GPUs of all nodes, such as ``a100:2`` on each."""
    kinds = options.get("gres", "").removeprefix("gres/").split(",")
    gres = [kind for kind in kinds if kind.startswith("gpu:")]
    ways = (
        (options.get("gpus", ""), 1),
        (options.get("gpus-per-node", ""), nodes),
        (options.get("gpus-per-task", ""), count(options.get("ntasks")) or nodes),
        (",".join(gres), nodes),
    )
    return max(_sum_of_kinds(written) * times for written, times in ways)


def _sum_of_kinds(written: str) -> int:
    """Return the number in ``2``, ``a100:2`` or ``a100:2,v100:1``."""
    return sum(count(part.rpartition(":")[2]) or 0 for part in written.split(","))


def from_pbs(words: Sequence[Word], notice: Notice = _unheard) -> dict[str, Any]:
    """Return the fields of a submission from qsub's options."""
    options = dict(_pbs_options(words, notice))
    resources = dict(_resources(options.get("l", "")))
    processors, chunked = _chunks(resources.get("select", ""))
    counts = (cores_of(resources.get("nodes")), *map(count, map(resources.get, ("procs", "ncpus"))))
    processors = processors or max(each or 1 for each in counts)
    memory = chunked or kibibytes(resources.get("mem"), unit="")
    return _given(
        requested_walltime=clock(resources.get("walltime") or resources.get("max_walltime")),
        requested_processors=processors,
        requested_memory=memory / processors if memory else None,
        queue=options.get("q", "").partition("@")[0],
        project=options.get("P") or options.get("A"),
        application=options.get("N"),
    )


def _pbs_options(words: Sequence[Word], notice: Notice) -> Iterator[tuple[str, str]]:
    """Yield options of one letter; all ``-l`` options come as one. No value is in another line."""
    limits: list[str] = []
    for line, group in groupby(words, key=lambda word: word.line):
        rest = iter([word.text for word in group])
        for word in rest:
            letters = word[1:].lstrip("".join(_PBS_SWITCHES)) if word.startswith("-") else ""
            if not letters:
                if not word.startswith("-") or word == "-":
                    notice(f"line {line}: {word[:40]!r} belongs to no option")
                continue
            if letters[0] not in _PBS_LETTERS:
                notice(f"line {line}: -{letters[0]} is no option of qsub that is known here")
                continue
            value = letters[1:] or next(rest, "")
            if letters[0] == "l":
                _check_resources(value, line, notice)
                limits.append(value)
            elif letters[0] == "C":
                notice(f"line {line}: qsub takes -C from its command line alone, and so does ask")
            elif not value:
                notice(f"line {line}: -{letters[0]} has no value")
            else:
                yield letters[0], value
    yield "l", ",".join(limits)


_NO_COUNT = re.compile(r"(?:ppn|ncpus|procs)=(?!\d)[^:+,]*")


def _check_resources(limits: str, line: int, notice: Notice) -> None:
    """Refuse a walltime that qsub would refuse, and name numbers of cores that are none.

    Raises:
        ScriptError: the walltime is none.
    """
    walltime = dict(_resources(limits)).get("walltime")
    if walltime is not None and clock(walltime) is None:
        raise ScriptError(
            f"-l walltime={walltime[:40]} in line {line} is no walltime such as 06:00:00."
        )
    for written in _NO_COUNT.findall(limits):
        notice(f"line {line}: {written[:40]} is no number and counts as 1")


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
