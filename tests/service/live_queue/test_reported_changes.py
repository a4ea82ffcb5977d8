"""Starts and ends that are reported between two queues that are handed over."""

import json
import time

from asgi_client import NOW, run_of
from handed_queues import LONG, SMALL, SNAPSHOT, WIDE, job, put, queue, starts

from service.worker.changed_queues import CHANGES_SECONDS

END = run_of("30", cluster="hill", start_time=NOW - 100, end_time=NOW + 20)
JOBCOMP = "/v1/adapters/slurm/jobcomp"


def forecast_of(service, at):
    """The queue as soon as it was forecast for a change at a time."""
    service.wait_until(lambda: service.get(SNAPSHOT).json()["forecast_at"] == NOW + at)
    return service.get(SNAPSHOT).json()


def start_of(job_id, at):
    """A start as Slurm's plugin posts it."""
    time_of = lambda seconds: time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(NOW + seconds))  # noqa: E731
    return {
        "jobid": int(job_id),
        "cluster": "hill",
        "state": "RUNNING",
        "@submit": time_of(-10),
        "@start": time_of(at),
        "@end": "Unknown",
        "time_limit": 60,
        "total_cpus": 4,
        "total_nodes": 1,
    }


def report_start(service, job_id, at):
    answer = service.send(JOBCOMP, json.dumps(start_of(job_id, at)))
    assert answer.status_code == 200, answer.text


def versions(service):
    return service.worker.store.queues.versions()["hill"]


def test_an_end_moves_the_told_starts_without_another_queue(live):
    assert starts(put(live, queue(running=[LONG], waiting=[WIDE])))["31"] == 600
    live.complete(END)
    view = forecast_of(live, 20)
    assert starts(view) == {"31": 20}
    assert view["taken_at"] == NOW, "nothing newer was shown by the resource manager"
    assert view["totals"]["running"]["jobs"] == 0
    told = live.get("/v1/clusters/hill/jobs/31").json()
    assert told["job"]["start_time"] == told["forecast_at"] == NOW + 20
    asked = {"submission": {"requested_walltime": 50, "requested_processors": 4, "queue": "short"}}
    what_if = live.post("/v1/clusters/hill/what-if", asked).json()
    assert what_if["as_written"]["start_time"] == NOW + 70


def test_a_start_is_scored_and_moves_those_behind(live):
    put(live, queue(running=[LONG], waiting=[WIDE, SMALL]))
    live.complete(END)
    forecast_of(live, 20)
    report_start(live, "31", 30)
    view = forecast_of(live, 30)
    assert starts(view) == {"31": 30, "32": 80}
    assert [each["state"] for each in view["jobs"]] == ["running", "waiting"]
    scores = live.get("/v1/waits", cluster="hill").json()["scores"]
    assert {(each["queue"], each["made"], each["jobs"]) for each in scores if each["queue"]} == {
        ("short", "arrival", 1),
        ("short", "since", 1),
    }


def test_a_job_that_starts_and_ends_between_two_queues_leaves_and_is_scored(live):
    put(live, queue(running=[LONG], waiting=[WIDE]))
    live.complete(run_of("31", cluster="hill", start_time=NOW + 5, end_time=NOW + 9))
    assert starts(forecast_of(live, 9)) == {"30": -100}
    scores = live.get("/v1/waits", cluster="hill").json()["scores"]
    assert {each["mean_absolute_error"] for each in scores} == {595}


def test_a_queue_that_was_shown_before_an_end_and_comes_after_it_does_not_bring_the_job_back(live):
    put(live, queue(running=[LONG], waiting=[WIDE]))
    live.complete(END)
    forecast_of(live, 20)
    live.request("PUT", SNAPSHOT, json=queue(10.0, running=[LONG], waiting=[WIDE, SMALL]))
    live.wait_until(lambda: live.get("/v1/clusters/hill/jobs/32").status_code == 200)
    live.wait_until(lambda: live.get(SNAPSHOT).json()["planned_jobs"] == 2)
    view = live.get(SNAPSHOT).json()
    assert (view["taken_at"], view["forecast_at"]) == (NOW + 10, NOW + 20)
    assert starts(view) == {"31": 20, "32": 70}


def test_what_contradicts_the_queue_changes_nothing(live):
    """Runs before a requeue, of others, of another cluster, of the far future; a start before."""
    put(live, queue(running=[LONG], waiting=[WIDE, SMALL]))
    live.complete(
        run_of("30", cluster="hill", start_time=NOW - 900, end_time=NOW - 100),
        run_of("30", cluster="hill", start_time=NOW - 90, end_time=NOW - 1),
        run_of("31", cluster="hill", start_time=NOW - 50, end_time=NOW - 5),
        run_of("31", cluster="dale", start_time=NOW + 5, end_time=NOW + 9),
        run_of("77", cluster="hill", start_time=NOW + 5, end_time=NOW + 9),
        run_of("32", cluster="hill", start_time=time.time(), end_time=time.time() + 10**6),
    )
    report_start(live, "31", -50)
    put(live, queue(1.0, running=[LONG], waiting=[WIDE, SMALL]))
    view = forecast_of(live, 1)
    assert starts(view) == {"30": -100, "31": 600, "32": 1}
    assert [each["state"] for each in view["jobs"]] == ["running", "waiting", "waiting"]


def test_a_clock_that_is_ahead_makes_no_forecast_of_the_future(live, monkeypatch):
    put(live, queue(running=[LONG], waiting=[WIDE]))
    monkeypatch.setattr(live.worker.queues, "_clock", lambda: NOW + 10)
    live.complete(END)
    assert starts(forecast_of(live, 10)) == {"31": 10}


def test_ends_that_come_together_share_a_forecast(live):
    running = [job(f"a{n}", 1, 700, submitted=-200.0, start_time=NOW - 100) for n in range(60)]
    put(live, queue(running=running, waiting=[WIDE]))
    before, began = versions(live), time.monotonic()
    for each in running:
        live.complete({**END, "job_id": each["job_id"]})
    live.wait_until(lambda: starts(live.get(SNAPSHOT).json()) == {"31": 20})
    assert versions(live) - before <= 1 + (time.monotonic() - began) / CHANGES_SECONDS


def test_every_worker_tells_of_an_end_that_another_one_took(live, another):
    put(live, queue(running=[LONG], waiting=[WIDE]))
    other = another()
    other.complete(END)
    assert starts(forecast_of(other, 20)) == starts(forecast_of(live, 20)) == {"31": 20}


def test_a_queue_that_is_not_handed_over_any_more_is_not_forecast_for_ends(serve, sqlite_url):
    service = serve(sqlite_url)
    put(service, queue(running=[LONG], waiting=[WIDE]))
    service.complete(END)
    service.run(service.worker.queues._take_changes("hill"))
    assert not service.worker.queues._pending
    assert starts(service.get(SNAPSHOT).json()) == {"30": -100, "31": 600}
