"""What of squeue and sinfo is handed over to the service."""

import json
from io import BytesIO
from pathlib import Path

import msgspec
import pytest
from odd_logs import VALUES

from service.contract.queue_bodies import QueueBody
from service.slurm_updater.machine import Machine, pools_of, read_nodes
from service.slurm_updater.service_calls import NOT_ALLOWED, HandOver
from service.slurm_updater.slurm import ControllerSettings, rules_of
from service.slurm_updater.squeue import NO_LIMIT, read_live_queue
from terminal.client import RemoteError

LIMITS = (
    "JobArrayTaskLimit",
    "AssocGrpCpuLimit",
    "AssocMaxJobsLimit",
    "AssociationJobLimit",
    "QOSMaxCpuPerUserLimit",
    "QOSGrpNodeLimit",
    "MaxMemPerLimit",
)
SHOWN = Path(__file__).parents[2] / "data" / "slurm" / "squeue_22.05.json"
SINFO = "n1|short|8/0/0/8\nn2|short|2/6/0/8\nn2|long|2/6/0/8\nn3|gpu|0/0/8/8\nn4|gpu|1/3/4/8\n"


@pytest.fixture
def shown():
    """The jobs as squeue of a real Slurm showed them."""
    return json.loads(SHOWN.read_text("utf-8"))["jobs"]


def read(jobs):
    shown = BytesIO(json.dumps({"jobs": jobs}).encode())
    return decoded(read_live_queue(shown, "hill"))


def decoded(body):
    """The body as the service gets it."""
    return msgspec.json.decode(msgspec.json.encode(body))


def test_all_jobs_that_run_or_wait_are_handed_over(shown):
    jobs = read(shown)
    states = [job["job_state"] for job in shown]
    assert len(jobs["running"]) == states.count("RUNNING")
    names = {job["application"] for job in jobs["waiting"]}
    assert names >= {job["name"] for job in shown if job["job_state"] == "PENDING"}


def test_waiting_jobs_come_in_the_order_of_their_priority(shown):
    waiting = [job for job in shown if job["job_state"] == "PENDING" and not job["array_job_id"]]
    for place, job in enumerate(waiting):
        job["priority"] = 100 + place
    order = [job["job_id"] for job in read(waiting)["waiting"]]
    assert order == [str(job["job_id"]) for job in reversed(waiting)]


@pytest.mark.parametrize(
    ("comment", "named"), [("wtp=3f-1;wtm=30", "3f-1"), ("a note", None), (None, None)]
)
def test_the_prediction_that_the_filter_noted_is_named(shown, comment, named):
    (job,) = read([one(shown, admin_comment=comment)])["waiting"]
    assert job.get("prediction_id") == named


ODD = (*VALUES, None, [], {}, ["x"], {"set": True}, True, -1, 1.5, [["x"]], "x" * 5000)


@pytest.mark.parametrize("field", [*json.loads(SHOWN.read_text("utf-8"))["jobs"][0]])
def test_no_odd_value_of_one_job_keeps_the_others_from_being_handed_over(shown, field):
    whole = one(shown, job_id=99999)
    for value in ODD:
        numbers = (int(value),) if isinstance(value, str) and value.isdecimal() else ()
        for odd in (value, *numbers, *({"set": True, "number": each} for each in numbers)):
            body = read([one(shown) | {field: odd}, whole])
            taken = QueueBody.model_validate_json(json.dumps(body | {"pools": [{"processors": 1}]}))
            assert "99999" in {job.job_id for job in taken.waiting}, odd


def one(shown, **fields):
    job = next(job for job in shown if job["job_state"] == "PENDING" and not job["array_job_id"])
    return {**job, "priority": 1, **fields}


@pytest.mark.parametrize(
    ("fields", "held"),
    [
        ({"state_reason": "Resources"}, False),
        ({"state_reason": "Priority"}, False),
        *(({"state_reason": reason}, True) for reason in LIMITS),
        ({"state_reason": "JobHeldUser", "priority": 0}, True),
        ({"state_reason": "Dependency"}, True),
        ({"state_reason": "BeginTime"}, True),
    ],
)
def test_a_job_that_waits_for_something_else_is_held(shown, fields, held):
    (job,) = read([one(shown, **fields)])["waiting"]
    assert job["held"] is held
    assert job["reason"] == fields["state_reason"]


def test_the_waiting_tasks_of_an_array_are_jobs_of_their_own(shown):
    tasks = {"array_task_string": "1-5:2,9%2", "state_reason": "Priority"}
    array = one(shown, array_job_id=40, job_id=40, **tasks)
    found = [job["job_id"] for job in read([array])["waiting"]]
    assert found == ["40_1", "40_3", "40_5", "40_9"]
    waiting = read([array])["waiting"]
    assert {(job["array"], job["array_limit"], job["held"]) for job in waiting} == {
        ("40", 2, False)
    }
    beyond = [job["job_id"] for job in waiting if job["reason"] == "JobArrayTaskLimit"]
    assert beyond == ["40_5", "40_9"], "two at a time"
    running = {**array, "job_id": 41, "array_task_id": 3, "array_task_string": ""}
    running |= {"job_state": ["RUNNING"], "start_time": array["submit_time"]}
    (job,) = read([running])["running"]
    assert (job["job_id"], job["array"]) == ("40_3", "40"), "the same job as when it waited"


@pytest.mark.parametrize(
    ("throttle", "held", "limit"),
    [({}, True, None), ({"array_max_tasks": 3}, False, 3),
     ({"array_max_tasks": {"set": True, "infinite": False, "number": 3}}, False, 3),
     ({"array_task_string": "1-4%3"}, False, 3)],
)  # fmt: skip
def test_an_array_at_its_limit_is_held_unless_the_limit_is_known(shown, throttle, held, limit):
    tasks = {"array_task_string": "1-4", "state_reason": "JobArrayTaskLimit"} | throttle
    for job in read([one(shown, array_job_id=40, job_id=40, **tasks)])["waiting"]:
        assert (job["held"], job.get("array_limit")) == (held, limit)


def test_a_job_without_a_limit_takes_its_place_all_the_same(shown):
    (job,) = read([one(shown, time_limit=None)])["waiting"]
    assert job["requested_walltime"] == NO_LIMIT


@pytest.mark.parametrize(
    "asked", [{"time_limit": 20_000_000}, {"memory_per_cpu": 10**13}, {"memory_per_node": 10**14}]
)
def test_a_job_that_asks_for_more_than_there_is_keeps_the_queue_from_nobody(shown, asked):
    body = read([one(shown, **asked), one(shown, job_id=2)])
    taken = QueueBody.model_validate_json(json.dumps(body | {"pools": [{"processors": 1}]}))
    assert len(taken.waiting) == 2


def test_partitions_that_share_nodes_are_one_pool():
    assert pools_of(read_nodes(SINFO)) == [
        {"processors": 16, "queues": ["long", "short"]},
        {"processors": 4, "queues": ["gpu"]},
    ]


def test_lines_of_sinfo_that_make_no_sense_are_left_out():
    assert read_nodes("\nn1|short\nn1|short|a/b/c/d\n|short|1/1/1/3\n") == {}


def test_the_policy_is_that_of_the_scheduler():
    assert rules_of({"SchedulerType": "sched/backfill"})["policy"] == "conservative"
    assert rules_of({"SchedulerType": "sched/builtin"})["policy"] == "fcfs"


class Slurm:
    """Shows what the real commands showed."""

    site = ControllerSettings(
        cluster="hill", version="22.05.8", keeps_limits=False, sums_factors=True, age_weight=0,
        other_weights=0,
        age_of_a_day=0, rules=rules_of({}),
    )  # fmt: skip

    def __init__(self, jobs=None, nodes=SINFO):
        self.jobs = SHOWN.read_bytes() if jobs is None else json.dumps({"jobs": jobs}).encode()
        self.machine = Machine(nodes=read_nodes(nodes))


class Client:
    """Notes down what it is asked to send."""

    def __init__(self, error=None):
        self.error, self.sent = error, []

    def call(self, verb, path, body):
        self.sent.append((verb, path, decoded(body)))
        if self.error:
            raise self.error


def handed_over(client, cluster=None, slurm=None):
    slurm = slurm or Slurm()
    sending = HandOver(client, cluster)
    return sending.send(slurm.site, BytesIO(slurm.jobs), slurm.machine, taken_at=5.0)


def test_queue_and_machine_go_to_the_cluster_of_their_name():
    client = Client()
    assert handed_over(client) is None
    ((verb, path, body),) = client.sent
    assert (verb, path) == ("PUT", "/v1/clusters/hill/snapshot")
    assert body["taken_at"] == 5.0
    assert body["policy"] == "conservative"
    assert body["pools"][0]["queues"] == ["long", "short"]
    assert handed_over(client, "other/name") is None
    assert client.sent[1][1] == "/v1/clusters/other%2Fname/snapshot"


def test_what_is_in_the_way_is_told_and_stops_nothing_else():
    assert handed_over(Client(RemoteError(403, "no"))) == NOT_ALLOWED
    assert "because" in handed_over(Client(RemoteError(422, "because")))


def test_a_job_of_a_partition_whose_nodes_are_all_down_waits_for_them(shown):
    """Partitions of which nothing can run are no pool; the largest would else take their jobs."""
    queued = enumerate(["gpu", "short"], 1)
    jobs = [one(shown, job_id=n, partition=name, state_reason="Resources") for n, name in queued]
    client = Client()
    nodes = "n1|short|8/0/0/8\nn3|gpu|0/0/8/8\n"
    assert handed_over(client, slurm=Slurm(jobs, nodes)) is None
    waiting = client.sent[0][2]["waiting"]
    assert {job["queue"]: job["held"] for job in waiting} == {"gpu": True, "short": False}
