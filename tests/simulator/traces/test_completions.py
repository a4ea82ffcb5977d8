import io

import pytest

from predictors.jobs import Completion, Status, Submission
from simulator.traces.completions import completions
from simulator.traces.swf import read_swf

LINE = "7 100 10 142.00 4 140.50 2048 8 3600 4096 1 7 3 12 0 1 -1 -1"


def runs_of(text):
    return list(completions(read_swf(io.BytesIO(f"; UnixStartTime: 1000\n{text}".encode()))))


def test_a_line_becomes_a_completion_with_its_submission_as_it_was():
    assert runs_of(LINE) == [
        Completion(
            submission=Submission(
                requested_walltime=3600,
                submit_time=1100,
                job_id="7",
                user="7",
                group="3",
                queue="0",
                application="12",
                requested_processors=8,
                requested_memory=4096,
            ),
            start_time=1110,
            end_time=1252,
            runtime=142,
            status=Status.COMPLETED,
        )
    ]


def test_what_is_unknown_is_none_and_allocated_processors_stand_in():
    [run] = runs_of("7 100 -1 142 4 -1 -1 -1 3600 -1 -1 -1 -1 -1 -1 -1 -1 -1")
    assert run.submission == Submission(
        requested_walltime=3600, submit_time=1100, job_id="7", requested_processors=4
    )
    assert (run.start_time, run.end_time, run.status) == (1100, 1242, Status.UNKNOWN)


@pytest.mark.parametrize(
    ("number", "status"),
    [(0, "failed"), (1, "completed"), (3, "completed"), (5, "cancelled"), (9, "unknown")],
)
def test_status_numbers_have_words(number, status):
    [run] = runs_of(LINE.replace(" 4096 1 ", f" 4096 {number} "))
    assert run.status == status


def test_jobs_go_to_the_cluster_that_is_asked_for():
    trace = read_swf(io.BytesIO(LINE.encode()))
    [run] = completions(trace, cluster="curie")
    assert run.submission.cluster == "curie"
