"""Tang et al.'s simulations: orders and adjustments, month by month."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simulator.engine.state import ROUNDING
from simulator.scheduling.estimates import EXACT, REQUESTED, Estimates
from simulator.scheduling.measures import slowdown, start_priority, weighted_wait
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import Schedule, simulate
from simulator.scheduling.workload import Workload, prepare
from simulator.studies.study import workload_of
from simulator.studies.tang.percentile_schemes import Scheme, predictions
from simulator.traces.completions import completions
from simulator.traces.trace import Integers

MONTH = 365.25 * 86400 / 12
"""Seconds."""

INTREPID = "Intrepid"

LOGS: Mapping[str, str] = {
    INTREPID: "ANL-Intrepid-2009-1.swf.gz",
    "Theta": "ALCF-Theta-2023.swf.gz",
}
"""The paper's machine, and a later one of the same centre under the same resource manager."""

PERCENTILES = ("p95", "p85", "p70")
ESTIMATES = ("requested", *PERCENTILES, "exact")

RULES = (("wfp", "regular"), ("wfp", "selective"), ("fcfs", "regular"), ("fcfs", "selective"))
"""Order and adjustment of Figs. 14, 15, 16 and 17."""

MEASURES = ("wait", "slowdown", "weighted wait", "weighted by adjusted score")


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthSimulation:
    """A log under one order and adjustment, with one source of estimates.

    Attributes:
        log: its short name.
        trace: path of the log.
        order: ``wfp`` or ``fcfs``.
        adjustment: ``regular`` or ``selective``.
        estimates: ``requested``, ``exact`` or a percentile such as ``p85``.
        lower_bound: the threshold on A.
        min_jobs: fewest similar jobs.
        anew: every month begins with an empty machine, as in the paper; then the estimates come
            from the history as it was logged. Else the log is played in one piece.
        limit: the first ``limit`` jobs, or all.
    """

    log: str
    trace: str
    order: str
    adjustment: str
    estimates: str
    lower_bound: float
    min_jobs: int
    anew: bool
    limit: int | None

    @property
    def group(self) -> str:
        """Name of the simulations that are compared with each other."""
        return f"{self.log}, {self.order}, {self.adjustment}"

    def play(self) -> "Months":
        """Simulate it."""
        workload = _workload(self.trace, self.limit)
        semantics = Semantics.adjusted(self.adjustment, policy="easy", order=self.order)
        if not self.anew:
            schedule = simulate(workload, semantics, Estimates.named(self._method()))
            months = _months(workload)
            return _measured([_Part(schedule, months == month) for month in _present(months)])
        logged = self._logged(workload)
        return _measured(list(self._parts(workload, semantics, logged)))

    def _parts(
        self, workload: Workload, semantics: Semantics, logged: Integers
    ) -> "Iterator[_Part]":
        """Every month as a workload of its own."""
        months = _months(workload)
        for month in _present(months):
            chosen = months == month
            alone = prepare(
                workload.trace.select(chosen), processors=workload.processors_of_machine
            )
            schedule = simulate(alone, semantics, self._estimates_of(logged[chosen]))
            yield _Part(schedule, np.ones(len(alone), dtype=np.bool_))

    def _estimates_of(self, logged: Integers) -> Estimates:
        """Return estimates that were made from the log before the simulation."""
        return Estimates(self.estimates, known=lambda _: logged)

    def _scheme(self) -> Scheme:
        percentile = float(self.estimates.removeprefix("p"))
        return Scheme("user+project+walltime", percentile, 30, self.lower_bound, self.min_jobs)

    def _method(self) -> str:
        named = self.estimates in {EXACT, REQUESTED}
        return self.estimates if named else self._scheme().label

    def _logged(self, workload: Workload) -> Integers:
        """The estimates of all jobs, from the history as it was logged."""
        if self.estimates == EXACT:
            return workload.runtime
        if self.estimates == REQUESTED:
            return workload.request
        return _logged_predictions(self.trace, self.limit, self._scheme())


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """Choices that the paper's section 6 leaves open.

    Attributes:
        lower_bound: the threshold on A.
        min_jobs: fewest similar jobs.
        in_one_piece: a log is played as a whole, and not every month anew.
    """

    lower_bound: float = 0.5
    min_jobs: int = 10
    in_one_piece: bool = False


def month_runs(
    directory: Path, logs: Mapping[str, str], limit: int | None, readings: Readings
) -> Sequence[MonthSimulation]:
    """Every log under every rule with all estimates."""
    return [
        MonthSimulation(
            log=name,
            trace=str(directory / file),
            order=order,
            adjustment=adjustment,
            estimates=estimates,
            lower_bound=readings.lower_bound,
            min_jobs=readings.min_jobs,
            anew=not readings.in_one_piece,
            limit=limit,
        )
        for name, file in logs.items()
        for order, adjustment in RULES
        for estimates in ESTIMATES
    ]


@dataclass(frozen=True, slots=True)
class Months:
    """Results by month: a row for each of ``MEASURES`` and a column for each month.

    Attributes:
        jobs: in each month.
        outlived: share of all jobs that outlived an estimate.
    """

    values: NDArray[np.float64]
    jobs: Sequence[int]
    outlived: float

    def over(self, base: "Months") -> NDArray[np.float64]:
        """Ratios to the same months of a base; NaN where the base is 0, as if nobody waited."""
        return np.asarray(self.values / np.where(base.values > 0, base.values, np.nan))

    def gains(self, base: "Months") -> NDArray[np.float64]:
        """Gains in percent over the same months of a base; NaN as in ``over``."""
        return 100 * (1 - self.over(base))


@dataclass(frozen=True, slots=True)
class _Part:
    """A month: the jobs of a schedule that were submitted in it."""

    schedule: Schedule
    chosen: NDArray[np.bool_]


def _measured(parts: Sequence[_Part]) -> Months:
    values = np.array([_values(part) for part in parts]).T
    counted = [int(part.chosen.sum()) for part in parts]
    outlived = sum(int((part.schedule.corrections[part.chosen] > 0).sum()) for part in parts)
    return Months(values, counted, outlived / max(1, sum(counted)))


def _values(part: _Part) -> list[float]:
    schedule, chosen = part.schedule, part.chosen
    wait = schedule.wait[chosen]
    return [
        float(wait.mean()),
        float(slowdown(wait, schedule.workload.runtime[chosen]).mean()),
        weighted_wait(wait, start_priority(schedule)[chosen]),
        weighted_wait(wait, adjusted_priority(schedule)[chosen]),
    ]


def adjusted_priority(schedule: Schedule) -> NDArray[np.float64]:
    """P of each job at its start, as the scheduler with adjusted requests computes it."""
    if schedule.semantics.order != "wfp":
        return start_priority(schedule)
    wait = schedule.wait.astype(float)
    return np.asarray((wait / schedule.estimate) ** 3 * schedule.workload.processors)


def _months(workload: Workload) -> Integers:
    submit = workload.submit
    months: Integers = ((submit - submit.min(initial=0)) // MONTH).astype(np.int64)
    return months


def _present(months: Integers) -> Sequence[int]:
    present: Sequence[int] = np.unique(months).tolist()
    return present


@lru_cache(2)
def _workload(path: str, limit: int | None) -> Workload:
    return workload_of(path, limit)


@lru_cache(16)
def _logged_predictions(path: str, limit: int | None, scheme: Scheme) -> Integers:
    workload = _workload(path, limit)
    runs = list(completions(workload.trace))
    requested = workload.request.astype(float)
    [predicted] = predictions(runs, [scheme], requested).values()
    whole: Integers = np.maximum(1, np.floor(predicted + ROUNDING)).astype(np.int64)
    return whole
