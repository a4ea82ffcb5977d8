"""Re-predicts a running job from the jobs of its user that ran longer."""

from math import ceil

from predictors.base import Memory
from predictors.correction import next_estimate
from predictors.jobs import Completion, Submission
from predictors.memory.user_runs import UserRuns

WINDOW = 50
"""A user's last runs that are looked at."""

FEWEST = 5
"""With fewer runs that lasted longer than this job has, they say little of it."""

SHARE = 0.75
"""The new estimate covers this share of them: to ask again soon costs more than to wait a little
longer."""


class Survivors:
    """Estimates how long a job will run, given that it has run for so long already.

    Of the user's last runs, each as a share of its request, those are left that would have
    lasted longer than this job has; the estimate is the smallest of their runtimes that
    ``SHARE`` of them do not exceed. Runs that ended earlier tell nothing any more: that is the
    difference to any prediction made at submission.
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
        """Seconds from the start to the end of the job, more than ``elapsed`` or the request.

        A prediction that the job has not outlived yet stands. With too few runs to go by it is
        doubled instead.

        Args:
            predicted: any earlier estimate, 0 < predicted <= request.
            submission: the job; what had ended at its submission counts.
            elapsed: how long it has been running.
        """
        requested = submission.requested_walltime
        doubled = next_estimate(predicted, requested, elapsed)
        if elapsed < predicted or elapsed >= requested:
            return doubled
        usages = self._usages.before(submission.user, submission.submit_time)
        longer = sorted(usage * requested for usage in usages if usage * requested > elapsed)
        if len(longer) < FEWEST:
            return doubled
        return longer[ceil(SHARE * len(longer)) - 1]
