"""Sources of the runtime estimates of a simulated scheduler."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf
from typing import Self

import numpy as np
from msgspec.structs import replace

from predictors.accuracy_groups import Accuracies
from predictors.jobs import DEFAULT_CLUSTER, Completion, Submission
from simulator.engine.pbs.pbs_state import PbsState
from simulator.engine.slurm.slurm_state import SlurmState
from simulator.engine.state import State, whole_seconds
from simulator.replay.method_spec import MethodSpec
from simulator.replay.predictions_file import read_predictions
from simulator.replay.trace_replay import Answers, InProcess, Player
from simulator.scheduling.forecast import QUANTILE_GRID, Quantiles
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.workload import Workload
from simulator.traces.completions import BLOCK, completions
from simulator.traces.trace import Integers

AnyState = State | SlurmState | PbsState

EXACT = "exact"
REQUESTED = "requested"
FILE = "file:"
"""Begins the name of a source that is a file of predictions, as in ``file:PATH#METHOD``."""

RELEASED = Completion(
    submission=Submission(requested_walltime=1.0, submit_time=0.0),
    start_time=0.0,
    end_time=0.0,
    runtime=0.0,
)
"""Placeholder for the record of a finished job, which lets that record be freed."""


@dataclass(frozen=True, slots=True)
class Estimates:
    """A source of estimates.

    Attributes:
        name: as the user wrote it.
        player: predicts at each submission, and learns from each completion; None where all
            estimates are known in advance.
        cluster: name of the cluster whose history the simulation makes.
        predictions: seconds by the log's number of the job, known in advance; the estimate of a
            job without a prediction is its request.
        known: computes the estimates of a workload's jobs, where they are known in advance.
        lengths: likewise the lengths of an order by length; None: they are the estimates.
        keeps: whether a schedule holds the answers of the player.
    """

    name: str
    player: Player | None = None
    cluster: str = DEFAULT_CLUSTER
    predictions: Mapping[int, float] | None = None
    known: Callable[[Workload], Integers] | None = None
    lengths: Callable[[Workload], Integers] | None = None
    keeps: bool = False

    @classmethod
    def named(cls, text: str) -> Self:
        """Return the source named ``exact``, ``requested``, ``file:PATH``, or a method spec.

        Raises:
            UnknownMethodError: there is no such method.
            ValueError: a parameter is unknown or out of range, or a file has no predictions.
        """
        if text.startswith(FILE):
            return cls(text, predictions=predictions_of(text.removeprefix(FILE)))
        if text in {EXACT, REQUESTED}:
            return cls(text)
        return cls.of_method(MethodSpec.parse(text))

    @classmethod
    def of_method(cls, spec: MethodSpec) -> Self:
        """Return a method without any history, under its label."""
        return cls(spec.label, InProcess({spec.label: spec.predictor()}))

    def beforehand(self, workload: Workload) -> Integers | None:
        """Return whole seconds for each job, or None if they depend on the simulation."""
        if self.player is not None:
            return None
        if self.known is not None:
            return np.minimum(self.known(workload), workload.request)
        if self.predictions is not None:
            return _estimated(workload, self.predictions)
        return workload.runtime if self.name == EXACT else workload.request


def predictions_of(text: str) -> Mapping[int, float]:
    """Read predictions by job number from ``PATH`` or ``PATH#METHOD``.

    Raises:
        PredictionsFileError: the file has no predictions, or several methods and none is named.
    """
    path, _, method = text.partition("#")
    return read_predictions(path, method or None)


def _estimated(workload: Workload, predictions: Mapping[int, float]) -> Integers:
    """Return predictions in whole seconds, at most the requests."""
    requests = workload.request.tolist()
    found = map(predictions.get, workload.trace.job.tolist(), requests)
    pairs = zip(found, requests, strict=True)
    return np.array([min(whole_seconds(each), request) for each, request in pairs], np.int64)


class EstimateFeed:
    """Gives a simulation its estimates and its priorities by accuracy, from simulated completions.

    The method predicts in the second of each submission. By then it has learned from all jobs that
    ended before that second, and under ``batch`` from those that end in that second.

    Args:
        state: state of the simulation; the loop stops where ``give`` is to be called.
        semantics: the rules, which say whether priorities are needed.
        beside: the feed of another machine of the cluster, whose accuracies are shared.

    Attributes:
        answers: of the player; None where none are kept.
    """

    def __init__(
        self,
        state: AnyState,
        workload: Workload,
        estimates: Estimates,
        semantics: Semantics,
        *,
        beside: "EstimateFeed | None" = None,
    ) -> None:
        self._known = estimates.beforehand(workload)
        self._player = estimates.player
        self._method = estimates.name if self._player is None else self._player.methods[0]
        self.answers = Answers.of(len(workload)) if estimates.keeps and self._player else None
        self.accuracies = Accuracies() if semantics.needs_priorities else None
        if beside is not None:
            self.accuracies = beside.accuracies
        self._asks_for_mean = semantics.asks_for_mean
        self._asks_for_upper = semantics.asks_for_upper
        self._clock, self._runtime = state.clock["now"], workload.runtime
        self._begin = workload.trace.unix_start + workload.origin
        self._upcoming: Iterator[Completion] = completions(
            workload.trace, cluster=estimates.cluster
        )
        self._logged: list[Completion] = []
        self._ended = state.finished
        self._observed = 0
        self._unstarted = np.zeros(0, np.int64)
        # Looking a column up once, and not for each job, saves half of the time.
        self._start, self._estimate = state.jobs["start"], state.jobs["estimate"]
        self._length = state.jobs["length"]
        self._priority = state.jobs["priority"]
        self._finished = state.clock["finished"]
        self._now = state.clock["now"]
        self._submitted, self._wanted = state.clock["submitted"], state.clock["wanted"]

    def give(self) -> None:
        """Learn from the jobs that have ended, then give estimates to this second's submissions."""
        if ended := self.ended():
            self.learn(ended)
        self.answer()

    @property
    def now(self) -> int:
        """The simulated time in Unix seconds."""
        return self._begin + int(self._clock[0])

    def ended(self, until: float = inf) -> list[Completion]:
        """Return the runs that ended since the last call, until ``until`` (Unix seconds)."""
        finished = self._finished.item()
        if finished == self._observed:
            return []
        ended = self._ended[self._observed : finished]
        if until < inf:
            ends = self._begin + self._start[ended] + self._runtime[ended]
            ended = ended[: int(np.searchsorted(ends, until, side="right"))]
        self._observed += len(ended)
        return [self._seen(job) for job in ended.tolist()]

    def answer(self) -> None:
        """Give estimates to this second's submissions."""
        first, behind = self._submitted.item(), self._wanted.item()
        submissions = self._submissions(first, behind)
        if self._known is not None:
            self._estimate[first:behind] = self._known[first:behind]
        elif self._player is not None:
            self._note_starts(self._player)
            self._ask(self._player, first, submissions)
            self._unstarted = np.concatenate((self._unstarted, np.arange(first, behind)))
        if self.accuracies is not None:
            for job, submission in enumerate(submissions, first):
                self._priority[job] = self._priority_of(submission)

    def quantiles(self, jobs: Integers, elapsed: Integers | None = None) -> list[Quantiles]:
        """Return quantiles of the runtime of each job, from the runs that have ended until now.

        Args:
            jobs: indices of running or waiting jobs in the workload.
            elapsed: seconds since the start of each running job; None for waiting jobs.
        """
        if not isinstance(self._player, InProcess):
            return [None] * len(jobs)
        now = float(self._begin + self._now.item())
        ran = [None] * len(jobs) if elapsed is None else [float(each) for each in elapsed]
        return [
            self._player.quantiles(
                self._method,
                replace(self._logged[job].submission, submit_time=now),
                QUANTILE_GRID,
                each,
            )
            for job, each in zip(jobs.tolist(), ran, strict=True)
        ]

    def _submissions(self, first: int, behind: int) -> list[Submission]:
        known = len(self._logged)
        if known < behind:
            self._logged += islice(self._upcoming, max(BLOCK, behind - known))
        return [completion.submission for completion in self._logged[first:behind]]

    def _note_starts(self, player: Player) -> None:
        """Tell which jobs have started since the last submission and still run."""
        has_started = self._start[self._unstarted] >= 0
        started = self._unstarted[has_started].tolist()
        if started:
            self._unstarted = self._unstarted[~has_started]
            logged = [(job, self._logged[job]) for job in started]
            player.note(
                [
                    replace(run, start_time=float(self._begin + self._start.item(job)))
                    for job, run in logged
                    if run is not RELEASED
                ]
            )

    def _ask(self, player: Player, first: int, submissions: Sequence[Submission]) -> None:
        """Store the estimates of the jobs from ``first`` on, and means if the order wants them.

        Estimates of a twin that plans with them are upper ends of intervals, where there are some.
        """
        asks_for_more = self._asks_for_mean or self._asks_for_upper or self.answers is not None
        if asks_for_more and isinstance(player, InProcess):
            answers = player.ask(self._method, submissions)
        else:
            answers = player.predict(self._method, submissions)
        if self.answers is not None:
            self.answers.note(range(first, first + len(answers)), answers, 0.0)
        for job, prediction in enumerate(answers, first):
            planned = prediction.predicted_walltime
            if self._asks_for_upper and prediction.interval is not None:
                planned = max(planned, prediction.interval.upper)
            self._estimate[job] = whole_seconds(planned)
            if self._asks_for_mean and prediction.mean is not None:
                self._length[job] = whole_seconds(prediction.mean)

    def _priority_of(self, submission: Submission) -> float:
        assert self.accuracies is not None  # noqa: S101 - called only where there are priorities
        accuracy = self.accuracies.of(submission.user)
        return (accuracy or self.accuracies.default_group).priority

    def learn(self, ended: Sequence[Completion]) -> None:
        """Learn from runs that have ended, in this order."""
        if self._player is not None:
            self._player.observe(ended)
        if self.accuracies is not None:
            for completion in ended:
                self.accuracies.observe(completion)

    def _seen(self, job: int) -> Completion:
        """Return the simulated completion of a job, and release its logged record."""
        logged = self._logged[job]
        self._logged[job] = RELEASED
        begin = float(self._begin + self._start.item(job))
        return Completion(
            submission=logged.submission,
            start_time=begin,
            end_time=begin + logged.runtime,
            runtime=logged.runtime,
            status=logged.status,
        )
