"""Tang et al.'s simulations: orders and adjustments, month by month."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from papers.study import Inputs, Table
from papers.tang.percentile_schemes import Scheme, predictions
from simulator.engine.state import ROUNDING
from simulator.reports.exhibit import Value
from simulator.scheduling.estimates import EXACT, REQUESTED, Estimates
from simulator.scheduling.measures import slowdown, start_priority, weighted_wait
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import Schedule, simulate
from simulator.scheduling.workload import Workload, prepare, usable_workload
from simulator.traces.completions import completions
from simulator.traces.trace import Integers

MONTH = 365.25 * 86400 / 12
"""Seconds."""

INTREPID = "Intrepid"

LOGS: Mapping[str, str] = {INTREPID: "ANL-Intrepid-2009-1.swf.gz"}

PERCENTILES = ("p95", "p85", "p70")
ESTIMATES = ("requested", *PERCENTILES, "exact")

RULES = (("wfp", "regular"), ("wfp", "selective"), ("fcfs", "regular"), ("fcfs", "selective"))
"""Order and adjustment of Figs. 14, 15, 16 and 17."""

ADJUSTED_SCORE = "the same, adjusted P"
"""The weighted wait with the scheduler's own priorities."""

MEASURES = ("wait", "slowdown", "weighted wait", ADJUSTED_SCORE)


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthSimulation:
    """A log under one order and adjustment, with one source of estimates.

    Attributes:
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

    trace: str
    order: str
    adjustment: str
    estimates: str
    lower_bound: float
    min_jobs: int
    anew: bool
    limit: int | None

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


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthMeasure:
    """A measure of the jobs that were submitted in one month.

    Attributes:
        estimates: of the scheduler.
        measure: one of ``MEASURES``.
        month: from 1 on; months without jobs are not counted.
        jobs: in the month.
        outlived: share of all jobs of the log that outlived an estimate.
        value: mean over the month's jobs.
        ratio: to the value with requests; None where nobody waited with requests.
        gain: over the value with requests, in percent.
    """

    order: str
    adjustment: str
    estimates: str
    measure: str
    month: int
    jobs: int
    outlived: float
    value: float
    ratio: Value
    gain: Value


def months_under(order: str, adjustment: str) -> Table:
    """Return the table of a log under one order and adjustment with all estimates."""

    def months(inputs: Inputs) -> list[MonthMeasure]:
        options = {name: value for name, value in inputs.options.items() if name != "log"}
        runs = month_runs(inputs, order, adjustment, Readings(**options))
        played = inputs.play(MonthSimulation.play, runs)
        base = played[ESTIMATES.index(REQUESTED)]
        return [
            each
            for run, found in zip(runs, played, strict=True)
            for each in _records(run, found, base)
        ]

    months.__name__ = f"{order}_{adjustment}"
    return months


def month_runs(
    inputs: Inputs, order: str, adjustment: str, readings: Readings
) -> list[MonthSimulation]:
    """Return the simulations of Intrepid under one order and adjustment with all estimates."""
    return [
        MonthSimulation(
            trace=str(inputs.logs / LOGS[INTREPID]),
            order=order,
            adjustment=adjustment,
            estimates=estimates,
            lower_bound=readings.lower_bound,
            min_jobs=readings.min_jobs,
            anew=not readings.in_one_piece,
            limit=inputs.limit,
        )
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


def _records(run: MonthSimulation, found: Months, base: Months) -> Iterator[MonthMeasure]:
    """Yield every measure of every month of a simulation, beside the one with requests."""
    ratios, gains = found.over(base), found.gains(base)
    for row, measure in enumerate(MEASURES):
        for place, jobs in enumerate(found.jobs):
            yield MonthMeasure(
                order=run.order,
                adjustment=run.adjustment,
                estimates=run.estimates,
                measure=measure,
                month=place + 1,
                jobs=jobs,
                outlived=found.outlived,
                value=float(found.values[row, place]),
                ratio=_known(ratios[row, place]),
                gain=_known(gains[row, place]),
            )


def _known(value: float) -> Value:
    return float(value) if np.isfinite(value) else None


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
    return usable_workload(path, limit)


@lru_cache(16)
def _logged_predictions(path: str, limit: int | None, scheme: Scheme) -> Integers:
    workload = _workload(path, limit)
    runs = list(completions(workload.trace))
    requested = workload.request.astype(float)
    [predicted] = predictions(runs, [scheme], requested).values()
    whole: Integers = np.maximum(1, np.floor(predicted + ROUNDING)).astype(np.int64)
    return whole
