"""Arrivals, sizes and runtimes of jobs after Lublin and Feitelson.

The parameters are the published ones for batch and for interactive jobs.

Reference:
    U. Lublin and D. G. Feitelson, "The workload on parallel supercomputers: modeling the
    characteristics of rigid jobs", J. Parallel and Distributed Computing 63(11), 2003.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log2

import numpy as np
from numpy.random import Generator

from simulator.traces.trace import Reals

DAY = 86400.0

SLOTS = 48
"""Number of half hours in the daily cycle."""

FIRST_SLOT = 11
"""The half hour in which the model's day begins, at 5:30 in the morning."""

LONGEST_LOG_GAP = 13.0
"""No gap between arrivals is longer than e**13 seconds, five days."""

LONGEST_LOG_RUNTIME = 12.0
"""No runtime is longer than e**12 seconds, two days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalKind:
    """The parameters of one kind of job.

    Attributes:
        name: name of the queue.
        queue: number of the queue in the trace; SWF keeps 0 for interactive jobs.
        gap: shape and scale of the gamma distribution of the logarithm of gaps.
        cycle: shape and scale of the gamma distribution of arrivals over the day, in half hours.
        serial: share of jobs with one processor.
        power_of_two: share of jobs with a larger power of two.
        smallest: log2 of the smallest parallel size.
        middle: where the two uniform distributions of log2 sizes meet, below the largest.
        largest: log2 of the largest size, below the machine's.
        lower_share: share of the lower of these two distributions.
        short: shape and scale of the gamma distribution of the logarithm of short runtimes.
        long: the same for long runtimes.
        short_share: slope over processors and intercept of the share of short runtimes.
    """

    name: str
    queue: int
    gap: tuple[float, float]
    cycle: tuple[float, float]
    serial: float
    power_of_two: float
    smallest: float
    middle: float
    largest: float
    lower_share: float
    short: tuple[float, float]
    long: tuple[float, float]
    short_share: tuple[float, float]


INTERACTIVE = ArrivalKind(
    name="interactive",
    queue=0,
    gap=(6.5510 * 0.9797, 0.6621),
    cycle=(8.9186, 3.6680),
    serial=0.1541,
    power_of_two=0.625,
    smallest=1.0,
    middle=2.5,
    largest=1.5,
    lower_share=0.705,
    short=(3.8351, 0.6605),
    long=(7.073, 0.6856),
    short_share=(-0.0118, 0.9156),
)

BATCH = ArrivalKind(
    name="batch",
    queue=1,
    gap=(6.0415 * 1.0519, 0.8531),
    cycle=(6.1271, 5.2740),
    serial=0.2927,
    power_of_two=0.6686,
    smallest=1.2,
    middle=2.0,
    largest=0.0,
    lower_share=0.875,
    short=(6.57, 0.823),
    long=(639.1, 0.0156),
    short_share=(-0.003, 0.6986),
)


def arrivals(kind: ArrivalKind, jobs: int, random: Generator) -> Reals:
    """Draw the arrival times of ``jobs`` jobs in seconds after a midnight, ascending.

    The gaps are drawn on an even time scale and then mapped to the clock: the busier a half hour
    is, the more of the even time passes in it.
    """
    shape, scale = kind.gap
    gaps = np.exp(_drawn(lambda size: random.gamma(shape, scale, size), jobs, LONGEST_LOG_GAP))
    passed = np.cumsum(gaps)
    days, within = np.divmod(passed, DAY)
    edges = np.linspace(0.0, DAY, SLOTS + 1)
    even = np.concatenate([[0.0], np.cumsum(daily_weights(kind)) * (DAY / SLOTS)])
    return days * DAY + np.interp(within, even, edges)


def daily_weights(kind: ArrivalKind) -> Reals:
    """Return the weight of each half hour from midnight on; the mean is 1.

    The weight of a half hour is the mass of the gamma density, summed over its minutes.
    """
    shape, scale = kind.cycle
    minutes = FIRST_SLOT - 0.5 + (np.arange(SLOTS * 30) + 0.5) / 30
    density = minutes ** (shape - 1.0) * np.exp(-minutes / scale)
    weights = density.reshape(SLOTS, 30).sum(axis=1)
    return np.asarray(np.roll(weights, FIRST_SLOT) / weights.mean())


def size(kind: ArrivalKind, machine: int, random: Generator) -> int:
    """Draw the processors of one job on a machine with ``machine`` processors."""
    chance = random.random()
    if chance <= kind.serial or machine == 1:
        return 1
    largest = max(log2(machine) - kind.largest, 0.0)
    middle = max(largest - kind.middle, 0.0)
    smallest = min(kind.smallest, middle)
    lower = random.random() <= kind.lower_share
    log_size = random.uniform(*((smallest, middle) if lower else (middle, largest)))
    if chance <= kind.serial + kind.power_of_two:
        log_size = round(log_size)
    return int(np.clip(round(2.0**log_size), 1, machine))


def runtime(kind: ArrivalKind, processors: int, random: Generator) -> float:
    """Draw the runtime of a job in seconds; larger jobs run longer."""
    slope, intercept = kind.short_share
    is_short = random.random() <= np.clip(slope * processors + intercept, 0.0, 1.0)
    shape, scale = kind.short if is_short else kind.long
    [log_seconds] = _drawn(lambda size: random.gamma(shape, scale, size), 1, LONGEST_LOG_RUNTIME)
    return exp(log_seconds)


def _drawn(draw: Callable[[int], Reals], size: int, largest: float) -> Reals:
    """Draw ``size`` random numbers; numbers above ``largest`` are drawn again."""
    values = draw(size)
    while (beyond := values > largest).any():
        values[beyond] = draw(int(np.count_nonzero(beyond)))
    return values
