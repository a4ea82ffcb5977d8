"""The same job has the same numbers, in the same words, wherever somebody asks about it."""

import html
import json
import re
import socket
import time
from random import Random

import pytest
from fake_service import fake_service, http
from slurm_scripts import JOB, LUAS, Site
from sqlalchemy import text as sql

from predictors.facts import script_hash_of
from service.store import open_store
from terminal.words import duration

REQUESTED = 4 * 3600
CALLS = {
    "what-if": {"walltime": "4:00:00", "processors": "4", "queue": "short"},
    "ask": ("--time", "4:00:00", "--cpus", "4", "--queue", "short", "--job-name", "solve"),
}


def job_of_ada(job_id, **known):
    return {
        "job_id": job_id,
        "user": "ada",
        "application": "solve",
        "queue": "short",
        "requested_walltime": REQUESTED,
        "requested_processors": 4,
        "submit_time": round(time.time()),
        **known,
    }


def put_queue(service, *, runs=240):
    """A history of a user, another user's running job, and a job of the user that waits."""
    now = round(time.time())
    for number in range(runs):
        ended = now - 86_400 + 300 * number
        length = 1200 + 40 * (number % 9)
        times = {"submit_time": ended - 5000, "start_time": ended - length, "end_time": ended}
        service.complete({**job_of_ada(f"{number}", **times), "status": "completed"})
    queue = {
        "pools": [{"processors": 8, "queues": ["short"]}],
        "running": [job_of_ada("r1", user="bob", requested_processors=8, start_time=now)],
        "waiting": [job_of_ada("w1")],
    }
    path = "/v1/clusters/default/snapshot"
    assert service.request("PUT", path, json=queue).is_success
    service.wait_until(lambda: service.get(path).json()["forecast_at"] is not None)


def told_by_sbatch(site, service, mode, **facts):
    """What sbatch prints, of the answer that the service gives to the filter's question."""
    job = JOB | {"user_name": "ada", "default_account": "", "name": "solve", **facts}
    job |= {"time_limit": REQUESTED // 60, "partition": "short", "min_mem_per_cpu": 4294967294}
    answer = http(200, b"{}")
    for _ in range(2):
        with fake_service(answer) as fake:
            patience = fake.patience("budget_ms", seconds=1000)
            site.configure(port=fake.port, mode=mode, **patience)
            (done,) = site.submit(job)
        (asked,) = fake.requests
        agent = re.search(r"User-Agent: (.+?)\r\n", fake.headers[0])[1]
        content = service.post(
            "/v1/predictions", asked, headers={"user-agent": agent, "host": "walltimed"}
        ).content
        answer = http(200, content)
    return " ".join(done.told)


def plain(text):
    """Words of a page or a terminal, without marks and lines."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).lower().split())


@pytest.mark.skipif(not LUAS, reason="needs lua with lua-socket")
@pytest.mark.parametrize("mode", ["advise", "order"])
def test_sbatch_ask_queue_api_and_pages_say_the_same_of_a_job(
    serve, sqlite_url, against, tmp_path, mode
):
    service = serve(sqlite_url, method="least-cost")
    put_queue(service)
    conf = "ClusterName=default\nPriorityType=priority/multifactor\nPriorityWeightAge=1000\n"
    told = {"sbatch": told_by_sbatch(Site(tmp_path, LUAS[0], conf), service, mode)}
    api = service.get("/v1/clusters/default/jobs/w1").json()
    unsubmitted = {k: v for k, v in job_of_ada("").items() if k not in {"job_id", "submit_time"}}
    what_if = service.post("/v1/clusters/default/what-if", {"submission": unsubmitted}).json()
    for answer in (api["job"] | api, what_if["as_written"] | what_if):
        assert answer["likely"] == api["likely"]
        assert answer["interval"] == api["interval"]
        assert answer["predicted_walltime"] == api["job"]["predicted_walltime"]
        assert answer["plans_by_predictions"] is (mode == "order")
    code, told["ask"], _ = against(service, "ask", "--user", "ada", *CALLS["ask"])
    assert code == 0
    code, told["queue"], _ = against(service, "queue", "w1")
    assert code == 0
    told["page"] = service.get("/job", id="w1").text
    likely, planned = duration(api["likely"]), duration(api["job"]["predicted_walltime"])
    lower, upper = (duration(api["interval"][end]) for end in ("lower", "upper"))
    assert len({likely, lower, upper, planned, duration(REQUESTED)}) >= 4, "else it shows little"
    for where, text in told.items():
        said = plain(text)
        assert f"likely {likely}" in said, (where, said)
        assert f"range {lower} to {upper} (90%)" in said, (where, said)
        assert (f"planned {planned}" in said) is (mode == "order"), (where, said)
    form = {"user": "ada", "application": "solve", **CALLS["what-if"]}
    page = plain(service.get("/what-if", **form).text)
    assert f"{likely} {lower} to {upper}" in page
    assert ("planned" in page) is (mode == "order")
    assert "likely" in told["page"].lower()


def test_a_range_of_too_few_runs_is_said_nowhere(serve, sqlite_url, against):
    service = serve(sqlite_url, method="least-cost")
    put_queue(service, runs=3)
    api = service.get("/v1/clusters/default/jobs/w1").json()
    assert api["basis"]["reason"] == "young-cluster"
    assert "range not known" in plain(against(service, "queue", "w1")[1])
    assert "range not known" in plain(against(service, "ask", "--user", "ada", *CALLS["ask"])[1])
    page = plain(service.get("/job", id="w1").text)
    assert "too few runs for a range" in page
    assert f"to {duration(REQUESTED)}" not in page
    assert "0 s to" not in plain(service.get("/what-if", user="ada", **CALLS["what-if"]).text)


SCRIPTS = {
    length: f"#!/bin/sh\n#SBATCH -t 4:00:00 -n 4 -p short -J solve\nrun --mesh {length}\n"
    for length in ("fine", "coarse")
}


def put_runs_of_two_scripts(service, *, runs=300):
    """A history of a user, in which the script decides how long a run lasts."""
    now, random = round(time.time()), Random(1)
    bodies = []
    for number in range(runs):
        script = random.choice(("fine", "coarse"))
        ended = now - 90_000 + 300 * number
        length = {"fine": 7200, "coarse": 600}[script] + 7 * (number % 9)
        times = {"submit_time": ended - 9000, "start_time": ended - length, "end_time": ended}
        known = {"status": "completed", "script_hash": script_hash_of(SCRIPTS[script])}
        bodies.append(job_of_ada(f"h{number}", **times, **known))
    assert service.post("/v1/completions", {"completions": bodies}).is_success


def open_predictions(url):
    """Ids of the recorded predictions whose job has not ended."""
    store = open_store(url)
    with store._database.reading() as connection:
        wanted = "SELECT prediction_id FROM predictions WHERE outcome IS NULL ORDER BY recorded_at"
        found = connection.execute(sql(wanted)).scalars().all()
    store.close()
    return found


def put_waiting(service, **known):
    queue = {
        "pools": [{"processors": 8, "queues": ["short"]}],
        "running": [job_of_ada("r1", user="bob", requested_processors=8, start_time=time.time())],
        "waiting": [job_of_ada("w1", **known)],
    }
    path = "/v1/clusters/default/snapshot"
    before = service.get(path)
    known_at = before.json()["forecast_at"] if before.is_success else None
    assert service.request("PUT", path, json=queue).is_success
    service.wait_until(lambda: service.get(path).json()["forecast_at"] not in {None, known_at})


@pytest.mark.skipif(not LUAS, reason="needs lua with lua-socket")
@pytest.mark.parametrize("is_named", [True, False])
@pytest.mark.parametrize("script", SCRIPTS)
def test_facts_that_the_filter_sends_count_wherever_somebody_asks(  # noqa: PLR0917 - fixtures
    serve, sqlite_url, against, tmp_path, monkeypatch, script, is_named
):
    service = serve(sqlite_url, method="least-cost")
    put_runs_of_two_scripts(service)
    site = Site(tmp_path, LUAS[0], "ClusterName=default\n")
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "job.sh"
    file.write_text(SCRIPTS[script])
    host = socket.gethostname().partition(".")[0]
    facts = {"script": SCRIPTS[script], "work_dir": str(tmp_path), "alloc_node": host}
    submitted = round(time.time())
    told = {"sbatch": told_by_sbatch(site, service, "advise", **facts, submit_line="sbatch job.sh")}
    service.wait_until(lambda: len(open_predictions(sqlite_url)) == 2)
    name = {"prediction_id": open_predictions(sqlite_url)[-1]} if is_named else {}
    put_waiting(service, submit_time=submitted - 300 if is_named else submitted, **name)
    api = service.get("/v1/clusters/default/jobs/w1").json()
    assert 600 < api["likely"] < 700 or 7200 < api["likely"] < 7300
    assert (api["likely"] > 7000) is (script == "fine")
    (listed,) = (
        each
        for each in service.get("/v1/clusters/default/snapshot").json()["jobs"]
        if each["job_id"] == "w1"
    )
    assert listed["end_time"] - listed["start_time"] == pytest.approx(api["likely"], abs=1)
    asked = ("ask", str(file), "--user", "ada")
    told["ask"] = against(service, *asked)[1]
    answer = json.loads(against(service, *asked, "--json")[1])
    for number in ("likely", "interval", "predicted_walltime"):
        assert answer["as_written"][number] == (api["job"] | api)[number], number
    told["queue"] = against(service, "queue", "w1")[1]
    told["page"] = service.get("/job", id="w1").text
    likely = duration(api["likely"])
    lower, upper = (duration(api["interval"][end]) for end in ("lower", "upper"))
    for where, words in told.items():
        said = plain(words)
        assert f"likely {likely}" in said, (where, said)
        assert f"range {lower} to {upper} (90%)" in said, (where, said)
    put_waiting(service, submit_time=submitted - 300 if is_named else submitted)
    assert service.get("/v1/clusters/default/jobs/w1").json()["likely"] == api["likely"], (
        "they are known from the queue before"
    )
