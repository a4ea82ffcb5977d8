"""Tables of predictions: a row for each job and method, with the job as it was logged."""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isnan
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from simulator.replay.trace_replay import LEVELS, Answers, names_of_levels
from simulator.traces.completions import RecordedLog
from simulator.traces.job_columns import JOB_TYPES, log_tables
from terminal.data_table import (
    ARROW_FORMS,
    DataTable,
    Values,
    form_of,
    names_in,
    read_columns,
)
from terminal.exit_codes import ExitCode
from terminal.files import read_lines

PREDICTION_TYPES: Mapping[str, type] = MappingProxyType(
    {
        "method": str,
        "answered_by": str,
        **dict.fromkeys(("predicted_walltime", "likely", "mean_walltime"), float),
        **dict.fromkeys(("lower_90", "upper_90"), float),
        **{name: float for question in LEVELS for name in names_of_levels(question)},
        "basis_jobs": int,
        "basis_reason": str,
    }
)
"""Columns of a prediction, and their types."""

ANSWER_TYPES: Mapping[str, type] = MappingProxyType(
    {
        name: kind
        for name, kind in PREDICTION_TYPES.items()
        if name != "method" and all(name not in names_of_levels(each) for each in LEVELS)
    }
)
"""Columns of what a method answered about a job, and their types."""

TYPES: Mapping[str, type] = MappingProxyType({**JOB_TYPES, **PREDICTION_TYPES})

JOB, METHOD, PREDICTED = "job", "method", "predicted_walltime"

NO_PREDICTION = (None, None, None)

OLD_HEADS = ("job_id", METHOD, "predicted")
"""Heads of files that other programs wrote after those of former releases."""


class PredictionsFileError(ValueError):
    """The file has no predictions, or several methods of which none is named."""

    exit_code = ExitCode.USAGE


def prediction_tables(log: RecordedLog, answers: Mapping[str, Answers]) -> Iterator[DataTable]:
    """Yield the predictions of a replay in parts, job by job in the log's order.

    Args:
        log: the jobs that were played.
        answers: the answers of each method, in the order of the jobs.
    """
    for place, jobs in log_tables(log):
        repeated = {name: _repeated(column, len(answers)) for name, column in jobs.data.items()}
        parts = [_answered(name, each, place) for name, each in answers.items()]
        woven = {name: _woven([part[name] for part in parts]) for name in PREDICTION_TYPES}
        yield DataTable(TYPES, {**repeated, **woven})


def _answered(method: str, answers: Answers, place: slice) -> dict[str, Values]:
    """Return the columns of one method for a part of the log."""
    jobs = len(answers.predicted[place])
    unknown = np.full(jobs, np.nan)
    columns: dict[str, Values] = {"method": [method] * jobs, **answer_columns(answers, place)}
    for question in LEVELS:
        for name in names_of_levels(question):
            level = answers.levels.get(name)
            columns[name] = unknown if level is None else level[place]
    return columns


def answer_columns(answers: Answers, place: slice) -> dict[str, Values]:
    """Return the columns ``ANSWER_TYPES`` of a part of the jobs."""
    bases = answers.basis_jobs[place].tolist()
    return {
        "answered_by": [each or None for each in answers.answered_by[place]],
        "predicted_walltime": answers.predicted[place],
        "likely": answers.likely[place],
        "mean_walltime": answers.mean[place],
        "lower_90": answers.lower[place],
        "upper_90": answers.upper[place],
        "basis_jobs": [None if isnan(each) else int(each) for each in bases],
        "basis_reason": [each or None for each in answers.basis_reason[place]],
    }


def _repeated(column: Values, times: int) -> Values:
    """Return each value ``times`` times."""
    if isinstance(column, np.ndarray):
        return np.repeat(column, times)
    return [value for value in column for _ in range(times)]


def _woven(columns: Sequence[Values]) -> Values:
    """Return the values of columns by turns."""
    if all(isinstance(each, np.ndarray) for each in columns):
        return np.column_stack(columns).ravel()
    return [value for row in zip(*columns, strict=True) for value in row]


def read_predictions(path: str | Path, method: str | None = None) -> Mapping[int, float]:
    """Read predictions in seconds, by the log's number of the job.

    Args:
        path: a file of `walltimed replay --output`, or a table of text with the columns job,
            method and predicted_walltime, or job_id, method and predicted; commas or tabs.
        method: name of the method; None for a file of a single method.

    Raises:
        PredictionsFileError: the file has no predictions, or no method is named of several.
    """
    found: dict[str, dict[int, float]] = {}
    for number, row in enumerate(_rows(path), 2):
        try:
            job, name, seconds = row
            found.setdefault(name, {})[int(job)] = positive(float(seconds))
        except (ValueError, TypeError):
            raise PredictionsFileError(f"{path}, line {number}: no prediction.") from None
    if method is None and len(found) == 1:
        return next(iter(found.values()))
    if method not in found:
        names = ", ".join(sorted(found))
        raise PredictionsFileError(f"{path} has {names or 'nothing'}: say which, as #METHOD.")
    return found[method]


def _rows(path: str | Path) -> Iterable[tuple[Any, Any, Any]]:
    """Yield job, method and prediction of each row of a file."""
    return _arrow_rows(path) if form_of(path) in ARROW_FORMS else _text_rows(path)


def _text_rows(path: str | Path) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the rows of a table of text."""
    lines = (line.decode(errors="replace") for line in read_lines(path))
    first = next(lines, "").rstrip("\r\n")
    separator = "\t" if "\t" in first else ","
    job, method, predicted = _places(path, next(csv.reader([first], delimiter=separator), []))
    rows = csv.reader(lines, delimiter=separator)
    while True:
        try:
            cells = next(rows)
            yield cells[job], cells[method], cells[predicted]
        except StopIteration:
            return
        except (IndexError, csv.Error):
            yield NO_PREDICTION


def _arrow_rows(path: str | Path) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the rows of a file of Parquet or Arrow."""
    names = names_in(path)
    job, method, predicted = (names[place] for place in _places(path, names))
    yield from zip(*read_columns(path, (job, method, predicted)), strict=True)


def _places(path: str | Path, heads: Sequence[str]) -> list[int]:
    """Return the places of job, method and prediction among the heads of a table.

    Raises:
        PredictionsFileError: one of them is not there.
    """
    for wanted in ((JOB, METHOD, PREDICTED), OLD_HEADS):
        if set(wanted) <= set(heads):
            return [list(heads).index(name) for name in wanted]
    raise PredictionsFileError(
        f"{path} does not have the columns {JOB}, {METHOD} and {PREDICTED} of replay --output."
    )


def positive(seconds: float) -> float:
    """Return ``seconds`` if they are positive and finite.

    Raises:
        ValueError: they are not.
    """
    if not 0 < seconds < float("inf"):
        raise ValueError
    return seconds
