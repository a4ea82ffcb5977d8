"""Plays shared nodes forward from any state: Algorithm 1 of Hanzich et al. 2005.

With an estimator's pace it is the paper's on-the-fly simulation of what is there; with that of
processor sharing, and jobs submitted on the way, it is the cluster itself. Times are seconds
after the state that it begins with.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from simulator.shared_nodes.cluster import RESOLUTION, Cluster, SharedJob
from simulator.shared_nodes.pace import Pace
from simulator.shared_nodes.policies import SharedPolicy


@dataclass(slots=True, kw_only=True)
class Span:
    """Start, end and nodes of a job; a job that runs at the beginning started before 0."""

    start: float
    nodes: tuple[int, ...]
    end: float = inf


class SharedSimulation:
    """A cluster and its queue, with the clock at 0.

    Args:
        cluster: the cluster at time 0; the simulation changes it.
        queue: waiting jobs, in order.
        policy: chooses jobs to start, and their nodes.
        pace: gives remaining times and CPU times of runs.

    Attributes:
        now: the simulated time in seconds.
        queue: waiting jobs.
        spans: start, end and nodes of every job that has started, by job id.
    """

    def __init__(
        self, cluster: Cluster, queue: Sequence[SharedJob], policy: SharedPolicy, pace: Pace
    ) -> None:
        self.cluster = cluster
        self.queue = list(queue)
        self.now = 0.0
        self.spans = {
            run.job.job_id: Span(start=-run.elapsed, nodes=run.nodes) for run in cluster.runs
        }
        self._policy = policy
        self._pace = pace

    def submit(self, job: SharedJob) -> None:
        """Append a job to the queue; it may start when ``run`` is called."""
        self.queue.append(job)

    def run(self, until: float = inf) -> None:
        """Run until all jobs have ended, or until the time ``until``.

        Runs that end at the same time all end before waiting jobs are started.
        """
        self._start_waiting()
        while self.cluster.runs:
            remaining = self._pace.remaining_times(self.cluster)
            soonest = min(remaining)
            if self.now + soonest > until:
                break
            ended = [
                run
                for run, seconds in zip(self.cluster.runs, remaining, strict=True)
                if seconds <= soonest + RESOLUTION
            ]
            self._advance(soonest)
            for run in ended:
                self.cluster.end(run)
                self.spans[run.job.job_id].end = self.now
            self._start_waiting()
        if until < inf:
            self._advance(until - self.now)
            self.now = until

    def _advance(self, seconds: float) -> None:
        used = self._pace.used_cpu_times(self.cluster, seconds)
        for run, cpu_time in zip(self.cluster.runs, used, strict=True):
            run.elapsed += seconds
            run.cpu_time += cpu_time
        self.now += seconds

    def _start_waiting(self) -> None:
        while run := self._policy.next_start(self.queue, self.cluster):
            self.queue.remove(run.job)
            self.cluster.start(run)
            self.spans[run.job.job_id] = Span(start=self.now, nodes=run.nodes)


def forecast(
    cluster: Cluster, queue: Sequence[SharedJob], policy: SharedPolicy, pace: Pace
) -> dict[str, Span]:
    """Return start, end and nodes of every job of a cluster and its queue; changes neither."""
    simulation = SharedSimulation(cluster.copy(), queue, policy, pace)
    simulation.run()
    return simulation.spans
