"""What a new snapshot and its forecast make of a live queue; and its form in the store."""

import zlib
from collections.abc import Mapping, Sequence

import msgspec
import structlog

from service.queues.estimate import Estimate
from service.queues.live_playing import PoolForecast, Times
from service.queues.outlook import Departed, LiveQueue, Outlook, Point, Span
from service.queues.queue_columns import PoolQueue
from service.queues.snapshot import JobState, LiveJob, Pool, QueueSnapshot, Rules
from service.queues.waits import WaitSums
from service.store import WaitScore

log = structlog.get_logger()

FASTEST = 1
"""Of zlib's levels: a queue is written every minute."""

_decode = msgspec.json.Decoder(LiveQueue).decode


def packed(queue: LiveQueue) -> bytes:
    """A queue as it is stored."""
    return zlib.compress(msgspec.json.encode(queue), FASTEST)


def unpacked(content: bytes, cluster: str) -> LiveQueue:
    """A queue as it was stored; an empty one of long ago, if another release wrote it otherwise."""
    try:
        return _decode(zlib.decompress(content))
    except (zlib.error, msgspec.MsgspecError) as error:
        log.warning("a stored queue cannot be read", cluster=cluster, reason=str(error))
        nothing = QueueSnapshot(
            cluster=cluster, taken_at=0.0, rules=Rules(), pools=(Pool(processors=1),), jobs=()
        )
        return LiveQueue(snapshot=nothing, received_at=0.0)


def outlooks_of(
    snapshot: QueueSnapshot,
    estimates: Sequence[Estimate],
    pools: Sequence[PoolQueue],
    forecasts: Sequence[PoolForecast],
    before: Mapping[str, Outlook],
) -> dict[str, Outlook]:
    """What is forecast for each job now, added to what was before."""
    outlooks = {
        job.job_id: _continued(before.get(job.job_id), job, estimate)
        for job, estimate in zip(snapshot.jobs, estimates, strict=True)
    }
    now = snapshot.taken_at
    for pool, made in zip(pools, forecasts, strict=True):
        for row, place in enumerate(pool.running):
            job = snapshot.jobs[place]
            point = Point(
                made_at=now,
                start=job.start_time or now,
                end=now + float(made.running_ends.expected[row]),
                end_span=_span(made.running_ends, row, now, made.coverage),
            )
            outlooks[job.job_id].add(point)
        for row, place in enumerate(pool.waiting):
            outlook = outlooks[snapshot.jobs[place].job_id]
            outlook.position = row + 1
            outlook.add(_waiting_point(made, row, now))
    return outlooks


def _waiting_point(made: PoolForecast, row: int, now: float) -> Point:
    return Point(
        made_at=now,
        start=now + float(made.starts.expected[row]),
        end=now + float(made.ends.expected[row]),
        start_span=_span(made.starts, row, now, made.coverage),
        end_span=_span(made.ends, row, now, made.coverage),
    )


def _continued(before: Outlook | None, job: LiveJob, estimate: Estimate) -> Outlook:
    """The outlook to which the new forecast is added; the one before is left as it is.

    A job that ran and waits again, as one that was requeued, is forecast as if it had just come.
    """
    waits = job.state is not JobState.RUNNING
    if before is not None and waits and not before.waits:
        before = None
    return Outlook(
        predicted=estimate.runtime,
        points=list(before.points) if before else [],
        before=before.before if before else None,
        waits=waits,
    )


def _span(times: Times, row: int, now: float, coverage: float | None) -> Span | None:
    if times.lower is None or times.upper is None or coverage is None:
        return None
    return Span(now + float(times.lower[row]), now + float(times.upper[row]), coverage)


def rows_of(sums: Mapping[tuple[str, str], WaitSums]) -> list[WaitScore]:
    """Sums as the store takes them, in one order."""
    return [
        WaitScore(queue=queue, made=made, **msgspec.structs.asdict(sums[queue, made]))
        for queue, made in sorted(sums)
    ]


def without(departed: Mapping[str, Departed], known: Mapping[str, float]) -> dict[str, Departed]:
    """Those that have left of which no completion has told yet."""
    return {job_id: each for job_id, each in departed.items() if job_id not in known}
