"""Plays of a real Slurm, and the twin's schedule of the same jobs."""

import csv
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from simulator.engine.loop import DONE
from simulator.engine.slurm.node_sets import members_of
from simulator.engine.slurm.slurm_loop import run
from simulator.engine.slurm.slurm_state import (
    NodeGroup,
    PartitionNodes,
    SlurmState,
    new_slurm_state,
)
from simulator.scheduling.slurm_rules import SlurmRules

PLAYS = Path(__file__).parent.parent / "data/twins"

NODES = 128

RULES = SlurmRules(over_time_limit=300, epilog=3, cycle_time=1.0)
"""The configuration of the plays. A faked clock makes ends and cycles take seconds."""


class Play(NamedTuple):
    """A recorded play: a column for each field."""

    submit: Any
    start: Any
    end: Any
    size: Any
    limit: Any
    time_min: Any
    nodes: list[list[int]]


def recorded(name: str) -> Play:
    """Return a play by the name of its file."""
    with (PLAYS / f"{name}.csv").open(encoding="ascii") as file:
        rows = list(csv.DictReader(file))
    numbers = {
        key: np.array([int(row[key]) for row in rows])
        for key in ("submit", "start", "end", "size", "limit_minutes", "time_min_minutes")
    }
    *times, limit, time_min = numbers.values()
    return Play(*times, 60 * limit, 60 * time_min, [nodes_of(row["nodes"]) for row in rows])


def nodes_of(text: str) -> list[int]:
    """Return the numbers of a list such as ``[2-17,20]``."""
    ranges = re.findall(r"(\d+)(?:-(\d+))?", text)
    return [node for low, high in ranges for node in range(int(low), int(high or low) + 1)]


def twin_of(play: Play, rules: SlurmRules = RULES) -> SlurmState:
    """Return the twin before the first submission of the play's jobs."""
    columns = {
        "submit": play.submit,
        "processors": play.size,
        "runtime": play.end - play.start,
        "request": play.limit,
        "nodes": play.size,
        "limit": play.limit,
        "partition": np.zeros(len(play.submit), np.int64),
        "user": np.zeros(len(play.submit), np.int64),
        "account": np.zeros(len(play.submit), np.int64),
        "fixed_score": np.zeros(len(play.submit)),
    }
    state = new_slurm_state(
        columns,
        groups=[NodeGroup(NODES, cpus=1)],
        partitions=[PartitionNodes(1, exclusive=True, members=range(NODES))],
        rules={**rules.numbers(), "time_min": 1, "shortest_first": 0, "aging": 0},
    )
    state.jobs["estimate"] = np.where(play.time_min, play.time_min, play.limit)
    return state


def played(play: Play, rules: SlurmRules = RULES) -> SlurmState:
    """Return the twin after all jobs have ended."""
    state = twin_of(play, rules)
    assert run(state) == DONE
    return state


def nodes_held(play: Play) -> dict[int, list[int]]:
    """Return the nodes that the twin gave to jobs, of those that ran at any submission."""
    state = twin_of(play)
    held = {}
    for stop in range(1, len(play.submit) + 1):
        state.clock["pause_at"] = stop
        run(state)
        for place in state.by_end[: state.clock["running"][0]]:
            held[int(state.runs["job"][place])] = members_of(state.run_sets[place])
    return held
