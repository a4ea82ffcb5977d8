"""The paper's workload: 30 NAS benchmarks on 16 nodes, some of which have local users.

From Hanzich et al. 2005, section 4: 30 jobs of CG, IS, MG and BT with 2, 4 or 8 tasks, balanced
between computation and communication, arriving as a Poisson process with a mean of 15 s; local
users take 15% of the CPU and 35% of the memory of 25, 50 or 100% of the nodes, which have 512 MB.
Their 0.5 KB/s are 0.004% of a Fast Ethernet and are left out. The paper does not say how long the
benchmarks run or how much CPU and memory they use: ``CHARACTERISTICS`` is our supposition
(minutes, as the paper says; the more tasks, the shorter and the more communication), and so is
``VARIATION``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import log, sqrt
from random import Random
from typing import NamedTuple

from simulator.shared_nodes.cluster import Cluster, Node, SharedJob

NODES = 16
JOBS = 30
SECONDS_BETWEEN_ARRIVALS = 15.0
MEGABYTE = 1024
"""In KiB."""

MEMORY = 512 * MEGABYTE
LOCAL_CPU = 0.15
LOCAL_MEMORY = round(0.35 * MEMORY)
LOCAL_SHARES = (0.25, 0.5, 1.0)
"""Fractions of the nodes that have a local user."""

VARIATION = 0.1
"""Standard deviation of what a run needs over what its application is known for, about 1."""


class Characteristic(NamedTuple):
    """The characteristics of an application for a number of tasks.

    Attributes:
        seconds: in isolation.
        cpu_share: fraction of a CPU that each task uses.
        megabytes: that each task takes.
    """

    seconds: float
    cpu_share: float
    megabytes: int


CHARACTERISTICS: Mapping[tuple[str, int], Characteristic] = {
    ("BT", 2): Characteristic(600.0, 0.90, 150),
    ("BT", 4): Characteristic(330.0, 0.85, 75),
    ("BT", 8): Characteristic(190.0, 0.75, 40),
    ("MG", 2): Characteristic(180.0, 0.75, 220),
    ("MG", 4): Characteristic(110.0, 0.65, 110),
    ("MG", 8): Characteristic(75.0, 0.55, 55),
    ("CG", 2): Characteristic(240.0, 0.45, 100),
    ("CG", 4): Characteristic(160.0, 0.40, 60),
    ("CG", 8): Characteristic(120.0, 0.30, 40),
    ("IS", 2): Characteristic(150.0, 0.35, 80),
    ("IS", 4): Characteristic(110.0, 0.30, 45),
    ("IS", 8): Characteristic(90.0, 0.20, 25),
}
"""By benchmark and tasks."""

BENCHMARKS = tuple(sorted({name for name, _ in CHARACTERISTICS}))
SIZES = tuple(sorted({tasks for _, tasks in CHARACTERISTICS}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A job that is submitted.

    Attributes:
        time: seconds after the first one was due.
        job: as it was characterised.
        benchmark: its application.
        needed_cpu_time: what each of its tasks really needs.
    """

    time: float
    job: SharedJob
    benchmark: str
    needed_cpu_time: float


def workload(seed: int, *, scale: float = 1.0) -> list[Arrival]:
    """As many jobs of each benchmark, in random order and sizes, at random times.

    Args:
        seed: equal seeds make equal workloads.
        scale: all benchmarks run this number of times longer than ``CHARACTERISTICS`` says.
    """
    random = Random(seed)  # noqa: S311 - no secret: a workload that can be repeated
    names = [BENCHMARKS[place % len(BENCHMARKS)] for place in range(JOBS)]
    random.shuffle(names)
    times = accumulate(random.expovariate(1 / SECONDS_BETWEEN_ARRIVALS) for _ in names)
    return [
        _arrival(f"{place}", name, time, scale, random)
        for place, (name, time) in enumerate(zip(names, times, strict=True))
    ]


def _arrival(job_id: str, benchmark: str, time: float, scale: float, random: Random) -> Arrival:
    tasks = random.choice(SIZES)
    characteristic = CHARACTERISTICS[benchmark, tasks]
    spread = sqrt(log(1 + VARIATION**2))
    factor = random.lognormvariate(-(spread**2) / 2, spread)
    job = SharedJob(
        job_id=job_id,
        tasks=tasks,
        execution_time=characteristic.seconds * scale,
        cpu_share=characteristic.cpu_share,
        memory=characteristic.megabytes * MEGABYTE,
    )
    return Arrival(time=time, job=job, benchmark=benchmark, needed_cpu_time=factor * job.cpu_time)


def idle_cluster(local_share: float, seed: int) -> Cluster:
    """The nodes before the first job, a random choice of them with a local user."""
    random = Random(seed)  # noqa: S311 - see workload
    local = set(random.sample(range(NODES), round(local_share * NODES)))
    return Cluster(
        [
            Node(
                number,
                local_tasks=1,
                local_cpu=LOCAL_CPU,
                memory=MEMORY,
                local_memory=LOCAL_MEMORY,
            )
            if number in local
            else Node(number, memory=MEMORY)
            for number in range(NODES)
        ]
    )
