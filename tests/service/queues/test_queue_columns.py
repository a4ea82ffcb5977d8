"""Live jobs as the simulator takes them."""

import pytest

from predictors.jobs import Submission
from service.operations.queues.what_if import added_job
from service.queues.estimate import Estimate
from service.queues.outlook import LiveQueue
from service.queues.queue_columns import NOBODY, pool_queues
from service.queues.snapshot import JobState, LiveJob, Pool, QueueSnapshot, Rules

USUAL = Estimate(runtime=60.0, priority=1.0)


def asked(user, job_id=None):
    return Submission(requested_walltime=60.0, submit_time=0.0, user=user, job_id=job_id)


def waiting(user, job_id):
    return LiveJob(submission=asked(user, job_id), state=JobState.WAITING)


@pytest.mark.parametrize(
    ("user", "owner"), [("bob", 0), ("ada", 1), ("eve", NOBODY), (None, NOBODY)]
)
def test_a_job_of_a_what_if_varies_with_those_of_its_own_user_alone(user, owner):
    snapshot = QueueSnapshot(
        cluster="hill",
        taken_at=0.0,
        rules=Rules(),
        pools=(Pool(processors=4),),
        jobs=(waiting("bob", "1"), waiting("ada", "2"), waiting(None, "3")),
    )
    pools = pool_queues(snapshot, [USUAL] * 3)
    queue = LiveQueue(snapshot=snapshot, received_at=0.0)
    added = added_job(queue, pools, asked(user), USUAL)
    assert added.job.owner.tolist() == [owner]
