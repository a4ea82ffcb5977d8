"""Ranks users by the accuracy of their requests, and waiting jobs by priority."""

import asyncio
from operator import attrgetter

from predictors.accuracy_groups import Accuracies, UserAccuracy, aged_priority, group_named
from service.auth import Caller
from service.contract.answers import (
    GroupsAnswer,
    PrioritiesAnswer,
    PriorityAnswer,
    UserAnswer,
)
from service.contract.bodies import PriorityRequest, WaitingJob, check_length
from service.contract.fields import unix_seconds
from service.errors import UnknownUserError
from service.worker.worker import Worker

JOBS_PER_TURN = 256
"""Number of jobs ranked in one turn of the event loop; other requests pass in between."""


class Ranking:
    """Accuracy groups and aging priorities (Rocchetti et al.), from memory."""

    def __init__(self, worker: Worker) -> None:
        self._settings = worker.settings
        self._follower = worker.follower
        self._default = group_named(worker.settings.default_group)
        self._pseudonym = worker.pseudonyms.user
        self._clock = worker.clock

    def user(self, user: str, cluster: str, caller: Caller) -> UserAnswer:
        """Return the accuracy of a user's requests.

        Raises:
            ForbiddenError: the caller may not see this user.
            UnknownUserError: no job of the user has ended.
        """
        name = self._pseudonym(user)
        caller.check_sees({name})
        accuracy = self._accuracies(cluster).of(name)
        if accuracy is None:
            raise UnknownUserError
        return UserAnswer(
            user=user,
            cluster=cluster,
            accuracy=accuracy.accuracy,
            jobs=accuracy.jobs,
            group=accuracy.group,
            priority=accuracy.priority,
        )

    def accuracy_of(self, user: str, cluster: str) -> UserAccuracy | None:
        """Return a user's accuracy, by name or pseudonym; None for an unknown user."""
        accuracies = self._accuracies(cluster)
        return accuracies.of(user) or accuracies.of(self._pseudonym(user))

    def groups(self, cluster: str) -> GroupsAnswer:
        """Return the users of each accuracy group."""
        return GroupsAnswer(cluster=cluster, groups=self._accuracies(cluster).groups())

    async def priorities(self, body: PriorityRequest) -> PrioritiesAnswer:
        """Return the waiting jobs, highest priority first.

        Raises:
            InvalidFieldError: there are too many jobs.
        """
        check_length(body.jobs, "jobs", self._settings.max_batch)
        now = self._clock() if body.now is None else unix_seconds(body.now)
        accuracies = self._accuracies(body.cluster)
        oldest_first = sorted(body.jobs, key=lambda job: unix_seconds(job.submit_time))
        ranked: list[PriorityAnswer] = []
        for start in range(0, len(oldest_first), JOBS_PER_TURN):
            ranked += [
                self._rank(job, accuracies, now)
                for job in oldest_first[start : start + JOBS_PER_TURN]
            ]
            await asyncio.sleep(0)
        # The sort is stable: among equal priorities the older submission stays first.
        ranked.sort(key=attrgetter("priority"), reverse=True)
        return PrioritiesAnswer(priorities=ranked)

    def _rank(self, job: WaitingJob, accuracies: Accuracies, now: float) -> PriorityAnswer:
        accuracy = accuracies.of(self._pseudonym(job.user), now)
        initial = accuracy.priority if accuracy else self._default.priority
        return PriorityAnswer(
            job_id=job.job_id,
            group=accuracy.group if accuracy else self._default.name,
            initial_priority=initial,
            priority=aged_priority(
                initial, now - unix_seconds(job.submit_time), job.requested_walltime
            ),
            reason="history" if accuracy else "cold-start",
        )

    def _accuracies(self, cluster: str) -> Accuracies:
        return self._follower.state_of(cluster).accuracy_groups
