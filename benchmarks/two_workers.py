"""Measures ten logs of eleven plays each on two Dask workers beside one.

    .venv/bin/python benchmarks/two_workers.py

The logs are synthetic. A log is played by EASY with estimates of ``auto``, as it is and ten times
with submissions moved a little, as ``walltimed simulate --shake 60 --repeat 10`` does. Two logs at
a time are played on one worker, then on two, so that both sides meet the same load; on two workers
both logs are under way at once, so that no worker waits for the last play of a log. Needs
the extra ``distributed``, and two idle cores: two minutes.
"""

import argparse
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import perf_counter
from typing import Any

from distributed import Client, LocalCluster
from harness import Ratios
from synth import SyntheticLog, synthesise

from simulator.reports.comparison import Combination, Comparison, Shaking, simulated
from simulator.scheduling.measures import Measures, measure
from simulator.scheduling.parallel import in_parallel
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.workload import prepare

GOAL = 1.7
SECONDS, REPETITIONS = 60, 10
LOAD = 0.8


def comparison_of(seed: int, jobs: int) -> Comparison:
    """Return a log with its repetitions."""
    trace = synthesise(SyntheticLog(jobs=jobs, seed=seed, load=LOAD))
    workload = prepare(trace, processors=None, cores_per_node=None, overrun="kill")
    return Comparison(trace, workload, Shaking(SECONDS, REPETITIONS))


def plays_of(address: str, comparison: Comparison, method: str) -> list[Measures]:
    """Play a log and its repetitions on a cluster."""
    tasks = comparison.tasks([Combination(Semantics(), method)])
    found = in_parallel(partial(simulated, comparison), tasks, distributed=f"dask:{address}")
    return [each if isinstance(each, Measures) else measure(each) for each in found]


def warm(address: str, method: str) -> None:
    """Load code and machine code in every worker."""
    small = comparison_of(0, 50)
    [task, *_] = small.tasks([Combination(Semantics(), method)])
    with Client(address, set_as_default=False) as client:
        client.run(simulated, small, task)


def cluster(workers: int) -> Any:
    """Return a scheduler with worker processes of one thread each."""
    return LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0")


def main() -> None:
    """Print the seconds of both sides and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--logs", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=3000, help="of each log")
    parser.add_argument("--method", default="auto")
    options = parser.parse_args()
    logs = [comparison_of(seed, options.jobs) for seed in range(1, options.logs + 1)]
    ratios, one_all, two_all = Ratios(), 0.0, 0.0
    with cluster(1) as one, cluster(2) as two, ThreadPoolExecutor(2) as threads:
        for each in (one, two):
            warm(each.scheduler_address, options.method)
        for first in range(0, len(logs), 2):
            pair = logs[first : first + 2]
            began = perf_counter()
            alone = [plays_of(one.scheduler_address, log, options.method) for log in pair]
            between = perf_counter()
            play = partial(plays_of, two.scheduler_address, method=options.method)
            together = list(threads.map(play, pair))
            ended = perf_counter()
            if alone != together:
                raise SystemExit("The plays differ.")
            one_all, two_all = one_all + between - began, two_all + ended - between
            ratios.add("seconds for two logs", between - began, ended - between)
            print(f"one worker {between - began:6.1f} s, two {ended - between:6.1f} s", flush=True)
    ratios.add(f"seconds for {options.logs} logs", one_all, two_all)
    print(ratios.table("one worker", "two workers"))
    judged = "reached" if one_all / two_all >= GOAL else "missed"
    print(f"goal {GOAL} for all logs: {judged}; load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
