"""Stores what resource managers report: jobs that have ended, and the queue as it is."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from datetime import tzinfo
from io import BytesIO

import structlog
from msgspec.structs import replace

from predictors.jobs import Completion
from service.adapters import pbs, slurm_json
from service.adapters.runs import Reason, SkippedError, UnknownStateError, UnknownTimeError
from service.contract.answers import IngestionAnswer, RecordsAnswer
from service.contract.bodies import CompletionBatch, CompletionBody, check_length
from service.contract.fields import unix_seconds
from service.contract.queue_answers import QueueTakenAnswer
from service.contract.queue_bodies import LiveRunningBody, LiveWaitingBody, QueueBody
from service.errors import InvalidFieldError, SnapshotTooLargeError, TooManyClustersError
from service.live_queue.snapshot import LiveJob, QueueSnapshot
from service.live_queue.taken_processors import QueueNodes, gpu_share, nodes_by_queue, nodes_of
from service.store import (
    Ingested,
    RefusedRecordError,
    ReportedCompletion,
    StoreUnavailableError,
)
from service.worker.started_jobs import known_start
from service.worker.worker import Worker

NOTHING = Ingested(accepted=0, duplicates=0)


class Completing:
    """Stores completions durably, applies them in this process, then answers."""

    def __init__(self, worker: Worker) -> None:
        self._settings = worker.settings
        self._writer = worker.writer
        self._recorder = worker.recorder
        self._follower = worker.follower
        self._pseudonyms = worker.pseudonyms
        self._metrics = worker.metrics
        self._cluster_limit = worker.cluster_limit
        self._queues = worker.queues

    async def complete(self, body: CompletionBody | CompletionBatch) -> IngestionAnswer:
        """Store one or several completions in one transaction.

        Raises:
            InvalidFieldError: a run contradicts itself, or there are too many runs.
            StoreUnavailableError: the same call may succeed later.
            StoreFullError: the database has no room.
        """
        stored = await self.store(self._reports(body))
        await self._follower.catch_up()
        return IngestionAnswer(accepted=stored.accepted, duplicates=stored.duplicates)

    def _reports(self, body: CompletionBody | CompletionBatch) -> list[ReportedCompletion]:
        """Return the completions of a body, if all may be stored."""
        reports = [
            ReportedCompletion(completion=run, prediction_id=prediction_id)
            for run, prediction_id in body.runs()
        ]
        check_length(reports, "completions", self._settings.max_batch)
        for place, report in enumerate(reports):
            several = hasattr(body, "completions")
            self.admit(report, f"completions.{place}.cluster" if several else "cluster")
        return reports

    def admit(self, report: ReportedCompletion, field: str = "cluster") -> None:
        """Admit a completion by its cluster.

        Raises:
            TooManyClustersError: the cluster would exceed the limit.
        """
        try:
            self._cluster_limit.admit(report.completion.submission.cluster, field)
        except TooManyClustersError:
            self._metrics.refused_clusters.inc()
            raise

    async def store(self, reports: list[ReportedCompletion]) -> Ingested:
        """Store completions durably in one transaction, after all predictions recorded so far."""
        if not reports:
            return NOTHING
        self._recorder.flush()
        stored = await self._writer.acknowledged(list(map(self._pseudonyms.report, reports)))
        self._queues.changes.note({each.completion.submission.cluster for each in reports})
        return stored


log = structlog.get_logger()

PATIENCE_SECONDS = 1.0
"""Seconds for which a caller waits until its record is durable. Slurm's plugin has no time limit of
its own, and sends no other record meanwhile."""

GROUP = 1000
"""Number of runs stored in one commit; other commits pass in between."""

LINES_BYTES = 1 << 14
"""Bytes of an accounting log that are read at a time, so that other requests pass in between."""

REFUSED = "the database refuses it"
"""Reason for skipping a record that the database refuses; adapters give all other reasons."""

UNKNOWN_STATE = "runs in a state that this version does not know are left out"
UNKNOWN_TIME = "runs with a time in a form that this version does not know are left out"

MOST_NAMED = 20
"""Largest number of unknown states and fields that are logged: a sender could invent any number."""

RecordResult = ReportedCompletion | SkippedError
"""A run, or the reason for skipping the record."""


class Adapting:
    """Reads records and stores their runs.

    A record without a run is answered with 200 too: Slurm repeats every 30 s a record that is
    answered otherwise. For the same reason the answer is 200 only when the run is durable: a record
    that the store cannot take now is sent again.
    """

    def __init__(self, worker: Worker) -> None:
        self._completing = Completing(worker)
        self._metrics = worker.metrics
        self._noting = NotingStarts(worker)
        self._named: set[str] = set()

    async def slurm_document(self, body: bytes | None, cluster: str | None) -> RecordsAnswer:
        """Take a document of jobcomp/elasticsearch; None stands for a body that is too large.

        Raises:
            StoreUnavailableError: the run is not durable yet, and should be sent again.
        """
        if body is not None and (run := slurm_json.jobcomp_start(body, cluster=cluster)):
            await self._noting.note([run])
        return await self._take(_alone(_read_document(body, cluster)))

    async def pbs_records(
        self, body: bytes | None, cluster: str | None, zone: tzinfo
    ) -> RecordsAnswer:
        """Take lines of an accounting log; None stands for a body that is too large.

        Raises:
            StoreUnavailableError: the runs are not durable yet, and should be sent again.
        """
        if body is None:
            return await self._take(_alone(SkippedError(Reason.TOO_LARGE)))
        answer = await self._take(_read_in_turns(body, zone=zone, cluster=cluster))
        await self._noting.note([run async for run in _starts_in_turns(body, cluster=cluster)])
        return answer

    async def _take(self, outcomes: AsyncIterator[RecordResult]) -> RecordsAnswer:
        """Store the runs in groups; groups before a failure stay, and count once if sent again."""
        reports: list[ReportedCompletion] = []
        skipped: Counter[str] = Counter()
        doubts: Counter[str] = Counter()
        stored = NOTHING
        async for outcome in outcomes:
            admitted = self._admitted(outcome)
            if isinstance(admitted, SkippedError):
                skipped[admitted.reason.value] += 1
            else:
                reports.append(admitted)
                doubts.update(admitted.doubts)
            if len(reports) >= GROUP:
                stored += await self._stored(reports)
                reports = []
        stored += await self._stored(reports)
        if skipped:
            self._metrics.rejected.inc(skipped.total())
            self._metrics.skipped(skipped)
            log.info("records tell of no run", reasons=dict(skipped))
        if doubts:
            self._metrics.doubted(doubts)
            log.warning("fields of records contradict each other", doubts=dict(doubts))
        return RecordsAnswer(
            accepted=stored.accepted,
            duplicates=stored.duplicates,
            skipped=dict(skipped),
            doubts=dict(doubts),
        )

    def _admitted(self, outcome: RecordResult) -> RecordResult:
        """Return the completion, or the reason for its refusal."""
        if isinstance(outcome, UnknownStateError):
            self._name_once(UNKNOWN_STATE, outcome.state, state=outcome.state)
        if isinstance(outcome, UnknownTimeError):
            self._name_once(UNKNOWN_TIME, outcome.name, field=outcome.name, value=outcome.value)
        if isinstance(outcome, SkippedError):
            return outcome
        try:
            self._completing.admit(outcome)
        except TooManyClustersError as error:
            log.warning("a record is of one cluster too many", reason=str(error))
            return SkippedError(Reason.TOO_MANY_CLUSTERS)
        return outcome

    def _name_once(self, event: str, subject: str, **fields: str) -> None:
        """Log why runs are left out, once for each subject."""
        if subject in self._named or len(self._named) >= MOST_NAMED:
            return
        self._named.add(subject)
        log.warning(event, **fields)

    async def _stored(self, reports: list[ReportedCompletion]) -> Ingested:
        try:
            return await asyncio.wait_for(self._completing.store(reports), PATIENCE_SECONDS)
        except TimeoutError as error:
            raise StoreUnavailableError("The record is not durable yet; send it again.") from error
        except RefusedRecordError:
            if len(reports) > 1:
                return sum([await self._stored([report]) for report in reports], NOTHING)
            self._metrics.skipped({REFUSED: 1})
            log.warning("the database refuses a record")
            return NOTHING


class NotingStarts:
    """Records starts that resource managers report."""

    def __init__(self, worker: Worker) -> None:
        self._starts = worker.store.starts
        self._queues = worker.queues
        self._hide = worker.pseudonyms.submission
        self._cluster_limit = worker.cluster_limit
        self._clock = worker.clock

    async def note(self, runs: Sequence[Completion]) -> None:
        """Record the starts of runs durably; clusters beyond the limit are left out.

        Raises:
            StoreUnavailableError: they should be sent again.
        """
        now = self._clock()
        found = [
            known_start(self._hide(run.submission), run.start_time, now)
            for run in runs
            if self._is_served(run.submission.cluster)
        ]
        if found:
            await asyncio.to_thread(self._starts.add, found)
            self._queues.changes.note({each.submission.cluster for each in found})

    def _is_served(self, cluster: str) -> bool:
        with suppress(TooManyClustersError):
            self._cluster_limit.admit(cluster)
            return True
        return False


async def _alone(outcome: RecordResult) -> AsyncIterator[RecordResult]:
    yield outcome


async def _read_in_turns(
    body: bytes, *, zone: tzinfo, cluster: str | None
) -> AsyncIterator[RecordResult]:
    """Yield the results of the records of an accounting log; other requests pass in between."""
    stream = BytesIO(body)
    while block := stream.readlines(LINES_BYTES):
        lines = (line.decode("utf-8", "replace") for line in block)
        for _, outcome in pbs.read_accounting(lines, zone=zone, cluster=cluster):
            yield outcome
        await asyncio.sleep(0)


async def _starts_in_turns(body: bytes, *, cluster: str | None) -> AsyncIterator[Completion]:
    """Yield the runs that begin in an accounting log; other requests pass in between."""
    stream = BytesIO(body)
    while block := stream.readlines(LINES_BYTES):
        for line in block:
            if run := pbs.start_of(line.decode("utf-8", "replace"), cluster=cluster):
                yield run
        await asyncio.sleep(0)


def _read_document(body: bytes | None, cluster: str | None) -> RecordResult:
    if body is None:
        return SkippedError(Reason.TOO_LARGE)
    try:
        return slurm_json.jobcomp_completion(body, cluster=cluster)
    except SkippedError as skipped:
        return skipped


JOBS_PER_TURN = 256
"""Jobs that are taken in one turn of the event loop; other requests pass in between."""

AHEAD_SECONDS = 300.0
"""Most seconds by which the clock of a resource manager may be ahead."""


class TakingQueues:
    """Replaces the queue of a cluster as a whole."""

    def __init__(self, worker: Worker) -> None:
        self._settings = worker.settings
        self._keeper = worker.queues
        self._follower = worker.follower
        self._hide = worker.pseudonyms.submission
        self._cluster_limit = worker.cluster_limit
        self._clock = worker.clock

    async def take(self, cluster: str, body: QueueBody) -> QueueTakenAnswer:
        """Take the queue; its forecast is made afterwards.

        Raises:
            SnapshotTooLargeError: it has too many jobs.
            InvalidFieldError: a job is in it twice, or it was taken in the future.
            TooManyClustersError: the service has as many clusters as it may have.
            StartingError: the history has not been read, so the queue could not be forecast.
        """
        self._follower.check_started()
        self._cluster_limit.admit(cluster)
        now = self._clock()
        taken_at = now if body.taken_at is None else unix_seconds(body.taken_at)
        if taken_at > now + AHEAD_SECONDS:
            raise InvalidFieldError("The queue would have been taken in the future.", "taken_at")
        limit = self._settings.snapshot_max_jobs
        if len(body.running) + len(body.waiting) > limit:
            raise SnapshotTooLargeError(f"A queue may have {limit} jobs.")
        seen: set[str] = set()
        every = tuple(each.nodes() for each in body.queue_nodes)
        nodes = nodes_by_queue(every)
        running = await self._jobs("running", body.running, cluster, seen, nodes)
        waiting = await self._jobs("waiting", body.waiting, cluster, seen, nodes)
        snapshot = QueueSnapshot(
            cluster=cluster,
            taken_at=min(taken_at, now),
            rules=body.rules(),
            pools=tuple(pool.pool() for pool in body.pools),
            jobs=(*running, *waiting),
            queue_nodes=every,
        )
        self._keeper.take(snapshot, now)
        return QueueTakenAnswer(
            cluster=cluster, taken_at=snapshot.taken_at, jobs=len(snapshot.jobs)
        )

    async def _jobs(
        self,
        field: str,
        bodies: Sequence[LiveRunningBody | LiveWaitingBody],
        cluster: str,
        seen: set[str],
        nodes: Mapping[str | None, QueueNodes],
    ) -> list[LiveJob]:
        """Return the jobs with pseudonyms; a job id that was seen before is refused."""
        jobs = []
        for place, body in enumerate(bodies):
            job = body.live(cluster)
            if job.job_id in seen:
                raise InvalidFieldError(
                    f"Job {job.job_id} is in the queue twice.", f"{field}.{place}.job_id"
                )
            seen.add(job.job_id)
            is_counted = isinstance(body, LiveRunningBody) and not body.exclusive
            taken = job.submission if is_counted else body.taken(job.submission, nodes)
            hidden = self._hide(taken)
            share = gpu_share(body.gpus, nodes_of(nodes, taken.queue))
            is_same = hidden is job.submission and not share
            jobs.append(job if is_same else replace(job, submission=hidden, gpu_share=share))
            if place % JOBS_PER_TURN == JOBS_PER_TURN - 1:
                await asyncio.sleep(0)
        return jobs
