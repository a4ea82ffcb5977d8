"""The write transaction: record predictions, match, append and score completions."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from math import inf
from operator import itemgetter

import msgspec
from sqlalchemy import Connection, delete, func, select

from predictors.facts import merged
from predictors.jobs import Completion
from service.store.database import RefusedRecordError
from service.store.matching import Match, OpenPrediction, find_matches, find_named
from service.store.packed_facts import unpacked
from service.store.rows import (
    COMPLETION,
    PREDICTION,
    BatchStatement,
    Ingested,
    RecordedPrediction,
    ReportedCompletion,
    RowBatch,
    completion_row,
    prediction_row,
)
from service.store.scores import score
from service.store.tables import erasures
from service.store.tables import predictions as table

Groups = Sequence[Sequence[ReportedCompletion]]


def _insert(table: str, columns: Mapping[str, str]) -> BatchStatement:
    names = ", ".join(columns)
    rows = f"{{incoming}} SELECT {names} FROM incoming WHERE true"  # noqa: S608 - of names
    return BatchStatement(columns, f"INSERT INTO {table} ({names}) {rows} ON CONFLICT DO NOTHING")


_RECORD = _insert("predictions", PREDICTION)
_APPEND = _insert("completions", {"seq": "int8", **COMPLETION})
_PRESENT = BatchStatement(
    {"seq": "int8"},
    "{incoming} SELECT c.seq FROM incoming AS i JOIN completions AS c ON c.seq = i.seq",
)
_STORED = BatchStatement(
    {"cluster": "text", "job_id": "text", "start_time": "float8"},
    """{incoming} SELECT c.cluster, c.job_id, c.start_time
    FROM incoming AS i CROSS JOIN completions AS c
    WHERE c.cluster = i.cluster AND c.job_id = i.job_id AND c.start_time = i.start_time""",
)
_STARTED = BatchStatement(
    {"cluster": "text", "job_id": "text", "start_time": "float8"},
    """{incoming} SELECT s.cluster, s.job_id, s.start_time, s.requested_walltime
    FROM incoming AS i CROSS JOIN starts AS s
    WHERE s.cluster = i.cluster AND s.job_id = i.job_id AND s.start_time = i.start_time""",
)
_RECORDED_AT_ONCE = 128
LEAST_EXTENSION = 60.0
"""Seconds by which a limit at the end is longer than the request of a job that was extended."""

ERASURE_SECONDS = 1.0
"""Largest difference of two machines' clocks, and of a prediction's answer and record."""
_LAST_PLACE = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'completions'"
_NEXT_PLACES = "SELECT nextval('completions_seq') FROM generate_series(1, %s)"
_RUN = itemgetter(1, 2, 12)  # cluster, job id and start time in a row of _APPEND


def write(
    connection: Connection, groups: Groups, predictions: Sequence[RecordedPrediction]
) -> list[Ingested]:
    """Write predictions and completions within the transaction of ``connection``."""
    _record(connection, predictions)
    _drop_erased(connection, predictions)
    owners, reported = _first_reports(groups)
    if not reported:
        return [Ingested(accepted=0, duplicates=0) for _ in groups]
    matches = _matches(connection, reported)
    recorded = list(_recorded(connection, reported, matches))
    others = compress(reported, (known is None for known in recorded))
    limits = _first_limits(connection, [item.completion for item in others])
    pairs = zip(reported, recorded, strict=True)
    accepted = _append(connection, [_as_submitted(*pair, limits) for pair in pairs])
    ended = compress(zip(matches, reported, strict=True), accepted)
    score(connection, [(match, item.completion) for match, item in ended if match])
    new = Counter(compress(owners, accepted))
    return [
        Ingested(accepted=new[index], duplicates=len(group) - new[index])
        for index, group in enumerate(groups)
    ]


def _record(connection: Connection, predictions: Sequence[RecordedPrediction]) -> None:
    """Store predictions in parts: converting thousands at once would delay the event loop."""
    for start in range(0, len(predictions), _RECORDED_AT_ONCE):
        some = predictions[start : start + _RECORDED_AT_ONCE]
        _RECORD.execute(connection, [prediction_row(prediction) for prediction in some])


def _drop_erased(connection: Connection, predictions: Sequence[RecordedPrediction]) -> None:
    """Delete predictions that waited to be stored while a part of the history was erased.

    The erased user is noted nowhere, so the predictions of all users from one second are deleted.
    Predictions that were certainly answered after an erasure are kept, even if a clock was set back
    since. This step comes after storing, so that a concurrent erasure deletes the rows or is seen
    here.
    """
    numbers = {prediction.erasure for prediction in predictions}
    erased = {number: _erased_after(connection, number) for number in numbers}
    waited = [
        prediction.prediction_id
        for prediction in predictions
        if prediction.recorded_at <= erased[prediction.erasure] + ERASURE_SECONDS
    ]
    if waited:
        connection.execute(delete(table).where(table.c.prediction_id.in_(waited)))


def _erased_after(connection: Connection, erasure: int) -> float:
    """Return the latest time of the erasures after this one; -inf if there are none."""
    later = select(func.max(erasures.c.erased_at)).where(erasures.c.erasure > erasure)
    erased_at: float | None = connection.execute(later).scalar()
    return -inf if erased_at is None else erased_at


def _first_reports(groups: Groups) -> tuple[list[int], list[ReportedCompletion]]:
    """Return the index of the group, and the report, of the first report of every run."""
    first: dict[tuple[str, str, float], tuple[int, ReportedCompletion]] = {}
    for index, group in enumerate(groups):
        for item in group:
            first.setdefault(_run_of(item.completion), (index, item))
    return [index for index, _ in first.values()], [item for _, item in first.values()]


def _matches(
    connection: Connection, reported: Sequence[ReportedCompletion]
) -> Sequence[Match | None]:
    """Return the recorded prediction of each run.

    Of several runs of one job, stored ones are skipped: they would take the prediction of the new
    one.
    """
    runs = [_run_of(item.completion) for item in reported]
    if len({run[:2] for run in runs}) == len(runs):
        return find_matches(connection, reported)
    stored = set(_STORED.fetch(connection, runs))
    new = [place for place, run in enumerate(runs) if run not in stored]
    found = find_matches(connection, [reported[place] for place in new])
    by_place = dict(zip(new, found, strict=True))
    return [by_place.get(place) for place in range(len(runs))]


def _recorded(
    connection: Connection,
    reported: Sequence[ReportedCompletion],
    matches: Sequence[Match | None],
) -> Iterator[OpenPrediction | None]:
    """Yield what was recorded at each run's submission: its match, else what it names."""
    unmatched = compress(reported, (match is None for match in matches))
    named = iter(find_named(connection, list(unmatched)))
    return (next(named) if match is None else match.prediction for match in matches)


def _run_of(run: Completion) -> tuple[str, str, float]:
    job = run.submission
    if job.job_id is None:
        raise RefusedRecordError("A completion cannot be stored without its job id.")
    return job.cluster, job.job_id, run.start_time


def _as_submitted(
    item: ReportedCompletion,
    recorded: OpenPrediction | None,
    first_limits: Mapping[tuple[str, str, float], float],
) -> Completion:
    """Return the run with what was recorded at its submission: walltime, memory and facts.

    Resource managers report the limit at the end, after extensions, and for a job without a request
    for memory the default of its queue or node. Of facts they know some, and in other words. Of a
    run without a recorded prediction the limit counts with which it was first seen to run.
    """
    run, job = item.completion, item.completion.submission
    limit = job.requested_walltime
    if recorded is not None:
        job = msgspec.structs.replace(
            job,
            requested_walltime=recorded.requested_walltime,
            requested_memory=recorded.requested_memory,
            facts=merged(unpacked(recorded.facts), job.facts),
        )
    elif limit >= (first := first_limits.get(_run_of(run), limit)) + LEAST_EXTENSION:
        job = msgspec.structs.replace(job, requested_walltime=first)
    if job is run.submission:
        return run
    is_extended = limit >= job.requested_walltime + LEAST_EXTENSION
    return msgspec.structs.replace(run, submission=job, extended_to=limit if is_extended else None)


def _first_limits(
    connection: Connection, runs: Sequence[Completion]
) -> dict[tuple[str, str, float], float]:
    """Return the limits with which runs were first seen, by cluster, job id and start time."""
    rows = _STARTED.fetch(connection, [_run_of(run) for run in runs]) if runs else []
    return {(cluster, job, start): limit for cluster, job, start, limit in rows}


def _append(connection: Connection, runs: Sequence[Completion]) -> list[bool]:
    """Add runs to the log; return for each whether it was new."""
    places = _places(connection, len(runs))
    rows: RowBatch = [(seq, *completion_row(run)) for seq, run in zip(places, runs, strict=True)]
    if _APPEND.execute(connection, _ordered(connection, rows)) == len(rows):
        return [True] * len(rows)
    present = {seq for (seq,) in _PRESENT.fetch(connection, [(seq,) for seq in places])}
    return [seq in present for seq in places]


def _places(connection: Connection, count: int) -> Sequence[int]:
    """Reserve growing sequence numbers."""
    if connection.dialect.name == "sqlite":
        last = connection.exec_driver_sql(_LAST_PLACE).scalar_one()
        return range(last + 1, last + 1 + count)
    return connection.exec_driver_sql(_NEXT_PLACES, (count,)).scalars().all()


def _ordered(connection: Connection, rows: RowBatch) -> RowBatch:
    """Return the rows in an order that all workers share, so that no two wait for each other.

    SQLite has one writer at a time, and is faster in log order.
    """
    if connection.dialect.name == "sqlite":
        return rows
    return sorted(rows, key=_RUN)
