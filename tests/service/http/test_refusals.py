"""Fields that no call takes: the answer is 422 and names the field."""

import pytest
from asgi_client import NOW, run_of

JOB = {"requested_walltime": 60}
WAITING = {"job_id": "1", "requested_walltime": 60, "submit_time": NOW}
OUTLIVED = {"requested_walltime": 60, "predicted_walltime": 30, "elapsed": 0}

FIELDS = {
    "/v1/predictions": (
        JOB | {"method": "least-cost"},
        [
            ("requested_walltime", 0, "greater than 0"), ("requested_walltime", -1, "greater"),
            ("requested_walltime", 1.1e9, "less than"), ("requested_walltime", "1", "number"),
            ("requested_walltime", True, "number"), ("requested_walltime", None, "number"),
            ("submit_time", -1, "RFC 3339"), ("submit_time", 1.1e11, "RFC 3339"),
            ("submit_time", "yesterday", "RFC 3339"),
            ("submit_time", "2024-01-01T00:00:00", "RFC 3339"),
            ("submit_time", "1969-12-31T23:59:59Z", "RFC 3339"),
            ("user", "", "printable characters"), ("user", "x" * 257, "printable characters"),
            ("user", "ada\nlovelace", "printable characters"), ("user", 7, "printable"),
            ("user", "ada\u0000", "printable"), ("user", "ada\u0085", "printable"),
            ("user", {"deep": [1, [2]]}, "printable"), ("job_id", 1.5, "whole number"),
            ("job_id", -1, "whole number"), ("job_id", ["1"], "whole number"),
            ("job_id", "a\u001b[31m", "printable"), ("requested_processors", 0, "whole number"),
            ("requested_processors", 1.5, "whole number"),
            ("requested_processors", 10**26, "whole number"),
            ("requested_memory", 0, "greater than 0"), ("cluster", None, "printable"),
            ("usr", "ada", "no such field"), ("method", "oracle", "max-usage"),
            ("coverage", 0.49, "greater"), ("coverage", 1, "less"), ("coverage", "0.9", "number"),
            ("underestimation_rate", 0, "greater"), ("underestimation_rate", 0.6, "less"),
            ("elapsed", -1, "greater"), ("explain", 1, "boolean"),
        ],
    ),
    "/v1/predictions/extend": (OUTLIVED, [("predicted_walltime", 61, "longer than the request")]),
    "/v1/completions": ({"completions": []}, [("cluster", "hill", "no such field")]),
}  # fmt: skip
"""Paths with a body that is taken, and what is wrong of each of its fields."""

IN_LISTS = {
    "/v1/predictions/batch": (
        "submissions", JOB, [("requested_walltime", {"requested_walltime": 0}),
                             ("method", {"method": "knn"})],
    ),
    "/v1/priorities": ("jobs", WAITING, [("submit_time", {"submit_time": None})]),
    "/v1/completions": (
        "completions",
        run_of("2"),
        [
            ("start_time", {"start_time": NOW + 1}), ("start_time", {"start_time": None}),
            ("runtime", {"start_time": None, "runtime": NOW + 1}), ("runtime", {"runtime": -1}),
            ("runtime", {"start_time": 0, "end_time": 1e10}), ("end_time", {"end_time": None}),
            ("job_id", {"job_id": None}), ("status", {"status": "done"}), ("node", {"node": "n1"}),
            ("prediction_id", {"prediction_id": "a\r\nb"}),
        ],
    ),
}  # fmt: skip
"""Paths with the field of their lists, an item that is taken, and what is wrong of its fields."""

QUERIES = [
    ("/v1/users/ada/accuracy", "cluster", ""),
    ("/v1/users/ada/accuracy", "cluster", "x" * 257),
    ("/v1/users/%01/accuracy", "user", None),
    (f"/v1/users/{'x' * 257}/accuracy", "user", None),
    ("/v1/accuracy-groups", "cluster", "\t"),
    ("/v1/methods", "cluster", "\x00"),
    ("/v1/clusters/hill/snapshot", "limit", "x"),
]


def refused(answer, field):
    """The detail of a 422 about a field."""
    assert answer.status_code == 422, answer.text
    error = answer.json()
    assert set(error) == {"error", "detail", "field"}
    assert (error["error"], error["field"]) == ("InvalidFieldError", field)
    return error["detail"]


@pytest.mark.parametrize(
    ("path", "field", "value", "word"),
    [(path, *row) for path, (_, rows) in FIELDS.items() for row in rows],
)
def test_a_field_out_of_bounds_is_named(unchanged, path, field, value, word):
    body = FIELDS[path][0] | {field: value}
    assert word in refused(unchanged.post(path, body), field)


@pytest.mark.parametrize(
    ("path", "field", "change"),
    [(path, *row) for path, (_, _, rows) in IN_LISTS.items() for row in rows],
)
def test_a_field_of_a_list_is_named_with_its_place_and_nothing_is_stored(
    unchanged, path, field, change
):
    name, item, _ = IN_LISTS[path]
    refused(unchanged.post(path, {name: [item, item | change]}), f"{name}.1.{field}")
    if path == "/v1/completions":
        refused(unchanged.post(path, item | change), field)
    assert unchanged.worker.store.past_runs.count() == 0


@pytest.mark.parametrize(("path", "field", "value"), QUERIES)
def test_a_parameter_out_of_bounds_is_named(unchanged, path, field, value):
    refused(unchanged.get(path, **({} if value is None else {field: value})), field)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_none_are_refused(unchanged, number):
    body = f'{{"requested_walltime": {number}}}'.encode()
    refused(unchanged.send("/v1/predictions", body), "requested_walltime")


def test_a_missing_field_is_named(unchanged):
    assert "required" in refused(unchanged.post("/v1/predictions", {}), "requested_walltime")


@pytest.mark.parametrize("path", IN_LISTS)
def test_a_list_over_the_limit_is_refused_and_nothing_is_stored(serve, sqlite_url, path):
    service = serve(sqlite_url, max_batch=2)
    name, item, _ = IN_LISTS[path]
    assert "at most 2" in refused(service.post(path, {name: [item] * 3}), name)
    assert service.worker.store.past_runs.count() == 0


def test_the_submission_of_a_running_job_asks_for_as_much_as_the_job(unchanged):
    body = OUTLIVED | {"submission": {"requested_walltime": 61}}
    answer = unchanged.post("/v1/predictions/extend", body)
    refused(answer, "submission.requested_walltime")
