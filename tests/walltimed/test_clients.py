"""Clients against a running service."""

import asyncio
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

import walltimed

pytestmark = [pytest.mark.acceptance, pytest.mark.lengthy(5)]

NOW = 1_700_000_000.0


def job(number=1, user="ada", **known):
    return walltimed.Submission(
        requested_walltime=3600.0, submit_time=NOW, user=user, job_id=str(number), **known
    )


def ended(number, cluster, runtime=60.0):
    return walltimed.Completion(
        submission=job(number, cluster=cluster),
        start_time=NOW,
        end_time=NOW + runtime,
        runtime=runtime,
        status=walltimed.Status.COMPLETED,
    )


QUEUE = {
    "now": NOW,
    "policy": "easy",
    "machine": {"processors": 4},
    "samples": 0,
    "waiting": [
        {"job_id": number, "requested_walltime": 60, "requested_processors": 4,
         "submit_time": NOW, "predicted_walltime": 60}
        for number in (1, 2)
    ],
}  # fmt: skip


def test_one_job_and_several_are_predicted_alike(url):
    with walltimed.Client(url) as client:
        one = client.predict(job(), method="requested")
        many = client.predict([job(), job(2)], method="requested")
        assert one.predicted_walltime == 3600
        assert list(many) == [one, one]
        assert many.to_pandas().predicted_walltime.tolist() == [3600, 3600]
        assert many.to_pandas().job_id.tolist() == ["1", "2"]
        facts = walltimed.Facts(qos="long")
        told = client.predict([job(facts=facts), job(2)], method="requested").to_pandas()
        assert told.qos.tolist()[0] == "long"
        assert len(client.predict(job(number) for number in range(1001))) == 1001
        assert len(client.predict([])) == 0


def test_a_run_counts_once_and_is_learned_from(url):
    with walltimed.Client(url) as client:
        runs = [ended(number, "told") for number in range(5)]
        assert client.complete(runs) == walltimed.Stored(accepted=5, duplicates=0)
        assert client.complete(runs[0]) == walltimed.Stored(accepted=0, duplicates=1)
        later = walltimed.Submission(
            requested_walltime=3600.0, submit_time=NOW + 999, user="ada", cluster="told"
        )
        learned = client.predict(later, method="max-usage")
        assert learned.predicted_walltime == 60
        assert client.predict([later], method="max-usage").to_pandas().basis_jobs[0] == 5


def test_a_posted_queue_is_played_forward(url):
    with walltimed.Client(url) as client:
        jobs = client.forecast(QUEUE)
        assert [each["start_time"] - NOW for each in jobs] == [0, 60]
        frame = jobs.to_pandas()
        assert frame.wait.tolist() == [0, 60]
        assert jobs.document["policy"] == "easy"


def test_a_live_queue_has_a_row_for_each_job(url):
    snapshot = {"taken_at": NOW, "pools": [{"processors": 4}], "waiting": [
        {"job_id": 31, "user": "bob", "requested_walltime": 600, "requested_processors": 2,
         "submit_time": NOW}]}  # fmt: skip
    with walltimed.Client(url) as client:
        client._connection.call("PUT", "/v1/clusters/a%20hill/snapshot", snapshot)
        assert client.queue("a hill").to_pandas().user.tolist() == ["bob"]
        assert len(client.queue("a hill", user="nobody")) == 0
        with pytest.raises(walltimed.RemoteError, match="404"):
            client.queue("nowhere")


def test_an_error_is_the_service_s_own_sentence(url):
    with walltimed.Client(url) as client:
        with pytest.raises(walltimed.RemoteError, match="no such method"):
            client.predict(job(), method="crystal-ball")
        with pytest.raises(walltimed.RemoteError, match="machine"):
            client.forecast({"waiting": []})
    with pytest.raises(walltimed.ServiceUnreachableError, match="No service"):
        walltimed.Client("http://127.0.0.1:9").predict(job())


def test_an_asynchronous_client_has_the_same_verbs(url):
    async def calls():
        async with walltimed.AsyncClient(url, connections=3) as client:
            answers = await asyncio.gather(
                *(client.predict(job(number), method="requested") for number in range(20))
            )
            many = await client.predict([job()], method="requested")
            stored = await client.complete(ended(1, "awaited"))
            jobs = await client.forecast(QUEUE)
            with pytest.raises(walltimed.RemoteError):
                await client.queue("nowhere")
            return answers, many, stored, jobs

    answers, many, stored, jobs = asyncio.run(calls())
    assert [each.predicted_walltime for each in answers] == [3600.0] * 20
    assert list(many) == answers[:1]
    assert stored == walltimed.Stored(accepted=1, duplicates=0)
    assert len(jobs) == 2


def test_a_call_that_is_given_up_disturbs_no_other(url):
    async def calls():
        async with walltimed.AsyncClient(url, connections=1) as client:
            given_up = asyncio.ensure_future(client.predict(job(), method="requested"))
            await asyncio.sleep(0)
            given_up.cancel()
            with pytest.raises(asyncio.CancelledError):
                await given_up
            return [await client.predict(job(n), method="requested") for n in range(5)]

    assert len(asyncio.run(calls())) == 5


@contextmanager
def other_program(status, body):
    """A program that is no walltimed; gives its address."""

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            self.do_GET()

        def do_GET(self):
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("body", [b"<html>It works!", b"[]", b'{"jobs": ', b""])
def test_another_program_at_the_address_is_told_from_walltimed(body):
    with other_program(200, body) as url, walltimed.Client(url) as client:
        calls = [
            lambda: client.predict(job()),
            lambda: client.predict([job()]),
            lambda: client.complete(ended(1, "told")),
            lambda: client.forecast({}),
            client.queue,
        ]
        for call in calls:
            with pytest.raises(walltimed.ServiceUnreachableError, match="but not as walltimed"):
                call()


def test_a_refused_token_is_the_service_s_own_sentence():
    body = b'{"error": "Unauthenticated", "detail": "The token is not known."}'
    with other_program(401, body) as url, walltimed.Client(url, "wrong") as client:
        with pytest.raises(walltimed.RemoteError, match="401: The token is not known") as refused:
            client.predict(job())
        assert refused.value.status == 401


@pytest.mark.parametrize("url", [None, "", "nonsense", "ftp://host", "http://host:port", "http://"])
def test_what_is_no_address_is_named(url):
    with pytest.raises(ValueError, match="is not of the form http://HOST:PORT"):
        walltimed.Client(url)


def test_an_asynchronous_client_needs_a_connection():
    with pytest.raises(ValueError, match="connections must be a whole number of at least 1, not 0"):
        walltimed.AsyncClient(connections=0)
