"""Commands in every state of the service: exit code, one sentence, and an error object."""

import json
import threading
import time
from contextlib import contextmanager

import pytest
from asgi_client import InProcess, run_of

from terminal.console import ExitCode

CLUSTER = "hill"

COMMANDS = {
    "ask": ("ask", "--time", "1:00:00", "--user", "ada"),
    "queue": ("queue",),
    "job": ("queue", "1"),
    "report": ("report", "--user", "ada"),
}


@contextmanager
def up(url, *, runs=30, has_queue=True, **options):
    """A service with a history and a queue of one job."""
    with InProcess(url, **options) as service:
        now = time.time()
        ends = [now - 600.0 - 60 * number for number in range(runs)]
        service.complete(*(run_of(f"r{end}", cluster=CLUSTER, end_time=end) for end in ends))
        if has_queue:
            job = {"job_id": "1", "user": "ada", "requested_walltime": 3600, "submit_time": now}
            queue = {"pools": [{"processors": 4}], "waiting": [job]}
            path = f"/v1/clusters/{CLUSTER}/snapshot"
            assert service.request("PUT", path, json=queue).status_code == 202
            service.wait_until(lambda: service.get(path).json()["forecast_at"] is not None)
        yield service


@contextmanager
def no_history(url):
    with up(url, runs=0) as service:
        yield service


@contextmanager
def no_cluster(url):
    with up(url, has_queue=False) as service:
        yield service


@contextmanager
def starting(url):
    """A service whose history has not been read yet."""
    with up(url, has_queue=False):
        pass
    slow, may_go_on = InProcess(url), threading.Event()
    fold = slow.worker._fold
    slow.worker._fold = lambda: may_go_on.wait() and fold()
    slow.wait_until = lambda _: None
    with slow:
        yield slow
        may_go_on.set()
        InProcess.wait_until(lambda: slow.get("/health/ready").status_code == 200)


@contextmanager
def closed(url):
    """A service that asks for tokens."""
    with up(url) as service:
        service.worker.store.tokens.issue("filter", ["predict"], 1.0)
        service.worker.guard.update(service.worker.store.tokens.read_all())
        yield service


@contextmanager
def slow_forecasts(url):
    """A service whose forecasts take longer than a caller waits."""
    with up(url) as service:
        process = service.worker.forecasts.awaited

        async def fail(*_arguments):
            raise process.too_long()

        process.run = fail
        yield service


@contextmanager
def down(_url):
    yield None


FINE = (ExitCode.OK, "")
AWAY = (ExitCode.UNAVAILABLE, "does not answer")
NO_QUEUE = (ExitCode.FAILED, "No queue")
READING = (ExitCode.UNAVAILABLE, "its history")
NO_TOKEN = (ExitCode.FAILED, "401")

STATES = {
    "up": (up, dict.fromkeys(COMMANDS, FINE)),
    "no history": (no_history, dict.fromkeys(COMMANDS, FINE)),
    "no cluster": (
        no_cluster,
        {"ask": FINE, "queue": NO_QUEUE, "job": (ExitCode.FAILED, "No job 1"), "report": FINE},
    ),
    "starting": (starting, {"ask": READING, "queue": READING, "job": READING, "report": FINE}),
    "no token": (closed, dict.fromkeys(COMMANDS, NO_TOKEN)),
    "wrong token": (closed, dict.fromkeys(COMMANDS, NO_TOKEN)),
    "too long a forecast": (
        slow_forecasts,
        dict.fromkeys(COMMANDS, FINE),
    ),
    "down": (down, dict.fromkeys(COMMANDS, AWAY)),
}


@pytest.mark.parametrize("state", STATES)
def test_a_command_says_in_one_sentence_why_it_got_no_answer(against, sqlite_url, tmp_path, state):
    make, expected = STATES[state]
    options = ["--cluster", CLUSTER]
    if state == "wrong token":
        token = tmp_path / "wrong"
        token.write_text("wt_0123456789ab_wrong")
        options += ["--token-file", token]
    with make(sqlite_url) as service:
        for name, (code, sentence) in expected.items():
            check(against, service, [*COMMANDS[name], *options], code, sentence)


def check(against, service, command, code, sentence):
    """Run a command for people and for programs, and check code, output and error."""
    ended, printed, complaint = against(service, *command)
    assert ended == code, (command, complaint)
    assert bool(printed) is (code == ExitCode.OK), command
    if code != ExitCode.OK:
        check_sentence(complaint, sentence)
    ended, printed, complaint = against(service, *command, "--json")
    assert ended == code
    document = json.loads(printed)
    if code != ExitCode.OK:
        check_sentence(complaint, sentence)
        assert (document["error"], document["exit_code"]) == (code.name.lower(), code)
        assert f"error: {document['detail']}\n" == complaint


def check_sentence(complaint, sentence):
    """Standard error is one line that names the cause."""
    assert complaint.startswith("error: ")
    assert complaint.count("\n") == 1
    assert sentence in complaint


DOCTOR = dict.fromkeys(STATES, 0) | {"starting": 1, "down": 1}


@pytest.mark.parametrize(("state", "code"), DOCTOR.items())
def test_doctor_reports_the_state_of_the_service(against, sqlite_url, state, code):
    with STATES[state][0](sqlite_url) as service:
        options = ("doctor", "-d", sqlite_url, "--url", "http://127.0.0.1:1")
        ended, printed, complaint = against(service, *options)
        assert ended == code, printed
        assert printed
        ended, printed, complaint = against(service, *options, "--json")
        assert ended == code
        assert any(each["is_wrong"] for each in json.loads(printed)["findings"]) is bool(code)
        assert complaint.count("\n") <= 1


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_predict_names_the_command_that_predicts(walltimed, options):
    code, printed, complaint = walltimed("predict", *options)
    assert code == ExitCode.USAGE
    assert "did you mean 'ask'?" in " ".join(complaint.split())
    if options:
        assert json.loads(printed)["error"] == "usage"
