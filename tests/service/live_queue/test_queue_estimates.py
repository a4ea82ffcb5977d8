"""Predictions of a queue's jobs: alike ones once, and earlier ones where all would take long."""

import asyncio
from types import SimpleNamespace

import pytest

from predictors.jobs import Basis, Prediction, Submission
from service.live_queue.snapshot import JobState, LiveJob, Pool, QueueSnapshot, SchedulerRules
from service.settings import Settings
from service.worker import queue_estimates
from service.worker.queue_estimates import FRESH_SECONDS, QueueEstimates

JOBS = 5


class Asked:
    """Predicts a second more each time that it is asked."""

    accuracy_groups = SimpleNamespace(of=lambda _user: None)

    def __init__(self):
        self.answers = 0

    def state_of(self, _cluster):
        return self

    def ask(self, _method, submission):
        self.answers += 1
        return Prediction(
            predicted_walltime=float(self.answers),
            requested_walltime=submission.requested_walltime,
            method="max-usage",
            basis=Basis(jobs=1, reason="history"),
        )

    def quantiles(self, *_question):
        return None


def snapshot(taken_at):
    jobs = [
        LiveJob(
            submission=Submission(
                requested_walltime=3600.0 + number // 2, submit_time=0.0, job_id=str(number)
            ),
            state=JobState.WAITING,
        )
        for number in range(2 * JOBS)
    ]
    return QueueSnapshot(
        cluster="hill",
        taken_at=taken_at,
        rules=SchedulerRules(),
        pools=(Pool(processors=8),),
        jobs=tuple(jobs),
    )


@pytest.mark.parametrize(
    ("seconds", "later", "asked_again"),
    [(600.0, 60.0, JOBS), (-1.0, 60.0, 0), (-1.0, 2 * FRESH_SECONDS, JOBS)],
)
def test_where_time_is_short_jobs_keep_earlier_predictions(
    monkeypatch, seconds, later, asked_again
):
    monkeypatch.setattr(queue_estimates, "ASKING_SECONDS", seconds)
    state = Asked()
    estimates = QueueEstimates(Settings(), state)
    first = asyncio.run(estimates.estimate(snapshot(0.0), {}))
    assert [each.runtime for each in first] == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0, 5.0, 5.0]
    second = asyncio.run(estimates.estimate(snapshot(later), {}))
    assert state.answers == JOBS + asked_again
    assert (second == first) is (asked_again == 0)
