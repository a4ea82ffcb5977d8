"""PSP on the twin of Slurm: waits of users who ask well, of others, and of users who begin to."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from papers.rocchetti.stretches import DAYS, LOGS
from papers.simulations import Simulation
from papers.study import Inputs
from simulator.scheduling.estimates import Estimates
from simulator.scheduling.semantics import SLURM, Semantics
from simulator.scheduling.simulate import simulate
from simulator.scheduling.workload import Workload, prepare

ACCURATE = 0.4
"""Least mean usage of accurate users: they are in the groups g7 to g10."""

MARGIN = 1.25
"""A better request is that many times the run time, in whole minutes, and at most the old one."""

CORES_PER_NODE = 4
"""Of both machines (the paper's section 4.2)."""

LOADS = (1.1, 1.5)

ORDERS: Mapping[str, str] = {"fcfs": "PSP off", "psp-aging": "PSP on"}

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinRun:
    """A play of a stretch.

    Attributes:
        simulation: the stretch and the rules.
        asks_better: whether every second of the users who are not accurate asks better.
    """

    simulation: Simulation
    asks_better: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UserWaits:
    """Waits of some users in a play.

    Attributes:
        log: its short name.
        digest: of the submissions, by which equal stretches are told apart.
        play: whether PSP is on, and who asks better.
        users: the users.
        jobs: number of their jobs.
        wait: mean, in minutes; None without jobs.
        stretches: number of distinct stretches of the log; 0 before they are told apart.
    """

    log: str
    digest: str
    play: str
    users: str
    jobs: int
    wait: float | None
    stretches: int = 0


def twin_runs(log: str, path: Path, limit: int | None) -> list[TwinRun]:
    """Return the plays of the stretches of a log, with PSP off and on."""
    return [
        TwinRun(
            simulation=Simulation(
                trace=str(path),
                log=log,
                semantics=Semantics(policy=SLURM, order=order),
                estimates="requested",
                processors=LOGS[log].cores,
                limit=limit,
                days=days,
                load=load,
                least_processors=2,
            ),
            asks_better=asks_better,
        )
        for days in DAYS
        for load in LOADS
        for asks_better in (False, True)
        for order in ORDERS
    ]


def user_waits(run: TwinRun) -> list[UserWaits]:
    """Play a stretch on the twin, and return the mean waits by users."""
    logged = run.simulation.workload()
    users = dict(users_of(logged))
    trace = logged.trace
    if run.asks_better:
        asked = np.where(users[ASKING], better_requests(logged), trace.requested_time)
        trace = replace(trace, requested_time=asked)
    workload = prepare(trace, processors=run.simulation.processors, cores_per_node=CORES_PER_NODE)
    semantics = run.simulation.semantics
    wait = simulate(workload, semantics, Estimates.named(run.simulation.estimates)).wait / 60
    asking = ", first half asks better" if run.asks_better else ""
    return [
        UserWaits(
            log=run.simulation.log,
            digest=sha256(logged.submit.tobytes()).hexdigest()[:16],
            play=ORDERS[semantics.order] + asking,
            users=name,
            jobs=int(mask.sum()),
            wait=float(wait[mask].mean()) if mask.any() else None,
        )
        for name, mask in users.items()
    ]


ASKING, STAYING = "others, first half", "others, second half"


def users_of(workload: Workload) -> Iterator[tuple[str, Mask]]:
    """Yield names of sets of users, and whether each job is one of theirs.

    Users are told apart by the mean usage of all their jobs in the stretch, as it was logged.
    """
    _, number = np.unique(workload.trace.user, return_inverse=True)
    usage = np.bincount(number, workload.runtime / workload.request) / np.bincount(number)
    is_accurate = usage >= ACCURATE
    others = np.flatnonzero(~is_accurate)
    yield "accurate", is_accurate[number]
    yield ASKING, np.isin(number, others[::2])
    yield STAYING, np.isin(number, others[1::2])
    yield "all others", ~is_accurate[number]
    yield "all", np.ones(len(number), bool)


def better_requests(workload: Workload) -> NDArray[np.int64]:
    """Return requests of ``MARGIN`` times the run times."""
    wanted = np.ceil(MARGIN * workload.runtime / 60).astype(np.int64) * 60
    requests: NDArray[np.int64] = np.minimum(wanted, workload.request)
    return requests


def waits_on(inputs: Inputs, paths: Mapping[str, Path]) -> list[UserWaits]:
    """Return the waits on the distinct stretches of logs."""
    runs = [run for log, path in paths.items() for run in twin_runs(log, path, inputs.limit)]
    return distinct([each for found in inputs.play(user_waits, runs) for each in found])


def distinct(waits: Sequence[UserWaits]) -> list[UserWaits]:
    """Return the waits of each stretch once."""
    once = {(each.log, each.digest, each.play, each.users): each for each in waits}
    stretches: dict[str, set[str]] = {}
    for each in waits:
        stretches.setdefault(each.log, set()).add(each.digest)
    return [replace(each, stretches=len(stretches[each.log])) for each in once.values()]
