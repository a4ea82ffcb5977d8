"""Coverage of intervals and underestimation rates: nominal against observed, on real logs."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from predictors.base import Question, UncertainPredictor
from predictors.jobs import Completion
from predictors.registry import AUTO, UNCERTAIN
from simulator.replay.method_spec import MethodSpec
from simulator.replay.trace_replay import play_jobs
from simulator.reports.tables import text_table
from simulator.studies.study import LogPart, Played, Study, StudyError, Takes, log_parts

COVERAGES = (0.5, 0.8, 0.9, 0.95)
RATES = (0.05, 0.1, 0.2)
TENTHS = 10

WHOLE_GOAL = {"interval": 0.02, "underestimates": 0.01}
"""How far off a whole log may be."""

TENTH_GOAL = 0.05
"""How far off the interval may be in a tenth of a log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One thing that was asked of every job of a log.

    Attributes:
        what: ``interval`` or ``underestimates``.
        asked: the share of jobs.
        got: the share of jobs that it was.
        tenths: the same in each tenth of the log that has a job, in order of submission.
        seconds: median width of the intervals, or median of the predictions.
    """

    what: str
    asked: float
    got: float
    tenths: Sequence[float]
    seconds: float

    @property
    def worst(self) -> float:
        """Largest deviation of a tenth, as a share."""
        return max(abs(each - self.asked) for each in self.tenths)

    @property
    def verdict(self) -> str:
        """Missed goals in words, or ``reached``."""
        missed = ["whole log"] if abs(self.got - self.asked) > WHOLE_GOAL[self.what] else []
        if self.what == "interval" and self.worst > TENTH_GOAL:
            missed.append("tenths")
        return "missed: " + ", ".join(missed) if missed else "reached"


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """Results of one log.

    Attributes:
        jobs: how many there are, the first ones included.
        levels: what was asked and got.
    """

    jobs: int
    levels: Sequence[Level]


def compare(runs: Sequence[Completion], method: UncertainPredictor) -> Calibrated:
    """Ask a method about every job of a log at its submission, and compare with what came.

    A run counts up to its request, which no prediction exceeds. Every job counts, the first ones,
    of which nothing can be known, too.

    Args:
        runs: the log.
        method: that nothing has been told yet.
    """
    questions = [
        Question(coverage=coverage or COVERAGES[-1], underestimation_rate=rate)
        for coverage, rate in zip_longest(COVERAGES, RATES)
    ]
    lower, upper, predicted = np.empty((3, len(questions), len(runs)))

    def ask(job: int) -> None:
        for place, question in enumerate(questions):
            answer = method.ask(runs[job].submission, question)
            predicted[place, job] = answer.predicted_walltime
            if answer.interval is not None:
                lower[place, job] = answer.interval.lower
                upper[place, job] = answer.interval.upper

    play_jobs(runs, ended=lambda job: method.observe(runs[job]), submitted=ask)
    submit = np.array([run.submission.submit_time for run in runs])
    actual = np.array([min(run.runtime, run.submission.requested_walltime) for run in runs])
    order = np.argsort(submit, kind="stable")
    levels = [
        _level("interval", share, (low <= actual) & (actual <= high), order, high - low)
        for share, low, high in zip(COVERAGES, lower, upper, strict=True)
    ]
    levels += [
        _level("underestimates", share, seconds < actual, order, seconds)
        for share, seconds in zip(RATES, predicted, strict=False)
    ]
    return Calibrated(jobs=len(runs), levels=levels)


def _level(
    what: str,
    asked: float,
    is_so: NDArray[np.bool_],
    order: NDArray[np.int64],
    seconds: NDArray[np.float64],
) -> Level:
    return Level(
        what=what,
        asked=asked,
        got=float(is_so.mean()),
        tenths=[
            float(tenth.mean()) for tenth in np.array_split(is_so[order], TENTHS) if len(tenth)
        ],
        seconds=float(np.median(seconds)),
    )


def table(found: Calibrated) -> str:
    """The study as a table of text."""
    rows = [
        (
            level.what,
            f"{level.asked:.0%}",
            f"{level.got:.1%}",
            f"{100 * (level.got - level.asked):+.1f}",
            " ".join(f"{100 * (tenth - level.asked):+.1f}" for tenth in level.tenths),
            f"{level.seconds:,.0f}",
            level.verdict,
        )
        for level in found.levels
    ]
    heads = ("what", "asked", "got", "points off", "off in each tenth", "median s", "goal")
    return f"{found.jobs:,} jobs\n{text_table(heads, rows)}"


def runs(paths: Sequence[Path], limit: int | None, *, method: str) -> Sequence[LogPart]:
    """A part for each log.

    Raises:
        MethodSpecError: the method has no such parameter.
        StudyError: the method gives no intervals.
    """
    able = {*UNCERTAIN, AUTO}
    if MethodSpec.parse(method).name not in able:
        raise StudyError(f"{method} gives no intervals; {', '.join(sorted(able))} can.")
    MethodSpec.parse(method).predictor()
    return log_parts(paths, limit, method)


def play(part: LogPart) -> Calibrated:
    """Ask the method about every job of a log."""
    return compare(
        part.runs(), cast("UncertainPredictor", MethodSpec.parse(part.options).predictor())
    )


def tables(played: Played) -> str:
    """The table of every log."""
    return "\n".join(f"{part.name}, {part.options}: {table(found)}\n" for part, found in played)


STUDY = Study(
    title="what intervals and rates of underestimates promise, and what they keep",
    takes=Takes.TRACES,
    runs=runs,
    play=play,
    tables=tables,
)
