"""Jobs that have ended: predicted, what came, and earlier runs, over HTTP and as a page."""

import re

import pytest
from asgi_client import NOW, run_of

from service.contract.queue_answers import EndedRunAnswer
from service.web.queue_page import what_became

SOLVE = {"user": "ada", "application": "solve"}


@pytest.fixture
def ended(service):
    """A service in which job 9 was predicted, and ended after five like it and one unlike it."""
    earlier = [run_of(str(n), runtime=600.0, end_time=NOW + 100 * n, **SOLVE) for n in range(5)]
    service.complete(*earlier, run_of("other", application="mesh", end_time=NOW + 400, user="ada"))
    service.complete(run_of("bobs", user="bob", end_time=NOW + 300, application="solve"))
    submitted = NOW + 1000.0
    answer = service.predict(job_id="9", submit_time=submitted, **SOLVE)
    run = run_of("9", runtime=300.0, **SOLVE) | {
        "submit_time": submitted,
        "start_time": submitted + 60,
        "end_time": submitted + 360,
    }
    service.complete(run)
    service.planned = answer["predicted_walltime"]
    return service


def test_it_is_told_what_was_planned_and_what_came(ended):
    answer = ended.get("/v1/ended-jobs/9").json()
    (run,) = answer["runs"]
    assert (run["runtime"], run["wait"], run["requested_walltime"]) == (300.0, 60.0, 3600.0)
    assert run["predicted_walltime"] == ended.planned
    assert run["method"] == "max-usage"
    assert run["status"] == "completed"


def test_earlier_runs_are_those_of_its_user_and_name_that_had_ended(ended):
    answer = ended.get("/v1/ended-jobs/9").json()
    assert [each["job_id"] for each in answer["earlier"]] == ["4", "3", "2", "1", "0"]
    assert ended.get("/v1/ended-jobs/2").json()["earlier"] == []


def test_a_run_without_a_recorded_prediction_has_none(ended):
    (run,) = ended.get("/v1/ended-jobs/other").json()["runs"]
    assert (run["predicted_walltime"], run["method"], run["interval"]) == (None, None, None)


def test_what_was_likely_is_kept_within_its_range(service):
    service.complete(*(run_of(str(n), runtime=600.0 + n, **SOLVE) for n in range(60)))
    answer = service.predict(job_id="x", submit_time=NOW + 1000.0, method="least-cost", **SOLVE)
    run = run_of("x", **SOLVE) | {"submit_time": NOW + 1000.0, "start_time": NOW + 1001.0}
    service.complete(run | {"end_time": NOW + 1901.0})
    (told,) = service.get("/v1/ended-jobs/x").json()["runs"]
    assert told["likely"] == answer["likely"] is not None
    assert told["interval"] == answer["interval"]
    assert told["interval"]["lower"] <= told["likely"] <= told["interval"]["upper"]


def test_a_requeued_job_has_its_last_run_first(ended):
    ended.complete(run_of("9", runtime=50.0, end_time=NOW + 5000, **SOLVE))
    assert [run["runtime"] for run in ended.get("/v1/ended-jobs/9").json()["runs"]] == [50.0, 300.0]
    assert "It was started 2 times" in ended.get("/job", id="9").text


def test_a_prediction_whose_submission_named_no_job_is_found_by_its_names(service):
    service.predict(submit_time=NOW + 10, **SOLVE)
    run = run_of("7", **SOLVE) | {"submit_time": NOW + 11, "start_time": NOW + 20}
    service.complete(run | {"end_time": NOW + 920})
    (run,) = service.get("/v1/ended-jobs/7").json()["runs"]
    assert run["predicted_walltime"] == 3600.0


def test_a_job_that_never_was_is_404(ended):
    answer = ended.get("/v1/ended-jobs/4711")
    assert (answer.status_code, answer.json()["error"]) == (404, "UnknownJobError")
    assert ended.get("/job", id="4711").status_code == 404
    assert ended.get("/v1/ended-jobs/9", cluster="elsewhere").status_code == 404


def test_the_page_of_a_job_tells_the_same(ended):
    page = ended.get("/job", id="9")
    assert page.status_code == 200
    text = " ".join(re.sub(r"<[^>]+>", " ", page.text).split())
    assert "It ran 5 min of the 60 min requested." in text
    assert "Predicted 15 min." in text
    assert "Predicted by max-usage." in text
    other = ended.get("/job", id="other").text
    assert "No prediction was recorded for it." in other
    assert "No run of the same user and job name" in other


@pytest.mark.parametrize(
    ("runtime", "end"),
    [
        (30.0, "it ran shorter than that."),
        (90.0, "5 min (90%)."),
        (900.0, "it ran longer than that."),
    ],
)
def test_the_sentence_says_on_which_side_of_its_range_a_run_ended(runtime, end):
    known = dict.fromkeys(EndedRunAnswer.__dataclass_fields__)
    known |= {"runtime": runtime, "requested_walltime": 3600.0, "predicted_walltime": 120.0}
    run = EndedRunAnswer(**known)
    run.interval = type("Span", (), {"lower": 60.0, "upper": 300.0, "coverage": 0.9})
    assert what_became(run).endswith(end)
