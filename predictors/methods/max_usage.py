"""Scales the request by the largest share of their requests that the user's last jobs used."""

from typing import Any

from predictors.base import COLD_START, Memory, capped, request_of
from predictors.compiled import compiled
from predictors.jobs import Basis, Completion, Prediction, Submission
from predictors.memory.columns import REQUEST, RUNTIME, USER, Floats, usage, within
from predictors.memory.job_columns import (
    ColumnForm,
    JobColumns,
    Log,
    Turn,
    asked_of,
    end_of,
    users_of,
)
from predictors.memory.user_runs import RunColumns, UserRuns, add_run, run_columns, runs_before
from predictors.parameters import number, whole_number


class MaxUsage:
    """Predicts request x the maximum usage of the user's most recently ended jobs.

    This method is cautious: after one recent job that needed its whole request, the next job gets
    its whole request, so few jobs are underestimated. ``window`` jobs later that job is forgotten.
    A user without any ended job gets the request.

    Args:
        window: number of the user's last jobs that are looked at (1 to 1000; the paper: 5).
        margin_seconds: seconds added to every prediction (0 to 366 days; the paper: 0).
        factor: factor by which the usage is multiplied (0.01 to 100; the paper: 1).

    Reference:
        D. Klusáček and M. Soysal, "Walltime Prediction and Its Impact on Job Scheduling
        Performance and Predictability", JSSPP 2020, Formulas 1 and 2.
    """

    name = "max-usage"

    def __init__(
        self, *, window: int = 5, margin_seconds: float = 0.0, factor: float = 1.0
    ) -> None:
        self._window = whole_number("window", window, 1, 1000)
        self._margin = number("margin_seconds", margin_seconds, 0, 366 * 86400)
        self._factor = number("factor", factor, 0.01, 100)
        self._usages = UserRuns(window)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters in force."""
        return {
            "window": self._window,
            "margin_seconds": self._margin,
            "factor": self._factor,
        }

    @property
    def memory(self) -> Memory:
        """A few runs of every user."""
        return self._usages.memory

    def predict(self, submission: Submission) -> Prediction:
        """Formula 2 over the runs that had ended when the job was submitted."""
        usages = self._usages.before(submission.user, submission.submit_time)
        if not usages:
            return request_of(submission, method=self.name, basis=COLD_START)
        seconds = submission.requested_walltime * max(usages) * self._factor + self._margin
        basis = Basis(jobs=len(usages), reason="history")
        return capped(seconds, submission, method=self.name, basis=basis)

    def observe(self, completion: Completion) -> None:
        """Remember the usage (Formula 1) for the user."""
        self._usages.add(completion.submission.user, completion.end_time, completion.usage)

    def by_columns(self, jobs: JobColumns) -> ColumnForm | None:
        """The same in machine code, as long as nothing has been learned."""
        if len(self._usages):
            return None
        settings = (self._window, float(self._margin), float(self._factor))
        return ColumnForm(play=play, method=(settings, run_columns(users_of(jobs), self._window)))


@compiled
def play(
    method: tuple[tuple[int, float, float], RunColumns], log: Log, turn: Turn, seconds: Floats
) -> None:
    """Observe the jobs that have ended, then predict those that are asked about."""
    (window, margin, factor), runs = method
    numbers, ids = log[0]
    for place in range(turn[0], turn[1]):
        job, end = end_of(log, place)
        add_run(runs, ids[USER, job], end, usage(numbers[RUNTIME, job], numbers[REQUEST, job]))
    for job in range(turn[2], turn[3]):
        user, request, time = asked_of(log[0], job)
        first, stop = runs_before(runs, user, time, window)
        seconds[job] = request
        if first < stop:
            most = runs[1][user, first:stop].max()
            seconds[job] = within(request * most * factor + margin, request)
