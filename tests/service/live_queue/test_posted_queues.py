"""Queues over HTTP; what is played is tested beside the engine."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from asgi_client import NOW, run_of

from simulator.shared_nodes.pace import REMAINING_TIMES

NODES = [{"name": "n1"}, {"name": "n2", "local_tasks": 1, "local_cpu": 0.15}]


def waiting(job_id, processors=1, *, ago=0, request=3600, **fields):
    return {
        "job_id": job_id,
        "requested_walltime": request,
        "requested_processors": processors,
        "submit_time": NOW - ago,
        **fields,
    }


def running(job_id, processors=1, *, elapsed=100, ago=None, **fields):
    submitted = elapsed if ago is None else ago
    return {
        **waiting(job_id, processors, ago=submitted),
        "start_time": NOW - elapsed,
        **fields,
    }


def forecast(service, **body):
    base = {"now": NOW, "machine": {"processors": 4}, "policy": "easy", "samples": 0}
    return service.post("/v1/forecasts", {**base, **body})


def starts(answer):
    assert answer.status_code == 200, answer.text
    return {job["job_id"]: job["start_time"] - NOW for job in answer.json()["jobs"]}


def placed(job_id, state, *, start, runtime, wait):
    """A job of the answer whose wait and runtime are those of its prediction."""
    unknown = ("basis", "nodes", "start_interval", "end_interval")
    return {
        **dict.fromkeys(unknown),
        "job_id": job_id,
        "state": state,
        "predicted_walltime": runtime,
        "start_time": NOW + start,
        "end_time": NOW + start + runtime,
        "wait": wait,
        "turnaround": wait + runtime,
    }


QUEUE = {
    "running": [running("old", 3, elapsed=100, ago=150, predicted_walltime=700)],
    "waiting": [
        waiting("head", 4, ago=60, predicted_walltime=50),
        waiting(7, 1, ago=30, request=600, predicted_walltime=90),
    ],
}


def test_jobs_start_when_those_before_them_end_as_predicted(service):
    answer = forecast(service, **QUEUE)
    assert answer.json() == {
        "cluster": "default",
        "now": NOW,
        "policy": "easy",
        "method": "max-usage",
        "no_interval": "no-samples",
        "jobs": [
            placed("old", "running", start=-100, runtime=700, wait=50),
            placed("head", "waiting", start=600, runtime=50, wait=660),
            placed(7, "waiting", start=0, runtime=90, wait=30),
        ],
    }
    assert starts(forecast(service, policy="fcfs", **QUEUE)) == {"old": -100, "head": 600, 7: 650}


def test_a_scheduler_that_goes_by_requests_backfills_less_than_one_that_knows(service):
    queue = {**QUEUE, "waiting": [QUEUE["waiting"][0], waiting("long", 1, request=3599)]}
    queue["waiting"][1]["predicted_walltime"] = 90
    assert starts(forecast(service, **queue))["long"] == 650
    assert starts(forecast(service, plans_by="predictions", **queue))["long"] == 0


def test_runtimes_are_predicted_from_the_history_of_the_cluster(service):
    service.complete(run_of("1", cluster="hill", runtime=600, end_time=NOW - 9000))
    queue = {"waiting": [waiting("a", 4, user="ada"), waiting("b", 4, user="ada")]}
    assert starts(forecast(service, cluster="hill", **queue)) == {"a": 0, "b": 600}
    assert starts(forecast(service, **queue)) == {"a": 0, "b": 3600}


def past_runs(shortest):
    """A hundred runs that differ by up to a quarter of an hour."""
    return [
        run_of(f"{n}", runtime=shortest + 37 * n % 900, end_time=NOW - 9e5 + 3000 * n)
        for n in range(100)
    ]


def test_intervals_are_ranges_of_futures_drawn_from_past_errors(service):
    service.complete(*past_runs(100))
    queue = {"waiting": [waiting("a", 4, user="ada"), waiting("b", 4, user="ada")]}
    answer = forecast(service, samples=19, **queue).json()
    first, second = answer["jobs"]
    assert first["start_interval"] == {"lower": NOW, "upper": NOW, "coverage": 0.9}
    assert NOW < second["start_interval"]["lower"] < second["start_interval"]["upper"]
    assert second["start_interval"] == first["end_interval"]
    assert answer == forecast(service, samples=19, **queue).json()
    assert forecast(service, **queue).json()["jobs"][1]["start_interval"] is None


def test_on_shared_nodes_jobs_slow_each_other_down(service):
    queue = {
        "machine": {"nodes": NODES, "cpu_limit": 2},
        "running": [
            running(
                "old", nodes=["n1"], execution_time=100, cpu_share=0.5, used_cpu_time=25, elapsed=70
            )
        ],
        "waiting": [waiting("wide", 2, execution_time=60)],
    }
    answer = forecast(service, policy="normal", **queue).json()
    old, wide = answer["jobs"]
    assert old["end_time"] - NOW == pytest.approx(75)  # 1.5 CPUs are wanted of n1
    assert wide["end_time"] - NOW == pytest.approx(75 + 10 * 1.15)  # then 1.15 of n2
    assert (old["nodes"], wide["nodes"]) == (["n1"], ["n1", "n2"])
    answer = forecast(service, policy="normal", remaining_time="mpl", cpu_time="mpl", **queue)
    assert answer.json()["jobs"][0]["end_time"] - NOW == pytest.approx(100)
    assert starts(forecast(service, policy="basic", **queue))["wide"] == pytest.approx(50)


def test_nobody_is_started_beside_a_local_user_who_wants_the_node(service):
    """Of four jobs that compute only two are started at once, one on each node left to them."""
    nodes = [{"name": "n0", "local_tasks": 1, "local_cpu": 0.99}, {"name": "n1"}, {"name": "n2"}]
    queue = [waiting(n, execution_time=100, cpu_share=0.9) for n in range(4)]
    answer = forecast(service, machine={"nodes": nodes}, policy="normal", waiting=queue)
    assert [job["nodes"] for job in answer.json()["jobs"]] == [["n1"], ["n2"], ["n1"], ["n2"]]
    assert list(starts(answer).values()) == [0, 0, 100, 100]
    machine = {"nodes": nodes, "cpu_limit": 4}
    crowded = starts(forecast(service, machine=machine, policy="normal", waiting=queue))
    assert set(crowded.values()) == {0}
    refused = forecast(
        service,
        machine={"nodes": nodes},
        policy="normal",
        waiting=[waiting("wide", 3, cpu_share=0.9)],
    )
    assert refused.json()["field"] == "waiting.0.cpu_share"


def test_tasks_on_shared_nodes_wait_for_memory(service):
    nodes = [{"name": "n0", "memory": 512_000, "local_memory": 180_000}]
    job = {"execution_time": 100, "cpu_share": 0.1}
    queue = [waiting(n, requested_memory=200_000, **job) for n in range(2)]
    assert starts(forecast(service, machine={"nodes": nodes}, policy="normal", waiting=queue)) == {
        0: 0,
        1: 100,
    }


def shared_queue(**of_each):
    """Two jobs that share a node, and one that waits for it."""
    used = {"nodes": ["n1"], "used_cpu_time": 50, "elapsed": 60, "predicted_walltime": 200}
    return {
        "machine": {"nodes": NODES[:1], "parallel_mpl": 2, "cpu_limit": 2},
        "policy": "normal",
        "running": [running("x", **used, **of_each), running("y", **used, **of_each)],
        "waiting": [waiting("z", predicted_walltime=300, **of_each)],
    }


@pytest.mark.parametrize("remaining_time", REMAINING_TIMES)
def test_on_shared_nodes_predicted_runtimes_are_uncertain_and_known_ones_are_not(
    service, remaining_time
):
    service.complete(*past_runs(1000))
    predicted = shared_queue() | {"remaining_time": remaining_time}
    answer = forecast(service, samples=19, **predicted).json()
    x, _, z = answer["jobs"]
    assert x["end_interval"]["coverage"] == 0.9
    assert NOW < x["end_interval"]["lower"] < x["end_interval"]["upper"]
    assert z["start_interval"]["lower"] < z["start_interval"]["upper"]
    assert z["start_interval"]["lower"] <= z["start_time"] + 1e-6
    assert answer == forecast(service, samples=19, **predicted).json()
    # The number of futures does not change the expected times.
    certain = forecast(service, **predicted).json()["jobs"]
    assert [job["end_interval"] for job in certain] == [None] * 3
    assert [job["end_time"] for job in certain] == [job["end_time"] for job in answer["jobs"]]
    known = shared_queue(execution_time=200) | {"remaining_time": remaining_time}
    intervals = [
        job["end_interval"] for job in forecast(service, samples=19, **known).json()["jobs"]
    ]
    assert all(intervals) if remaining_time == "hybrid" else intervals == [None] * 3


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"running": [running("x", 5)]}, "running.0.requested_processors", "Job x"),
        ({"running": [running("x", 3), running("y", 2)]}, "running.1.requested_processors", "y"),
        ({"running": [running("x", elapsed=-5, ago=9)]}, "running.0.start_time", "future"),
        ({"running": [running("x", elapsed=5, ago=4)]}, "running.0.start_time", "before"),
        ({"waiting": [waiting("x", ago=-1)]}, "waiting.0.submit_time", "Job x"),
        ({"waiting": [waiting("x", 5)]}, "waiting.0.requested_processors", "Job x"),
        (
            {"machine": {"nodes": NODES}, "policy": "normal", "waiting": [waiting("x", 3)]},
            "waiting.0.requested_processors",
            "Job x",
        ),
        ({"waiting": [waiting(1), waiting("1")]}, "waiting.1.job_id", "twice"),
        ({"machine": {}}, "machine", "number of processors or a list"),
        ({"machine": {"processors": 1, "nodes": NODES}}, "machine", "or a list of nodes"),
        ({"machine": {"nodes": NODES[:1] * 2}}, "machine.nodes.1.name", "name"),
        ({"policy": "normal"}, "machine", "nodes"),
        ({"policy": "best"}, "policy", "easy"),
        ({"order": "best"}, "order", "fcfs"),
        ({"policy": "fcfs-pinned", "order": "wfp"}, "order", "fcfs"),
        ({"samples": 201}, "samples", "200"),
        ({"method": "best"}, "method", "method"),
    ],
)
def test_what_cannot_be_is_refused_by_job_and_field(service, change, field, words):
    answer = forecast(service, **change)
    assert answer.status_code == 422
    assert answer.json()["field"] == field
    assert words in answer.json()["detail"]


@pytest.mark.parametrize(
    ("jobs", "policy", "field"),
    [
        ([running("x", nodes=["n3"])], "easy", "running.0.nodes"),
        ([running("x", 2, nodes=["n1", "n1"])], "easy", "running.0.nodes"),
        ([running("x", nodes=["n1"]), running("y", nodes=["n1"])], "easy", "running.1.nodes"),
        ([running("x", 2, nodes=["n1"])], "easy", "running.0.nodes"),
        ([running("x", 1, nodes=["n1", "n2"])], "fcfs-pinned", "running.0.nodes"),
        ([running("x", 2, nodes=["n1"], used_cpu_time=1)], "normal", "running.0.nodes"),
        ([running("x", nodes=["n1"])], "normal", "running.0.used_cpu_time"),
        (
            [running(n, nodes=["n1"], used_cpu_time=1) for n in range(5)],
            "normal",
            "running.0.nodes",
        ),
        (
            [running(n, nodes=["n1"], used_cpu_time=1) for n in range(2)],
            "basic",
            "running.0.nodes",
        ),
    ],
)
def test_what_no_nodes_can_hold_is_refused(service, jobs, policy, field):
    answer = forecast(service, machine={"nodes": NODES}, policy=policy, running=jobs)
    assert answer.status_code == 422
    assert answer.json()["field"] == field
    assert f"Job {jobs[int(field.split('.')[1])]['job_id']} " in answer.json()["detail"]


def test_a_queue_of_too_many_jobs_is_refused(serve, sqlite_url):
    service = serve(sqlite_url, forecast_jobs=2)
    answer = forecast(service, waiting=[waiting(n) for n in range(3)])
    assert answer.status_code == 413
    assert answer.json()["error"] == "SnapshotTooLargeError"
    assert forecast(service, waiting=[waiting(n) for n in range(2)]).status_code == 200


def test_nodes_are_forecast(service):
    """Whole nodes of two cores; the head waits for the old job's nodes."""
    queue = {
        "machine": {"nodes": [{"name": f"n{n}", "cores": 2} for n in (1, 2, 3)]},
        "policy": "fcfs-pinned",
        "plans_by": "predictions",
        "running": [running("old", 3, predicted_walltime=700, nodes=["n3", "n1"])],
        "waiting": [
            waiting("small", 2, ago=60, predicted_walltime=50),
            waiting("wide", 4, ago=30, predicted_walltime=50),
        ],
    }
    answer = forecast(service, **queue).json()
    assert [job["nodes"] for job in answer["jobs"]] == [["n3", "n1"], ["n2"], ["n1", "n2"]]
    uneven = {"nodes": [{"name": "n1", "cores": 2}, {"name": "n3", "cores": 9}]}
    assert forecast(service, **queue | {"machine": uneven}).json()["field"] == "machine.nodes"


def test_nodes_are_pinned_on_machines_of_a_size_that_there_is(service):
    answer = forecast(service, machine={"processors": 2**31 - 1}, policy="fcfs-pinned")
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("pinning", "pinned", "start"),
    [(60, "start", 600), (4000, "start", 3500), (4000, "nodes", 600)],
)
def test_a_pinned_job_keeps_its_nodes_or_also_the_start_planned_by_requests(
    service, pinning, pinned, start
):
    answer = forecast(service, policy="fcfs-pinned", pinning=pinning, pinned=pinned, **QUEUE)
    assert starts(answer)["head"] == start


@pytest.mark.usefixtures("real_process")
def test_forecasts_are_made_one_at_a_time_and_too_many_are_refused(service, monkeypatch):
    monkeypatch.setattr(service.worker.forecasts.awaited, "waiting", 8)
    answer = forecast(service, **QUEUE)
    assert answer.status_code == 503
    assert answer.json()["error"] == "ForecastsBusyError"


@pytest.mark.usefixtures("real_process")
def test_predictions_are_answered_while_a_forecast_is_made(serve, sqlite_url):
    """On the event loop the forecast would let one in, or none."""
    service = serve(sqlite_url, forecast_seconds=60)
    forecast(service, **shared_queue())  # so that its process is there
    long = {
        "machine": {"nodes": [{"name": f"{n}"} for n in range(50)]},
        "policy": "uniform-backfilling",
        "waiting": [waiting(n, 1 + n % 4, request=1000 + n) for n in range(1000)],
    }
    with ThreadPoolExecutor(1) as elsewhere:
        played = elsewhere.submit(forecast, service, **long)
        service.wait_until(lambda: service.worker.forecasts.awaited.waiting)
        answered = 0
        while service.worker.forecasts.awaited.waiting:
            service.predict(user="ada")
            answered += 1
    assert played.result().status_code == 200
    assert answered > 20


def test_a_job_on_shared_nodes_says_how_long_it_runs_alone_and_what_of_a_cpu_it_uses(service):
    queue = {
        "machine": {"nodes": [{"name": "n1"}], "parallel_mpl": 2},
        "policy": "normal",
        "waiting": [
            waiting("a", predicted_walltime=900),
            waiting("b", predicted_walltime=900, execution_time=300),
            waiting("c", predicted_walltime=900),
        ],
    }
    assert starts(forecast(service, **queue)) == {"a": 0, "b": 900, "c": 1200}, "each wants a CPU"
    half = [job | {"cpu_share": 0.5, "execution_time": 400} for job in queue["waiting"]]
    assert starts(forecast(service, **queue | {"waiting": half})) == {"a": 0, "b": 0, "c": 400}
