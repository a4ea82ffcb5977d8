"""Scores of the methods, kept as running sums over the jobs that have ended."""

from collections import defaultdict
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import astuple
from sqlalchemy import Connection, select

from predictors.jobs import Completion
from service.store.batches import BatchStatement
from service.store.matching import Match, OpenPrediction
from service.store.rows import bounds_of, seconds_of
from service.store.tables import scores
from service.store.types import MethodScore


class _Sums(Struct):
    """Over the scored jobs of one cluster and method; its fields are columns of the table."""

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

    def add_interval(self, lower: float, upper: float, runtime: float, asked: float) -> None:
        """Compare one interval, of which a coverage was asked, with the truth."""
        self.intervals += 1
        self.covered += lower <= runtime <= upper
        self.asked_coverage += asked


def accuracy(predicted: float, runtime: float) -> float:
    """How near a prediction came, from 0 to 1 (Tang et al. 2013, Eq 3)."""
    return max(0.0, min(predicted, runtime)) / max(predicted, runtime)


_CLOSE = BatchStatement(
    {"prediction_id": "text", "outcome": "text", "runtime": "float8", "ended_at": "float8"},
    """{incoming} UPDATE predictions SET outcome = incoming.outcome, runtime = incoming.runtime,
        ended_at = incoming.ended_at
    FROM incoming WHERE predictions.prediction_id = incoming.prediction_id""",
)
_SUMS = {
    "jobs": "int8",
    "absolute_error": "float8",
    "underestimated": "int8",
    "accuracy": "float8",
    "intervals": "int8",
    "covered": "int8",
    "asked_coverage": "float8",
}
_ADD = BatchStatement(
    {"cluster": "text", "method": "text", **_SUMS},
    f"""INSERT INTO scores (cluster, method, {", ".join(_SUMS)})
    {{incoming}} SELECT cluster, method, {", ".join(_SUMS)} FROM incoming WHERE true
    ON CONFLICT (cluster, method) DO UPDATE SET
    {", ".join(f"{name} = scores.{name} + excluded.{name}" for name in _SUMS)}""",  # noqa: S608 - of constants
)


def score(connection: Connection, matches: Iterable[tuple[Match, Completion]]) -> None:
    """Close the predictions of jobs that ended with these runs, and add up how they did."""
    closed: list[tuple[str, str, float | None, float | None]] = []
    sums: dict[tuple[str, str], _Sums] = defaultdict(_Sums)
    for match, run in matches:
        closed.append((match.prediction.prediction_id, "scored", run.runtime, run.end_time))
        closed.extend((other, "superseded", None, None) for other in match.superseded)
        _compare(match.prediction, run.runtime, sums)
    _CLOSE.execute(connection, closed)
    # In one order everywhere, or two workers could wait for each other's rows.
    _ADD.execute(connection, [(*key, *astuple(sums[key])) for key in sorted(sums)])


def _compare(
    prediction: OpenPrediction, runtime: float, sums: dict[tuple[str, str], _Sums]
) -> None:
    for method, seconds in seconds_of(prediction.estimates).items():
        sums[prediction.cluster, method].add(seconds, runtime)
    within = min(runtime, prediction.requested_walltime)
    for method, (lower, upper) in bounds_of(prediction.bounds).items():
        asked = prediction.coverage or 0.0
        sums[prediction.cluster, method].add_interval(lower, upper, within, asked)


def read_scores(connection: Connection, cluster: str) -> list[MethodScore]:
    """The scores of one cluster, by method."""
    found = connection.execute(
        select(scores).where(scores.c.cluster == cluster).order_by(scores.c.method)
    )
    return [
        MethodScore(
            method=row.method,
            jobs=row.jobs,
            mean_absolute_error=row.absolute_error / row.jobs,
            underestimation_rate=row.underestimated / row.jobs,
            accuracy=row.accuracy / row.jobs,
            coverage=row.covered / row.intervals if row.intervals else None,
            asked_coverage=row.asked_coverage / row.intervals if row.intervals else None,
        )
        for row in found
    ]
