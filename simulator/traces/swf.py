"""Reads and writes the Standard Workload Format of the Parallel Workloads Archive.

A file is comment lines, which start with ``;`` and hold the header as ``Key: value``, and job
lines of 18 numbers. Reference: S. Chapin et al., "Benchmarks and standards for the evaluation
of parallel job schedulers", JSSPP 1999, and version 2.2 of the format.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO, Literal, Self

import numpy as np
from numpy.typing import NDArray

from predictors.jobs import MOST_PROCESSORS
from simulator.traces.trace import (
    REAL_FIELDS,
    SWF_FIELDS,
    Reals,
    Reject,
    Trace,
    check_rejects,
)
from terminal.exit_codes import ExitCode
from terminal.files import DamagedFileError, LongLineError, read_lines, text_writer

__all__ = [
    "DamagedFileError",
    "LongLineError",
    "MalformedLineError",
    "Reject",
    "Trace",
    "read_swf",
    "write_swf",
]

LARGEST = 1e12
"""Largest number in a trace: a petabyte in KiB."""

FARTHEST = 1e10
"""Largest submit, wait and run time in seconds: 317 years. So every end has a date."""

_HEADER = re.compile(r";(?:\s?(\w+):|\s*([A-Z]\w*):(?=\s))\s*(.*?)\s*$")
_WHOLE = np.array([name not in REAL_FIELDS for name in SWF_FIELDS])
_BOUNDS = [
    FARTHEST
    if name in {"submit", "wait", "run"}
    else float(MOST_PROCESSORS)
    if "processors" in name
    else LARGEST
    for name in SWF_FIELDS
]

MOST_COMMENTS = 10_000
"""Lines; the longest headers of the archive have some hundred."""

_BLOCK, _BLOCK_CHARACTERS = 10_000, 4 << 20
"""Lines and characters that are parsed at once; a malformed line makes only its block slow."""

JobLine = tuple[int, str]


class MalformedLineError(ValueError):
    """A line of a trace is not a job."""

    exit_code = ExitCode.USAGE

    def __init__(self, reject: Reject) -> None:
        super().__init__(f"line {reject.line}: {reject.reason}")
        self.reject = reject

    def __reduce__(self) -> tuple[type[Self], tuple[Reject]]:
        """Return the arguments, so that the exception can be pickled."""
        return type(self), (self.reject,)


def read_swf(
    source: str | Path | BinaryIO,
    *,
    on_error: Literal["raise", "skip"] = "raise",
) -> Trace:
    """Read a trace, plain or compressed with gzip, xz or bzip2.

    Args:
        source: a path, an open binary file or ``-`` (standard input).
        on_error: ``skip`` leaves malformed lines out and lists them in ``rejects``.

    Raises:
        MalformedLineError: a line is not a job; the message says which line and why.
        TooManyRejectsError: more lines than any log has are not jobs.
        LongLineError: a line is longer than 64 KiB.
        DamagedFileError: a compressed file is cut short or corrupt.
        OSError: the file cannot be read.
    """
    comments: list[str] = []
    values, numbers, rejects = _parse(_job_lines(source, comments))
    if rejects and on_error == "raise":
        raise MalformedLineError(rejects[0])
    return Trace(
        **_columns(values),
        line=numbers,
        header=parse_header(comments),
        comments=tuple(comments),
        rejects=tuple(rejects),
    )


def _job_lines(source: str | Path | BinaryIO, comments: list[str]) -> Iterator[JobLine]:
    """Yield lines that are neither blank nor comments, with their numbers; collect comments."""
    for number, content in enumerate(read_lines(source), start=1):
        # An editor under Windows puts a mark before the first line.
        line = content.removeprefix(BOM_UTF8) if number == 1 else content
        text = line.decode("latin-1").lstrip()
        if text.startswith(";"):
            if len(comments) == MOST_COMMENTS:
                raise MalformedLineError(Reject(number, f"is comment {MOST_COMMENTS + 1:,}"))
            comments.append(line.decode("latin-1").rstrip("\r\n"))
        elif text:
            yield number, text


def _parse(jobs: Iterator[JobLine]) -> tuple[NDArray[Any], NDArray[Any], list[Reject]]:
    """Return values and line numbers of the jobs, and the lines that are not jobs."""
    values = [np.empty((0, len(SWF_FIELDS)))]
    numbers: list[int] = []
    rejects: list[Reject] = []
    for block in _blocks(jobs):
        parsed, good = _parse_at_once(block), block
        if parsed is None:
            good, parsed, faults = _parse_one_by_one(block)
            rejects += faults
            check_rejects(rejects)
        values.append(parsed)
        numbers += [number for number, _ in good]
    return np.concatenate(values), np.array(numbers, dtype=np.int64), rejects


def _blocks(jobs: Iterator[JobLine]) -> Iterator[list[JobLine]]:
    """Yield the lines in blocks, each of bounded size."""
    block: list[JobLine] = []
    characters = 0
    for job in jobs:
        block.append(job)
        characters += len(job[1])
        if len(block) == _BLOCK or characters > _BLOCK_CHARACTERS:
            yield block
            block, characters = [], 0
    if block:
        yield block


def _parse_at_once(block: list[JobLine]) -> Reals | None:
    """Parse all lines with numpy's reader, written in C; ``None`` if a line is not a job."""
    try:
        values = np.loadtxt([text for _, text in block], comments=None, ndmin=2)
    except ValueError:
        return None
    if values.shape[1] != len(SWF_FIELDS):
        return None
    small = np.abs(values) <= _BOUNDS  # false for NaN as well
    whole = values[:, _WHOLE] == np.rint(values[:, _WHOLE])
    return values if small.all() and whole.all() else None


def _parse_one_by_one(block: list[JobLine]) -> tuple[list[JobLine], Reals, list[Reject]]:
    """Return the lines that are jobs, their values, and the faults of the other lines."""
    jobs, values, rejects = [], [], []
    for number, text in block:
        try:
            values.append(_parse_line(text))
        except ValueError as fault:
            rejects.append(Reject(number, str(fault)))
        else:
            jobs.append((number, text))
    return jobs, np.array(values).reshape(-1, len(SWF_FIELDS)), rejects


def _parse_line(text: str) -> list[float]:
    words = text.split()
    if len(words) != len(SWF_FIELDS):
        raise ValueError(f"{len(words)} fields instead of {len(SWF_FIELDS)}")
    return [_parse_field(position, word) for position, word in enumerate(words)]


def _parse_field(position: int, word: str) -> float:
    name = SWF_FIELDS[position]
    field = f"field {position + 1} ({name.replace('_', ' ')}), {word[:40]!r}, is"
    try:
        value = float(word.replace("_", "no digit"))  # float() itself would take 1_000
    except ValueError:
        raise ValueError(f"{field} not a number") from None
    if not isfinite(value):
        raise ValueError(f"{field} not finite")
    if abs(value) > _BOUNDS[position]:
        raise ValueError(f"{field} beyond {_BOUNDS[position]:.0e}")
    if name not in REAL_FIELDS and not value.is_integer():
        raise ValueError(f"{field} not a whole number")
    return value


def _columns(values: Reals) -> dict[str, Any]:
    """Return the 18 columns, each contiguous and of its own type."""
    return {
        name: values[:, index].astype(np.float64 if name in REAL_FIELDS else np.int64)
        for index, name in enumerate(SWF_FIELDS)
    }


def parse_header(comments: Sequence[str]) -> dict[str, str]:
    """Parse the ``Key: value`` comments; a line without a key continues the value before it.

    Some logs set all colons below each other. An indented key has a capital, as those of the
    format have, and a space behind its colon: an address has neither.
    """
    header: dict[str, str] = {}
    key = None
    for comment in comments:
        entry = _HEADER.match(comment)
        text = comment.lstrip("; \t").rstrip()
        if entry:
            key, text = entry.group(1) or entry.group(2), entry.group(3)
            header[key] = f"{header[key]}\n{text}" if key in header else text
        elif key and text:
            header[key] += f"\n{text}"
    return header


def write_swf(trace: Trace, path: str | Path) -> None:
    """Write a trace with its comments, compressed by suffix; ``-`` is standard output."""
    columns = [_words(getattr(trace, name)) for name in SWF_FIELDS]
    with text_writer(path) as file:
        file.writelines(f"{comment}\n" for comment in trace.comments)
        file.writelines(" ".join(words) + "\n" for words in zip(*columns, strict=True))


def _words(column: NDArray[Any]) -> list[str]:
    """Return the shortest texts that read back as the same numbers."""
    if column.dtype == np.int64:
        return [str(value) for value in column.tolist()]
    return [str(int(value)) if value.is_integer() else repr(value) for value in column.tolist()]
