"""Simulated schedules as SWF files, which other programs read and ``verify`` checks.

The file is the simulated log with its own header. These fields hold the schedule:

    2   submission: in whole seconds
    3   wait: simulated                   7   wait that was predicted at arrival, -1 unknown
    4   run time: simulated              17   how often the job outlived an estimate
    6   1 if the job was backfilled      18   first estimate in seconds

The header holds the semantics card, line by line for people and as JSON for programs.

The same schedule as CSV, with named columns, is for spreadsheets and statistics programs.
"""

import csv
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np

from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import Schedule
from simulator.traces.swf import write_swf
from simulator.traces.trace import Integers, Reals, Trace
from terminal.exit_codes import ExitCode
from terminal.files import text_writer

PREFIX = "Simulation"
RULES = f"{PREFIX}Rules"


class NoResultError(ValueError):
    """The file is a trace, but no result of a simulation: its header has no rules."""

    exit_code = ExitCode.USAGE


def write_result(schedule: Schedule, path: str | Path) -> None:
    """Write a schedule to ``path``, compressed by suffix; ``-`` is standard output."""
    trace = schedule.workload.trace
    promised = schedule.promise - schedule.workload.submit
    result = replace(
        trace,
        submit=(schedule.workload.origin + schedule.workload.submit).astype(float),
        wait=schedule.wait.astype(float),
        run=schedule.workload.runtime.astype(float),
        cpu_time=schedule.backfilled.astype(float),
        used_memory=np.where(schedule.promise < 0, -1, promised).astype(float),
        preceding_job=schedule.corrections,
        think_time=schedule.estimate.astype(float),
        comments=(*trace.comments, *map(_as_read, _comments(schedule))),
    )
    write_swf(result, path)


def write_csv(schedule: Schedule, path: str | Path) -> None:
    """Write a line for each job, with times in seconds of the log; compressed by suffix.

    The wait predicted at arrival is empty if none was predicted.
    """
    trace, origin = schedule.workload.trace, schedule.workload.origin
    promised = (schedule.promise - schedule.workload.submit).tolist()
    columns: Mapping[str, list[Any]] = {
        "job": trace.job.tolist(),
        "user": trace.user.tolist(),
        "processors": trace.processors.tolist(),
        "submit": (origin + schedule.workload.submit).tolist(),
        "start": (origin + schedule.start).tolist(),
        "end": (origin + schedule.end).tolist(),
        "wait": schedule.wait.tolist(),
        "runtime": schedule.workload.runtime.tolist(),
        "requested": schedule.workload.request.tolist(),
        "estimate": schedule.estimate.tolist(),
        "corrections": schedule.corrections.tolist(),
        "backfilled": schedule.backfilled.astype(int).tolist(),
        "in_gap": schedule.in_gap.astype(int).tolist(),
        "promised_wait": ["" if wait < 0 else wait for wait in promised],
    }
    with text_writer(path) as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(columns)
        rows.writerows(zip(*columns.values(), strict=True))


def _comments(schedule: Schedule) -> list[str]:
    rules = {
        "semantics": asdict(schedule.semantics),
        "estimates": schedule.estimates,
        "processors": schedule.workload.processors_of_machine,
        "cores_per_node": schedule.workload.cores_per_node,
        "overrun": schedule.workload.overrun,
    }
    card = schedule.card()
    return [
        "; Schedule simulated by walltimed. Field 3 is the simulated wait, 4 the run time, 6 is 1",
        "; for backfilled jobs, 7 the wait predicted at arrival, 17 counts outlived estimates,",
        "; 18 is the first estimate.",
        *(f"; {PREFIX}{name.title().replace(' ', '')}: {text}" for name, text in card.items()),
        f"; {PREFIX}Input: {len(schedule.workload)} jobs; {schedule.workload.treated()}",
        f"; {RULES}: {msgspec.json.encode(rules).decode()}",
    ]


def _as_read(comment: str) -> str:
    """Decode the UTF-8 bytes of a comment as Latin-1, as the reader does: it may name a file."""
    return comment.encode(errors="surrogateescape").decode("latin-1")


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSchedule:
    """A schedule read from a file, in the file's order.

    Attributes:
        processors: processors, or whole nodes, that each job holds.
        estimate: the first estimate of each job.
        size: processors, or nodes, of the machine.
        predicted_wait: the wait predicted at arrival, -1 where unknown.
    """

    trace: Trace
    semantics: Semantics
    size: int
    processors: Integers
    estimate: Reals
    corrections: Integers
    backfilled: Any
    predicted_wait: Reals

    @classmethod
    def of(cls, trace: Trace) -> Self:
        """Read the schedule in ``trace``.

        Raises:
            NoResultError: the trace has no rules of a simulation in its header.
        """
        rules = _rules(trace)
        cores = rules["cores_per_node"] or 1
        return cls(
            trace=trace,
            semantics=msgspec.convert(rules["semantics"], Semantics),
            size=rules["processors"],
            processors=-(-trace.processors // cores),
            estimate=trace.think_time,
            corrections=trace.preceding_job,
            backfilled=trace.cpu_time == 1,
            predicted_wait=trace.used_memory,
        )

    @property
    def start(self) -> Reals:
        """Seconds of the trace."""
        return self.trace.submit + self.trace.wait

    @property
    def end(self) -> Reals:
        """Seconds of the trace."""
        return self.start + self.trace.run


def _rules(trace: Trace) -> Mapping[str, Any]:
    text = trace.header.get(RULES)
    if text is None:
        raise NoResultError(
            "The header has no SimulationRules: this is no schedule that walltimed simulate wrote."
        )
    rules: Mapping[str, Any] = msgspec.json.decode(text.splitlines()[-1])
    return rules
