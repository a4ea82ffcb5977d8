"""Simulations of a study, which need nothing of each other."""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

import numpy as np

from simulator.reports.comparison import Outcome, outcome
from simulator.scheduling.estimates import Estimates
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.workload import Workload, first_jobs, prepare
from simulator.traces.cleaning import NoJobError
from simulator.traces.swf import read_swf
from simulator.traces.trace import Integers, Trace

LOGS_KEPT = 2
"""Number of logs that a process keeps: its next simulation is often of the same log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """One simulation of a study.

    Attributes:
        trace: path of the log.
        semantics: the rules.
        estimates: as ``Estimates.named`` reads them.
        log: short name of the log.
        processors: of the machine, if not as the header says.
        year: only jobs submitted in this calendar year (UTC).
        limit: only the first ``limit`` jobs of the log, or of the year, that can be simulated.
        days: only this number of days in a row, those whose work comes nearest to ``load``.
        load: work as a multiple of what the machine can do in these days.
        least_processors: only jobs that take at least this number.
    """

    trace: str
    semantics: Semantics
    estimates: str
    log: str = ""
    processors: int | None = None
    limit: int | None = None
    year: int | None = None
    days: int | None = None
    load: float = 1.0
    least_processors: int = 1

    def jobs(self) -> Trace:
        """Return the chosen jobs of the log, as they were read."""
        trace = _log(self.trace)
        if self.year is not None:
            trace = trace.select(_years(trace) == self.year)
        trace = first_jobs(trace, self.limit, processors=self.processors)
        return trace.select(trace.processors >= self.least_processors)

    def workload(self) -> Workload:
        """Return the jobs that are simulated.

        Raises:
            NoJobError: there is none.
        """
        workload = prepare(self.jobs(), processors=self.processors)
        if not len(workload):
            raise NoJobError(Path(self.trace).name, "simulated", workload.counts)
        if self.days is None:
            return workload
        chosen = workload.trace.select(_stretch(workload, self.days * 86400, self.load))
        return prepare(chosen, processors=self.processors)

    def play(self) -> Outcome:
        """Simulate the jobs."""
        return outcome(self.workload(), self.semantics, lambda: Estimates.named(self.estimates))


@lru_cache(LOGS_KEPT)
def _log(path: str) -> Trace:
    return read_swf(path)


def _years(trace: Trace) -> Integers:
    seconds = trace.submit + trace.unix_start
    return np.array([datetime.fromtimestamp(second, UTC).year for second in seconds.tolist()])


def _stretch(workload: Workload, span: int, load: float) -> slice:
    """Return the jobs submitted within the seconds in a row whose work comes nearest to a load."""
    submit = workload.submit
    work = np.concatenate([[0], np.cumsum(workload.processors * workload.runtime)])
    behind = np.searchsorted(submit, submit + span)
    wanted = load * span * workload.processors_of_machine
    first = int(np.argmin(np.abs(work[behind] - work[: len(submit)] - wanted)))
    return slice(first, int(behind[first]))
