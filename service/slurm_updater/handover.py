"""Hands the queue and the machine over to the service."""

from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import quote

from service.slurm_updater.live_queue import read_live_queue
from service.slurm_updater.machine import down_partitions, pools_of, read_nodes
from service.slurm_updater.slurm import Slurm, SlurmError
from service.slurm_updater.squeue import UnreadableQueueError
from simulator.replay.remote import Client, RemoteError

NOT_ALLOWED = (
    "the queue is not handed over: the token needs the scopes predict and ingest "
    "(walltimed token issue updater --scope predict --scope ingest)"
)


class Handover:
    """Sends what squeue and sinfo show, in the place of what was sent before.

    Args:
        slurm: the commands.
        client: of the service.
        cluster: name of the queue; by default Slurm's ClusterName.
        clock: Unix seconds.
    """

    def __init__(
        self, slurm: Slurm, client: Client, cluster: str | None, *, clock: Callable[[], float]
    ) -> None:
        self._slurm = slurm
        self._client = client
        self._cluster = cluster
        self._clock = clock

    def round(self) -> str | None:
        """Hand the queue over once; says in a sentence what is in the way, if anything is.

        Raises:
            OSError: the service cannot be reached.
        """
        try:
            site = self._slurm.site()
            cluster = self._cluster or site.cluster
            taken_at = self._clock()
            jobs = read_live_queue(self._slurm.shown_queue(), cluster)
            nodes = read_nodes(self._slurm.shown_nodes())
        except (SlurmError, UnreadableQueueError) as error:
            return f"the queue is not handed over: {error}"
        pools, down = pools_of(nodes), down_partitions(nodes)
        if not pools:
            return "the queue is not handed over: sinfo shows no processors that run jobs"
        for job in jobs["waiting"]:
            job["held"] = job["held"] or job.get("queue") in down  # else another pool would run it
        body = {"taken_at": taken_at, "pools": pools, **site.rules, **jobs}
        try:
            self._client.call("PUT", f"/v1/queues/{quote(cluster, safe='')}", body)
        except RemoteError as error:
            if error.status == HTTPStatus.FORBIDDEN:
                return NOT_ALLOWED
            return f"the queue is not handed over: {error}"
        return None
