"""The files that ``walltimed import`` reads: a format is a function and a line here."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from predictors.jobs import Completion
    from simulator.trace import Reject


@dataclass(frozen=True, slots=True)
class HistoryFile:
    """What a file holds.

    Attributes:
        completions: the runs that can be learned from.
        count: how many they are.
        rejected: lines that are no jobs, and why.
        left_out: jobs that nothing can be learned from, by the rule that says so.
    """

    completions: "Iterable[Completion]"
    count: int
    rejected: "Sequence[Reject]"
    left_out: Mapping[str, int]


def swf(path: str, cluster: str) -> HistoryFile:
    """The Standard Workload Format: plain, gzip or xz."""
    from simulator.cleaning import REPLAY_RULES, clean
    from simulator.runs import completions
    from simulator.swf import read_swf

    trace = read_swf(path, on_error="skip")
    jobs, left_out = clean(trace, REPLAY_RULES)
    return HistoryFile(completions(jobs, cluster=cluster), len(jobs), trace.rejects, left_out)


FORMATS: Mapping[str, Callable[[str, str], HistoryFile]] = {
    "swf": swf,
}
