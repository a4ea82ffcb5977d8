"""Where a simulated scheduler has its estimates from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import floor
from typing import Self

from predictors.accuracy_groups import Accuracies
from predictors.jobs import DEFAULT_CLUSTER, Completion, Submission
from simulator.replay.loop import InProcess, Player
from simulator.replay.method_spec import MethodSpec
from simulator.scheduling.workload import Workload
from simulator.traces.completions import completions
from simulator.traces.trace import Integers

EXACT = "exact"
REQUESTED = "requested"

ROUNDING = 1e-6
"""Seconds by which a prediction may miss a whole second through rounding errors alone."""


@dataclass(frozen=True, slots=True)
class Estimates:
    """A source of estimates.

    Attributes:
        name: as the user wrote it.
        player: what is asked at each submission and told of each end; None where all estimates
            are known beforehand.
        cluster: whose history the simulation makes.
    """

    name: str
    player: Player | None = None
    cluster: str = DEFAULT_CLUSTER

    @classmethod
    def named(cls, text: str) -> Self:
        """``exact``, ``requested``, or a method as ``MethodSpec`` reads it.

        Raises:
            UnknownMethodError: there is no such method.
            ValueError: a parameter is unknown or out of range.
        """
        if text in {EXACT, REQUESTED}:
            return cls(text)
        return cls(text, InProcess({text: MethodSpec.parse(text).predictor()}))

    def beforehand(self, workload: Workload) -> Integers | None:
        """The estimates of all jobs, if they do not depend on what happens."""
        if self.player is not None:
            return None
        return workload.runtime if self.name == EXACT else workload.request


class Forecaster:
    """Estimates, and priorities by accuracy, from what has happened so far in a simulation.

    Submissions are asked about at the second in which they are made, with everything told
    that has ended before; under ``batch`` also what ends in that second.
    """

    def __init__(self, workload: Workload, estimates: Estimates, *, priorities: bool) -> None:
        """Begin with no history.

        Args:
            workload: whose jobs will be submitted and end.
            estimates: what to ask.
            priorities: whether priorities are wanted.
        """
        self._begin = workload.trace.unix_start + workload.origin
        self._known = estimates.beforehand(workload)
        self._player = estimates.player
        self._method = estimates.name if self._player is None else self._player.methods[0]
        self._accuracies = Accuracies() if priorities else None
        self._upcoming: Iterator[Completion] = completions(
            workload.trace, cluster=estimates.cluster
        )
        self._logged: dict[int, Completion] = {}

    def estimate(self, first: int, behind: int) -> Iterator[tuple[int, float]]:
        """Estimates in whole seconds, and priorities, of the jobs that are submitted now."""
        logged = list(islice(self._upcoming, behind - first))
        self._logged.update(zip(range(first, behind), logged, strict=True))
        submissions = [completion.submission for completion in logged]
        if self._player is None or self._known is not None:
            estimates = [] if self._known is None else self._known[first:behind].tolist()
        else:
            predictions = self._player.predict(self._method, submissions)
            estimates = [whole_seconds(each.predicted_walltime) for each in predictions]
        return zip(estimates, map(self._priority, submissions), strict=True)

    def _priority(self, submission: Submission) -> float:
        if self._accuracies is None:
            return 0.0
        accuracy = self._accuracies.of(submission.user)
        return (accuracy or self._accuracies.default_group).priority

    def observe(self, ended: Sequence[int], starts: Sequence[int]) -> None:
        """Learn from jobs that have ended, in this order."""
        seen = [self._seen(job, start) for job, start in zip(ended, starts, strict=True)]
        if self._player is not None:
            self._player.observe(seen)
        if self._accuracies is not None:
            for completion in seen:
                self._accuracies.observe(completion)

    def _seen(self, job: int, start: int) -> Completion:
        """The completion of a job as it was simulated."""
        logged = self._logged.pop(job)
        begin = float(self._begin + start)
        return Completion(
            submission=logged.submission,
            start_time=begin,
            end_time=begin + logged.runtime,
            runtime=logged.runtime,
            status=logged.status,
        )


def whole_seconds(prediction: float) -> int:
    """A prediction as the scheduler takes it: cut to whole seconds, but at least one."""
    return max(1, floor(prediction + ROUNDING))
