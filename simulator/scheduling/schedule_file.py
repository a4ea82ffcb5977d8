"""Simulated schedules as SWF files, which other programs read and ``verify`` checks.

The file is the simulated log with its own header. These fields hold the schedule:

    2   submission: in whole seconds
    3   wait: simulated                   7   wait that was predicted at arrival, -1 unknown
    4   run time: simulated              17   how often the job outlived an estimate
    6   1 if the job was backfilled      18   first estimate in seconds

The header holds the semantics card, line by line for people and as JSON for programs.

The same schedules as a table, with named columns, are for spreadsheets and statistics programs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import msgspec
import numpy as np

from simulator.replay.predictions_file import ANSWER_TYPES, answer_columns
from simulator.replay.trace_replay import Answers
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import Schedule
from simulator.traces.completions import RecordedLog
from simulator.traces.job_columns import JOB_TYPES, log_tables
from simulator.traces.swf import write_swf
from simulator.traces.trace import Integers, Reals, Trace
from terminal.data_table import DataTable, Values
from terminal.exit_codes import ExitCode

PREFIX = "Simulation"
RULES = f"{PREFIX}Rules"

TYPES: Mapping[str, type] = MappingProxyType(
    {
        **JOB_TYPES,
        "policy": str,
        "estimates": str,
        **dict.fromkeys(("processors", "simulated_request", "simulated_runtime", "estimate"), int),
        **dict.fromkeys(("simulated_start", "simulated_end", "simulated_wait"), int),
        "wait_at_arrival": float,
        "corrections": int,
        "backfilled": bool,
        "in_gap": bool,
        **ANSWER_TYPES,
    }
)
"""Columns of a schedule's jobs, and their types."""


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


def schedule_tables(log: RecordedLog, schedules: Sequence[Schedule]) -> Iterator[DataTable]:
    """Yield a row for each job of each schedule, in parts; times are Unix seconds.

    The columns of the job are as it was logged; ``simulated_runtime`` and ``simulated_request`` are
    as the scheduler received them. The wait predicted at arrival is unknown where none was
    predicted.

    Args:
        log: the jobs in the order of the schedules.
    """
    for schedule in schedules:
        for place, jobs in log_tables(log):
            yield DataTable(TYPES, {**jobs.data, **_simulated(schedule, place)})


def _simulated(schedule: Schedule, place: slice) -> dict[str, Values]:
    """Return the columns of a part of a schedule."""
    workload = schedule.workload
    begin = workload.trace.unix_start + workload.origin
    submit, promise = workload.submit[place], schedule.promise[place]
    jobs = len(submit)
    answers = schedule.answers or Answers.of(len(workload))
    return {
        "policy": [schedule.semantics.policy] * jobs,
        "estimates": [schedule.estimates] * jobs,
        "processors": workload.processors[place],
        "simulated_request": workload.request[place],
        "simulated_runtime": workload.runtime[place],
        "estimate": schedule.estimate[place],
        "simulated_start": begin + schedule.start[place],
        "simulated_end": begin + schedule.end[place],
        "simulated_wait": schedule.wait[place],
        "wait_at_arrival": np.where(promise < 0, np.nan, promise - submit),
        "corrections": schedule.corrections[place],
        "backfilled": schedule.backfilled[place].astype(bool),
        "in_gap": schedule.in_gap[place].astype(bool),
        **answer_columns(answers, place),
    }


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
