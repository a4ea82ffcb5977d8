"""Measures what further facts cost an answer in process, in pairs: hashing, and weighing.

    .venv/bin/python benchmarks/facts_costs.py

The history is that of a synthetic site whose runtimes follow facts (benchmarks/synth_facts.py): so
they have weights, and every answer uses them. Each job is asked about with and without facts, of
predictors that learned with and without them, in an order by chance.
"""

import argparse
import os
from random import Random
from statistics import median
from time import perf_counter

from msgspec.structs import replace
from synth import SyntheticLog, synthesise
from synth_facts import runs_with_facts

from predictors.base import USUAL, UncertainPredictor
from predictors.facts import Facts
from predictors.jobs import Completion, Submission
from predictors.registry import create
from service.auth import Pseudonyms

GOAL = 20.0
METHODS = ("least-cost", "attention", "auto")
FILTERED = Facts(
    work_dir="/scratch/ada/relax/run_17",
    script_hash="00aabbccddee",
    submit_line="sbatch relax.sh --steps 17",
    qos="normal",
    nodes=2,
    submit_host="login1",
    features={"input_bytes": 1500.0, "rule": "align"},
)
"""Facts as Slurm's filter sends them."""


def microseconds(predictor: UncertainPredictor, job: Submission) -> float:
    """Return the time of a second answer; the first one brings code and rows into the caches."""
    predictor.ask(job, USUAL)
    began = perf_counter()
    predictor.ask(job, USUAL)
    return 1e6 * (perf_counter() - began)


def taught(method: str, runs: list[Completion]) -> UncertainPredictor:
    """Return a method that has learned from runs."""
    predictor = create(method)
    assert isinstance(predictor, UncertainPredictor)  # noqa: S101 - for mypy
    for run in runs:
        predictor.observe(run)
    return predictor


def hashing(jobs: int) -> float:
    """Return the median microseconds for the hashes of a submission whose command is new."""
    pseudonyms, found = Pseudonyms(os.urandom(32)), []
    for number in range(jobs):
        facts = replace(FILTERED, submit_line=f"sbatch relax.sh --steps {number}")
        job = Submission(requested_walltime=60.0, submit_time=0.0, user="ada", facts=facts)
        plain = replace(job, facts=None)
        began = perf_counter()
        pseudonyms.submission(plain)
        between = perf_counter()
        pseudonyms.submission(job)
        found.append(1e6 * (perf_counter() - between - (between - began)))
    return median(found)


def main() -> None:
    """Print the medians of both sides and of their differences."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--history", type=int, default=5000, help="runs")
    parser.add_argument("--jobs", type=int, default=900, help="jobs that are asked about")
    options = parser.parse_args()
    number = options.history + options.jobs
    trace = synthesise(SyntheticLog(jobs=number, seed=3, load=0.8))
    told = sorted(runs_with_facts(trace, seed=3), key=lambda run: run.end_time)
    plain = [replace(run, submission=replace(run.submission, facts=None)) for run in told]
    asked = hashing(options.jobs)
    print(
        f"{options.history:,} runs, {options.jobs} jobs; medians in us; load {os.getloadavg()[0]}"
    )
    print(f"hashes of a submission of Slurm's filter, with a key: {asked:.1f}")
    print(f"{'':12} {'without':>8} {'with':>8} {'difference':>11}")
    chance = Random(1)  # noqa: S311 - no secrets here
    for method in METHODS:
        sides = [taught(method, runs[: options.history]) for runs in (plain, told)]
        pairs = []
        for place in range(options.history, number):
            jobs = [
                replace(runs[place].submission, submit_time=told[-1].end_time + place)
                for runs in (plain, told)
            ]
            times = [0.0, 0.0]
            for side in chance.sample((0, 1), 2):
                times[side] = microseconds(sides[side], jobs[side])
            pairs.append(times)
        without, with_facts = (median(each) for each in zip(*pairs, strict=True))
        more = median(one - other for other, one in pairs)
        judged = "reached" if more <= GOAL else "missed"
        print(f"{method:12} {without:8.1f} {with_facts:8.1f} {more:11.1f}  <= {GOAL:.0f} {judged}")


if __name__ == "__main__":
    main()
