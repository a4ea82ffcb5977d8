"""Recorded queues of a play, starts that were told there, and the picture of them."""

import pytest
from forecast_scores import ToldStart, write_told
from recorded_queues import PbsQueueRecord
from told_picture import draw, read_told

from predictors.jobs import Submission

TOLD = [
    ToldStart(1, 60.0, 0.0, 3660.0, 7260.0, 3000.0, 2000.0, 4000.0, is_first=True),
    ToldStart(2, 60.0, 30.0, 7260.0, None, 9000.0, None, None, is_first=True),
    ToldStart(1, 90.0, 0.0, 3660.0, None, 3600.0, 2000.0, 4000.0, is_first=False),
]


def test_told_starts_are_read_as_they_were_written_and_drawn(tmp_path):
    write_told(tmp_path / "told.csv", TOLD)
    assert read_told(tmp_path / "told.csv") == TOLD
    (tmp_path / "other.csv").write_text("job,at\n1,2\n")
    with pytest.raises(ValueError, match=r"other.csv has no told starts"):
        read_told(tmp_path / "other.csv")
    draw(TOLD, tmp_path / "told.svg")
    drawn = (tmp_path / "told.svg").read_text("utf-8")
    assert "Slurm told 1 of 2 jobs" in drawn
    assert "walltimed told 2 of 2 jobs" in drawn


def test_a_recorded_queue_of_pbs_is_handed_over_under_the_names_of_the_log():
    job = {"job_id": "3", "submit_time": 10.0, "user": "test", "requested_walltime": 60}
    body = {
        "taken_at": 0.0,
        "running": [{**job, "start_time": 20.0}],
        "waiting": [{**job, "job_id": "4", "scheduler_start": 90.0}],
    }
    names = {"3": "ada", "4": "bob"}
    submitted = {
        key: Submission(requested_walltime=60.0, submit_time=10.0, user=user)
        for key, user in names.items()
    }
    record = PbsQueueRecord(at=30.0, body=body)
    shown = record.shown(1000.0, submitted)
    (running,), (waiting,) = shown["running"], shown["waiting"]
    assert (shown["taken_at"], running["user"], running["start_time"]) == (1030.0, "ada", 1020.0)
    assert (waiting["user"], waiting["scheduler_start"]) == ("bob", 1090.0)
    assert record.planned() == {"4": 90.0}
