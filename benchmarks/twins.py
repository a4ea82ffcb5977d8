"""Likeness of the twin of Slurm to recorded plays of a real one, and the cost of its cycles.

    python benchmarks/twins.py [--trace LOG] [--picture FILE]

Prints shares and quantiles of |difference of starts| in seconds, and mean waits, for the twin, EASY
and conservative backfilling on the plays of ``tests/data/twins``; then milliseconds of the
processor for one backfill cycle by the length of the queue; and with LOG the time for a whole log.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

sys.path.append(str(Path(__file__).parents[1] / "research" / "fast_motion"))

from recorded_plays import (
    Likeness,
    RecordedPlay,
    read_play,
    rules_of,
    starts_under,
    twin_starts,
)
from slurm_play import comparisons

from simulator.engine.slurm.slurm_loop import run
from simulator.engine.slurm.slurm_state import NodeGroup, PartitionNodes, new_slurm_state
from simulator.scheduling.estimates import Estimates
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import simulate, warm_up
from simulator.scheduling.slurm_rules import SlurmRules
from simulator.scheduling.workload import prepare
from simulator.traces.swf import read_swf

PLAYS = ("k113", "k113b", "k113auto")

FEATURES = ("reservations", "gpus")

ZERO = 1_800_000_120
"""Unix seconds of second 0 of the play with reservations."""

PLAIN = ("easy", "conservative")

QUEUES = (10, 30, 100, 200, 400, 800)

CYCLES = 50

NODES = 128

DATA = Path(__file__).parents[1] / "tests/data/twins"

INTERVAL = 31
"""Seconds: one bf_interval and the start of a cycle."""

RULES = SlurmRules(over_time_limit=300, epilog=3, cycle_time=1.0)
"""The configuration of the plays. A faked clock makes ends and cycles take seconds."""

HOUR = 3600


def recorded(name: str) -> RecordedPlay:
    """Return a play that is kept for tests."""
    return read_play(DATA / f"{name}.csv")


def schedules() -> Iterator[tuple[str, str, Likeness]]:
    """Yield play, scheduler and likeness."""
    for name in PLAYS:
        play = recorded(name)
        yield name, "twin", Likeness.of(play, twin_starts(play, RULES, NODES), INTERVAL)
        if not play.time_min.any():
            for policy in PLAIN:
                starts = starts_under(policy, play, NODES)
                yield name, policy, Likeness.of(play, starts, INTERVAL)
    other = recorded("k113b")
    yield "k113", "k113b", Likeness.of(recorded("k113"), other.start, INTERVAL, other.submit)


def print_likeness() -> None:
    """Print a line for each play and scheduler."""
    print(Likeness.HEADS)
    for name, scheduler, likeness in schedules():
        print(likeness.row(f"{name}, {scheduler}"))
    for notes in sorted(DATA.glob("*/play.json")):
        print(f"{notes.parent.name}, Slurm {json.loads(notes.read_text())['first']['slurm']}")
        for name, likeness in comparisons(notes.parent):
            print(likeness.row(f"  {name}"))


def print_features() -> None:
    """Print a line for each play with reservations or GPUs, with and without them in the twin."""
    for name in FEATURES:
        play = recorded(f"{name}/play")
        rules = rules_of(DATA / name / "site", cycle_time=0.2)
        assert isinstance(rules, SlurmRules)  # noqa: S101 - the plays are of Slurm
        assert rules.cluster is not None  # noqa: S101 - a site has one
        plain = replace(rules, cluster=replace(rules.cluster, reservations=(), gpus=()))
        for label, each in ((f"{name}, twin", rules), ("  without them", plain)):
            starts = twin_starts(play, each, rules.cluster.cpus, ZERO)
            print(Likeness.of(play, starts, INTERVAL).row(label))


def seconds_of_cycle(nodes: int, waiting: int) -> float:
    """Return processor seconds of one cycle that starts nothing; half as many jobs run."""
    draw = np.random.default_rng(waiting)
    running = nodes // 2
    sizes = np.concatenate([np.full(running, 2), draw.integers(1, nodes // 4, waiting), [1]])
    limits = 60 * np.concatenate(
        [draw.integers(120, 1080, running), draw.integers(10, 1080, waiting), [60]]
    )
    submit = np.concatenate([np.zeros(running), np.ones(waiting), [31 * CYCLES]]).astype(int)
    nothing = np.zeros(len(sizes), int)
    state = new_slurm_state(
        {
            "submit": submit, "processors": sizes, "nodes": sizes, "runtime": limits,
            "request": limits, "limit": limits, "partition": nothing, "user": nothing,
            "account": nothing, "fixed_score": nothing.astype(float),
        },
        groups=[NodeGroup(nodes, cpus=1)],
        partitions=[PartitionNodes(1, exclusive=True, members=range(nodes))],
        rules={
            **SlurmRules(skips_cycles=False, bf_max_job_test=1000).numbers(),
            "time_min": 0,
            "shortest_first": 0,
        },
    )  # fmt: skip
    state.jobs["estimate"] = limits
    state.clock["pause_at"] = len(sizes) - 1
    began = time.process_time()
    run(state)
    return (time.process_time() - began) / int(state.clock["cycles"][0])


def print_costs() -> None:
    """Print milliseconds of a cycle by nodes and length of the queue."""
    print("\nmilliseconds of a cycle that starts nothing")
    print("waiting jobs " + "".join(f"{waiting:9}" for waiting in QUEUES))
    for nodes in (128, 1024):
        costs = [1000 * seconds_of_cycle(nodes, waiting) for waiting in QUEUES]
        print(f"{nodes:6} nodes " + "".join(f"{cost:9.2f}" for cost in costs))


def print_whole_log(path: str) -> None:
    """Print processor seconds for a whole log."""
    workload = prepare(read_swf(path))
    began = time.process_time()
    simulate(workload, Semantics(policy="slurm"), Estimates.named("requested"))
    print(f"\n{Path(path).name}: {len(workload):,} jobs in {time.process_time() - began:.1f} s")


def draw(path: str) -> None:
    """Draw the waits in the real Slurm, in the twin and under conservative backfilling."""
    play = recorded("k113")
    real = play.wait / HOUR
    others = {
        "twin": (twin_starts(play, RULES, NODES) - play.submit) / HOUR,
        "conservative": (starts_under("conservative", play, NODES) - play.submit) / HOUR,
    }
    figure, axes = plt.subplots(1, 2, figsize=(8, 4), sharex=True, sharey=True)
    for axis, (name, waits) in zip(axes, others.items(), strict=True):
        axis.plot([0, real.max()], [0, real.max()], color="0.7", linewidth=1)
        axis.plot(real, waits, ".", markersize=4)
        axis.set_title(name)
        axis.set_xlabel("wait in the real Slurm, hours")
    axes[0].set_ylabel("simulated wait, hours")
    figure.tight_layout()
    figure.savefig(path, dpi=100)


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trace", metavar="LOG")
    parser.add_argument("--picture", metavar="FILE")
    options = parser.parse_args()
    warm_up(Semantics(policy="slurm"))
    print_likeness()
    print_features()
    print_costs()
    if options.trace:
        print_whole_log(options.trace)
    if options.picture:
        draw(options.picture)


if __name__ == "__main__":
    main()
