"""Scales the request by the largest share of their requests that the user's last jobs used."""

from typing import Any

from predictors.base import COLD_START, Memory, capped, request_of
from predictors.jobs import Basis, Completion, Prediction, Submission
from predictors.memory.user_runs import LATEST_RUNS, UserRuns
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
        self._usages = UserRuns(window, latest=LATEST_RUNS)

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
        """A few runs of every user, and the latest of the cluster."""
        return self._usages.memory

    def predict(self, submission: Submission) -> Prediction:
        """Predict by Formula 2 over the runs that had ended when the job was submitted."""
        usages = self._usages.before(submission.user, submission.submit_time)
        if not usages:
            return request_of(submission, method=self.name, basis=COLD_START)
        seconds = submission.requested_walltime * max(usages) * self._factor + self._margin
        basis = Basis(jobs=len(usages), reason="history")
        return capped(seconds, submission, method=self.name, basis=basis)

    def observe(self, completion: Completion) -> None:
        """Remember the usage (Formula 1) for the user."""
        self._usages.add(completion.submission.user, completion.end_time, completion.usage)
