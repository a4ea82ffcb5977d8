"""The sources of a simulated scheduler's estimates."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import floor
from typing import Self

import numpy as np

from predictors.accuracy_groups import Accuracies
from predictors.jobs import DEFAULT_CLUSTER, Completion, Submission
from simulator.engine.state import State
from simulator.replay.method_spec import MethodSpec
from simulator.replay.predictions_file import read_predictions
from simulator.replay.trace_replay import InProcess, Player
from simulator.scheduling.workload import Workload
from simulator.traces.completions import completions
from simulator.traces.trace import Integers

EXACT = "exact"
REQUESTED = "requested"
FILE = "file:"
"""Begins the name of a source that is a file of predictions, as in ``file:PATH#METHOD``."""

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
        predictions: known beforehand, in seconds by the log's number of the job; a job that has
            none is estimated by its request.
    """

    name: str
    player: Player | None = None
    cluster: str = DEFAULT_CLUSTER
    predictions: Mapping[int, float] | None = None

    @classmethod
    def named(cls, text: str) -> Self:
        """``exact``, ``requested``, ``file:`` and a path, or a method as ``MethodSpec`` reads it.

        Raises:
            UnknownMethodError: there is no such method.
            ValueError: a parameter is unknown or out of range, or a file has no predictions.
        """
        if text.startswith(FILE):
            return cls(text, predictions=predictions_of(text.removeprefix(FILE)))
        if text in {EXACT, REQUESTED}:
            return cls(text)
        return cls(text, InProcess({text: MethodSpec.parse(text).predictor()}))

    def beforehand(self, workload: Workload) -> Integers | None:
        """The estimates of all jobs, if they do not depend on the simulation."""
        if self.player is not None:
            return None
        if self.predictions is not None:
            return _estimated(workload, self.predictions)
        return workload.runtime if self.name == EXACT else workload.request


def predictions_of(text: str) -> Mapping[int, float]:
    """What is read from ``PATH`` or ``PATH#METHOD``.

    Raises:
        PredictionsFileError: it is no file of predictions, or the method is not clear.
    """
    path, _, method = text.partition("#")
    return read_predictions(path, method or None)


def _estimated(workload: Workload, predictions: Mapping[int, float]) -> Integers:
    """Predictions in whole seconds, at most the requests."""
    requests = workload.request.tolist()
    found = map(predictions.get, workload.trace.job.tolist(), requests)
    pairs = zip(found, requests, strict=True)
    return np.array([min(whole_seconds(each), request) for each, request in pairs], np.int64)


class EstimateFeed:
    """Gives a simulation its estimates and its priorities by accuracy, from simulated completions.

    The method is asked at the second of each submission. By then it has learned from all jobs that
    ended before that second, and under ``batch`` from those that end in that second.

    Args:
        state: state of the simulation; the loop stops where ``give`` is to be called.
        workload: the jobs of the simulation.
        estimates: the source of the estimates.
        priorities: whether priorities are wanted.
    """

    def __init__(
        self, state: State, workload: Workload, estimates: Estimates, *, priorities: bool
    ) -> None:
        self._known = estimates.beforehand(workload)
        self._player = estimates.player
        self._method = estimates.name if self._player is None else self._player.methods[0]
        self._accuracies = Accuracies() if priorities else None
        self._begin = workload.trace.unix_start + workload.origin
        self._upcoming: Iterator[Completion] = completions(
            workload.trace, cluster=estimates.cluster
        )
        self._logged: dict[int, Completion] = {}
        self._ended = state.finished
        self._observed = 0
        # Looking a column up once, and not for each job, saves half of the time.
        self._start, self._estimate = state.jobs["start"], state.jobs["estimate"]
        self._priority = state.jobs["priority"]
        self._finished = state.clock["finished"]
        self._submitted, self._wanted = state.clock["submitted"], state.clock["wanted"]

    def give(self) -> None:
        """Learn from the jobs that have ended, then give estimates to this second's submissions."""
        finished = self._finished.item()
        if finished > self._observed:
            ended = self._ended[self._observed : finished]
            self._observe(ended.tolist(), self._start[ended].tolist())
            self._observed = finished
        first, behind = self._submitted.item(), self._wanted.item()
        submissions = self._submissions(first, behind)
        for job, estimate in enumerate(self._estimates(first, behind, submissions), first):
            self._estimate[job] = estimate
        if self._accuracies is not None:
            for job, submission in enumerate(submissions, first):
                self._priority[job] = self._priority_of(submission)

    def _submissions(self, first: int, behind: int) -> list[Submission]:
        logged = list(islice(self._upcoming, behind - first))
        self._logged.update(zip(range(first, behind), logged, strict=True))
        return [completion.submission for completion in logged]

    def _estimates(
        self, first: int, behind: int, submissions: Sequence[Submission]
    ) -> Sequence[int]:
        """Estimates in whole seconds of the jobs from ``first`` on and before ``behind``."""
        if self._known is not None or self._player is None:
            return [] if self._known is None else self._known[first:behind].tolist()
        predictions = self._player.predict(self._method, submissions)
        return [whole_seconds(each.predicted_walltime) for each in predictions]

    def _priority_of(self, submission: Submission) -> float:
        assert self._accuracies is not None  # noqa: S101 - asked only where there are priorities
        accuracy = self._accuracies.of(submission.user)
        return (accuracy or self._accuracies.default_group).priority

    def _observe(self, ended: Sequence[int], starts: Sequence[int]) -> None:
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
    """A prediction as the scheduler uses it: cut to whole seconds, but at least one second."""
    return max(1, floor(prediction + ROUNDING))
