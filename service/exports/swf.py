"""Runs as a log in the Standard Workload Format, which the archive and simulators read.

Names become numbers, in the order in which they come.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import count

from predictors.jobs import Completion, Status

STATUSES = {
    Status.COMPLETED: 1,
    Status.FAILED: 0,
    Status.TIMEOUT: 0,
    Status.OUT_OF_MEMORY: 0,
    Status.NODE_FAIL: 0,
    Status.CANCELLED: 5,
    Status.PREEMPTED: 0,
    Status.UNKNOWN: -1,
}

KINDS = ("user", "group", "application", "queue")


class Numbers:
    """A number for each name, from 1; -1 for none."""

    def __init__(self) -> None:
        self._next = count(1)
        self._known: defaultdict[str, int] = defaultdict(lambda: next(self._next))

    def of(self, name: str | None) -> int:
        """The number of a name."""
        return -1 if name is None else self._known[name]


def swf_lines(runs: Iterable[Completion], cluster: str, zone: str = "UTC") -> Iterator[str]:
    """The lines of a log; the runs must come in the order of their submission.

    Args:
        runs: of one cluster.
        cluster: its name.
        zone: of the times in the head.
    """
    numbers = {kind: Numbers() for kind in KINDS}
    begin: float | None = None
    for job, run in enumerate(runs, start=1):
        if begin is None:
            begin = float(int(run.submission.submit_time))
            yield from _head(cluster, begin, zone)
        yield _line(job, run, begin, numbers)


def _head(cluster: str, begin: float, zone: str) -> Iterator[str]:
    yield "; Version: 2.2"
    yield f"; Computer: {cluster}"
    yield f"; UnixStartTime: {begin:.0f}"
    yield f"; TimeZoneString: {zone}"
    yield "; Note: exported by walltimed; users, groups, names and queues are numbers"


def _line(job: int, run: Completion, begin: float, numbers: dict[str, Numbers]) -> str:
    asked = run.submission
    processors = asked.requested_processors or -1
    submit = asked.submit_time - begin
    fields = [
        job,
        submit,
        max(0.0, run.start_time - asked.submit_time),
        run.runtime,
        processors,
        -1,  # mean CPU time
        -1,  # used memory
        processors,
        asked.requested_walltime,
        -1 if asked.requested_memory is None else asked.requested_memory,
        STATUSES[run.status],
        *(numbers[kind].of(getattr(asked, kind)) for kind in KINDS),
        -1,  # partition
        -1,  # preceding job
        -1,  # think time
    ]
    return " ".join(shortest(field) for field in fields)


def shortest(value: float) -> str:
    """A number without a fraction that it does not have."""
    return str(int(value)) if float(value).is_integer() else repr(round(value, 3))
