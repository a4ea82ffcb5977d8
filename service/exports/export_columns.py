"""The columns of an exported run, by the names of the HTTP contract."""

from predictors.jobs import Completion

COLUMNS = (
    *("cluster", "job_id", "user", "group", "project", "queue", "application"),
    *("requested_walltime", "requested_processors", "requested_memory"),
    *("submit_time", "start_time", "end_time", "runtime", "status"),
)

_OF_THE_RUN = frozenset({"start_time", "end_time", "runtime"})


def row_of(run: Completion) -> tuple[object, ...]:
    """A run as a row; what is unknown is None."""
    return tuple(_value(run, name) for name in COLUMNS)


def _value(run: Completion, name: str) -> object:
    if name == "status":
        return run.status.value
    return getattr(run if name in _OF_THE_RUN else run.submission, name)
