"""The site of a backtest: its log, its machines, and the groups whose gains are compared."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulator.backtest.order_effect import OrderEffect
from simulator.scheduling.estimates import REQUESTED
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.workload import Workload, prepare
from simulator.traces.partitions import Partition
from simulator.traces.trace import Integers, Trace

Codes = NDArray[np.int32]

BY_REQUEST = "by-request"
"""Requests again, under the rules that order the queue by them."""

YEAR = 365.25 * 86400

WEEKS = "weeks"
"""The kind of groups that gains are resampled by; no table lists them."""

WEEK = 7 * 86400

LENGTHS: Mapping[str, float] = {
    "up to 1 h": 3600,
    "1 to 4 h": 4 * 3600,
    "4 to 12 h": 12 * 3600,
    "12 to 24 h": 24 * 3600,
    "more than 24 h": np.inf,
}
"""Classes of requested walltimes, and the longest request of each."""

SIZES = (1, 2, 5, 17, 65, 257, 1025, 4097)
"""The least processors of each class of job sizes."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """Jobs in groups, such as by user.

    Attributes:
        kind: what the groups are, in the plural.
        codes: the group of each line of the log, as its place in ``names``.
    """

    kind: str
    names: Sequence[str]
    codes: Codes


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestSite:
    """A site whose scheduler is simulated.

    Attributes:
        trace: the log as it was read.
        semantics: the rules of the site's scheduler today.
        by_request: today's rules, but the queue ordered by requested walltimes.
        handed_over: the rules with predictions. None: today's rules, and so for ``by_request``.
        processors: size of the machine; None takes it from the log's header.
        cores_per_node: if given, jobs take whole nodes with this many cores.
        partitions: machines of their own; empty if all jobs share one machine.
        machine_of_line: the partition of each line of the log.
        groupings: the groups whose gains are compared.
        effect: how the order counts under Slurm's configuration; None under other schedulers.
    """

    trace: Trace
    semantics: Semantics
    by_request: Semantics | None = None
    handed_over: Semantics | None = None
    processors: int | None = None
    cores_per_node: int | None = None
    partitions: Sequence[Partition] = ()
    machine_of_line: Codes = field(default_factory=lambda: np.zeros(0, np.int32))
    groupings: Sequence[Grouping] = ()
    effect: OrderEffect | None = None

    def rules_of(self, estimates: str) -> Semantics:
        """Return the rules under which a source of estimates is played."""
        rules = {REQUESTED: self.semantics, BY_REQUEST: self.by_request}
        return rules.get(estimates, self.handed_over) or self.semantics

    @property
    def cores_of_node(self) -> float:
        """Processors of a node, the mean where nodes differ; 1 where nodes are not known."""
        twin = self.semantics.slurm or self.semantics.pbs
        if twin is not None and twin.cluster is not None:
            return twin.cluster.cpus / twin.cluster.nodes
        return self.cores_per_node or 1

    @property
    def years(self) -> float:
        """Time from the first submission to the last end, in years."""
        return float(self.trace.end.max() - self.trace.submit.min()) / YEAR

    def workloads(self, trace: Trace | None = None) -> list[Workload]:
        """Return the jobs of each machine, for the log itself or for a shaken copy of it."""
        trace = self.trace if trace is None else trace
        if not self.partitions:
            return [self._workload(trace, self.processors)]
        return [
            self._workload(trace.select(self.machine_of_line == number), partition.processors)
            for number, partition in enumerate(self.partitions)
        ]

    def _workload(self, trace: Trace, processors: int | None) -> Workload:
        return prepare(trace, processors=processors, cores_per_node=self.cores_per_node)

    def places(self, workloads: Sequence[Workload]) -> Integers:
        """Return the place in the log of each job of the workloads, one after the other."""
        lines = np.concatenate([workload.trace.line for workload in workloads])
        return np.searchsorted(self.trace.line, lines)

    def counts_of(self, workloads: Sequence[Workload]) -> Mapping[str, int]:
        """Return the number of jobs that each rule changed or left out, on all machines."""
        counts: Counter[str] = Counter()
        for workload in workloads:
            counts.update(workload.counts)
        removed = sum(number for rule, number in counts.items() if "(" not in rule)
        counts["no-partition"] = len(self.trace) - removed - sum(map(len, workloads))
        return {rule: number for rule, number in counts.items() if number}


class ReadLog(NamedTuple):
    """Facts on the reading of a log.

    Attributes:
        left_out: number of records that were left out, by reason.
    """

    name: str
    malformed: int = 0
    left_out: Mapping[str, int] = {}


UNUSED = ("cpu_time", "used_memory", "partition", "preceding_job", "think_time")
"""Columns that neither a simulation nor a method reads."""


def without_unused(trace: Trace) -> Trace:
    """Return the trace without unused columns, and in 32 bits where these are enough.

    A million jobs take 80 MB less.
    """
    columns: dict[str, Any] = {
        name: _short(getattr(trace, name)) for name in trace.columns
    } | dict.fromkeys(UNUSED, np.full(len(trace), -1, np.int8))
    return replace(trace, comments=(), rejects=(), **columns)


def _short(column: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers in 32 bits where they fit."""
    limits = np.iinfo(np.int32)
    whole = np.issubdtype(column.dtype, np.integer)
    fit = whole and len(column) and limits.min <= column.min() and column.max() <= limits.max
    return column.astype(np.int32) if fit else column


def groupings_of(
    trace: Trace,
    *,
    users: Mapping[int, str],
    queues: Mapping[int, str],
    accounts: Mapping[int, str],
    accounts_of_jobs: Integers | None = None,
) -> list[Grouping]:
    """Return the groups of a log: users, accounts, queues, sizes, lengths, months, weeks.

    Args:
        users: names of the users by their numbers, where they are known.
        queues: names of the queues, likewise.
        accounts: names of the accounts, likewise.
        accounts_of_jobs: the account of each job; None takes SWF's group.
    """
    account = trace.group if accounts_of_jobs is None else accounts_of_jobs
    numbered = (("users", trace.user, users), ("accounts", account, accounts),
                ("queues", trace.queue, queues))  # fmt: skip
    found = [_numbered(*each) for each in numbered]
    found += [_sizes(trace), _lengths(trace), _months(trace), _weeks(trace)]
    return [each for each in found if len(each.names) > 1]


def _numbered(kind: str, column: Integers, names: Mapping[int, str]) -> Grouping:
    numbers, codes = np.unique(column, return_inverse=True)
    labels = [names.get(number, _named(kind, number)) for number in numbers.tolist()]
    return Grouping(kind, labels, codes.astype(np.int32))


def _named(kind: str, number: int) -> str:
    return f"{kind.removesuffix('s')} {number}" if number >= 0 else "unknown"


def _sizes(trace: Trace) -> Grouping:
    classes = np.searchsorted(np.array(SIZES), trace.processors, side="right") - 1
    used, codes = np.unique(np.maximum(classes, 0), return_inverse=True)
    return Grouping(
        "job sizes", [_size_name(each) for each in used.tolist()], codes.astype(np.int32)
    )


def _size_name(number: int) -> str:
    least = SIZES[number]
    if number + 1 == len(SIZES):
        return f"{least:,} or more"
    most = SIZES[number + 1] - 1
    return "1" if most == 1 else f"{least:,} to {most:,}"


def _lengths(trace: Trace) -> Grouping:
    classes = np.searchsorted(np.array(list(LENGTHS.values())), trace.requested_time)
    used, codes = np.unique(classes, return_inverse=True)
    names = list(LENGTHS)
    return Grouping("requests", [names[each] for each in used.tolist()], codes.astype(np.int32))


def _weeks(trace: Trace) -> Grouping:
    """Group jobs by the week of submission since the first one."""
    submit = trace.submit - trace.submit.min() if len(trace) else trace.submit
    numbers, codes = np.unique(submit // WEEK, return_inverse=True)
    return Grouping(WEEKS, [f"week {int(each) + 1}" for each in numbers], codes.astype(np.int32))


def _months(trace: Trace) -> Grouping:
    """Group jobs by calendar month of submission, in UTC; without a date, by 30 days."""
    if not trace.unix_start:
        numbers, codes = np.unique(trace.submit // (30 * 86400), return_inverse=True)
        names = [f"days {30 * int(each):,} on" for each in numbers]
        return Grouping("months", names, codes.astype(np.int32))
    days, of_jobs = np.unique((trace.submit + trace.unix_start) // 86400, return_inverse=True)
    months = [datetime.fromtimestamp(86400 * day, UTC).strftime("%Y-%m") for day in days.tolist()]
    names = sorted(set(months))
    of_days = np.array([names.index(month) for month in months], np.int32)
    return Grouping("months", names, of_days[of_jobs] if len(trace) else of_days)
