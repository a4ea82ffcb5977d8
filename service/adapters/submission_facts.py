"""Read further facts of a submission out of records of resource managers."""

import re
from typing import Any

from predictors.facts import Facts, known, script_hash_of
from service.adapters.values import count, text

LONGEST_LINE = 4096
"""Characters kept of a path or command line."""

_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?")
_CHUNK = re.compile(r"(\d{1,9})(?=:|$)")
_GPUS_OF_CHUNK = re.compile(r":n?gpus=(\d{1,9})")


def reported_facts(  # noqa: PLR0913 - one keyword for each fact
    *,
    work_dir: Any = None,
    script: Any = None,
    submit_line: Any = None,
    qos: Any = None,
    nodes: Any = None,
    gpus: tuple[int | None, str | None] = (None, None),
    array_size: int | None = None,
    constraint: Any = None,
    dependency: Any = None,
    submit_host: Any = None,
) -> Facts | None:
    """Return the facts that a record has, None for none; meaningless values are left out."""
    number, kind = gpus
    return known(
        Facts(
            work_dir=line(work_dir),
            script_hash=script_hash_of(script) if isinstance(script, str) and script else None,
            submit_line=line(submit_line),
            qos=text(qos),
            nodes=count(nodes),
            gpus=number,
            gpu_type=kind,
            array_size=array_size,
            constraint=line(constraint),
            dependency=line(dependency),
            submit_host=text(submit_host),
        )
    )


def line(value: Any) -> str | None:
    """Return a path or command line, cut to ``LONGEST_LINE``; None for none."""
    if text(value) is None:
        return None
    return "".join(c if c.isprintable() else "?" for c in str(value)[:LONGEST_LINE])


def gpus_in(tres: Any) -> tuple[int | None, str | None]:
    """Return number and type of the GPUs in trackable resources of Slurm.

    >>> gpus_in("cpu=4,node=2,gres/gpu=8,gres/gpu:a100=8"), gpus_in("cpu=4")
    ((8, 'a100'), (None, None))
    """
    pairs = [part.partition("=") for part in tres.split(",")] if isinstance(tres, str) else []
    found = {name: number for name, _, value in pairs if (number := count(value)) is not None}
    typed = [name for name in found if name.startswith("gres/gpu:")]
    number = found.get("gres/gpu") or sum(found[name] for name in typed)
    return number or None, typed[0].partition(":")[2] if typed else None


def nodes_in(tres: Any) -> int | None:
    """Return the number of nodes in trackable resources of Slurm."""
    pairs = (part.partition("=") for part in tres.split(",")) if isinstance(tres, str) else ()
    return next((count(value) for name, _, value in pairs if name == "node"), None)


def gpus_of_chunks(select: str | None) -> int | None:
    """Return the GPUs of ``2:ncpus=8:ngpus=2+1:ngpus=1``, or of Torque's ``2:ppn=8:gpus=2``.

    >>> gpus_of_chunks("2:ncpus=8:ngpus=2+1:ngpus=1"), gpus_of_chunks("4:ncpus=1")
    (5, None)
    """
    total = 0
    for chunk in (select or "").split("+"):
        times, each = _CHUNK.match(chunk), _GPUS_OF_CHUNK.search(chunk)
        total += (int(times[1]) if times else 1) * int(each[1]) if each else 0
    return count(total)


def tasks_in(indices: Any) -> int | None:
    """Return the number of tasks of ``1-10:2,15%4``, the indices of an array.

    >>> tasks_in("1-10:2,15%4"), tasks_in(""), tasks_in("x")
    (6, None, None)
    """
    ranges = str(indices or "").partition("%")[0].split(",")
    found = [_RANGE.fullmatch(each) for each in ranges]
    return None if None in found else count(sum(_length(each) for each in found if each))


def _length(indices: re.Match[str]) -> int:
    first, last, step = indices.groups()
    return max(0, (int(last or first) - int(first)) // max(1, int(step or 1)) + 1)
