"""Re-predicts a running job from the jobs of its user that ran longer."""

from math import ceil

from predictors.base import Memory
from predictors.correction import next_estimate
from predictors.jobs import Completion, Submission
from predictors.memory.user_runs import UserRuns

WINDOW = 50
"""Number of a user's last runs that are looked at."""

FEWEST = 5
"""Fewest longer runs that an estimate is made from; fewer say too little about the job."""

SHARE = 0.75
"""Share of the longer runs that the new estimate covers. It is high because correcting again soon
costs more than expecting the end a little late."""


class HistoryCorrection:
    """Estimates the whole runtime of a running job from the time that it has run already.

    Each of the user's last runs is taken as a share of its request. Only runs count that would
    have lasted longer than this job has run. The estimate is the smallest of their runtimes that
    ``SHARE`` of them do not exceed. A prediction made at submission also counts the shorter runs,
    which say nothing any more about a job that has outlived them.
    """

    def __init__(self) -> None:
        self._usages = UserRuns(WINDOW)

    @property
    def memory(self) -> Memory:
        """The last runs of every user."""
        return self._usages.memory

    def observe(self, completion: Completion) -> None:
        """Learn from a run that has ended."""
        user = completion.submission.user
        self._usages.add(user, completion.end_time, completion.usage)

    def next_estimate(self, predicted: float, submission: Submission, elapsed: float) -> float:
        """Return the estimated whole runtime in seconds: more than ``elapsed``, or the request.

        A prediction that the job has not outlived yet stands. With fewer than ``FEWEST`` longer
        runs the prediction is doubled instead.

        Args:
            predicted: any earlier estimate, 0 < predicted <= request.
            submission: the job; runs count that had ended at its submission.
            elapsed: how long the job has been running, in seconds.
        """
        requested = submission.requested_walltime
        doubled = next_estimate(predicted, requested, elapsed)
        if elapsed < predicted:
            return doubled
        usages = self._usages.before(submission.user, submission.submit_time)
        longer = sorted(usage * requested for usage in usages if usage * requested > elapsed)
        if len(longer) < FEWEST:
            return doubled
        return longer[ceil(SHARE * len(longer)) - 1]
