"""The paper's workload: 30 NAS benchmarks on 16 nodes, some of which have local users.

From Hanzich et al. 2005, section 4: 30 jobs of CG, IS, MG and BT with 2, 4 or 8 tasks, balanced
between computation and communication, arriving as a Poisson process with a mean of 15 s; local
users take 15% of the CPU of 25, 50 or 100% of the nodes. The paper does not say how long the
benchmarks run or how much CPU they use: ``CHARACTERISTICS`` is our supposition (minutes, as the
paper says; the more tasks, the shorter and the more communication), and so is ``VARIATION``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import log, sqrt
from random import Random

from simulator.shared_nodes.cluster import Cluster, Node
from simulator.shared_nodes.jobs import SharedJob

NODES = 16
JOBS = 30
SECONDS_BETWEEN_ARRIVALS = 15.0
LOCAL_CPU = 0.15
LOCAL_SHARES = (0.25, 0.5, 1.0)
"""Fractions of the nodes that have a local user."""

VARIATION = 0.1
"""Standard deviation of what a run needs over what its application is known for, about 1."""

CHARACTERISTICS: Mapping[tuple[str, int], tuple[float, float]] = {
    ("BT", 2): (600.0, 0.90),
    ("BT", 4): (330.0, 0.85),
    ("BT", 8): (190.0, 0.75),
    ("MG", 2): (180.0, 0.75),
    ("MG", 4): (110.0, 0.65),
    ("MG", 8): (75.0, 0.55),
    ("CG", 2): (240.0, 0.45),
    ("CG", 4): (160.0, 0.40),
    ("CG", 8): (120.0, 0.30),
    ("IS", 2): (150.0, 0.35),
    ("IS", 4): (110.0, 0.30),
    ("IS", 8): (90.0, 0.20),
}
"""(benchmark, tasks) -> seconds in isolation, fraction of a CPU that each task uses."""

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
        scale: all benchmarks run so many times longer than ``CHARACTERISTICS`` says.
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
    alone, share = CHARACTERISTICS[benchmark, tasks]
    seconds = alone * scale
    spread = sqrt(log(1 + VARIATION**2))
    factor = random.lognormvariate(-(spread**2) / 2, spread)
    job = SharedJob(job_id=job_id, tasks=tasks, execution_time=seconds, cpu_share=share)
    return Arrival(time=time, job=job, benchmark=benchmark, needed_cpu_time=factor * job.cpu_time)


def idle_cluster(local_share: float, seed: int) -> Cluster:
    """The nodes before the first job, a random choice of them with a local user."""
    random = Random(seed)  # noqa: S311 - see workload
    local = set(random.sample(range(NODES), round(local_share * NODES)))
    return Cluster(
        [
            Node(number, local_tasks=1, local_cpu=LOCAL_CPU) if number in local else Node(number)
            for number in range(NODES)
        ]
    )
