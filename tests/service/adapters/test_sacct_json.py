"""``sacct --json`` in its three shapes."""

import json
from pathlib import Path

import pytest

from predictors.jobs import Status
from service.adapters.runs import Reason, SkippedError
from service.adapters.slurm_json import read_sacct_json, sacct_completion

DATA = Path(__file__).parents[2] / "data" / "slurm"
SHAPES = ["22.05", "24.11", "26.05"]


def outcomes(shape):
    body = (DATA / f"sacct_{shape}.json").read_bytes()
    return [outcome for _, outcome in read_sacct_json(body)]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_tells_the_same(shape):
    ordinary, unlimited, running, never_ran, requeued = outcomes(shape)[:5]
    submission = ordinary.completion.submission
    assert (submission.cluster, submission.job_id, submission.user) == ("hill", "901", "carol")
    assert (submission.group, submission.project, submission.queue) == ("chem", "zeolite", "batch")
    assert submission.requested_walltime == 3600
    assert submission.requested_processors == 8
    assert submission.requested_memory == 16000 * 1024 / 8
    assert (ordinary.completion.start_time, ordinary.completion.runtime) == (1927857906, 600)
    assert ordinary.prediction_id == "0b7c-42"
    assert unlimited.reason is Reason.NO_LIMIT
    assert running.reason is Reason.NOT_ENDED
    assert never_ran.reason is Reason.NEVER_RAN
    assert requeued.completion.status is Status.PREEMPTED


@pytest.mark.parametrize("shape", SHAPES[1:])
def test_the_limit_is_the_one_asked_for_on_the_command_line(shape):
    assert outcomes(shape)[5].completion.submission.requested_walltime == 3600


def test_a_broken_job_spoils_no_other():
    jobs = json.loads((DATA / "sacct_24.11.json").read_text())["jobs"]
    body = json.dumps({"jobs": [jobs[0], 17, {"time": []}, jobs[0]]}).encode()
    first, second, third, fourth = (outcome for _, outcome in read_sacct_json(body))
    assert first == fourth
    assert second.reason is Reason.MALFORMED
    assert isinstance(third, SkippedError)


def test_gpus_are_those_on_each_node_that_a_job_was_given():
    job = json.loads((DATA / "sacct_24.11.json").read_text())["jobs"][0]
    job["tres"]["allocated"] = [
        {"type": "cpu", "name": "", "id": 1, "count": 8},
        {"type": "node", "name": "", "id": 4, "count": 2},
        {"type": "gres", "name": "gpu", "id": 1001, "count": 8},
        {"type": "gres", "name": "gpu:a100", "id": 1002, "count": 8},
    ]
    ((_, run),) = read_sacct_json(json.dumps({"jobs": [job]}).encode())
    assert run.gpus == (2, 4)


def test_jobs_of_squeue_are_not_taken_for_jobs_that_never_ran():
    body = (DATA / "squeue_22.05.json").read_bytes()
    assert {outcome.reason for _, outcome in read_sacct_json(body)} == {Reason.MALFORMED}


@pytest.mark.parametrize("body", [b"", b"{}", b'{"jobs": 3}', b"[1]"])
def test_what_is_no_export_is_refused(body):
    with pytest.raises(SkippedError):
        list(read_sacct_json(body))


def test_the_job_script_goes_nowhere():
    assert "SECRET" not in repr(outcomes("24.11"))


def first_job(**changes):
    """The first job of a document, with changes."""
    return json.loads((DATA / "sacct_26.05.json").read_text())["jobs"][0] | changes


def told(job, **known):
    return sacct_completion(json.dumps(job).encode(), **known).completion


def test_one_job_can_be_read_alone():
    assert told(first_job(), cluster="dale").submission.cluster == "dale"


def test_jobs_are_numbered_from_one():
    body = (DATA / "sacct_26.05.json").read_bytes()
    places = [place for place, _ in read_sacct_json(body)]
    assert places == list(range(1, len(places) + 1))


def test_a_job_ran_if_it_had_nodes_or_took_time():
    time = first_job()["time"]
    assert told(first_job(time=time | {"elapsed": 0})).runtime == 600
    assert told(first_job(allocation_nodes=0)).runtime == 600
    with pytest.raises(SkippedError, match="never ran"):
        told(first_job(allocation_nodes=0, time=time | {"elapsed": 0}))


def test_a_job_that_asked_for_no_memory_has_none():
    without = [{"type": "cpu", "count": 8}]
    submission = told(first_job(tres={"requested": without})).submission
    assert (submission.requested_memory, submission.requested_processors) == (None, 8)


@pytest.mark.parametrize(("asked", "processors"), [(None, 4), (8, 8)])
def test_the_processors_are_those_asked_for_or_else_those_required(asked, processors):
    requested = [] if asked is None else [{"type": "cpu", "count": asked}]
    job = first_job(tres={"requested": requested}, required={"CPUs": 4})
    assert told(job).submission.requested_processors == processors


@pytest.mark.parametrize("value", [b"{}", b"1", b"[]", b'"ab"'])
def test_a_document_of_nothing_but_small_values_is_refused_before_they_take_memory(value):
    body = b'{"jobs":[' + b",".join([value] * 600_000) + b"]}"
    with pytest.raises(SkippedError) as refused:
        list(read_sacct_json(body))
    assert refused.value.reason is Reason.MALFORMED


def test_documents_and_lines_that_follow_each_other_for_long_are_read_in_place():
    """A copy of what is left for each of them took hours."""
    line = b"a warning that says nothing of importance to anybody\n"
    body = b'{"jobs": []}\n' + (line + b'{"jobs": []} ') * 200_000
    assert sum(1 for _ in read_sacct_json(body)) == 200_000
