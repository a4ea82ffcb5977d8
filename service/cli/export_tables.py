"""Stored runs, with the predictions that they were scored by, as tables."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType

import msgspec

from predictors.facts import FACTS
from predictors.jobs import Completion
from service.store.past_runs import EndedRun
from simulator.traces.job_columns import RUN_TYPES
from terminal.data_table import ROWS_AT_ONCE, DataTable

COUNTS = frozenset({"nodes", "gpus", "array_size"})

FACT_COLUMNS = tuple(name for name in FACTS if name != "interactive")

TYPES: Mapping[str, type] = MappingProxyType(
    {
        "cluster": str,
        **RUN_TYPES,
        "interactive": int,
        **{name: int if name in COUNTS else str for name in FACT_COLUMNS},
        "method": str,
        **dict.fromkeys(("predicted_walltime", "likely", "lower", "upper", "coverage"), float),
        "underestimation_rate": float,
        "basis_jobs": int,
        "basis_reason": str,
    }
)
"""Columns of a run and of the prediction that it was scored by, and their types."""

_OF_THE_RUN = frozenset({"start_time", "end_time", "runtime"})


def tables_of(runs: Iterator[EndedRun]) -> Iterator[DataTable]:
    """Yield the runs as tables, in parts; a single one without rows if there is no run."""
    yield table_of(list(islice(runs, ROWS_AT_ONCE)))
    while part := list(islice(runs, ROWS_AT_ONCE)):
        yield table_of(part)


def table_of(runs: Sequence[EndedRun]) -> DataTable:
    """Return runs as a table."""
    rows = [row_of(each) for each in runs]
    columns = zip(*rows, strict=True) if rows else [()] * len(TYPES)
    return DataTable(TYPES, dict(zip(TYPES, columns, strict=True)))


def row_of(ended: EndedRun) -> tuple[object, ...]:
    """Return a run as a row; unknown values are None."""
    run, prediction = ended.run, ended.prediction
    values = [_value(run, name) for name in ("cluster", *RUN_TYPES)]
    values.append(1 if run.interactive else None)
    values += [_fact(run, name) for name in FACT_COLUMNS]
    if prediction is None:
        return (*values, *[None] * (len(TYPES) - len(values)))
    interval = prediction.interval
    bounds = (interval.lower, interval.upper, interval.coverage) if interval else [None] * 3
    known = prediction.method, prediction.predicted_walltime, prediction.median
    basis = prediction.basis_jobs, prediction.basis_reason
    return (*values, *known, *bounds, prediction.underestimation_rate, *basis)


def _value(run: Completion, name: str) -> object:
    if name == "status":
        return run.status.value
    return getattr(run if name in _OF_THE_RUN else run.submission, name)


def _fact(run: Completion, name: str) -> object:
    """Return a further fact; features as a JSON object."""
    value = getattr(run.submission.facts, name, None)
    return (msgspec.json.encode(value).decode() if value else None) if name == "features" else value
