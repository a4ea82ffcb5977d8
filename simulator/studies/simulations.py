"""Simulations of a study, which need nothing of each other."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from simulator.reports.comparison import Outcome, outcome
from simulator.scheduling.estimates import Estimates
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.workload import Workload, first_jobs, prepare
from simulator.studies.study import Study, Takes
from simulator.traces.cleaning import NoJobError
from simulator.traces.swf import read_swf
from simulator.traces.trace import Trace

LOGS_KEPT = 2
"""A process keeps the logs it read last: its next simulation is often of the same one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """One simulation of a study, small enough to be sent anywhere.

    Attributes:
        trace: path of the log.
        semantics: the rules.
        estimates: as ``Estimates.named`` reads them.
        processors: of the machine, if not as the header says.
        year: only jobs submitted in this calendar year (UTC).
        limit: only the first ``limit`` jobs of the log, or of the year, that can be simulated.
        days: only this number of days in a row, those whose work comes nearest to ``load``.
        load: work as a multiple of what the machine can do in these days.
        least_processors: only jobs that take at least this number.
        group: the runs of a study that are compared with each other.
    """

    trace: str
    semantics: Semantics
    estimates: str
    processors: int | None = None
    limit: int | None = None
    year: int | None = None
    days: int | None = None
    load: float = 1.0
    least_processors: int = 1
    group: str = ""

    def jobs(self) -> Trace:
        """The jobs of the log that are meant, as they were read."""
        trace = _log(self.trace)
        if self.year is not None:
            trace = trace.select(_years(trace) == self.year)
        trace = first_jobs(trace, self.limit, processors=self.processors)
        return trace.select(trace.processors >= self.least_processors)

    def workload(self) -> Workload:
        """The jobs that are simulated.

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
        """Simulate it."""
        return outcome(self.workload(), self.semantics, lambda: Estimates.named(self.estimates))


@dataclass(frozen=True, slots=True)
class Results:
    """Outcomes of the simulations of a study, in their order."""

    outcomes: Sequence[tuple[Simulation, Outcome]] = field(default_factory=tuple)

    def of(self, group: str) -> Mapping[str, Outcome]:
        """The outcomes of a group by estimates."""
        return {run.estimates: each for run, each in self.outcomes if run.group == group}

    def groups(self) -> Sequence[str]:
        """Names of the groups, in the order of the runs."""
        return list(dict.fromkeys(run.group for run, _ in self.outcomes))

    def records(self) -> Sequence[dict[str, Any]]:
        """Every run for machines: its group and log, its rules, its measures."""
        return [
            {"group": run.group, "log": Path(run.trace).name, **each.as_record()}
            for run, each in self.outcomes
        ]


def scheduling_study(
    title: str,
    logs: Sequence[str],
    runs: Callable[..., Sequence[Simulation]],
    tables: Callable[[Results], str],
    **options: Any,
) -> Study:
    """A study whose parts are simulations of the ``logs``, which lie in one directory.

    Args:
        title: of the study.
        logs: file names in the directory.
        runs: returns the simulations, given the directory, a limit and the study's options.
        tables: returns the tables of the results.
        options: further fields of ``Study``.
    """
    return Study(
        title=title,
        takes=Takes.DIRECTORY,
        logs=logs,
        runs=lambda paths, limit, **given: runs(paths[0], limit, **given),
        play=Simulation.play,
        tables=lambda played: tables(Results(played)),
        records=lambda played: {"title": title, "simulations": Results(played).records()},
        **options,
    )


@lru_cache(LOGS_KEPT)
def _log(path: str) -> Trace:
    return read_swf(path)


def _years(trace: Trace) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    seconds = trace.submit + trace.unix_start
    return np.array([datetime.fromtimestamp(second, UTC).year for second in seconds.tolist()])


def _stretch(workload: Workload, span: int, load: float) -> slice:
    """The jobs submitted within the seconds in a row whose work comes nearest to a load."""
    submit = workload.submit
    work = np.concatenate([[0], np.cumsum(workload.processors * workload.runtime)])
    behind = np.searchsorted(submit, submit + span)
    wanted = load * span * workload.processors_of_machine
    first = int(np.argmin(np.abs(work[behind] - work[: len(submit)] - wanted)))
    return slice(first, int(behind[first]))
