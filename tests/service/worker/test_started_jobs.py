"""What runs now counts in answers, in every process, and after a restart."""

import asyncio
import json
import time

import pytest
from msgspec.structs import replace
from runs import a_run

from predictors.memory.columns import NOBODY
from predictors.memory.running_jobs import Start
from service.metrics import Metrics
from service.settings import Settings
from service.worker.live_state import LiveState
from service.worker.started_jobs import StartFollower

pytestmark = pytest.mark.usefixtures("played_here")

REQUEST = 36_000.0
HOUR = 3600.0
BURST = 60


def history(now):
    """Jobs of ten users, each of which took 45 s."""
    return [
        {
            "job_id": f"h{place}",
            "user": f"u{place % 10}",
            "application": "a.out",
            "requested_walltime": REQUEST,
            "requested_processors": 4,
            "submit_time": now - 90_000 + 100.0 * place,
            "start_time": now - 90_000 + 100.0 * place,
            "end_time": now - 90_000 + 100.0 * place + 45.0 + place % 3,
            "runtime": 45.0 + place % 3,
            "status": "completed",
        }
        for place in range(500)
    ]


def as_queue(service, start):
    jobs = [
        {
            "job_id": f"{place}",
            "user": "u1",
            "application": "a.out",
            "requested_walltime": REQUEST,
            "requested_processors": 4,
            "submit_time": start,
            "start_time": start,
        }
        for place in range(BURST)
    ]
    body = {"pools": [{"processors": 4 * BURST}], "running": jobs, "waiting": []}
    answer = service.request("PUT", "/v1/clusters/default/snapshot", json=body)
    assert answer.status_code == 202, answer.text


def as_pbs_records(service, start):
    lines = "".join(
        f"11/28/2026 01:00:00;S;{place};user=u1 jobname=a.out ctime={start:.0f} "
        f"start={start:.0f} Resource_List.ncpus=4 Resource_List.walltime=10:00:00\n"
        for place in range(BURST)
    )
    answer = service.send(
        "/v1/adapters/pbs/accounting", lines, "text/x-pbs-accounting", params={"cluster": "default"}
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["skipped"] == {"a record of another kind": BURST}


def as_jobcomp_documents(service, start):
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(start))
    for place in range(BURST):
        document = {
            "jobid": place, "username": "u1", "job_name": "a.out", "cluster": "default",
            "state": "RUNNING", "time_limit": REQUEST, "total_cpus": 4, "total_nodes": 1,
            "@submit": moment, "@start": moment, "@end": "Unknown",
        }  # fmt: skip
        answer = service.send("/v1/adapters/slurm/jobcomp", json.dumps(document))
        assert answer.status_code == 200, answer.text


def wait_for_burst(service):
    service.wait_until(lambda: len(service.worker.live.of("default").running) == BURST)


def ask(service, at):
    return {
        key: value
        for key, value in service.predict(
            user="u1",
            application="a.out",
            requested_walltime=REQUEST,
            requested_processors=4,
            submit_time=at,
        ).items()
        if key != "prediction_id"
    }


@pytest.mark.parametrize("report", [as_queue, as_pbs_records, as_jobcomp_documents])
def test_a_burst_that_runs_for_hours_refutes_what_its_user_s_jobs_took(serve, store_url, report):
    now = float(int(time.time()))
    first = serve(store_url, method="auto", tuning="off")
    second = serve(store_url, method="auto", tuning="off")
    first.complete(*history(now))
    later = now + 600.0  # every process knows by then
    before = ask(first, later)
    assert before["predicted_walltime"] < 120.0
    report(first, now - 3 * HOUR)
    for service in (first, second):
        wait_for_burst(service)
    answer = ask(first, later)
    assert answer["predicted_walltime"] > 3 * HOUR
    assert answer["likely"] > 3 * HOUR
    assert ask(second, later) == answer
    restarted = serve(store_url, method="auto", tuning="off")
    assert ask(restarted, later) == answer
    assert ask(first, now + 1.0) == before, "a start counts once every process knows of it"


def test_a_restart_learns_the_same_from_runs_that_ran_beside_one_another(serve, store_url):
    """Costs of candidates depend on what ran at a submission; they are the same anew."""
    now = float(int(time.time()))
    service = serve(store_url, method="auto", tuning="off")
    service.complete(*history(now))
    as_pbs_records(service, now - 3 * HOUR)
    ends = [
        run
        | {
            "job_id": f"{place}",
            "user": "u1",
            "submit_time": now - 3 * HOUR,
            "start_time": now - 3 * HOUR,
            "end_time": now + 60.0 + place,
            "runtime": 3 * HOUR + 60.0 + place,
        }
        for place, run in enumerate(history(now)[:BURST])
    ]
    later = now + 600.0
    wait_for_burst(service)
    asked_then = [
        run
        | {
            "job_id": f"late{place}",
            "user": "u1",
            "submit_time": now + 30.0,
            "start_time": now + 40.0,
            "end_time": now + 200.0 + place,
            "runtime": 160.0 + place,
        }
        for place, run in enumerate(history(now)[:20])
    ]
    service.complete(*ends)
    service.complete(*asked_then)
    answer = ask(service, later)
    costs = choice_of(service)
    restarted = serve(store_url, method="auto", tuning="off")
    assert ask(restarted, later) == answer
    assert choice_of(restarted) == costs
    service.worker.store.starts.drop_before(2 * now)
    without = serve(store_url, method="auto", tuning="off")
    assert ask(without, later) != answer
    assert choice_of(without) != costs


def choice_of(service):
    methods = service.get("/v1/methods").json()["methods"]
    return next(each["parameters"] for each in methods if each["name"] == "auto")


class Recorded:
    """A store's starts, and what happens while they are read."""

    def __init__(self):
        self.all, self.meanwhile = [], []

    @property
    def starts(self):
        return self

    def last(self):
        return len(self.all)

    def since(self, place):
        found = self.all[max(0, place - 2) :]
        while self.meanwhile:
            self.meanwhile.pop()()
        return found

    def newest(self, _cluster):
        return list(self.all)

    def clusters(self):
        return ["default"]


def start_of(run):
    return Start(run.submission, run.start_time, run.start_time)


def test_a_state_that_is_learned_anew_knows_of_starts_recorded_meanwhile():
    """They were followed into the state before, which it replaces."""
    recorded, live = Recorded(), LiveState(Settings(), Metrics())
    follower, anew = StartFollower(recorded), LiveState(Settings(), Metrics())
    recorded.all = [start_of(a_run(f"{place}")) for place in range(3)]
    follower.learn(anew, [])
    recorded.all += [start_of(a_run(f"{place}")) for place in range(3, 9)]
    asyncio.run(follower._look(live))
    live.adopt(anew)
    follower.restart()
    asyncio.run(follower._look(live))
    assert len(live._running["default"]) == 9


def test_a_state_that_comes_into_force_during_a_look_misses_no_start():
    recorded, live = Recorded(), LiveState(Settings(), Metrics())
    follower, anew = StartFollower(recorded), LiveState(Settings(), Metrics())
    follower.learn(anew, [])
    recorded.all = [start_of(a_run(f"{place}")) for place in range(9)]
    recorded.meanwhile = [lambda: live.adopt(anew), follower.restart]
    recorded.meanwhile.reverse()
    asyncio.run(follower._look(live))
    asyncio.run(follower._look(live))
    assert len(live._running["default"]) == 9


def test_a_run_that_ended_while_its_start_was_read_is_looked_at_again():
    recorded, live = Recorded(), LiveState(Settings(), Metrics())
    follower, run = StartFollower(recorded), a_run("1")
    recorded.all = [start_of(run)]

    def ends():
        recorded.all = [start_of(run)._replace(end_time=run.end_time)]

    recorded.meanwhile = [ends]
    job = replace(run.submission, submit_time=run.end_time)
    asyncio.run(follower._look(live))
    assert live._running["default"].like(job) is not NOBODY
    asyncio.run(follower._look(live))
    assert live._running["default"].like(job) is NOBODY
