"""Lines for qsub in a job script: the fields of a submission that they ask for."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from service.adapters.pbs import cores_of
from service.adapters.script_words import (
    Notice,
    ScriptError,
    Word,
    given,
    lines_of_script,
    unheard,
    words_behind,
)
from service.adapters.values import count, kibibytes
from terminal.words import clock

_PBS_SWITCHES = frozenset("fhIVXz")
_PBS_LETTERS = frozenset("aAbcCdDejJkKlLmMnNopPqrRSTtuvwW")
_CHUNK = re.compile(r"(\d+)?:?(.*)")


def options_of_pbs(script: str, prefix: str) -> dict[str, str]:
    """Return the resources that a script asks qsub for."""
    options = dict(_pbs_options(pbs_words(script, prefix, unheard), unheard))
    return dict(_resources(options.get("l", "")))


def pbs_words(script: str, prefix: str, notice: Notice) -> list[Word]:
    """Return the words of the lines for qsub."""
    return words_behind(prefix, (line.strip() for line in lines_of_script(script)), notice)


def from_pbs(words: Sequence[Word], notice: Notice = unheard) -> dict[str, Any]:
    """Return the fields of a submission from qsub's options."""
    options = dict(_pbs_options(words, notice))
    resources = dict(_resources(options.get("l", "")))
    processors, chunked = _chunks(resources.get("select", ""))
    counts = (cores_of(resources.get("nodes")), *map(count, map(resources.get, ("procs", "ncpus"))))
    processors = processors or max(each or 1 for each in counts)
    memory = chunked or kibibytes(resources.get("mem"), unit="")
    return given(
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
