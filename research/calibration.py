"""Compares the coverage of intervals and the rates of underestimates with the nominal ones.

    .venv/bin/python research/calibration.py LOG... --method attention

Prints a table for each log.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Annotated, cast

import numpy as np
import typer
from numpy.typing import NDArray
from played_logs import LogPart, Traces, log_parts, play_logs, run_script

from predictors.base import Question, UncertainPredictor
from predictors.jobs import Completion
from predictors.registry import AUTO, UNCERTAIN
from simulator.cli.options import Distributed, Processes
from simulator.replay.method_spec import MethodSpec
from simulator.replay.trace_replay import InProcess, play_jobs
from simulator.reports.tables import text_table
from terminal.console import CommandError, ExitCode, out
from terminal.options import Limit

COVERAGES = (0.5, 0.8, 0.9, 0.95)
RATES = (0.05, 0.1, 0.2)
TENTHS = 10

WHOLE_GOAL = {"interval": 0.02, "underestimates": 0.01}
"""How far off a whole log may be."""

TENTH_GOAL = 0.05
"""How far off the interval may be in a tenth of a log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A nominal level and the observed share of a log's jobs.

    Attributes:
        kind: ``interval`` or ``underestimates``.
        nominal: share of jobs.
        observed: share of jobs.
        tenths: observed share in each tenth of the log that has a job, in order of submission.
        seconds: median width of the intervals, or median of the predictions.
    """

    kind: str
    nominal: float
    observed: float
    tenths: Sequence[float]
    seconds: float

    @property
    def worst(self) -> float:
        """Largest deviation of a tenth, as a share."""
        return max(abs(each - self.nominal) for each in self.tenths)

    @property
    def verdict(self) -> str:
        """Missed goals in words, or ``reached``."""
        missed = ["whole log"] if abs(self.observed - self.nominal) > WHOLE_GOAL[self.kind] else []
        if self.kind == "interval" and self.worst > TENTH_GOAL:
            missed.append("tenths")
        return "missed: " + ", ".join(missed) if missed else "reached"


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """Results of one log.

    Attributes:
        jobs: how many there are, the first ones included.
        levels: nominal and observed.
    """

    jobs: int
    levels: Sequence[Level]


def compare(runs: Sequence[Completion], method: UncertainPredictor) -> Calibrated:
    """Ask a method about every job of a log at its submission, and compare with its run.

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

    player = InProcess({method.name: method})
    play_jobs(
        runs,
        ended=lambda job: player.observe([runs[job]]),
        submitted=ask,
        started=lambda job: player.note([runs[job]]),
    )
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
    kind: str,
    nominal: float,
    is_so: NDArray[np.bool_],
    order: NDArray[np.int64],
    seconds: NDArray[np.float64],
) -> Level:
    return Level(
        kind=kind,
        nominal=nominal,
        observed=float(is_so.mean()),
        tenths=[
            float(tenth.mean()) for tenth in np.array_split(is_so[order], TENTHS) if len(tenth)
        ],
        seconds=float(np.median(seconds)),
    )


def table(found: Calibrated) -> str:
    """Return the results of a log as a table of text."""
    rows = [
        (
            level.kind,
            f"{level.nominal:.0%}",
            f"{level.observed:.1%}",
            f"{100 * (level.observed - level.nominal):+.1f}",
            " ".join(f"{100 * (tenth - level.nominal):+.1f}" for tenth in level.tenths),
            f"{level.seconds:,.0f}",
            level.verdict,
        )
        for level in found.levels
    ]
    heads = ("kind", "nominal", "observed", "points off", "off in each tenth", "median s", "goal")
    return f"{found.jobs:,} jobs\n{text_table(heads, rows)}"


def play(part: LogPart) -> Calibrated:
    """Ask the method about every job of a log."""
    method = MethodSpec.parse(part.options).predictor()
    return compare(part.runs(), cast("UncertainPredictor", method))


def main(
    traces: Traces,
    *,
    method: Annotated[
        str, typer.Option(help="Gives intervals; auto:every=2000 holds rounds as a service.")
    ] = "least-cost",
    limit: Limit = None,
    processes: Processes = None,
    distributed: Distributed = None,
) -> None:
    """Compare nominal and observed coverage, and rates of underestimates, on logs.

    Every job is asked about at its submission, when only what had ended is known. The goals:
    intervals within 2 points over the log and within 5 in every tenth, underestimates within 1.

    For example: python research/calibration.py sdsc.swf.gz --method attention
    """
    able = {*UNCERTAIN, AUTO}
    if MethodSpec.parse(method).name not in able:
        names = ", ".join(sorted(able))
        raise CommandError(f"{method} gives no intervals; {names} can.", ExitCode.USAGE)
    parts = log_parts(traces, limit, method)
    for part, found in play_logs(play, parts, processes=processes, distributed=distributed):
        out.print(f"{part.trace}, {part.options}: {table(found)}", markup=False, soft_wrap=True)


if __name__ == "__main__":
    run_script(main)
