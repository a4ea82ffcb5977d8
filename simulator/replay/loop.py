"""Plays a log in simulated time to whatever predicts: predictors in process or a live service."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from predictors.base import Predictor
from predictors.jobs import Completion, Prediction, Submission

Seconds = NDArray[np.float64]
Item = TypeVar("Item")


class Player(Protocol):
    """What a log is played to: methods that learn together, by the two verbs of a predictor."""

    @property
    def methods(self) -> Sequence[str]:
        """Labels of the methods, in the order in which they are asked."""
        ...

    @property
    def largest_batch(self) -> int:
        """How many submissions it takes at once."""
        ...

    def predict(self, method: str, submissions: Sequence[Submission]) -> Sequence[Prediction]:
        """Predict jobs that were just submitted; changes no answer."""
        ...

    def observe(self, ended: Sequence[Completion]) -> None:
        """Let every method learn from runs that have ended."""
        ...


@dataclass(frozen=True, slots=True)
class InProcess:
    """Bare predictors by label."""

    predictors: Mapping[str, Predictor]
    largest_batch: int = 1

    @property
    def methods(self) -> Sequence[str]:
        """Their labels."""
        return tuple(self.predictors)

    def predict(self, method: str, submissions: Sequence[Submission]) -> Sequence[Prediction]:
        """Ask one of them."""
        predict = self.predictors[method].predict
        return [predict(submission) for submission in submissions]

    def observe(self, ended: Sequence[Completion]) -> None:
        """Tell all of them."""
        for predictor in self.predictors.values():
            for completion in ended:
                predictor.observe(completion)


@dataclass(frozen=True, slots=True)
class Step:
    """Runs that end, then jobs that are submitted before the next run ends."""

    ended: Sequence[int]
    submitted: Sequence[int]


def steps(submit: Seconds, end: Seconds) -> Iterator[Step]:
    """The events of a log in order of time, as positions of its jobs.

    Of events at one time completions come first, but no job ends before it was submitted: a
    run of zero seconds is seen by the submissions after its own. Completions at one time keep
    the order of the log, and so do submissions.

    Args:
        submit: when each job was submitted, in any order.
        end: when its run ended.
    """
    arrivals = np.argsort(submit, kind="stable")
    place = np.empty_like(arrivals)
    place[arrivals] = np.arange(len(arrivals))
    # The first submission that may know of a run, as a place among the arrivals.
    first = np.maximum(np.searchsorted(submit[arrivals], end, side="left"), place + 1)
    departures = np.lexsort((end, first))
    first = first[departures]
    arrived = departed = 0
    while departed < len(departures) or arrived < len(arrivals):
        known = int(np.searchsorted(first, arrived, side="right"))
        until = int(first[known]) if known < len(first) else len(arrivals)
        yield Step(departures[departed:known].tolist(), arrivals[arrived:until].tolist())
        arrived, departed = until, known


@dataclass(slots=True)
class Answers:
    """What one method said of every job, in the order of the log.

    Attributes:
        predicted: seconds.
        lower: lower ends of its intervals, NaN where it gave none.
        upper: upper ends.
        latencies: seconds that each request took; a batch is one request.
    """

    predicted: Seconds
    lower: Seconds
    upper: Seconds
    latencies: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, jobs: int) -> "Answers":
        """For a log of so many jobs."""
        return cls(np.full(jobs, np.nan), np.full(jobs, np.nan), np.full(jobs, np.nan))

    def note(self, jobs: Sequence[int], predictions: Sequence[Prediction], seconds: float) -> None:
        """Write the answer to one request down."""
        self.latencies.append(seconds)
        for job, prediction in zip(jobs, predictions, strict=True):
            self.predicted[job] = prediction.predicted_walltime
            if prediction.interval is not None:
                self.lower[job] = prediction.interval.lower
                self.upper[job] = prediction.interval.upper

    @property
    def predictions_per_second(self) -> float:
        """Predictions in the time that requests took."""
        return len(self.predicted) / max(sum(self.latencies), 1e-9)

    def latency(self, percent: float) -> float:
        """Percentile of the seconds that a request took."""
        return float(np.percentile(self.latencies, percent)) if self.latencies else 0.0


@dataclass(frozen=True, slots=True)
class Replay:
    """A log that was played.

    Attributes:
        runs: its jobs, in its order.
        answers: by method.
        seconds: of our time.
    """

    runs: Sequence[Completion]
    answers: Mapping[str, Answers]
    seconds: float

    @property
    def requested(self) -> Seconds:
        """What users asked for, in seconds."""
        return np.array([run.submission.requested_walltime for run in self.runs], dtype=float)

    @property
    def actual(self) -> Seconds:
        """How long jobs ran, in seconds."""
        return np.array([run.runtime for run in self.runs], dtype=float)


def replay(
    runs: Sequence[Completion],
    player: Player,
    *,
    progress: Callable[[int], object] | None = None,
) -> Replay:
    """Play a log: every submission asks each method, every completion is told to all.

    Submissions between which no run ends are asked about together where the player takes
    batches. Predicting has no side effects, so that changes no answer.

    Args:
        runs: the log; its order decides about equal times.
        player: what predicts.
        progress: called with the number of jobs that were just predicted.
    """
    began = perf_counter()
    answers = {method: Answers.of(len(runs)) for method in player.methods}
    submit = np.array([run.submission.submit_time for run in runs], dtype=float)
    end = np.array([run.end_time for run in runs], dtype=float)
    for step in steps(submit, end):
        if step.ended:
            player.observe([runs[job] for job in step.ended])
        for jobs in slices(step.submitted, player.largest_batch):
            submissions = [runs[job].submission for job in jobs]
            for method, noted in answers.items():
                asked = perf_counter()
                predictions = player.predict(method, submissions)
                noted.note(jobs, predictions, perf_counter() - asked)
        if progress:
            progress(len(step.submitted))
    return Replay(runs, answers, perf_counter() - began)


def slices(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """``items`` in pieces of at most ``size``."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
