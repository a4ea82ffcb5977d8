"""Finds longer limits for running jobs that will probably be cut."""

import asyncio
from collections.abc import Mapping

from msgspec.structs import replace

from service.contract.limit_calls import (
    LimitedJobBody,
    LongerLimitAnswer,
    LongerLimitReason,
    LongerLimitsAnswer,
    LongerLimitsRequest,
)
from service.live_queue.limit_plays import (
    PARTS,
    PlayedLimit,
    WantedLimit,
    play_limits,
    pools_by_limits,
    running_rows,
)
from service.live_queue.snapshot import JobState, LiveJob, QueueSnapshot
from service.operations.queue_showing import ShowingQueues
from service.worker.risks import RunningRisk, jobs_at_risk
from service.worker.worker import Worker

PLAYING_SECONDS = 2.0
"""Seconds for the plays of one call."""


class LongerLimits:
    """Finds limits that move no planned start by more than a bound; sets nothing."""

    def __init__(self, worker: Worker, queues: ShowingQueues) -> None:
        self._queues = queues
        self._follower = worker.follower
        self._settings = worker.settings
        self._process = worker.forecasts.awaited
        self._clock = worker.clock

    async def find(self, cluster: str, body: LongerLimitsRequest) -> LongerLimitsAnswer:
        """Return the longer limit of each job, or why it gets none.

        Raises:
            UnknownSnapshotError: no queue of the cluster was handed over.
            ForecastsBusyError: too many forecasts are being made.
            ForecastTooLongError: the plays take too long.
        """
        snapshot, now = self._queues.live_queue(cluster).snapshot, self._clock()
        running = {job.job_id: job for job in snapshot.jobs if job.state is JobState.RUNNING}
        is_old = now - snapshot.taken_at > self._settings.snapshot_max_age_seconds
        asked = {str(each.job_id): each for each in body.jobs}
        at_risk: dict[str, RunningRisk] = {}
        if not is_old:
            jobs = tuple(running[job_id] for job_id in asked if job_id in running)
            at_risk = await self._at_risk(replace(snapshot, jobs=jobs), body, now)
        played = await self._play(snapshot, body, at_risk, asked) if at_risk else {}
        return LongerLimitsAnswer(
            cluster=cluster,
            now=now,
            taken_at=snapshot.taken_at,
            limits=[
                longer_limit_answer(
                    job_id,
                    running.get(job_id),
                    at_risk.get(job_id),
                    played.get(job_id, "old-snapshot" if is_old else "not-at-risk"),
                )
                for job_id in asked
            ],
        )

    async def _at_risk(
        self, snapshot: QueueSnapshot, body: LongerLimitsRequest, now: float
    ) -> dict[str, RunningRisk]:
        """Return the jobs that will probably be cut, those cut first at the beginning."""
        state = self._follower.state_of(snapshot.cluster)
        found = await jobs_at_risk(snapshot, state, now=now, used=body.used, least=body.probability)
        return {each.job.job_id: each for each in sorted(found, key=seconds_left)}

    async def _play(
        self,
        snapshot: QueueSnapshot,
        body: LongerLimitsRequest,
        at_risk: Mapping[str, RunningRisk],
        asked: Mapping[str, LimitedJobBody],
    ) -> dict[str, PlayedLimit | LongerLimitReason]:
        """Return the outcome of the plays for each job, or why there were none."""
        pools = await asyncio.to_thread(pools_by_limits, snapshot)
        rows = running_rows(snapshot, pools)
        most = {
            job_id: min(
                asked[job_id].most,
                paid_walltime(each, pools[rows[job_id][0]].queue.processors, body.machine),
            )
            for job_id, each in at_risk.items()
        }
        found: dict[str, PlayedLimit | LongerLimitReason] = dict.fromkeys(at_risk, "no-room")
        wanted = {
            job_id: WantedLimit(
                *rows[job_id],
                walltime=int(wanted_walltime(each, most[job_id], body.step)),
                step=max(1, int(body.step)),
                parts=len(PARTS) if seconds_left(each) <= body.late else 1,
            )
            for job_id, each in at_risk.items()
            if has_room(each, most[job_id], body.step)
        }
        if wanted:
            limits = list(wanted.values())
            played = await self._process.run(
                play_limits, pools, snapshot.rules, limits, body.delay, PLAYING_SECONDS
            )
            outcomes = zip(wanted, played, strict=True)
            found |= {job_id: outcome or "no-time" for job_id, outcome in outcomes}
        return found


def seconds_left(found: RunningRisk) -> float:
    """Return the seconds until a running job reaches its limit."""
    return found.job.submission.requested_walltime - found.elapsed


def paid_walltime(found: RunningRisk, processors: int, machine: float) -> float:
    """Return the limit by which what is added takes all processors for ``machine`` seconds."""
    job = found.job
    return job.submission.requested_walltime + machine * processors / max(1, job.processors)


def wanted_walltime(found: RunningRisk, most: float, step: float) -> float:
    """Return the limit that holds nine in ten such jobs, or ``most`` where that is not known.

    It is beyond the present limit by a multiple of ``step`` seconds.
    """
    limit = found.job.submission.requested_walltime
    needed = min(most, found.risk.longer_walltime or most)
    return limit + (needed - limit) // step * step


def has_room(found: RunningRisk, most: float, step: float) -> bool:
    """Return whether a job can get a limit that is longer, and beyond what it has run."""
    limit = found.job.submission.requested_walltime
    return wanted_walltime(found, most, step) > max(limit, found.elapsed)


def longer_limit_answer(
    job_id: str,
    job: LiveJob | None,
    found: RunningRisk | None,
    outcome: PlayedLimit | LongerLimitReason,
) -> LongerLimitAnswer:
    """Return the answer about one job."""
    played = outcome if isinstance(outcome, PlayedLimit) else None
    walltime = played.walltime if played else None
    reason: LongerLimitReason = "delays" if isinstance(outcome, PlayedLimit) else outcome
    return LongerLimitAnswer(
        job_id=job_id,
        requested_walltime=job.submission.requested_walltime if job else None,
        walltime=None if walltime is None else float(walltime),
        delay=played.delay if played else None,
        probability=found.risk.probability if found else None,
        reason="unknown-job" if job is None else "granted" if walltime is not None else reason,
    )
