"""Records of the store, their conversion to rows, and SQL statements over batches of rows.

Python's database drivers release the interpreter lock once per call. Their ``executemany`` does so
for every row, and has to win the lock back from a busy event loop each time: 2,000 rows a second
instead of 40,000, measured with SQLite. A statement here takes some hundred rows per call.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import BigInteger, Connection, CursorResult, Double, LargeBinary, Table, Text
from sqlalchemy.types import TypeEngine

from predictors.jobs import Basis, Completion, Interval, Status, Submission
from service.store.packed_facts import packed, unpacked
from service.store.tables import completions, predictions

RowBatch = Sequence[tuple[Any, ...]]

# Large enough to share the cost of a call, small enough to hold the lock for a millisecond at most.
_ROWS_AT_ONCE = 512


_TYPES: Mapping[type[TypeEngine[Any]], str] = {
    Text: "text",
    Double: "float8",
    BigInteger: "int8",
    LargeBinary: "bytea",
}


def columns_of(table: Table, *, but: Collection[str] = ()) -> dict[str, str]:
    """Return PostgreSQL's type of each column of a table, without the columns named in ``but``."""
    return {
        column.name: _TYPES[type(column.type)] for column in table.columns if column.name not in but
    }


class BatchStatement:
    """A statement that sees a batch of rows as the table ``incoming``.

    Args:
        columns: PostgreSQL's type by name, for each column of ``incoming``.
        sql: the statement, without parameters of its own; `{incoming}` stands where its WITH
            clause goes. Drivers count changed rows of statements that begin with INSERT only.
    """

    def __init__(self, columns: Mapping[str, str], sql: str) -> None:
        self._names = ", ".join(columns)
        self._types = tuple(columns.values())
        self._sql = sql
        self._texts: dict[tuple[str, int], str] = {}

    def execute(self, connection: Connection, rows: RowBatch) -> int:
        """Run the statement over ``rows``; return the number of changed rows."""
        return sum(result.rowcount for result in self._run(connection, rows))

    def fetch(self, connection: Connection, rows: RowBatch) -> list[tuple[Any, ...]]:
        """Run the statement over ``rows``; return the rows of its result."""
        results = self._run(connection, rows)
        return [tuple(row) for result in results for row in result.fetchall()]

    def _run(self, connection: Connection, rows: RowBatch) -> Iterator[CursorResult[Any]]:
        form = _FORMS[connection.dialect.name]
        for part in form.slices(rows):
            key = (connection.dialect.name, form.width(part))
            if key not in self._texts:
                self._texts[key] = self._text(form, part)
            yield connection.exec_driver_sql(self._texts[key], form.parameters(part))

    def _text(self, form: "_Form", part: RowBatch) -> str:
        table = form.table(self._types, len(part))
        return self._sql.format(incoming=f"WITH incoming ({self._names}) AS ({table})")


def adding(table: Table) -> BatchStatement:
    """Return a statement that adds to the sums in the rows of a table, by their primary key."""
    columns, key = columns_of(table), table.primary_key.columns.keys()
    names = ", ".join(columns)
    sums = [name for name in columns if name not in key]
    added = ", ".join(f"{name} = {table.name}.{name} + excluded.{name}" for name in sums)
    return BatchStatement(
        columns,
        f"INSERT INTO {table.name} ({names}) {{incoming}} SELECT {names} FROM incoming WHERE true "  # noqa: S608 - of constants
        f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {added}",
    )


class _Form(Struct, frozen=True):
    """Conversion of rows to the parameters of a database.

    Attributes:
        slices: cuts a batch into the parts of one call each.
        width: number of rows in the text of the statement; 0 if the text fits any number.
        table: returns the table expression over a number of rows.
        parameters: returns one part as the parameters of that expression.
    """

    slices: Callable[[RowBatch], Iterator[RowBatch]]
    width: Callable[[RowBatch], int]
    table: Callable[[Sequence[str], int], str]
    parameters: Callable[[RowBatch], tuple[Any, ...]]


def _slices_of_few_lengths(rows: RowBatch) -> Iterator[RowBatch]:
    """Cut into powers of two, so that SQLite prepares no more than ten statements."""
    start = 0
    while start < len(rows):
        length = min(_ROWS_AT_ONCE, 1 << ((len(rows) - start).bit_length() - 1))
        yield rows[start : start + length]
        start += length


def _values(types: Sequence[str], count: int) -> str:
    row = f"({', '.join('?' * len(types))})"
    return f"VALUES {', '.join([row] * count)}"


def _slices(rows: RowBatch) -> Iterator[RowBatch]:
    return (rows[start : start + _ROWS_AT_ONCE] for start in range(0, len(rows), _ROWS_AT_ONCE))


def _json_array(types: Sequence[str], _: int) -> str:
    fields = ", ".join(
        f"decode(item->>{place}, 'base64')" if name == "bytea" else f"(item->>{place})::{name}"
        for place, name in enumerate(types)
    )
    return f"SELECT {fields} FROM jsonb_array_elements(%s::jsonb) AS item"  # noqa: S608 - of types


# PostgreSQL reads one JSON text three times as fast as psycopg builds arrays of its own.
_FORMS = {
    "sqlite": _Form(_slices_of_few_lengths, len, _values, lambda part: tuple(chain(*part))),
    "postgresql": _Form(
        _slices, lambda _: 0, _json_array, lambda part: (msgspec.json.encode(part).decode(),)
    ),
}


# Column names and PostgreSQL's types, in the order of the rows.
COMPLETION = columns_of(completions, but=("seq", "xid"))
PREDICTION = columns_of(predictions, but=("outcome", "runtime", "ended_at"))

_STATUSES = {status.value: status for status in Status}
_NAMES = {status: name for name, status in _STATUSES.items()}  # faster than their attribute


class ReportedCompletion(Struct, frozen=True, kw_only=True, gc=False):
    """A completion as it was reported.

    Attributes:
        completion: the run; its job id must be known.
        prediction_id: id of the job's prediction, passed through the resource manager.
        replaced_id: id of an earlier prediction, which a second one at the start replaced.
        eligible_time: Unix seconds from which the resource manager could start the job, after
            its begin time and dependencies; None if unknown. It is not stored.
        gpus: number of nodes, and of GPUs on each of them; None if unknown. Not stored, either.
        doubts: contradictions in its record, as text. Not stored, either.
    """

    completion: Completion
    prediction_id: str | None = None
    replaced_id: str | None = None
    eligible_time: float | None = None
    gpus: tuple[int, int] | None = None
    doubts: tuple[str, ...] = ()


class RecordedPrediction(Struct, frozen=True, kw_only=True, gc=False):
    """The predictions for one submission, stored until its job ends.

    Attributes:
        estimates: answers in seconds, by method, with that of ``method``.
        median: of the answer in seconds, where the method gives a distribution.
        interval: of the answer, where the method gives one.
        bounds: ends of intervals in seconds, by method, with that of ``method``.
        coverage: nominal coverage of these intervals.
        underestimation_rate: nominal rate of underestimates; None for the method's own trade-off.
        basis: past runs from which the answer was made.
        erasure: number of the last erasure that certainly came before the answer; 0 for none.
    """

    prediction_id: str
    submission: Submission
    method: str
    predicted_walltime: float
    estimates: dict[str, float]
    median: float | None = None
    interval: Interval | None = None
    bounds: dict[str, tuple[float, float]] = {}
    coverage: float | None = None
    underestimation_rate: float | None = None
    basis: Basis | None = None
    recorded_at: float
    erasure: int = 0


class Ingested(Struct, frozen=True, kw_only=True):
    """Numbers of reported completions that are new, and that the store already has."""

    accepted: int
    duplicates: int

    def __add__(self, other: "Ingested") -> "Ingested":
        """Return the sums of both numbers."""
        return Ingested(
            accepted=self.accepted + other.accepted, duplicates=self.duplicates + other.duplicates
        )


def submission_row(job: Submission) -> tuple[Any, ...]:
    """Return a submission as a row, in the order of the columns."""
    return (
        job.cluster,
        job.job_id,
        job.user,
        job.group,
        job.project,
        job.queue,
        job.application,
        job.requested_walltime,
        job.requested_processors,
        job.requested_memory,
        job.submit_time,
    )


def completion_row(run: Completion) -> tuple[Any, ...]:
    """Return a completion as a row, in the column order COMPLETION."""
    end = (run.start_time, run.end_time, run.runtime, _NAMES[run.status])
    known = (1 if run.interactive else None, run.extended_to, packed(run.submission.facts))
    return (*submission_row(run.submission), *end, *known)


def prediction_row(prediction: RecordedPrediction) -> tuple[Any, ...]:
    """Return a recorded prediction as a row, in the column order PREDICTION."""
    interval = prediction.interval
    return (
        prediction.prediction_id,
        *submission_row(prediction.submission),
        prediction.recorded_at,
        prediction.method,
        prediction.predicted_walltime,
        msgspec.json.encode(prediction.estimates).decode(),
        prediction.median,
        interval.lower if interval else None,
        interval.upper if interval else None,
        msgspec.json.encode(prediction.bounds).decode() if prediction.bounds else None,
        prediction.coverage if prediction.bounds else None,
        prediction.underestimation_rate,
        prediction.basis.jobs if prediction.basis else None,
        prediction.basis.reason if prediction.basis else None,
        packed(prediction.submission.facts),
    )


def decode_estimates(estimates: str) -> dict[str, float]:
    """Return the estimates in seconds by method, from the column ``estimates``."""
    return msgspec.json.decode(estimates, type=dict[str, float])


def decode_bounds(bounds: str | None) -> dict[str, tuple[float, float]]:
    """Return the ends of intervals by method, from the column ``bounds``."""
    return msgspec.json.decode(bounds or "{}", type=dict[str, tuple[float, float]])


def completion_of(row: tuple[Any, ...]) -> Completion:
    """Return a completion from a row in the order COMPLETION; later columns are ignored."""
    return Completion(
        submission=Submission(
            cluster=row[0],
            job_id=row[1],
            user=row[2],
            group=row[3],
            project=row[4],
            queue=row[5],
            application=row[6],
            requested_walltime=row[7],
            requested_processors=row[8],
            requested_memory=row[9],
            submit_time=row[10],
            facts=unpacked(row[17]),
        ),
        start_time=row[11],
        end_time=row[12],
        runtime=row[13],
        status=_STATUSES[row[14]],
        interactive=bool(row[15]),
        extended_to=row[16],
    )
