"""Records what a service answers to one call of each kind, for the page of the API.

    .venv/bin/python tests/support/record_examples.py service/data/examples.json

Long lists are cut after two entries; a test holds all of it to the OpenAPI document.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

from asgi_client import InProcess

LONGEST_LIST = 2

NOW = float(int(time.time()))

JOB = {
    "user": "ada",
    "project": "physics",
    "queue": "batch",
    "application": "cfd",
    "requested_walltime": 7200,
    "requested_processors": 16,
}


def run(number: int, *, runtime: float = 1800.0, ago: float = 86400.0, **fields) -> dict:
    """A run of such a job that ended ``ago`` seconds before now."""
    end = NOW - ago
    start = end - runtime
    named = {**JOB, "job_id": number, "submit_time": start - 60, "start_time": start}
    return {**named, "end_time": end, "status": "completed", **fields}


def queue_at(moment: float, running: list[dict], waiting: list[dict]) -> dict:
    """A machine of 32 processors with jobs."""
    pools = [{"processors": 32, "queues": ["batch"]}]
    return {"taken_at": moment, "pools": pools, "running": running, "waiting": waiting}


class Recorder:
    """Calls a service, and notes down what was sent and answered under the call's name."""

    def __init__(self, service: InProcess) -> None:
        self.service = service
        self.noted: dict[str, dict] = {}

    def call(self, verb: str, path: str, body=None, *, name: str = "", title: str = "") -> dict:
        """The answer; a ``title`` makes it an example of the call with that ``name``."""
        kind = "application/json"
        content = None if body is None else json.dumps(body)
        if isinstance(body, str):
            kind, content = body.split("\n", 1)
        headers = {} if content is None else {"content-type": kind}
        answer = self.service.request(verb, path, content=content, headers=headers)
        assert answer.status_code < 300, answer.text
        text = answer.headers["content-type"].startswith("text/plain")
        told = answer.text if text else answer.json()
        if title:
            entry = self.noted.setdefault(f"{verb} {name or path}", {"asked": {}, "told": {}})
            if body is not None:
                sent = content if isinstance(body, str) else body
                entry["asked"].setdefault(kind, []).append([title, shortened(sent)])
            entry["told"].setdefault(str(answer.status_code), []).append([title, shortened(told)])
        return told


def shortened(value):
    """The same with short lists and numbers, and a beginning of long texts."""
    if isinstance(value, dict):
        return {key: shortened(each) for key, each in value.items()}
    if isinstance(value, list):
        return [shortened(each) for each in value[:LONGEST_LIST]]
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, str) and value.startswith("# HELP"):
        return "".join(line for line in value.splitlines(keepends=True) if "_ready" in line)
    return value


def record(recorder: Recorder) -> None:
    """One session."""
    predictions(recorder)
    users(recorder)
    forecasts(recorder)
    queues(recorder)
    reports(recorder)
    tunings(recorder)
    for path in ("/health/live", "/health/ready", "/metrics"):
        recorder.call("GET", path, title="A service that is ready.")


def predictions(recorder: Recorder) -> None:
    """Runs that have ended, and how long jobs will run."""
    call, path = recorder.call, "/v1/completions"
    call("POST", path, run(17, ago=90_000.0), title="One run.")
    more = [run(18), run(19, user="bob", runtime=600.0)]
    call("POST", path, {"completions": more}, title="Several runs.")
    lines = json.dumps(run(20)) + "\n" + json.dumps(run(21, requested_walltime=-1)) + "\n"
    stream = "application/x-ndjson\n" + lines
    call("POST", path + "?on_error=skip", stream, name=path, title="A stream with a bad line.")
    document = {
        "jobid": 3, "username": "alice", "groupname": "alice", "@submit": "2026-11-21T04:19:08",
        "@start": "2026-11-21T04:19:08", "@end": "2026-11-21T04:24:08", "elapsed": 300,
        "partition": "short", "total_cpus": 4, "state": "COMPLETED", "cluster": "mini",
        "time_limit": 1800, "job_name": "train", "account": "physics",
    }  # fmt: skip
    call("POST", "/v1/adapters/slurm/jobcomp", document, title="A job that ended, shortened.")
    accounting = (
        "02/03/2026 04:25:06;E;901.hill;user=carol group=chem jobname=relax queue=batch "
        "ctime=1770091200 qtime=1770091200 etime=1770091200 start=1770091506 "
        "Resource_List.ncpus=8 Resource_List.walltime=01:00:00 end=1770092106 Exit_status=0 "
        "resources_used.walltime=00:10:00 run_count=1\n"
    )
    call("POST", "/v1/adapters/pbs/accounting", "text/x-pbs-accounting\n" + accounting,
         title="A job that ended.")  # fmt: skip
    ask = JOB | {"method": "least-cost", "coverage": 0.8, "explain": True}
    answers = "/v1/predictions"
    call("POST", answers, JOB, title="A job as it is submitted.")
    call("POST", answers, ask, title="With an interval and the runs that weigh most.")
    call("POST", answers + "/batch", {"submissions": [JOB, JOB | {"user": "eve"}]},
         title="Two jobs, one of a user without history.")  # fmt: skip
    outlived = {"requested_walltime": 7200, "predicted_walltime": 900, "elapsed": 2000}
    call("POST", answers + "/extend", outlived, title="A job that outlived its prediction.")


def users(recorder: Recorder) -> None:
    """Methods, the accuracy of users, priorities."""
    asked = recorder.call("POST", "/v1/predictions", JOB | {"job_id": 30, "submit_time": NOW - 900})
    scored = run(30, runtime=840.0, ago=0.0, prediction_id=asked["prediction_id"])
    recorder.call("POST", "/v1/completions", scored)
    recorder.call("GET", "/v1/methods", title="After the first scored job.")
    accuracy = "/v1/users/{user}/accuracy"
    recorder.call("GET", "/v1/users/ada/accuracy", name=accuracy, title="A user with history.")
    recorder.call("GET", "/v1/accuracy-groups", title="The first two of the ten groups.")
    waiting = {"job_id": 22, "user": "ada", "requested_walltime": 3600, "submit_time": NOW - 1000}
    recorder.call("POST", "/v1/priorities", {"now": NOW, "jobs": [waiting]}, title="One job.")


def forecasts(recorder: Recorder) -> None:
    """A queue that is sent with the question, and applications."""
    job = {"requested_walltime": 3600, "submit_time": NOW - 200}
    queue = {
        "now": NOW, "machine": {"processors": 4}, "policy": "easy", "samples": 19,
        "running": [job | {"job_id": 40, "requested_processors": 3, "start_time": NOW - 100}],
        "waiting": [job | {"job_id": 41, "requested_processors": 4, "predicted_walltime": 50}],
    }  # fmt: skip
    recorder.call("POST", "/v1/forecasts", queue, title="A job that runs, and one that waits.")


def queues(recorder: Recorder) -> None:
    """A live queue, twice: in the second one a job has started that waited in the first."""
    path, named = "/v1/queues/hill", "/v1/queues/{cluster}"
    first = JOB | {"job_id": 50, "submit_time": NOW - 700, "start_time": NOW - 600}
    second = JOB | {"job_id": 51, "submit_time": NOW - 300, "requested_processors": 32}
    held = second | {"job_id": 52, "held": True, "reason": "Dependency"}
    earlier, later = queue_at(NOW - 120, [first], [second]), queue_at(NOW, [first], [second, held])
    for each, title in ((earlier, ""), (later, "A job that runs, and two that wait.")):
        recorder.call("PUT", path, each, name=named, title=title)
        recorder.service.wait_until(lambda at=each["taken_at"]: forecast_at(recorder) == at)
    recorder.call("GET", "/v1/queues", title="One queue.")
    recorder.call("GET", path, name=named, title="A job that runs, and two that wait.")
    job = "/jobs/{job_id}"
    recorder.call("GET", path + "/jobs/51", name=named + job, title="A job that waits.")
    submission = {"user": "ada", "queue": "batch", "requested_walltime": 7200}
    question = {"submission": submission, "variants": [{"requested_walltime": 3600}]}
    what_if = "/what-if"
    recorder.call("POST", path + what_if, question, name=named + what_if, title="Half the time.")
    started = second | {"start_time": NOW + 1}
    recorder.call("PUT", path, queue_at(NOW + 1, [started], []))
    recorder.service.wait_until(lambda: forecast_at(recorder) == NOW + 1)
    recorder.service.wait_until(lambda: recorder.call("GET", "/v1/waits?cluster=hill")["scores"])
    recorder.call("GET", "/v1/waits?cluster=hill", name="/v1/waits", title="One job has started.")


def forecast_at(recorder: Recorder) -> float | None:
    """Which queue was forecast last."""
    return recorder.call("GET", "/v1/queues/hill")["forecast_at"]


def reports(recorder: Recorder) -> None:
    """How requests compared with runtimes."""
    for kind in ("requests", "users"):
        recorder.call("GET", f"/v1/reports/{kind}", title="The last thirty days.")


def tunings(recorder: Recorder) -> None:
    """A round on a cluster of its own."""
    some = [run(n, runtime=600.0 + 60 * (n % 7), ago=9e4 - 60 * n, cluster="hall", user=f"u{n % 9}")
            for n in range(1, 1101)]  # fmt: skip
    recorder.call("POST", "/v1/completions", {"completions": some})
    path, named = "/v1/tunings", "/v1/tunings/{tuning_id}"
    asked = recorder.call("POST", path, {"cluster": "hall"}, title="A round on 1,000 runs.")
    here = f"{path}/{asked['tuning_id']}"
    recorder.call("GET", here, name=named, title="A round that waits for its turn.")
    recorder.call("GET", path + "?cluster=hall", name=path, title="One round.")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{folder}/h.sqlite3"
        from service.store import open_store

        opened = open_store(store)
        opened.upgrade()
        opened.close()
        plan = {"history": 500, "training": 300, "test": 200}
        with InProcess(store, method="auto", tuning="on-request", tuning_plan=plan) as service:
            recorder = Recorder(service)
            record(recorder)
    Path(sys.argv[1]).write_text(json.dumps(recorder.noted, indent=1) + "\n")
