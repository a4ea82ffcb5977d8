"""The whole state of a simulation in a few flat arrays, which machine code reads and writes.

Times and durations are whole seconds. A job is its place in the order of submission. These arrays
are the whole state: a simulation can be stopped before any event, looked at, changed and
continued, and can begin with running jobs.
"""

from collections.abc import Mapping
from math import floor
from typing import Any, NamedTuple

import numba
import numpy as np

NEVER = 2**62
"""A time later than every event."""

UNKNOWN = -1
"""Stands for a time, job or estimate that is not known yet."""

ROUNDING = 1e-6
"""Seconds by which a prediction may miss a whole second through rounding errors alone."""


def whole_seconds(prediction: float) -> int:
    """A prediction as the scheduler uses it: cut to whole seconds, but at least one second."""
    return max(1, floor(prediction + ROUNDING))


def _record(**fields: type) -> "np.dtype[Any]":
    return np.dtype(list(fields.items()))


JOB = _record(
    submit=np.int64,
    processors=np.int64,
    runtime=np.int64,  # what it will run: the scheduler never looks at it
    request=np.int64,
    estimate=np.int64,  # the first one, given when the job is submitted
    length=np.int64,  # by which an order by length goes, given with the estimate; 0: the estimate
    predicted=np.float64,  # given in place of the estimate, which it is cut to; 0: none
    priority=np.float64,  # its accuracy group's, given with the estimate
    start=np.int64,
    serial=np.int64,  # how many jobs were started before it
    expected_end=np.int64,  # by its latest estimate, while it runs
    released=np.int64,  # its processors count as free: it ends this second, as expected
    corrections=np.int64,  # how often it outlived an estimate
    backfilled=np.int64,  # it was started while a job ahead of it in the queue waited on
    promise=np.int64,  # the first start that was planned for it
    in_gap=np.int64,  # this start was before the planned start of another waiting job
    nodes_since=np.int64,  # when its set of nodes was last changed
    first_node=np.int64,  # where its nodes stand in the list of nodes
    array=np.int64,  # 1 + the first withheld task of its array; 0 where none is withheld
    withheld=np.int64,  # it joins the queue when another task of its array has ended
    next_task=np.int64,  # 1 + the withheld task behind it; 0 for the last one
    turn=np.int64,  # of the first withheld task: 1 + the one that joins next
    room=np.int64,  # of the first withheld task: tasks that may join now, below 0 if too many run
)
"""A job; all fields are known at the end of the simulation."""

WAITING = _record(
    job=np.int64,
    processors=np.int64,
    estimate=np.int64,  # that backfilling goes by
    key=np.float64,  # the queue is in the order of (key, job)
    tick=np.int64,  # when the key was computed, in steps of aging
    length=np.int64,  # that the order goes by
    planned=np.int64,  # start, of policies that plan
    plan_serial=np.int64,  # how many plans were made or changed before this one
    pinned=np.int64,  # its planned start when it was pinned to its nodes, if it is
    started=np.int64,  # in this pass
)
"""A place in the queue, which moves on through its array as jobs join and leave."""

RUNNING = _record(end=np.int64, processors=np.int64, job=np.int64)
"""A job that runs and holds its processors; the list is in the order of expected ends."""

EVENT = _record(time=np.int64, serial=np.int64, job=np.int64)
"""A future event of a job; heaps of events are in the order of (time, serial)."""

STEP = _record(time=np.int64, free=np.int64, min_free_so_far=np.int64)
"""``free`` processors from ``time`` on; ``min_free_so_far`` is the least number until then."""

NODE = _record(
    job=np.int64,  # the last one that was started on it
    ready=np.int64,  # when what runs or is pinned there ends, while a plan is made again
    mark=np.int64,  # it is among those that were looked for
    next=np.int64,  # of its group
    last=np.int64,  # of the group that begins with it; so are members and ascending
    members=np.int64,  # number of nodes (records have a "size" of their own)
    ascending=np.int64,  # the group is chained in the order of numbers
)
"""Nodes whose plans end at the same time are a group, a chain of them."""

CLOCK = _record(
    now=np.int64,
    pause_at=np.int64,  # stop before this submission
    submitted=np.int64,
    wanted=np.int64,  # the submissions up to this one want estimates
    free=np.int64,
    head=np.int64,  # the first place of the queue
    tail=np.int64,  # behind its last place
    rearmost=np.int64,  # the last place whose job was started in this pass
    running=np.int64,
    ends=np.int64,
    ending=np.int64,
    expiries=np.int64,
    steps=np.int64,
    started=np.int64,
    finished=np.int64,
    plans=np.int64,
    next_planned=np.int64,
    last_planned=np.int64,  # where the plan ends, of policies that only go on at its end
    disturbed=np.int64,  # a job ended before its expected end, or an estimate was prolonged
    ended=np.int64,  # whether jobs have ended since the last pass
    groups=np.int64,  # of nodes
    overdue_after=np.int64,  # a job that has waited longer goes first
    overdue_due=np.int64,  # when that is next computed
)
"""The time, and how much of each array is in use."""

RATIO: Mapping[str, type] = {
    "offset": np.int64,  # of the order response-ratio; 0: there is another order
    "shortest_length": np.int64,
    "longest_length": np.int64,
    "overdue_permille": np.int64,  # of the longest wait of the last quarter; 0: no job goes first
    "longest_wait": np.int64,  # of the quarter before the first submission; 0: unknown
}
"""The rules of the order response-ratio, under all policies."""

RULES = _record(
    policy=np.int64,
    depth=np.int64,
    shortest_first=np.int64,
    compression=np.int64,
    pinning=np.int64,
    pinned=np.int64,
    order=np.int64,
    sequential=np.int64,
    correction=np.int64,
    **RATIO,
    estimated_order=np.int64,
    estimated_backfilling=np.int64,
    estimated_running=np.int64,
)
"""The semantics as numbers."""


def records_of(size: int, kind: "np.dtype[Any]") -> Any:
    """Return an array of records, which have attributes in plain Python, too.

    Machine code reads attributes of any record; with NUMBA_DISABLE_JIT=1 NumPy has to.
    """
    records = np.zeros(size, kind)
    config: Any = numba.config
    return records.view(np.recarray) if config.DISABLE_JIT else records


class State(NamedTuple):
    """The arrays; ``clock`` and ``rules`` have one entry."""

    jobs: Any
    queue: Any
    running: Any
    ends: Any
    ending: Any
    expiries: Any
    finished: Any
    profile: Any
    places: Any
    sorting: Any
    scratch: Any
    nodes: Any
    node_lists: Any
    groups: Any
    clock: Any
    rules: Any


def new_state(
    columns: Mapping[str, Any], *, processors: int, rules: Mapping[str, int], named_nodes: bool
) -> State:
    """An empty machine before the first submission.

    Args:
        columns: ``submit``, ``processors``, ``runtime`` and ``request`` of the jobs, which stand
            in the order of their submission.
        processors: number of processors, or of nodes, of the machine.
        rules: a number for each field of ``RULES``.
        named_nodes: whether the policy plans on named nodes.
    """
    jobs = records_of(len(columns["submit"]), JOB)
    for name, column in columns.items():
        jobs[name] = column
    for name in ("estimate", "start", "promise", "nodes_since"):
        jobs[name] = UNKNOWN
    jobs["first_node"] = np.cumsum(jobs["processors"]) - jobs["processors"]
    size = len(jobs)
    nodes = processors if named_nodes else 0
    clock = records_of(1, CLOCK)
    clock["free"] = processors
    clock["pause_at"] = size
    clock["steps"] = 1
    clock["next_planned"] = NEVER
    clock["rearmost"] = UNKNOWN
    clock["overdue_after"] = NEVER
    state = State(
        jobs=jobs,
        queue=records_of(size, WAITING),
        running=records_of(size, RUNNING),
        ends=records_of(size, EVENT),
        ending=records_of(size, EVENT),
        expiries=records_of(size, EVENT),
        finished=np.zeros(size, np.int64),
        profile=records_of(4 * size + 4, STEP),  # a job begins and ends, before it moves and after
        places=np.zeros(size, np.int64),
        sorting=records_of(max(size, nodes), EVENT),
        scratch=records_of(1, WAITING),
        nodes=records_of(nodes, NODE),
        node_lists=np.full(int(jobs["processors"].sum()) if nodes else 0, UNKNOWN),
        groups=records_of(nodes, EVENT),
        clock=clock,
        rules=records_of(1, RULES),
    )
    for name, number in rules.items():
        state.rules[name] = number
    state.profile["free"][0] = processors
    state.nodes["job"] = UNKNOWN
    clock["disturbed"] = 1 if nodes else 0
    return state
