"""Job scripts of Slurm and PBS: the fields of a submission that their first lines ask for."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from service.adapters.pbs_scripts import from_pbs, pbs_words
from service.adapters.script_words import (
    PBS,
    SBATCH,
    Notice,
    ScriptError,
    Word,
    given,
    lines_of_script,
    unheard,
    words_behind,
)
from service.adapters.values import count, kibibytes
from terminal.words import slurm_walltime

_NO_LIMIT = frozenset({"UNLIMITED", "INFINITE", "0"})
_NEXT_COMPONENT = frozenset({"hetjob", "packjob"})

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


def request_in(script: str, notice: Notice = unheard, *, prefix: str = PBS) -> dict[str, Any]:
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
    return from_pbs(pbs_words(script, prefix, notice), notice)


def options_of_slurm(script: str) -> dict[str, str]:
    """Return the options of sbatch in a script by long names; of the first of components."""
    return _slurm_components(script, unheard)[0]


def gpus_of_options(options: Mapping[str, str]) -> int:
    """Return the GPUs of all nodes that options of sbatch ask for."""
    return _gpus(options, _nodes(options))


def _slurm_components(script: str, notice: Notice) -> list[dict[str, str]]:
    parts = _components(words_behind(SBATCH, lines_of_script(script), notice))
    return [slurm_options(part, notice) for part in parts]


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
        **given(
            requested_walltime=max(limits, default=None),
            requested_processors=sum(processors),
            requested_nodes=sum(each.get("requested_nodes", 1) for each in requests),
            requested_memory=sum(memory) / sum(processors) if all(memory) else None,
        ),
    }


def slurm_options(words: Sequence[Word], notice: Notice = unheard) -> dict[str, str]:
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
    return given(
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
