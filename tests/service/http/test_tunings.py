"""Rounds of tuning over HTTP, each run by the real process beside the service."""

import json
import os
import subprocess
import sys

import pytest
from asgi_client import NOW, run_of

from predictors.methods.knn import KnnParameters
from predictors.tuning.plan import TuningPlan
from service.worker import tuning_rounds as keeper
from service.worker.processes import give_way

EVERYTHING = {"history": 100, "training": 500, "test": 200, "penalty": 0}
PLAN = EVERYTHING | {"subjects": ["knn"]}
JOBS = 800


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """The keeper looks around more often than it would, and its rounds take turns with tests."""
    monkeypatch.setattr(keeper, "ROUND_SECONDS", 0.1)
    monkeypatch.setattr(keeper, "PARAMETER_SECONDS", 0.05)
    monkeypatch.setattr(keeper, "give_way", lambda _: None)


def starter(serve, url):
    def service(**options):
        return serve(url, **{"tuning_plan": PLAN, "tuning": "automatic"} | options)

    return service


@pytest.fixture
def start(serve, sqlite_url):
    """Starts a service that tunes; several share one store."""
    return starter(serve, sqlite_url)


@pytest.fixture
def start_on_either(serve, store_url):
    """The same on both databases."""
    return starter(serve, store_url)


def history(first, last, seconds_of, queues=3):
    """Jobs of one user, one every ten minutes, of three applications in several queues."""
    return [
        run_of(
            str(number),
            end_time=NOW + 600.0 * number,
            application="abc"[number % 3],
            queue=f"q{number // 3 % queues}",
            runtime=float(seconds_of(number)),
        )
        for number in range(first, last)
    ]


def by_application(number):
    return (300, 900, 2700)[number % 3]


def by_queue(number):
    return (2700, 300, 900)[number // 3 % 3]


def rounds(service):
    return service.get("/v1/tunings").json()["tunings"]


def finished(service, number=1):
    """The round of that number when it has ended."""

    def are_ended():
        states = [each["state"] for each in rounds(service)]
        return len(states) == number and "running" not in states

    service.wait_until(are_ended, 120)
    return rounds(service)[0]


def tune_due(monkeypatch, url, plan):
    """Run the due rounds by the command; return them."""
    monkeypatch.setenv("WALLTIMED_DATABASE_URL", url)
    monkeypatch.setenv("WALLTIMED_TUNING_PLAN", json.dumps(plan))
    command = [sys.executable, "-m", "service.cli", "tune", "--due", "--json"]
    printed = subprocess.run(command, capture_output=True, check=True).stdout
    return json.loads(printed)["tunings"]


def parameters(service):
    methods = service.get("/v1/methods").json()["methods"]
    return next(each["parameters"] for each in methods if each["name"] == "knn")


def test_a_round_tunes_the_live_method(start_on_either):
    service = start_on_either()
    service.complete(*history(0, JOBS, by_application))
    done = finished(service)
    assert done["state"] == "done", done
    assert (done["origin"], done["cluster"]) == ("history", "default")
    assert done["plan"]["training"] == PLAN["training"]
    assert service.get(f"/v1/tunings/{done['tuning_id']}").json() == done
    assert done["adopted"] is True
    assert done["before"]["parameters"]["template"] == ["user"]
    assert "application" in done["after"]["parameters"]["template"]
    assert done["after"]["test_error"] < done["before"]["test_error"]
    assert done["costs"] == sorted(done["costs"], reverse=True)
    assert service.get("/v1/tunings").json() == {"tunings": [done]}
    assert service.get("/v1/tunings", cluster="other").json() == {"tunings": []}

    service.wait_until(lambda: parameters(service) == done["after"]["parameters"])
    known = {"user": "ada", "queue": "q0", "submit_time": NOW + 600.0 * JOBS + 1, "method": "knn"}
    for number, application in enumerate("abc"):
        answer = service.predict(application=application, **known)
        assert answer["predicted_walltime"] == pytest.approx(by_application(number), abs=60)


def test_a_workload_that_changes_is_tuned_to_by_itself_and_the_live_error_falls(start):
    """Nobody asks for a round: the second one is due when the first has become wrong."""
    service = start(tuning="automatic")

    def tuned_to(attribute):
        return attribute in parameters(service)["template"]

    def live_error(jobs):
        """Predict jobs, tell of their end, and compare."""
        errors = []
        for job in jobs:
            known = {key: job[key] for key in ("user", "application", "queue", "submit_time")}
            answer = service.predict(method="knn", job_id=job["job_id"], **known)
            errors.append(abs(answer["predicted_walltime"] - (job["end_time"] - job["start_time"])))
            service.complete(job)
        return sum(errors) / len(errors)

    service.complete(*history(0, JOBS - 1, by_application, queues=40))
    assert service.get("/v1/tunings").json() == {"tunings": []}
    service.complete(*history(JOBS - 1, JOBS, by_application, queues=40))
    service.wait_until(lambda: tuned_to("application"))
    changed = JOBS + PLAN["test"] - 50
    service.complete(*history(JOBS, changed, by_queue))
    before = live_error(history(changed, changed + 40, by_queue))
    assert not tuned_to("queue")
    service.complete(*history(changed + 40, 2 * JOBS, by_queue))
    service.wait_until(lambda: tuned_to("queue"))
    after = live_error(history(2 * JOBS, 2 * JOBS + 40, by_queue))
    assert after < 0.5 * before
    assert service.score("knn")["jobs"] == 80
    assert {each["origin"] for each in rounds(service)} == {"history"}


def test_two_workers_run_one_round_and_both_use_it(start_on_either):
    services = [start_on_either(), start_on_either()]
    services[0].complete(*history(0, JOBS, by_application))
    done = finished(services[1])
    assert done["adopted"] is True
    found = done["after"]["parameters"]
    for service in services:
        service.wait_until(lambda service=service: parameters(service) == found)
    assert rounds(services[0]) == [done]


def test_a_timer_tunes_a_service_of_another_machine(serve, postgres_url, monkeypatch):
    """Two processes that have nothing in common but a PostgreSQL database."""
    service = starter(serve, postgres_url)(tuning="off")
    service.complete(*history(0, JOBS, by_application))
    (done,) = tune_due(monkeypatch, postgres_url, PLAN)
    assert (done["origin"], done["adopted"]) == ("history", True)
    service.wait_until(lambda: parameters(service) == done["after"]["parameters"])


def test_a_service_that_starts_uses_what_was_adopted_before(start, monkeypatch):
    service = start()
    service.complete(*history(0, JOBS, by_application))
    done = finished(service)
    monkeypatch.setattr(keeper, "PARAMETER_SECONDS", 3600)
    assert parameters(start()) == done["after"]["parameters"]


def test_a_round_whose_process_is_killed_fails_and_makes_room(start, monkeypatch):
    begins_and_dies = (
        "import os, signal; from service.worker import tuning_rounds as rounds;"
        "rounds.tune_cluster = lambda *_: os.kill(os.getpid(), signal.SIGKILL);"
        "rounds.main()"
    )
    command = keeper.COMMAND
    monkeypatch.setattr(keeper, "COMMAND", (sys.executable, "-c", begins_and_dies))
    service = start()
    service.complete(*history(0, JOBS, by_application))
    failed = finished(service)
    assert (failed["state"], failed["adopted"]) == ("failed", None)
    assert "signal 9" in failed["error"]
    assert parameters(service)["template"] == list(KnnParameters().template)
    monkeypatch.setattr(keeper, "COMMAND", command)
    service.complete(*history(JOBS, JOBS + PLAN["test"], by_application))
    assert finished(service, 2)["adopted"] is True


def test_a_round_gives_way_to_whoever_wants_to_run(start, monkeypatch, tmp_path):
    """Also to its own service, beside which a session of its own would count as much."""
    seen = tmp_path / "seen"
    code = (
        "import os, pathlib, sys, time; time.sleep(0.2);"
        "pathlib.Path(sys.argv[1]).write_text("
        "f'{os.getsid(0)} {os.sched_getscheduler(0)} {os.getpgrp() == os.getpid()}')"
    )
    monkeypatch.setattr(keeper, "COMMAND", (sys.executable, "-c", code, str(seen)))
    monkeypatch.setattr(keeper, "give_way", give_way)
    service = start()
    service.complete(*history(0, JOBS, by_application))
    service.wait_until(lambda: seen.exists() and seen.read_text())
    assert seen.read_text() == f"{os.getsid(0)} {os.SCHED_IDLE} True"


def test_a_round_of_a_machine_that_went_down_is_run_by_the_next_service(start):
    service = start(tuning="off")
    service.complete(*history(0, JOBS, by_application))
    tunings = service.worker.store.tunings
    with tunings.lock():  # of that machine
        interrupted = tunings.begin("default", TuningPlan(**PLAN), "history", 1.0)
        assert service.worker.tuning._is_due() is False
    assert service.worker.tuning._is_due() is True
    done = finished(start())
    assert (done["tuning_id"], done["adopted"]) == (interrupted.tuning_id, True)


def test_an_unknown_round_is_not_found(start):
    answer = start().get("/v1/tunings/none")
    assert answer.status_code == 404
    assert answer.json()["error"] == "UnknownTuningError"


FOREST = {
    "history": 100,
    "training": 3_800,
    "test": 200,
    "errors": 1.0,
    "subjects": ["forest"],
}


def by_hour(first, last):
    """Jobs that are short in the morning; nothing but the hour tells."""
    return [
        run_of(
            str(number),
            user=f"u{number % 7}",
            end_time=start + seconds,
            runtime=seconds,
            submit_time=start,
        )
        for number in range(first, last)
        for start in [NOW - NOW % 86_400 + 18_600.0 * number]
        for seconds in [60.0 + number % 9 if start % 86_400 < 43_200 else 3000.0 + number % 9]
    ]


def learned(service):
    """Summary of the forest in force."""
    methods = service.get("/v1/methods").json()["methods"]
    return {each["name"]: each["parameters"] for each in methods}["forest"]["learned"]


def complete(service, jobs):
    for first in range(0, len(jobs), 500):
        service.complete(*jobs[first : first + 500])


def test_two_workers_follow_a_round_that_learns_a_forest_and_choose_alike(
    serve, postgres_url, monkeypatch
):
    plan = {"tuning_plan": FOREST, "tuning": "off", "method": "auto"}
    services = [serve(postgres_url, **plan) for _ in range(2)]
    complete(services[0], by_hour(0, 4100))
    (done,) = tune_due(monkeypatch, postgres_url, FOREST)
    (change,) = done["changes"]
    assert (change["subject"], change["action"], change["verdict"]) == ("forest", "learned", None)

    for service in services:
        service.wait_until(lambda service=service: learned(service) == change["after"], 120)
    later = serve(postgres_url, **plan)
    jobs = by_hour(4100, 4110)
    for job in jobs:
        known = {key: job[key] for key in ("user", "submit_time")}
        answers = [each.predict(**known) for each in (*services, later)]
        assert {each["method"] for each in answers} == {"forest"}
        assert len({each["predicted_walltime"] for each in answers}) == 1
        assert len({str(each["interval"]) for each in answers}) == 1
    methods = {each["name"]: each for each in services[1].get("/v1/methods").json()["methods"]}
    assert methods["forest"]["adopted"]["tuning_id"] == done["tuning_id"]
    assert methods["attention"]["adopted"] is None
    costs = methods["auto"]["parameters"]["relative_costs"]
    assert costs["attention"] == 0.0 > costs["forest"]

    # From now on every job takes as long as it requests, which no tree knows.
    complete(
        services[1], [job | {"end_time": job["start_time"] + 3600.0} for job in by_hour(4110, 4610)]
    )
    last = by_hour(4610, 4611)[0]
    for service in (*services, later):
        service.wait_until(
            lambda service=service: (
                service.predict(user="u1", submit_time=last["submit_time"])["predicted_walltime"]
                == 3600.0
            ),
            120,
        )
