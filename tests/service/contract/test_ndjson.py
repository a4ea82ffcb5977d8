import json

import pytest
from asgi_client import run_of

from service.contract.decoding import LONGEST_LINE

NDJSON = "application/x-ndjson"


def lines(*runs):
    return b"".join(json.dumps(run).encode() + b"\n" for run in runs)


def stored(service):
    return service.worker.store.past_runs.count()


def stream(service, content, **params):
    return service.send("/v1/completions", content, NDJSON, params=params)


def in_pieces(content, size):
    async def pieces():
        for start in range(0, len(content), size):
            yield content[start : start + size]

    return pieces()


def test_every_line_is_a_completion(service):
    answer = stream(service, lines(run_of("1"), run_of("2"), run_of("1")))
    assert answer.json() == {"accepted": 2, "duplicates": 1}
    assert service.predict(user="ada")["predicted_walltime"] == 900.0


def test_lines_may_be_blank_and_the_last_one_open(service):
    content = b"\n" + lines(run_of("1")) + b" \r\n" + lines(run_of("2")).rstrip(b"\n")
    assert stream(service, content).json() == {"accepted": 2, "duplicates": 0}


def test_a_line_may_begin_with_more_white_space_than_a_line_may_hold(service):
    content = b" " * (2 * LONGEST_LINE) + lines(run_of("1")) + b"{}\n"
    answer = stream(service, in_pieces(content, 1 << 16), on_error="skip").json()
    assert (answer["accepted"], answer["rejected"]) == (1, 1)


@pytest.mark.parametrize("mode", ["refuse", "skip"])
def test_nothing_is_stored_of_nothing(service, mode):
    answer = stream(service, b"", on_error=mode).json()
    assert (answer["accepted"], answer["duplicates"]) == (0, 0)


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("mode", ["refuse", "skip"])
def test_lines_may_arrive_in_pieces(service, size, mode):
    content = lines(*(run_of(place, user="ädä") for place in range(20)))
    assert stream(service, in_pieces(content, size), on_error=mode).json()["accepted"] == 20


@pytest.mark.parametrize("mode", ["refuse", "skip"])
def test_a_stream_may_be_longer_than_any_body_and_any_batch(serve, sqlite_url, mode):
    service = serve(sqlite_url, max_body_bytes=1024, max_batch=2)
    content = lines(*(run_of(place) for place in range(2500)))
    answer = stream(service, in_pieces(content, 1 << 16), on_error=mode)
    assert answer.json()["accepted"] == 2500
    assert stored(service) == 2500


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (b'{"job_id": "1"', "line"),
        (b"[]", "body"),
        (b"\xff", "line"),
        (lines(run_of("1") | {"end_time": 0}).strip(), "start_time"),
        (lines(run_of("1") | {"usr": "ada"}).strip(), "usr"),
        (b'"' + b"x" * LONGEST_LINE + b'"', "line"),
    ],
)
def test_a_bad_line_is_named_and_nothing_stored(service, line, field):
    content = lines(run_of("1")) + b"\n" + line + b"\n" + lines(run_of("2"))
    answer = stream(service, content)
    assert answer.status_code == 422
    error = answer.json()
    assert set(error) == {"error", "detail", "field", "line"}
    assert (error["error"], error["line"], error["field"]) == ("InvalidLineError", 3, field)
    assert error["detail"].startswith("Line 3: ")
    assert stored(service) == 0


def test_bad_lines_can_be_skipped_and_are_listed(service):
    content = lines(run_of("1")) + b"{\n" + lines(run_of("2"), run_of("3") | {"status": "?"})
    answer = stream(service, content, on_error="skip").json()
    assert (answer["accepted"], answer["duplicates"], answer["rejected"]) == (2, 0, 2)
    assert [(each["line"], each["field"]) for each in answer["rejections"]] == [
        (2, "line"),
        (4, "status"),
    ]
    assert service.metric("walltimed_completions_total", result="rejected") == 2


def test_every_bad_line_is_listed_up_to_the_bound_at_which_a_stream_is_given_up(service):
    answer = stream(service, b"{\n" * 1000, on_error="skip").json()
    assert answer["rejected"] == 1000
    assert [each["line"] for each in answer["rejections"]] == list(range(1, 1001))
    refused = stream(service, b"{\n" * 1001, on_error="skip")
    assert (refused.status_code, refused.json()["error"]) == (422, "TooManyBadLinesError")


def test_a_line_that_never_ends_is_not_held_in_memory(service):
    endless = b'{"user": "' + b"x" * (8 * LONGEST_LINE) + b'"}\n'
    answer = stream(service, in_pieces(endless + lines(run_of("1")), 5000), on_error="skip")
    assert (answer.json()["accepted"], answer.json()["rejected"]) == (1, 1)


def test_a_mode_that_does_not_exist_is_refused(service):
    answer = stream(service, lines(run_of("1")), on_error="ignore")
    assert (answer.status_code, answer.json()["field"]) == (422, "on_error")
    assert stored(service) == 0
