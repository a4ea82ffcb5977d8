"""Averages the runtimes of the user's last two jobs: the field's yardstick."""

from typing import Any

from predictors.base import COLD_START, Memory, capped, request_of
from predictors.jobs import Basis, Completion, Prediction, Submission
from predictors.memory.user_runs import LATEST_RUNS, UserRuns

_TOO_FEW = Basis(jobs=1, reason="too-few-jobs")
_HISTORY = Basis(jobs=2, reason="history")


class LastTwo:
    """Predicts the mean runtime of the user's two most recently ended jobs, capped by the request.

    About half of the jobs run longer than a mean of past runtimes: use this method with a
    correction. A user with fewer than two ended jobs gets the request. There are no parameters.

    Reference:
        D. Tsafrir, Y. Etsion and D. G. Feitelson, "Backfilling Using System-Generated
        Predictions Rather than User Runtime Estimates", IEEE TPDS 18(6), 2007.
    """

    name = "last-two"

    def __init__(self) -> None:
        self._runtimes = UserRuns(2, latest=LATEST_RUNS)

    @property
    def parameters(self) -> dict[str, Any]:
        """No parameters."""
        return {}

    @property
    def memory(self) -> Memory:
        """A few runs of every user, and the latest of the cluster."""
        return self._runtimes.memory

    def predict(self, submission: Submission) -> Prediction:
        """Predict the mean of the two runs that had ended last when the job was submitted."""
        runtimes = self._runtimes.before(submission.user, submission.submit_time)
        if len(runtimes) < 2:
            basis = _TOO_FEW if runtimes else COLD_START
            return request_of(submission, method=self.name, basis=basis)
        return capped(sum(runtimes) / 2, submission, method=self.name, basis=_HISTORY)

    def observe(self, completion: Completion) -> None:
        """Remember the runtime for the user."""
        self._runtimes.add(completion.submission.user, completion.end_time, completion.runtime)
