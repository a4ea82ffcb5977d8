"""Predictions of a queue's jobs: alike ones once, and earlier ones where all would take long."""

import asyncio
from types import SimpleNamespace

import pytest

from predictors.jobs import Basis, Prediction, Submission
from predictors.memory.error_ratios import ENOUGH_RATIOS, ErrorRatios
from service.live_queue.snapshot import (
    JobState,
    LiveJob,
    Pool,
    QueueSnapshot,
    RuntimeEstimate,
    SchedulerRules,
)
from service.settings import Settings
from service.worker import queue_estimates
from service.worker.queue_estimates import FRESH_SECONDS, QueueEstimates, with_likely

JOBS = 5


class Asked:
    """Predicts a second more each time that it is asked."""

    accuracy_groups = SimpleNamespace(of=lambda _user: None)
    error_ratios = ErrorRatios()

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


HISTORY = Basis(jobs=1, reason="history")


@pytest.mark.parametrize(
    ("estimate", "ratios", "behind", "expected"),
    [
        (RuntimeEstimate(100.0, 1.0, [10.0] * 10 + [20.0] * 10, HISTORY), [], None, 15.0),
        (RuntimeEstimate(100.0, 1.0, None, HISTORY), [0.5] * ENOUGH_RATIOS, None, 50.0),
        (RuntimeEstimate(100.0, 1.0, None, HISTORY), [0.5] * 30 + [0.9] * 30, 60.0, 90.0),
        (RuntimeEstimate(100.0, 1.0, None, HISTORY), [0.5], None, 100.0),
        (RuntimeEstimate(100.0, 1.0), [0.5] * ENOUGH_RATIOS, None, 100.0),
    ],
    ids=["distribution", "ratios", "longer ratios", "too few ratios", "predicted by the caller"],
)
def test_the_expected_runtime_is_the_median(estimate, ratios, behind, expected):
    assert with_likely(estimate, ratios, behind).expected == expected
