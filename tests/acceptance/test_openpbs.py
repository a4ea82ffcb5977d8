"""The whole loop on a real OpenPBS: nobody is held up, and every run is learned from."""

import contextlib
import json
import math
import os
import re
import signal
import time

import pytest
from patience import BUSY_SECONDS
from private_machine import USER
from private_pbs import HOME, HOST, PREFIX, PrivatePbs, reason_to_skip
from running_service import eventually
from runs import runs_by_job
from transcripts import first_steps

from predictors.facts import unkeyed
from predictors.jobs import Status
from service.store import StoreUnavailableError, open_store
from simulator.scheduling.pbs_formula import AGED_FORMULA

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(reason_to_skip() is not None, reason=reason_to_skip() or ""),
    pytest.mark.timeout(600),
]
CONFIG = "/etc/walltimed/pbs-hook.json"
FOLLOWER = "/etc/walltimed/pbs"
TOKEN_FILE = "/etc/walltimed/filter-token"
IMPORT = f"import hook walltimed application/x-config default {CONFIG}"
SCHEDULING = HOME / "sched_priv" / "sched_config"


USUAL = {
    "mode": "soft",
    "queues": None,
    "users": None,
    "pause_seconds": 1,
    "predict_again_after": 3600,
    "budget_seconds": 1.0,  # on a machine that does other things too
}


class Site(PrivatePbs):
    """PBS and walltimed, connected by the commands of docs/pbs.md."""

    def runs(self) -> dict[str, list]:
        """What the history holds, by job id."""
        return runs_by_job(self.url)

    def await_runs(self, *job_ids: str, seconds: float = 120) -> dict[str, list]:
        """The history once it holds a run of each of these jobs."""
        wanted = {job_id.partition(".")[0] for job_id in job_ids}

        def found() -> dict[str, list] | None:
            with contextlib.suppress(StoreUnavailableError):  # locked on a busy machine
                runs = {job.partition(".")[0]: known for job, known in self.runs().items()}
                return runs if wanted <= runs.keys() else None
            return None

        return eventually(found, seconds=seconds)

    def configure(self, **settings) -> None:
        """Change the hook's settings, as an administrator does."""
        config = json.loads(self.run("cat", CONFIG))
        self.write(CONFIG, json.dumps(config | settings))
        self.qmgr(IMPORT)

    def submit_in_time(self, *options) -> str:
        """Submit a job, which must not take longer than the budget and qsub itself."""
        began = time.monotonic()
        job = self.qsub(*options)
        assert time.monotonic() - began < BUSY_SECONDS
        return job

    def call(self, path: str, token: str, body: object = None) -> dict:
        """What the service answers, asked from where it stands."""
        words = ["curl", "-sS", "--fail-with-body", "-H", f"Authorization: Bearer {token}"]
        words += [] if body is None else ["--json", "@-"]
        return json.loads(self.run(*words, f"localhost:8580{path}", stdin=json.dumps(body)))

    def token(self, *words: str) -> str:
        """A new token of what the words allow."""
        return self.run("walltimed", "token", "issue", *words).split()[-1]

    def wanted(self, job_id: str) -> dict[str, str]:
        """The resources that a job asks for."""
        return self.job(job_id)["Resource_List"]


@pytest.fixture(scope="module")
def site():
    """One site for all tests, connected by the transcript, whose answers are checked."""
    with Site() as site:
        site.start_service()
        site.said = [(step, play(site, step)) for step in first_steps("pbs.md")]
        site.qmgr("set server flatuid = true")
        yield site


def play(site, step):
    """What a step of the transcript prints, after what it was preceded by has settled."""
    if unit := re.fullmatch(r"systemctl enable --now (\S+)", step.command):
        site.start_unit(unit.group(1))
        return ""
    if step.user == "root":
        return site.run("bash", "-c", step.command)
    if submitted := re.findall(r"^Job Id: (\S+)", site.run("qstat", "-x", "-f"), re.MULTILINE):
        site.await_end(*submitted)
        if "qsub" in step.command:
            site.await_runs(*submitted)
    return site.run("bash", "-c", step.command, user=step.user)


@pytest.fixture
def well(site):
    """The site with its service running, and past any pause."""
    if site.processes["service"].poll() is not None:
        site.start_service()
    site.configure(**USUAL)
    eventually(lambda: predicted(site, submitted(site)), seconds=60)
    return site


def predicted(site, job):
    """What a job asks for, if it was predicted: after a failure the hook pauses for a second."""
    wanted = site.wanted(job)
    return wanted if "walltimed_prediction" in wanted else None


def submitted(site, *options, script="true"):
    return site.qsub("-l", "walltime=00:10:00", *options, script=script)


def test_the_first_eight_commands_lead_to_a_prediction_from_history(site):
    for step, printed in site.said:
        assert printed.splitlines() == step.printed, step.command


def learn(site, job, runtime):
    """Let the service learn 300 runs of a job; return a token that may ask about it."""
    now = time.time()
    runs = [
        job | {"job_id": f"past-{place}", "runtime": runtime(place), "end_time": end}
        for place, end in enumerate(now - 1000.0 * step for step in range(300, 0, -1))
    ]
    teller = site.token("teller", "--scope", "ingest", "--scope", "predict")
    assert site.call("/v1/completions", teller, {"completions": runs})["accepted"] == len(runs)
    return teller


def test_a_run_is_stored_as_it_was_asked_for_and_its_prediction_is_scored(well):
    job = submitted(well, "-N", "learner", "-P", "physics", script="sleep 2")
    (run,) = well.await_runs(job)[job.partition(".")[0]]
    asked = run.submission
    assert (asked.application, asked.user, asked.queue) == ("learner", USER, "workq")
    assert (asked.requested_walltime, asked.project) == (600, "physics")
    assert run.status is Status.COMPLETED
    store = open_store(well.url)
    assert all(score.jobs >= 1 for score in store.scores.of_methods("default"))
    store.close()


def test_the_scheduler_plans_with_the_upper_end_and_the_walltime_stays(well):
    learn(well, {"user": USER, "application": "STDIN", "requested_walltime": 1800}, lambda _: 5)
    cores = os.cpu_count()
    well.qmgr("set server backfill_depth = 2")
    well.run("sed", "-i", "s/^strict_ordering.*/strict_ordering: true all/", SCHEDULING)
    well.run("bash", "-c", f"kill -HUP $(cat {HOME}/sched_priv/sched.lock)")
    first = well.qsub("-l", f"select=1:ncpus={cores}", "-l", "walltime=00:30:00", script="sleep 25")
    second = well.qsub("-l", f"select=1:ncpus={cores}", "-l", "walltime=00:30:00", script="true")
    wanted = well.wanted(first)
    assert seconds_of(wanted["soft_walltime"]) <= 120
    assert wanted["walltime"] == "00:30:00"
    planned = eventually(
        lambda: well.job(second).get("estimated", {}).get("start_time"), seconds=20
    )
    started = well.job(first)["stime"]
    ahead = time.mktime(time.strptime(planned)) - time.mktime(time.strptime(started))
    assert ahead < 300, "after half an hour, were there no prediction"
    well.await_runs(first, second)


def test_the_formula_of_a_backtest_orders_the_queue_by_the_length_of_mode_order(well):
    well.await_runs(submitted(well))
    well.configure(mode="order")
    well.qmgr("set server eligible_time_enable = true")
    well.qmgr(f'set server job_sort_formula = "{AGED_FORMULA}"')
    well.qmgr("set server scheduling = false")
    try:
        whole = ("-l", f"select=1:ncpus={os.cpu_count()}", "-l", "walltime=05:00:00")
        long, short = well.qsub(*whole, script="sleep 2"), well.qsub(*whole, script="sleep 2")
        assert "soft_walltime" not in well.wanted(short)
        assert int(well.wanted(short)["walltimed_length"]) < 9000
        well.run("qalter", "-l", "walltimed_length=9000", long)
    finally:
        well.qmgr("set server scheduling = true")
    well.await_end(long, short)
    starts = [time.strptime(well.job(job)["stime"]) for job in (short, long)]
    well.qmgr("unset server job_sort_formula")
    assert starts[0] < starts[1]


def test_a_job_without_a_queue_or_a_walltime_takes_the_defaults_and_is_predicted(well):
    well.qmgr("set queue workq resources_default.walltime = 01:00:00")
    try:
        well.configure(queues=["workq"])
        wanted = eventually(lambda: predicted(well, well.qsub()), seconds=60)
        assert wanted["walltime"] == "01:00:00"
        well.configure(queues=["elsewhere"])
        assert "walltimed_prediction" not in well.wanted(submitted(well))
    finally:
        well.qmgr("unset queue workq resources_default.walltime")


@pytest.fixture
def sure(well):
    """The site with a service that knows how sure it is, a queue with a walltime, and bob."""
    well.end_service(signal.SIGTERM)
    well.environment["WALLTIMED_METHOD"] = "least-cost"
    well.start_service()
    well.run("useradd", "--home-dir", well.user_home, "bob")
    well.qmgr("set queue workq resources_default.walltime = 01:00:00")
    yield well
    well.qmgr("unset queue workq resources_default.walltime")
    del well.environment["WALLTIMED_METHOD"]
    well.end_service(signal.SIGTERM)


def seconds_of(walltime):
    hours, minutes, seconds = map(int, walltime.split(":"))
    return 3600 * hours + 60 * minutes + seconds


def test_a_default_limit_comes_from_the_interval_as_soon_as_there_is_history_enough(sure):
    sure.configure(mode="default-limit")

    def limited():
        return sure.qsub("-N", "limited", user="bob")

    young = eventually(lambda: predicted(sure, limited()), seconds=60)
    assert young["walltime"] == "01:00:00", "the queue's: too little is known"
    job = {
        "user": "bob",
        "application": "limited",
        "queue": "workq",
        "requested_walltime": 3600,
        "requested_processors": 1,
    }
    teller = learn(sure, job, lambda place: 300 + place % 10 * 60)
    answer = sure.call("/v1/predictions", teller, job)
    upper = answer["interval"]["upper"]
    assert (answer["basis"]["reason"], answer["interval"]["coverage"]) == ("history", 0.9)
    assert 600 < upper < 1200
    known = limited()
    wanted = sure.wanted(known)
    assert seconds_of(wanted["walltime"]) == pytest.approx(math.ceil(1.5 * upper), rel=0.1)
    assert "soft_walltime" not in wanted, "either plans or a limit"
    given = sure.wanted(sure.qsub("-N", "limited", "-l", "walltime=00:50:00", user="bob"))
    assert given["walltime"] == "00:50:00"
    (run,) = sure.await_runs(known)[known.partition(".")[0]]
    assert (run.status, run.submission.user) == (Status.COMPLETED, "bob")


def test_the_queue_is_handed_over_and_its_users_are_told(well):
    reader = well.token("reader", "--scope", "read")
    said = well.log("walltimed-pbs")  # A service that starts slowly is tried again.
    cores = f"select=1:ncpus={os.cpu_count()}"
    running = well.qsub("-l", cores, "-l", "walltime=00:20:00", script="sleep 600")
    eventually(lambda: well.job(running)["job_state"] == "R", seconds=60)
    waiting = well.qsub("-l", cores, "-l", "walltime=00:10:00", "-N", "patient")
    held = submitted(well, "-h", "-N", "held")

    def queue():
        with contextlib.suppress(AssertionError):  # 404, until it is handed over
            shown = well.call("/v1/clusters/default/snapshot", reader)
            found = {job["job_id"]: job for job in shown["jobs"]}
            if {running, waiting, held} <= found.keys() and found[waiting]["start_time"]:
                return shown | found
        return None

    shown = eventually(queue, seconds=180)
    assert [pool["processors"] for pool in shown["pools"]] == [os.cpu_count()]
    states = [shown[job]["state"] for job in (running, waiting, held)]
    assert states == ["running", "waiting", "held"]
    assert shown[running]["start_time"] <= shown["taken_at"] < shown[running]["end_time"]
    assert shown[waiting]["start_time"] >= shown[running]["end_time"], "both need all processors"
    assert shown[held]["start_time"] is None

    own = well.token("alice", "--scope", "self", "--user", USER)
    well.write("/etc/walltimed/own", own)
    ask = ("walltimed", "queue", "--token-file", "/etc/walltimed/own")
    printed = well.run(*ask).splitlines()
    rows = {cells[0]: cells for line in printed if (cells := line.split())}
    assert [rows[job][:4] for job in (running, waiting)] == [
        [running, USER, "workq", "STDIN"],
        [waiting, USER, "workq", "patient"],
    ]
    assert [rows[job][4] for job in (running, waiting, held)] == ["R", "PD", "H"]
    assert all(":" in cell for cell in rows[waiting][-2:]), "a start and an end"
    assert "waiting, number" in well.run(*ask, waiting)

    well.run("qdel", running, held)
    well.await_end(waiting)
    scores = eventually(
        lambda: well.call("/v1/waits?cluster=default", reader)["scores"], seconds=120
    )
    assert scores[0]["jobs"] >= 1
    assert "will try again" not in well.log("walltimed-pbs").removeprefix(said)


def test_a_job_that_waited_is_predicted_again_when_it_starts(well):
    well.configure(predict_again_after=1)
    job = submitted(well, "-h")
    first = well.wanted(job)["walltimed_prediction"]
    eventually(lambda: time.time() - time.mktime(time.strptime(well.job(job)["qtime"])) > 2)
    well.run("qrls", job, user=USER)
    well.await_runs(job)
    second = well.wanted(job)["walltimed_prediction"]
    assert second.endswith(f".{first}")
    assert second != first


def test_arrays_requeues_and_killed_jobs_come_back_as_runs(well):
    array = submitted(well, "-J", "1-2", "-N", "sweep")
    killed = well.qsub("-l", "walltime=00:00:05", "-N", "killed", script="sleep 120")
    requeued = submitted(well, "-N", "requeued", script="sleep 40")
    deleted = submitted(well, "-N", "deleted", script="sleep 120")
    for job in (requeued, deleted):
        eventually(lambda job=job: well.job(job)["job_state"] == "R", seconds=90)
    well.run("qrerun", requeued)
    well.run("qdel", deleted)
    tasks = [array.replace("[]", f"[{task}]") for task in (1, 2)]
    found = well.await_runs(*tasks, killed, requeued, deleted)
    number = array.partition("[")[0]
    assert f"{number}[]" not in found
    of = {
        name: found[job.partition(".")[0]]
        for name, job in {"killed": killed, "requeued": requeued, "deleted": deleted}.items()
    }
    assert [run.status for run in of["killed"]] == [Status.TIMEOUT]
    assert of["requeued"][0].status is Status.PREEMPTED
    assert [run.status for run in of["deleted"]] == [Status.CANCELLED]
    well.run("qdel", requeued, check=False)


def test_the_history_holds_what_the_hook_saw_of_each_task_of_an_array_with_gpus(well):
    well.qmgr("create resource ngpus type=long,flag=nh")
    well.qmgr(f"set node {HOST} resources_available.ngpus = 4")
    array = submitted(
        well, "-J", "1-3", "-l", "select=1:ncpus=1:ngpus=2", "-N", "study", script="sleep 1 # 7"
    )
    tasks = [array.replace("[]", f"[{task}]") for task in (1, 2, 3)]
    directory = well.job(array)["Variable_List"]["PBS_O_WORKDIR"]
    found = well.await_runs(*tasks)
    for task in tasks:
        (run,) = found[task.partition(".")[0]]
        facts = run.submission.facts
        assert (facts.gpus, facts.array_size, facts.nodes) == (2, 3, 1)
        assert facts.work_dir == unkeyed("work_dir", directory)
        assert facts.constraint == unkeyed("constraint", "1:ncpus=1:ngpus=2")
        assert facts.submit_host == unkeyed("submit_host", HOST)
        assert facts.submit_line.startswith("~")
    kept = b"".join(file.read_bytes() for file in well.state.glob("walltimed.sqlite3*"))
    assert b"ncpus=1:ngpus=2" not in kept


@pytest.fixture
def extending(well):
    """The site whose follower extends walltimes in workq, with a queue where it does not."""
    settings = well.run("cat", FOLLOWER)
    well.qmgr("set server operators += walltimed@*")
    well.qmgr("create queue other queue_type=execution,enabled=true,started=true")
    options = "OPTIONS=--queue-interval 2 --extend workq --extend-share 100\n"
    follow_with(well, re.sub(r"^OPTIONS=.*\n?", "", settings, flags=re.MULTILINE) + options)
    yield well
    follow_with(well, settings)
    well.qmgr("set server operators -= walltimed@*")


def follow_with(site, settings):
    """Start the follower again with other settings, as an administrator does."""
    site.write(FOLLOWER, settings)
    site.end("walltimed-pbs", signal.SIGTERM)
    site.start_unit("walltimed-pbs")


def test_a_job_that_would_be_cut_gets_a_longer_walltime_once_where_its_queue_is_opted_in(extending):
    site, file = extending, extending.user_home / "solved"
    solve = {"user": USER, "application": "solve", "requested_processors": 1}
    learn(site, solve | {"requested_walltime": 120, "status": "timeout"}, lambda _: 120)
    words = ("-N", "solve", "-l", "select=1:ncpus=1", "-l", "walltime=00:02:00")
    script = f"while [ ! -e {file} ]; do sleep 1; done"
    opted_in, other = (
        site.qsub("-q", queue, *words, script=script) for queue in ("workq", "other")
    )
    extended = eventually(
        lambda: (walltime := site.wanted(opted_in)["walltime"]) != "00:02:00" and walltime,
        seconds=240,
    )
    assert extended == "00:04:00", "at most twice as long"
    assert f"{opted_in}: walltime extended from 120 to 240 s" in site.log("walltimed-pbs")
    site.run("qalter", "-l", "walltime=00:03:50", opted_in)
    found = site.await_runs(other, seconds=240)[other.partition(".")[0]]
    file.touch()
    saved = site.await_runs(opted_in)[opted_in.partition(".")[0]]
    assert [run.status for run in found] == [Status.TIMEOUT]
    assert [run.status for run in saved] == [Status.COMPLETED]
    assert site.wanted(opted_in)["walltime"] == "00:03:50", "never a second time"


def test_a_service_that_is_killed_holds_nobody_up_and_loses_no_run(well):
    well.end_service(signal.SIGKILL)
    jobs = [well.submit_in_time("-l", "walltime=00:10:00") for _ in range(3)]
    assert "walltimed_prediction" not in well.wanted(jobs[-1])
    well.await_end(*jobs)
    assert "walltimed: ConnectionRefusedError" in well.server_log()
    well.start_service()
    found = well.await_runs(*jobs)
    assert [len(found[job.partition(".")[0]]) for job in jobs] == [1, 1, 1]


def test_a_service_that_hangs_holds_nobody_up(well):
    well.configure(budget_seconds=0.2)
    os.kill(well.pid_of("service"), signal.SIGSTOP)
    try:
        jobs = [well.submit_in_time("-l", "walltime=00:10:00") for _ in range(3)]
    finally:
        os.kill(well.pid_of("service"), signal.SIGCONT)
    well.await_runs(*jobs)
    assert "walltimed: timeout" in well.server_log() or "TimeoutError" in well.server_log()


def test_a_server_that_is_restarted_keeps_what_was_set_up(well):
    well.run("qterm", "-t", "quick")
    eventually(
        lambda: (
            "cannot connect" in well.run("qstat", "-B", check=False).lower()
            or "refused" in well.run("qstat", "-B", check=False)
        ),
        seconds=60,
    )
    well.run(PREFIX / "sbin" / "pbs_server", timeout=120)
    eventually(lambda: "state = free" in well.run("pbsnodes", "-a", check=False), seconds=60)
    job = submitted(well)
    assert "walltimed_prediction" in well.wanted(job)
    well.await_runs(job)


def test_it_is_turned_off_and_on_and_connected_again_after_the_hook_was_deleted(well):
    assert "off: the hook walltimed of PBS" in well.run("walltimed", "connect", "--off")
    assert "walltimed_prediction" not in well.wanted(submitted(well))
    well.run("walltimed", "connect", "--on")
    assert eventually(lambda: predicted(well, submitted(well)))
    well.run("qmgr", "-c", "delete hook walltimed")
    assert "walltimed_prediction" not in well.wanted(submitted(well))
    well.run("walltimed", "connect", "pbs", "--mode", "soft")
    assert eventually(lambda: predicted(well, submitted(well)))


def test_without_its_token_the_hook_accepts_and_the_follower_says_so_once(well):
    token = well.run("cat", TOKEN_FILE)
    with contextlib.ExitStack() as stack:
        stack.callback(well.write, TOKEN_FILE, token)
        well.write(TOKEN_FILE, "wt_no_token")
        assert "walltimed_prediction" not in well.wanted(submitted(well))
    assert "HTTP/1.1 401" in well.server_log()
    assert well.log("walltimed-pbs").count("refuses") == 0
