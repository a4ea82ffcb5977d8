"""Calls of the service: predictions, priorities, and the queue and machine that it is handed."""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import IO, Any
from urllib.parse import quote

import msgspec
from msgspec import Struct

from predictors.jobs import Submission
from service.slurm_updater.extending import ExtensionRules
from service.slurm_updater.machine import Machine, down_partitions, pools_of
from service.slurm_updater.planning import Estimate
from service.slurm_updater.slurm import ControllerSettings
from service.slurm_updater.squeue import QueuedJob, UnreadableQueueError, read_live_queue
from terminal.client import Client, RemoteError, fields_of
from terminal.words import MINUTE

NOT_ALLOWED = (
    "the queue is not handed over: the token needs the scopes predict and ingest "
    "(walltimed token issue updater --scope predict --scope ingest)"
)


class HandOver:
    """Sends the queue and the machine to the service, in the place of what was sent before.

    Args:
        cluster: name of the queue; None is Slurm's ClusterName.
    """

    def __init__(self, client: Client, cluster: str | None) -> None:
        self._client = client
        self._cluster = cluster

    def send(
        self, site: ControllerSettings, shown: IO[bytes], machine: Machine, *, taken_at: float
    ) -> str | None:
        """Send what squeue has shown, and the nodes of sinfo.

        Args:
            taken_at: before squeue ran: the service adds the starts and ends that come after it.

        Returns:
            A sentence about the obstacle, if there is one.

        Raises:
            OSError: the service cannot be reached.
        """
        name = self._cluster or site.cluster
        pools, queue_nodes = pools_of(machine.nodes), machine.queue_nodes()
        if not pools:
            trouble = machine.trouble or "sinfo shows no processors that run jobs"
            return f"the queue is not handed over: {trouble}"
        try:
            jobs = read_live_queue(shown, name, queue_nodes, down_partitions(machine.nodes))
        except UnreadableQueueError as error:
            return f"the queue is not handed over: {error}"
        body = {
            "taken_at": taken_at,
            "pools": pools,
            "queue_nodes": queue_nodes,
            **site.rules,
            **jobs,
        }
        try:
            self._client.call("PUT", f"/v1/clusters/{quote(name, safe='')}/snapshot", body)
        except RemoteError as error:
            if error.status == HTTPStatus.FORBIDDEN:
                return NOT_ALLOWED
            return f"the queue is not handed over: {error}"
        return None


BATCH = 500
"""Jobs in one request; the service answers others in between."""

_REFUSED = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)


class NonsenseError(Exception):
    """Raised when the answer is not one of the service."""


class _Interval(Struct):
    upper: float


class _Prediction(Struct):
    predicted_walltime: float
    prediction_id: str
    mean_walltime: float | None = None
    interval: _Interval | None = None


class _Predictions(Struct):
    predictions: list[_Prediction]


class _Priority(Struct):
    job_id: str
    priority: float


class _Priorities(Struct):
    priorities: list[_Priority]


class LongerLimit(Struct, frozen=True):
    """The service's answer about a running job's limit.

    Attributes:
        walltime: the limit to set in seconds; None without one.
        delay: most seconds by which it moves a planned start later.
        probability: that the job ends at its present limit.
        reason: ``granted``, or why there is none.
    """

    job_id: str
    walltime: float | None
    delay: float | None
    probability: float | None
    reason: str


class _LongerLimits(Struct):
    limits: list[LongerLimit]


class ServiceQueries:
    """The service's predictions and priorities of jobs; refused jobs are left out.

    Every call raises what ``Client.call`` does, but for such refusals, and NonsenseError.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def predictions(self, jobs: Sequence[QueuedJob]) -> dict[str, Estimate]:
        """Return predictions of the runtimes of jobs, by job id."""
        return dict(self._in_batches(jobs, self._predict))

    def priorities(self, jobs: Sequence[QueuedJob], now: float) -> dict[str, float]:
        """Return priorities by the accuracy of users and the wait, by job id."""
        return dict(self._in_batches(jobs, lambda some: self._rank(some, now)))

    def longer_limits(
        self, cluster: str, most: Mapping[str, int], rules: ExtensionRules
    ) -> list[LongerLimit]:
        """Return which running jobs get longer limits, and why the others do not.

        Args:
            cluster: name of the queue.
            most: largest limits that jobs may get, in minutes, by the id that squeue prints.
            rules: of the site.
        """
        question = {
            "jobs": [{"job_id": name, "most": MINUTE * each} for name, each in most.items()],
            "delay": rules.delay,
            "used": rules.used,
            "step": MINUTE,
            "machine": rules.machine,
        }
        path = f"/v1/clusters/{quote(cluster, safe='')}/longer-limits"
        answer = self._client.call("POST", path, question)
        found: list[LongerLimit] = _decoded(answer, _LongerLimits).limits
        for each in found:
            walltime = each.walltime
            if walltime is not None and not 0 < walltime <= MINUTE * most.get(each.job_id, 0):
                raise NonsenseError("The service extends a limit beyond its bound.")
        return found

    def _predict(self, jobs: Sequence[QueuedJob]) -> list[tuple[str, Estimate]]:
        question = {"submissions": [_as_of_now(job.submission) for job in jobs]}
        answer = self._client.call("POST", "/v1/predictions/batch", question)
        predictions = _decoded(answer, _Predictions).predictions
        if len(predictions) != len(jobs):
            raise NonsenseError("The service answered another number of predictions.")
        return [
            (job.job_id, _estimate(job, each)) for job, each in zip(jobs, predictions, strict=True)
        ]

    def _rank(self, jobs: Sequence[QueuedJob], now: float) -> list[tuple[str, float]]:
        question = {
            "now": now,
            "cluster": jobs[0].submission.cluster,
            "jobs": [
                {
                    name: value
                    for name, value in fields_of(job.submission).items()
                    if name in ("job_id", "user", "requested_walltime", "submit_time")
                }
                for job in jobs
            ],
        }
        answer = self._client.call("POST", "/v1/priorities", question)
        return [(each.job_id, each.priority) for each in _decoded(answer, _Priorities).priorities]

    def _in_batches(
        self, jobs: Sequence[QueuedJob], ask: Callable[[Sequence[QueuedJob]], list[Any]]
    ) -> list[Any]:
        answers = []
        for first in range(0, len(jobs), BATCH):
            answers += self._without_refused(jobs[first : first + BATCH], ask)
        return answers

    def _without_refused(
        self, jobs: Sequence[QueuedJob], ask: Callable[[Sequence[QueuedJob]], list[Any]]
    ) -> list[Any]:
        """Return the answers about all jobs that the service does not refuse, by bisection."""
        try:
            return ask(jobs)
        except RemoteError as error:
            if error.status not in _REFUSED:
                raise
        if len(jobs) == 1:
            return []
        middle = len(jobs) // 2
        return [
            *self._without_refused(jobs[:middle], ask),
            *self._without_refused(jobs[middle:], ask),
        ]


def _as_of_now(submission: Submission) -> dict[str, Any]:
    """Return the fields without submit time, so that runs that ended since then count."""
    return {name: each for name, each in fields_of(submission).items() if name != "submit_time"}


def _estimate(job: QueuedJob, answer: _Prediction) -> Estimate:
    mean = answer.mean_walltime
    upper = answer.interval.upper if answer.interval else None
    for seconds in (answer.predicted_walltime, mean, upper):
        if seconds is not None and not 0 < seconds <= job.submission.requested_walltime:
            raise NonsenseError("The service predicts what cannot be.")
    return Estimate(
        predicted=answer.predicted_walltime,
        prediction_id=answer.prediction_id,
        mean=mean,
        upper=upper,
    )


def _decoded(answer: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(answer, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise NonsenseError(f"This is no answer of the service: {error}") from error
