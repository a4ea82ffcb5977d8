"""How each method did from day to day, and for which jobs; what the page draws over time.

A row is of one day, method, queue, group and class of processors, so that any of them can be
looked at alone. A day is that on which jobs ended, in UTC.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, delete, func, literal, select

from predictors.jobs import Submission
from service.store.batches import BatchStatement
from service.store.tables import daily_scores as table
from service.store.types import DailyScore

DAY_SECONDS = 86400.0

SIZES = ((1, "1"), (8, "2-8"), (32, "9-32"), (128, "33-128"), (512, "129-512"))
"""Classes of processors by their largest number."""

LARGEST = "513 or more"

Side = Literal["all", "day", "queue", "group", "size"]
"""What jobs are told apart by."""

_SIDES: Mapping[Side, ColumnElement[Any]] = {
    "all": literal("all"),
    "day": table.c.day,
    "queue": table.c.queue,
    "group": table.c.group_name,
    "size": table.c.size,
}


class JobKind(Struct, frozen=True, order=True):
    """The jobs of one row, of whatever method."""

    cluster: str
    day: int
    queue: str
    group: str
    size: str


def kind_of(job: Submission, end_time: float) -> JobKind:
    """The row that a job belongs to which ended at ``end_time``."""
    return JobKind(
        job.cluster,
        int(end_time // DAY_SECONDS),
        job.queue or "",
        job.group or "",
        size_of(job.requested_processors),
    )


def size_of(processors: int | None) -> str:
    """The class of a number of processors; empty if the number is unknown."""
    if processors is None:
        return ""
    return next((name for most, name in SIZES if processors <= most), LARGEST)


class Sums(Struct):
    """Over the scored jobs of one kind and method; its fields are columns of the table."""

    jobs: int = 0
    absolute_error: float = 0.0
    underestimated: int = 0
    accuracy: float = 0.0
    intervals: int = 0
    covered: int = 0
    asked_coverage: float = 0.0

    def add(self, predicted: float, runtime: float) -> None:
        """Compare one prediction with the truth, both in seconds."""
        self.jobs += 1
        self.absolute_error += abs(predicted - runtime)
        self.underestimated += predicted < runtime
        self.accuracy += accuracy(predicted, runtime)

    def add_interval(self, lower: float, upper: float, asked: float, runtime: float) -> None:
        """Compare one interval, which was to hold the share ``asked`` of jobs, with the truth."""
        self.intervals += 1
        self.covered += lower <= runtime <= upper
        self.asked_coverage += asked


def accuracy(predicted: float, runtime: float) -> float:
    """How near a prediction came, from 0 to 1 (Tang et al. 2013, Eq 3)."""
    return max(0.0, min(predicted, runtime)) / max(predicted, runtime)


_KEY = {
    "cluster": "text",
    "day": "int8",
    "method": "text",
    "queue": "text",
    "group_name": "text",
    "size": "text",
}
SUMS = {
    "jobs": "int8",
    "absolute_error": "float8",
    "underestimated": "int8",
    "accuracy": "float8",
    "intervals": "int8",
    "covered": "int8",
    "asked_coverage": "float8",
}
_ADD = BatchStatement(
    {**_KEY, **SUMS},
    f"""INSERT INTO daily_scores ({", ".join((*_KEY, *SUMS))})
    {{incoming}} SELECT {", ".join((*_KEY, *SUMS))} FROM incoming WHERE true
    ON CONFLICT ({", ".join(_KEY)}) DO UPDATE SET
    {", ".join(f"{name} = daily_scores.{name} + excluded.{name}" for name in SUMS)}""",  # noqa: S608 - of constants
)


def add(connection: Connection, sums: Mapping[tuple[JobKind, str], Sums]) -> None:
    """Add sums by the kind of jobs and the method, in one order everywhere, as locks need it."""
    rows = [
        (kind.cluster, kind.day, method, kind.queue, kind.group, kind.size, *_values(sums[key]))
        for key in sorted(sums)
        for kind, method in [key]
    ]
    _ADD.execute(connection, rows)


def _values(sums: Sums) -> Iterable[float]:
    return (getattr(sums, name) for name in SUMS)


def read(connection: Connection, cluster: str, side: Side, *, since: int) -> list[DailyScore]:
    """How each method did on a cluster's jobs that ended on day ``since`` or later, by one side."""
    column = _SIDES[side]
    totals = [func.sum(table.c[name]).label(name) for name in SUMS]
    wanted = (
        select(column.label("label"), table.c.method, *totals)
        .where(table.c.cluster == cluster, table.c.day >= since)
        .group_by("label", table.c.method)
        .order_by("label", table.c.method)
    )
    return [
        _score(row["label"], row["method"], _Totals(*(float(row[name]) for name in SUMS)))
        for row in connection.execute(wanted).mappings()
    ]


class _Totals(Struct):
    """Sums as the database gives them: counts are whole, and no integers on every database."""

    jobs: float
    absolute_error: float
    underestimated: float
    accuracy: float
    intervals: float
    covered: float
    asked_coverage: float


def _score(label: int | str, method: str, sums: _Totals) -> DailyScore:
    jobs, intervals = sums.jobs, sums.intervals
    return DailyScore(
        label=label,
        method=method,
        jobs=int(jobs),
        mean_absolute_error=sums.absolute_error / jobs,
        underestimation_rate=sums.underestimated / jobs,
        accuracy=sums.accuracy / jobs,
        intervals=int(intervals),
        coverage=sums.covered / intervals if intervals else None,
        asked_coverage=sums.asked_coverage / intervals if intervals else None,
    )


def last_day(connection: Connection, cluster: str) -> int | None:
    """The newest day of a cluster; None before its first scored job."""
    return connection.execute(
        select(func.max(table.c.day)).where(table.c.cluster == cluster)
    ).scalar()


def drop(connection: Connection, before: int) -> int:
    """Forget the days before day ``before``; returns how many rows."""
    return connection.execute(delete(table).where(table.c.day < before)).rowcount
