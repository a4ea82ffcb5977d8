"""Scores of the methods, kept as running sums over the jobs that have ended."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from msgspec.structs import astuple
from sqlalchemy import Connection, select

from predictors.jobs import Completion
from service.store import daily_scores
from service.store.batches import BatchStatement
from service.store.daily_scores import SUMS, JobKind, Sums
from service.store.matching import Match, OpenPrediction
from service.store.rows import bounds_of, seconds_of
from service.store.tables import scores
from service.store.types import MethodScore

_CLOSE = BatchStatement(
    {"prediction_id": "text", "outcome": "text", "runtime": "float8", "ended_at": "float8"},
    """{incoming} UPDATE predictions SET outcome = incoming.outcome, runtime = incoming.runtime,
        ended_at = incoming.ended_at
    FROM incoming WHERE predictions.prediction_id = incoming.prediction_id""",
)
_ADD = BatchStatement(
    {"cluster": "text", "method": "text", **SUMS},
    f"""INSERT INTO scores (cluster, method, {", ".join(SUMS)})
    {{incoming}} SELECT cluster, method, {", ".join(SUMS)} FROM incoming WHERE true
    ON CONFLICT (cluster, method) DO UPDATE SET
    {", ".join(f"{name} = scores.{name} + excluded.{name}" for name in SUMS)}""",  # noqa: S608 - of constants
)


def score(connection: Connection, matches: Iterable[tuple[Match, Completion]]) -> None:
    """Close the predictions of jobs that ended with these runs, and add up how they did."""
    closed: list[tuple[str, str, float | None, float | None]] = []
    sums: dict[tuple[JobKind, str], Sums] = defaultdict(Sums)
    for match, run in matches:
        closed.append((match.prediction.prediction_id, "scored", run.runtime, run.end_time))
        closed.extend((other, "superseded", None, None) for other in match.superseded)
        _compare(match.prediction, run, sums)
    _CLOSE.execute(connection, closed)
    totals = _totals(sums)
    # In one order everywhere, or two workers could wait for each other's rows.
    _ADD.execute(connection, [(*key, *totals[key]) for key in sorted(totals)])
    daily_scores.add(connection, sums)


def _compare(
    prediction: OpenPrediction, run: Completion, sums: dict[tuple[JobKind, str], Sums]
) -> None:
    kind = daily_scores.kind_of(run.submission, run.end_time)
    for method, seconds in seconds_of(prediction.estimates).items():
        sums[kind, method].add(seconds, run.runtime)
    within = min(run.runtime, prediction.requested_walltime)
    for method, (lower, upper) in bounds_of(prediction.bounds).items():
        asked = prediction.coverage or 0.0
        sums[kind, method].add_interval(lower, upper, asked, within)


def _totals(sums: Mapping[tuple[JobKind, str], Sums]) -> dict[tuple[str, str], list[float]]:
    """The same sums by cluster and method alone, in the order of SUMS."""
    totals: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0] * len(SUMS))
    for (kind, method), each in sums.items():
        total = totals[kind.cluster, method]
        for place, value in enumerate(astuple(each)):
            total[place] += value
    return totals


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
