"""Plays a log in simulated time to predictors in this process or to a live service."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from sys import intern
from time import perf_counter
from typing import Protocol, TypeVar

import numpy as np

from predictors.auto import Auto
from predictors.base import USUAL, Predictor, Question, UncertainPredictor
from predictors.jobs import Completion, Prediction, Submission
from predictors.measures import Seconds
from predictors.memory.running_jobs import Start
from simulator.replay.method_spec import MethodSpec
from simulator.traces.completions import LoggedRuns
from simulator.traces.trace import Integers, Trace

Item = TypeVar("Item")

LEVELS = (
    Question(coverage=0.5, underestimation_rate=0.05),
    Question(coverage=0.8, underestimation_rate=0.1),
    Question(coverage=0.95, underestimation_rate=0.2),
)
"""Further questions about each job, for tables with levels."""


class Player(Protocol):
    """Methods to which a log is played. They learn together, by the two verbs of a predictor."""

    @property
    def methods(self) -> Sequence[str]:
        """Labels of the methods, in the order in which they are asked."""
        ...

    @property
    def largest_batch(self) -> int:
        """The most submissions that one call of ``predict`` takes."""
        ...

    def predict(self, method: str, submissions: Sequence[Submission]) -> Sequence[Prediction]:
        """Predict jobs that were just submitted; changes no answer."""
        ...

    def observe(self, ended: Sequence[Completion]) -> None:
        """Let every method learn from runs that have ended."""
        ...

    def note(self, started: Sequence[Completion]) -> None:
        """Tell methods that use it which jobs run, without their runtimes."""
        ...


@dataclass(frozen=True, slots=True)
class InProcess:
    """Predictors in this process.

    Attributes:
        predictors: by label.
        uncertain: those of them whose answers have the interval that a service gives by default.
    """

    predictors: Mapping[str, Predictor]
    largest_batch: int = 1
    uncertain: Mapping[str, UncertainPredictor] = field(default_factory=dict)

    @classmethod
    def with_intervals(cls, predictors: Mapping[str, Predictor]) -> "InProcess":
        """Return predictors that answer with an interval, as far as they have a distribution."""
        items = predictors.items()
        uncertain = {name: each for name, each in items if isinstance(each, UncertainPredictor)}
        return cls(predictors, uncertain=uncertain)

    @property
    def methods(self) -> Sequence[str]:
        """The labels of the predictors."""
        return tuple(self.predictors)

    def predict(
        self, method: str, submissions: Sequence[Submission], question: Question = USUAL
    ) -> Sequence[Prediction]:
        """Ask the predictor labelled ``method``."""
        if method in self.uncertain:
            ask = self.uncertain[method].ask
            return [ask(submission, question) for submission in submissions]
        predict = self.predictors[method].predict
        return [predict(submission) for submission in submissions]

    def ask(self, method: str, submissions: Sequence[Submission]) -> Sequence[Prediction]:
        """Ask the predictor labelled ``method`` for its mean, too, if it has a distribution."""
        predictor = self.predictors[method]
        if not isinstance(predictor, UncertainPredictor):
            return self.predict(method, submissions)
        return [predictor.ask(submission, USUAL) for submission in submissions]

    def quantiles(
        self, method: str, submission: Submission, shares: Sequence[float], elapsed: float | None
    ) -> Sequence[float] | None:
        """The runtimes that shares of jobs do not exceed; None where the method tells none."""
        predictor = self.predictors[method]
        if not isinstance(predictor, UncertainPredictor):
            return None
        return predictor.quantiles(submission, shares, elapsed)

    def observe(self, ended: Sequence[Completion]) -> None:
        """Let all predictors learn from runs that have ended."""
        for predictor in self.predictors.values():
            for completion in ended:
                predictor.observe(completion)

    def note(self, started: Sequence[Completion]) -> None:
        """Tell those predictors that use it which jobs run."""
        for predictor in self.predictors.values():
            if isinstance(predictor, Auto):
                for run in started:
                    predictor.started(start_of(run))


@dataclass(frozen=True, slots=True)
class Step:
    """Runs that end, then jobs that are submitted before the next run ends.

    Attributes:
        ended: positions of the runs that end.
        submitted: positions of the jobs.
        started: positions of the jobs that have started by the last of these submissions.
    """

    ended: Sequence[int]
    submitted: Sequence[int]
    started: Sequence[int] = ()


def steps(submit: Seconds, end: Seconds) -> Iterator[Step]:
    """The events of a log in order of time, as positions of its jobs.

    Among events at one time completions come first. But no job ends before its submission: only
    later submissions see a run of zero seconds. Completions at one time keep the order of the
    log, and so do submissions.

    Args:
        submit: submit times of the jobs, in any order.
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


@dataclass(slots=True, kw_only=True)
class Answers:
    """The answers of one method for every job, in the order of the log.

    Attributes:
        predicted: predicted runtimes in seconds.
        likely: medians, NaN where there is none.
        mean: mean runtimes, likewise.
        lower: lower ends of the intervals, likewise.
        upper: upper ends of the intervals, likewise.
        basis_jobs: number of past jobs that each prediction is made from.
        basis_reason: reason of each prediction in one word.
        answered_by: method that really answered.
        levels: ends of further intervals and predictions at further rates, by name of the column.
        latencies: seconds that each request took; a batch is one request.
    """

    predicted: Seconds
    likely: Seconds
    mean: Seconds
    lower: Seconds
    upper: Seconds
    basis_jobs: Seconds
    basis_reason: list[str]
    answered_by: list[str]
    levels: dict[str, Seconds] = field(default_factory=dict)
    latencies: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, jobs: int) -> "Answers":
        """Return empty answers for a log of ``jobs`` jobs."""
        predicted, likely, mean, lower, upper, basis_jobs = np.full((6, jobs), np.nan)
        return cls(
            predicted=predicted,
            likely=likely,
            mean=mean,
            lower=lower,
            upper=upper,
            basis_jobs=basis_jobs,
            basis_reason=[""] * jobs,
            answered_by=[""] * jobs,
        )

    def place(self, places: Integers, answers: "Answers") -> None:
        """Take over the answers about some of the jobs, without levels and latencies."""
        for name in ("predicted", "likely", "mean", "lower", "upper", "basis_jobs"):
            getattr(self, name)[places] = getattr(answers, name)
        for job, reason, method in zip(
            places.tolist(), answers.basis_reason, answers.answered_by, strict=True
        ):
            self.basis_reason[job], self.answered_by[job] = reason, method

    def note(self, jobs: Sequence[int], predictions: Sequence[Prediction], seconds: float) -> None:
        """Store the answer to one request."""
        self.latencies.append(seconds)
        for job, prediction in zip(jobs, predictions, strict=True):
            self.predicted[job] = prediction.predicted_walltime
            self.basis_jobs[job] = prediction.basis.jobs
            self.basis_reason[job] = intern(prediction.basis.reason)
            self.answered_by[job] = intern(prediction.method)
            if prediction.median is not None:
                self.likely[job] = prediction.median
            if prediction.mean is not None:
                self.mean[job] = prediction.mean
            if prediction.interval is not None:
                self.lower[job] = prediction.interval.lower
                self.upper[job] = prediction.interval.upper

    def note_level(
        self, jobs: Sequence[int], predictions: Sequence[Prediction], question: Question
    ) -> None:
        """Store the interval and the prediction at another level."""
        lower, upper, outlived = map(self._level, names_of_levels(question))
        for job, prediction in zip(jobs, predictions, strict=True):
            outlived[job] = prediction.predicted_walltime
            if prediction.interval is not None:
                lower[job] = prediction.interval.lower
                upper[job] = prediction.interval.upper

    def _level(self, name: str) -> Seconds:
        return self.levels.setdefault(name, np.full(len(self.predicted), np.nan))

    @property
    def predictions_per_second(self) -> float:
        """Number of predictions per second of the time that requests took."""
        return len(self.predicted) / max(sum(self.latencies), 1e-9)

    def latency(self, percent: float) -> float:
        """Percentile of the seconds that a request took."""
        return float(np.percentile(self.latencies, percent)) if self.latencies else 0.0


def names_of_levels(question: Question) -> tuple[str, str, str]:
    """Return the columns of a question: both ends of the interval, and the prediction.

    ``lower_80``, ``upper_80`` and ``outlived_10``: 80% of the jobs end between the first two, and
    10% outlive the third.
    """
    coverage, rate = (
        round(100 * question.coverage),
        round(100 * (question.underestimation_rate or 0)),
    )
    return f"lower_{coverage}", f"upper_{coverage}", f"outlived_{rate}"


@dataclass(frozen=True, slots=True)
class Replay:
    """A log that was played, with the answers.

    Attributes:
        runs: the jobs of the log, in its order.
        seconds: real time that the replay took.
    """

    runs: Sequence[Completion]
    answers: Mapping[str, Answers]
    seconds: float

    @property
    def requested(self) -> Seconds:
        """The requested walltimes in seconds."""
        return np.array([run.submission.requested_walltime for run in self.runs], dtype=float)

    @property
    def actual(self) -> Seconds:
        """The runtimes in seconds."""
        return np.array([run.runtime for run in self.runs], dtype=float)


def replay(
    runs: Sequence[Completion],
    player: Player,
    *,
    levels: Sequence[Question] = (),
    progress: Callable[[int], object] | None = None,
) -> Replay:
    """Play a log: ask every method at each submission, and let all learn from each completion.

    If the player takes batches, submissions between which no run ends are asked about together.
    That changes no answer, because predicting has no side effects.

    Args:
        runs: the log; its order decides ties in time.
        levels: further questions to methods with intervals in this process; their time does not
            count. A service would score the last answer about a job.
        progress: called with the number of jobs that were just predicted.
    """
    began = perf_counter()
    answers = {method: Answers.of(len(runs)) for method in player.methods}
    for step in events(runs):
        if step.started:
            player.note([runs[job] for job in step.started])
        if step.ended:
            player.observe([runs[job] for job in step.ended])
        for jobs in slices(step.submitted, player.largest_batch):
            submissions = [runs[job].submission for job in jobs]
            for method, noted in answers.items():
                asked = perf_counter()
                predictions = player.predict(method, submissions)
                noted.note(jobs, predictions, perf_counter() - asked)
                if isinstance(player, InProcess) and method in player.uncertain:
                    for question in levels:
                        further = player.predict(method, submissions, question)
                        noted.note_level(jobs, further, question)
        if progress:
            progress(len(step.submitted))
    return Replay(runs, answers, perf_counter() - began)


def replay_alone(
    trace: Trace, cluster: str, levels: Sequence[Question], spec: MethodSpec
) -> Answers:
    """Play the jobs of a cleaned trace, as runs of a cluster, to one method in this process."""
    player = InProcess.with_intervals({spec.label: spec.predictor()})
    runs = LoggedRuns(trace, cluster)
    return replay(runs, player, levels=levels).answers[spec.label]


def play_jobs(
    runs: Sequence[Completion],
    *,
    ended: Callable[[int], object],
    submitted: Callable[[int], object],
    started: Callable[[int], object] = lambda _: None,
) -> None:
    """Play a log to two hooks in order of time, for questions that ``replay`` does not ask.

    Args:
        runs: the log; its order decides ties in time.
        ended: called with the position of each run in the log at its end.
        submitted: called with the position of each job in the log at its submission.
        started: called with the position of each job that has started before a later submission,
            before ``ended`` is called with it.
    """
    for step in events(runs):
        for job in step.started:
            started(job)
        for job in step.ended:
            ended(job)
        for job in step.submitted:
            submitted(job)


def events(runs: Sequence[Completion]) -> Iterator[Step]:
    """The events of a log in order of time; see ``steps``.

    A start is told before the ends and submissions of a step, some of which may be earlier: it
    counts for later submissions only, and a run may end in the step in which it starts.
    """
    submit = np.array([run.submission.submit_time for run in runs], dtype=float)
    end = np.array([run.end_time for run in runs], dtype=float)
    start = np.array([run.start_time for run in runs], dtype=float)
    starts = np.argsort(start, kind="stable")
    times = start[starts]
    told = 0
    for step in steps(submit, end):
        until = told
        if step.submitted:
            until = int(np.searchsorted(times, submit[step.submitted[-1]], side="right"))
        yield Step(step.ended, step.submitted, starts[told:until].tolist())
        told = max(told, until)


def start_of(run: Completion) -> Start:
    """The start of a run, which counts at once."""
    return Start(run.submission, run.start_time, known_from=run.start_time)


def slices(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """``items`` in pieces of at most ``size``."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
