"""What makes a run of the facts of a record."""

import math

import pytest

from predictors.jobs import LATEST_TIME, Status
from service.adapters.runs import Reason, SkippedError, ended_run

FACTS = {
    "job_id": "1",
    "submit": 1.0,
    "start": 1.0,
    "end": 61.0,
    "elapsed": 30.0,
    "requested": 1.0,
    "status": Status.COMPLETED,
}


def run(**changes):
    return ended_run(**FACTS | changes).completion


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"submit": 0.0}, Reason.UNKNOWN_SUBMIT),
        ({"start": 0.0}, Reason.UNKNOWN_START),
        ({"end": LATEST_TIME}, Reason.UNKNOWN_END),
        ({"end": 0.5}, Reason.ENDS_BEFORE_START),
        ({"requested": 0.0}, Reason.NO_LIMIT),
        ({"requested": math.inf}, Reason.NO_LIMIT),
        ({"job_id": None}, Reason.NO_JOB_ID),
    ],
)
def test_what_makes_no_run_says_why(changes, reason):
    with pytest.raises(SkippedError, match=reason.value) as skipped:
        run(**changes)
    assert skipped.value.reason is reason


def test_times_begin_with_the_first_second_and_a_run_may_take_none():
    found = run(end=1.0)
    assert (found.submission.submit_time, found.start_time, found.end_time) == (1, 1, 1)
    assert (found.runtime, found.submission.requested_walltime) == (0, 1)


@pytest.mark.parametrize(("elapsed", "runtime"), [(None, 60), (59, 59), (61, 60)])
def test_no_run_is_longer_than_from_its_start_to_its_end(elapsed, runtime):
    assert run(elapsed=elapsed).runtime == runtime


def test_memory_is_shared_out_to_the_processors_where_they_are_known():
    assert run(memory=1000.0).submission.requested_memory == 1000
    assert run(memory=1000.0, processors=4).submission.requested_memory == 250
    assert run(memory=0.0).submission.requested_memory is None


def test_records_that_cannot_be_read_are_damage_and_others_are_not():
    assert Reason.MALFORMED.is_damage
    assert not Reason.TOO_MANY_CLUSTERS.is_damage
