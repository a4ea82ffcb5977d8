"""Gives a simulation the estimates of a method that comes as machine code."""

from predictors.compiled import of_same_types
from predictors.memory.job_columns import ByColumns, ColumnForm, JobColumns
from simulator.engine.state import State
from simulator.replay.trace_replay import InProcess
from simulator.scheduling.estimates import Estimates
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.workload import Workload
from simulator.traces.completions import job_columns


class ColumnFeed:
    """Gives the same estimates as an ``EstimateFeed``, without building a struct for any job.

    Args:
        state: state of the simulation; the loop stops where ``give`` is to be called.
        workload: the jobs of the simulation.
        log: the same jobs, as the method was given them.
        form: of the method, for these jobs.
    """

    def __init__(self, state: State, workload: Workload, log: JobColumns, form: ColumnForm) -> None:
        begin = workload.trace.unix_start + workload.origin
        self._play = of_same_types(form.play)
        self._method = form.method
        self._log = (log, (state.finished, state.jobs["start"], begin))
        self._predicted = state.jobs["predicted"]
        self._finished = state.clock["finished"]
        self._submitted, self._wanted = state.clock["submitted"], state.clock["wanted"]
        self._observed = 0

    def give(self) -> None:
        """Learn from the jobs that have ended, then give estimates to this second's submissions."""
        finished = self._finished.item()
        turn = (self._observed, finished, self._submitted.item(), self._wanted.item())
        self._play(self._method, self._log, turn, self._predicted)
        self._observed = finished


def column_feed(
    state: State, workload: Workload, estimates: Estimates, semantics: Semantics
) -> ColumnFeed | None:
    """The feed of a method that can be asked by columns for all that the rules want to know.

    None of another method: there are no medians, bounds or priorities by columns, nor can a method
    be asked that has learned already.
    """
    player = estimates.player
    if semantics.guarded or semantics.needs_priorities or type(player) is not InProcess:
        return None
    methods = list(player.predictors.values())
    if len(methods) != 1 or not isinstance(methods[0], ByColumns):
        return None
    log = job_columns(workload.trace)
    form = methods[0].by_columns(log)
    return ColumnFeed(state, workload, log, form) if form else None
