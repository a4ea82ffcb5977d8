"""Measures one round of tuning beside a straightforward evaluation of the same individuals.

    .venv/bin/python benchmarks/tuning.py [TRACE.swf.gz ...]

A round has h = 5000, t1 = 2000, t2 = 1000 and every training job sees only what had ended at its
submission; the genetic search has 50 individuals and goes on for all of its 100 generations.
Without traces it runs on a seeded stream of jobs. The straightforward evaluation goes
job by job with numpy over the last N completions; it is timed on a sample of the individuals of
the genetic search's first generation, must give the same cost, and is scaled up to all of them.
Then a round of all subjects is measured, on the newest 20,000 runs; its search ends as in a
service.
The times are processor seconds of one core, compilation excluded.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from prediction_costs import stream

from predictors.jobs import Completion
from predictors.measures import mean_absolute_error, underestimation_rate
from predictors.memory.job_table import features_of
from predictors.methods.knn import KnnParameters
from predictors.tuning import genetic
from predictors.tuning.adoption import Adopted
from predictors.tuning.batch import Batch, Errors, batch_of
from predictors.tuning.cluster_round import ClusterParameters, tune_cluster
from predictors.tuning.genetic import GENES, decode
from predictors.tuning.knn_tunable import tune
from predictors.tuning.plan import GENERATIONS, TuningPlan
from simulator.traces.cleaning import REPLAY_RULES, clean
from simulator.traces.completions import completions as runs_of
from simulator.traces.swf import read_swf

Numbers = NDArray[np.float64]

HISTORY, TRAINING, TEST = 5_000, 2_000, 1_000
SAMPLE = 8
PENALTY = 1.0
MOST_SECONDS, LEAST_RATIO = 6.0, 100.0

WHOLE, MOST_SECONDS_WHOLE = 20_000, 30.0
"""Runs of a round of all subjects, and its processor seconds at most."""


class Straightforward:
    """Evaluates parameters as one would write it down: job by job, with numpy."""

    def __init__(self, completions: Sequence[Completion], trials: Sequence[Completion]) -> None:
        submissions = [completion.submission for completion in completions]
        self.ends = np.array([completion.end_time for completion in completions])
        self.runtimes = np.array([completion.runtime for completion in completions])
        self.features = np.array([features_of(submission) for submission in submissions])
        self.attributes = {
            name: np.array([getattr(submission, name) or "" for submission in submissions])
            for name in ("user", "group", "queue", "application")
        }
        self.trials = trials

    def neighbours(
        self, trial: Completion, parameters: KnnParameters
    ) -> tuple[Numbers, Numbers, Numbers] | None:
        """Scaled features of the neighbours, nearest first, their runtimes, and the job's own."""
        job = trial.submission
        ended = int(np.searchsorted(self.ends, job.submit_time, side="right"))
        scaled = self.features[max(0, ended - parameters.scaling) : ended]
        recent = slice(max(0, ended - parameters.history), ended)
        matching = np.ones(recent.stop - recent.start, dtype=bool)
        for name in parameters.template:
            wanted = getattr(job, name) or ""
            matching &= (self.attributes[name][recent] == wanted) & (wanted != "")
        if not matching.any():
            return None
        known = ~np.isnan(scaled).all(axis=0)
        width = np.zeros(3)
        width[known] = np.nanmax(scaled[:, known], axis=0) - np.nanmin(scaled[:, known], axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = np.where(width > 0, 1 / width, 0.0)
        features = self.features[recent][matching]
        own = np.array(features_of(job))
        squares = ((features - own) * inverse) ** 2
        distances = np.where(squares <= 1, squares, 1.0).sum(axis=1)
        newest_first = distances[::-1].argsort(kind="stable")[: parameters.neighbours]
        runtimes = self.runtimes[recent][matching][::-1][newest_first]
        return features[::-1][newest_first] * inverse, runtimes, own * inverse

    def predict(self, trial: Completion, parameters: KnnParameters) -> float:
        """Prediction of knn for one job, in seconds."""
        request = trial.submission.requested_walltime
        found = self.neighbours(trial, parameters)
        if found is None:
            return request
        _, runtimes, _ = found
        seconds = parameters.estimate(runtimes.mean(), runtimes.std(), request)
        return min(request, max(1.0, float(seconds)))

    def errors(self, parameters: KnnParameters) -> Errors:
        """Over all trial jobs."""
        predicted = np.array([self.predict(trial, parameters) for trial in self.trials])
        actual = np.array([trial.runtime for trial in self.trials])
        return Errors(
            mean_absolute_error=mean_absolute_error(predicted, actual),
            underestimation_rate=underestimation_rate(predicted, actual),
        )


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds of a call, and its answer."""
    began = process_time()
    answer = call()
    return process_time() - began, answer


def individuals(batch: Batch) -> list[KnnParameters]:
    """Random ones, as in the first generation of a genetic search."""
    genomes = np.random.default_rng(1).random((SAMPLE, GENES))
    return [decode(genome, batch) for genome in genomes]


def straightforward_seconds(completions: Sequence[Completion]) -> float:
    """One individual's evaluation, on average; checks that both evaluations agree."""
    training, trials = completions[:-TEST], completions[HISTORY:-TEST]
    batch = batch_of(training, trials)
    slow = Straightforward(training, trials)
    total = 0.0
    for parameters in individuals(batch):
        seconds, errors = timed(partial(slow.errors, parameters))
        total += seconds
        fast = batch.errors(parameters).cost(PENALTY)
        if abs(errors.cost(PENALTY) - fast) > 1e-9 * fast:
            raise SystemExit(f"The evaluations differ for {parameters}.")
    return total / SAMPLE


@contextmanager
def all_generations() -> Iterator[None]:
    """Let genetic searches go on for all of their generations."""
    usual, genetic.PATIENCE = genetic.PATIENCE, GENERATIONS
    try:
        yield
    finally:
        genetic.PATIENCE = usual


def measure(name: str, completions: list[Completion]) -> bool:
    """Print the figures of one history; says whether they are as they should be."""
    each = straightforward_seconds(completions)
    plan = TuningPlan(history=HISTORY, training=TRAINING, test=TEST, penalty=PENALTY)
    tune(completions, Adopted(now=KnnParameters()), plan)
    seconds, (done, _, _) = timed(partial(tune, completions, Adopted(now=KnnParameters()), plan))
    straightforward = each * done.evaluations
    ratio = straightforward / seconds
    cost = done.after.training.cost(PENALTY)
    print(
        f"{name:24} {seconds:8.2f} {done.evaluations:11,} {straightforward:15,.0f}"
        f" {ratio:9,.0f} {cost:9.1f} {done.after.test.cost(PENALTY):9.1f}"
    )
    return seconds <= MOST_SECONDS and ratio >= LEAST_RATIO


def measure_whole(completions: Sequence[Completion]) -> bool:
    """Print the time of a round of all subjects; says whether it is short enough."""
    before = ClusterParameters(knn=Adopted(now=KnnParameters()))
    tune_cluster(completions[:4_000], before, TuningPlan(generations=1))
    seconds, done = timed(partial(tune_cluster, completions, before, TuningPlan()))
    actions = ", ".join(f"{change.subject} {change.action}" for change in done.changes)
    print(f"round of all subjects, {len(completions):,} runs: {seconds:.1f} s; {actions}")
    return seconds <= MOST_SECONDS_WHOLE


def history(trace: Path | None) -> list[Completion]:
    """The newest completions of a trace, or of the stream, in order of their end."""
    if trace is None:
        runs = list(islice(stream(), WHOLE))
    else:
        runs = list(runs_of(clean(read_swf(trace), REPLAY_RULES)[0]))
    runs.sort(key=lambda run: run.end_time)
    return runs[-WHOLE:]


def main() -> None:
    """Measure every trace; fail where a round is slower than it should be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("traces", nargs="*", type=Path)
    traces = parser.parse_args().traces or [None]
    print(f"{'history':24} {'round s':>8} {'evaluations':>11}", end="")
    print(f" {'numpy, same s':>15} {'x faster':>9} {'train':>9} {'test':>9}")
    names = [(trace.name.split(".")[0] if trace else "stream", trace) for trace in traces]
    good = []
    for name, trace in names:
        runs = history(trace)
        with all_generations():
            good.append(measure(name, runs[-(HISTORY + TRAINING + TEST) :]))
        good.append(measure_whole(runs))
    if not all(good):
        raise SystemExit(
            f"A search should take {MOST_SECONDS:g} s, {LEAST_RATIO:g} x less, and a round of all"
            f" subjects {MOST_SECONDS_WHOLE:g} s."
        )


if __name__ == "__main__":
    main()
