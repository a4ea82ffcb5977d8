"""Measures what further facts are worth: where they determine runtimes, and where they are noise.

.venv/bin/python research/facts.py --jobs 6000
.venv/bin/python research/facts.py --log JOBS.csv

Synthetic users (benchmarks/synth.py) whose runtimes follow a known law of script, input size and
array (benchmarks/synth_facts.py). Each method predicts each job three times: without facts, with
the facts of the law, and with facts that are noise. Errors are those of the later half of the jobs.
With --log the jobs are those of a log in the CSV of ``walltimed export``, and the facts its own;
noise are the facts of other jobs.
"""

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from msgspec.structs import replace

from predictors.base import Question, UncertainPredictor
from predictors.jobs import Completion
from predictors.registry import create
from service.adapters.csv_table import read_table
from service.adapters.runs import SkippedError

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from synth import SyntheticLog, synthesise
from synth_facts import in_order, runs_with_facts

RATE = Question(underestimation_rate=0.1)


def without_facts(runs: Sequence[Completion]) -> list[Completion]:
    """Return the same runs without facts."""
    return [replace(run, submission=replace(run.submission, facts=None)) for run in runs]


def errors_of(method: str, runs: Sequence[Completion]) -> list[tuple[float, ...]]:
    """Return of each job of the later half: error, whether it was too short, and both at 10%."""
    predictor = create(method)
    if not isinstance(predictor, UncertainPredictor):
        raise typer.BadParameter(f"{method} has no distribution.")
    found = []
    later = {run.submission.job_id for run in runs[len(runs) // 2 :]}
    for is_submitted, run in in_order(list(runs)):
        if not is_submitted:
            predictor.observe(run)
        elif run.submission.job_id in later:
            usual = predictor.ask(run.submission, Question())
            rate = predictor.ask(run.submission, RATE).predicted_walltime
            interval = usual.interval
            is_held = interval is not None and interval.lower <= run.runtime <= interval.upper
            found.append((*_judged(usual.predicted_walltime, run), *_judged(rate, run), is_held))
    return found


def _judged(predicted: float, run: Completion) -> tuple[float, float]:
    return abs(predicted - run.runtime), float(predicted < run.runtime - 1e-6)


def runs_of_log(log: Path, facts: str) -> list[Completion]:
    """Return the runs of a log in the CSV of ``walltimed export``, with its facts or others."""
    with log.open(encoding="utf-8") as lines:
        found = [each for _, each in read_table(lines, zone=UTC)]
    runs = [each.completion for each in found if not isinstance(each, SkippedError)]
    if facts == "none":
        return without_facts(runs)
    if facts != "noise":
        return runs
    order = np.random.default_rng(1).permutation(len(runs))
    return [
        replace(run, submission=replace(run.submission, facts=runs[other].submission.facts))
        for run, other in zip(runs, order, strict=True)
    ]


def rows(
    methods: Iterable[str], jobs: int, seeds: Sequence[int], log: Path | None = None
) -> Iterable[str]:
    """Yield the lines of the table."""
    number = len(runs_of_log(log, "none")) if log else jobs
    yield f"{number:,} jobs, seeds {', '.join(map(str, seeds))}; means over the later halves"
    yield (
        f"{'method':12}{'facts':14}{'MAE':>9}{'change':>9}{'under':>8}"
        f"{'at 10%':>9}{'change':>9}{'under':>8}{'90% held':>10}"
    )
    for method in methods:
        base: np.ndarray | None = None
        for name in ("none", "of the log" if log else "by the law", "noise"):
            each = [_means(method, name, jobs, seed, log) for seed in seeds]
            means = np.mean(each, axis=0)
            base = means if base is None else base
            change = [f"{100 * (means[place] / base[place] - 1):+8.1f}%" for place in (0, 2)]
            yield (
                f"{method:12}{name:14}{means[0]:9.0f}{change[0]}{means[1]:8.3f}"
                f"{means[2]:9.0f}{change[1]}{means[3]:8.3f}{means[4]:10.3f}"
            )


def _means(method: str, facts: str, jobs: int, seed: int, log: Path | None) -> np.ndarray:
    if log:
        return np.mean(errors_of(method, runs_of_log(log, facts)), axis=0)
    trace = synthesise(SyntheticLog(jobs=jobs, seed=seed))
    runs = runs_with_facts(trace, seed=seed, are_noise=facts == "noise")
    runs = without_facts(runs) if facts == "none" else runs
    return np.mean(errors_of(method, runs), axis=0)


def main(
    *,
    jobs: Annotated[int, typer.Option(min=100, help="Jobs of each log.")] = 6_000,
    seed: Annotated[list[int], typer.Option(help="Seeds; can be repeated.")] = [1],  # noqa: B006
    method: Annotated[list[str], typer.Option(help="Methods; can be repeated.")] = [  # noqa: B006
        "least-cost",
        "attention",
        "auto",
    ],
    log: Annotated[Path | None, typer.Option(help="CSV of a log with facts.")] = None,
) -> None:
    """Print the table."""
    for line in rows(method, jobs, seed, log):
        typer.echo(line)


if __name__ == "__main__":
    typer.run(main)
