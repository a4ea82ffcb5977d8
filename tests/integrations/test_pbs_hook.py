"""The PBS hook against a stand-in of the pbs module, and a service that is well or is not.

Events that a real OpenPBS 23.06.06 handed to the hook are played again.
"""

import re
import sys
import time
from math import ceil
from pathlib import Path

import pbs_stand_in
import pytest
from fake_service import BAD_NAMES, GARBAGE, LONG_HEAD, fake_service, http, prediction
from pbs_python_format import event_of, lines_of, resources_of, server_of, set_in
from pbs_stand_in import QUEUEJOB, RUNJOB, Duration, Event, Job, Run, Server, run_hook

CAPTURED = Path(__file__).parents[1] / "data" / "pbs" / "openpbs-23.06.06"


@pytest.fixture(autouse=True)
def no_pause():
    yield
    if hasattr(sys, "walltimed_silent_until"):
        del sys.walltimed_silent_until


NAMES = {
    "cluster", "user", "project", "queue", "application", "requested_walltime",
    "requested_processors", "requested_memory",
}  # fmt: skip


def job(**wanted):
    return Job(walltime=Duration("01:00:00"), ncpus=8, mem="16gb", **wanted)


def queued(tmp_path, service, submitted=None, server=None, **config):
    event = Event(QUEUEJOB, submitted or job())
    config = service.patience("budget_seconds") | config
    return run_hook(tmp_path, event, server, port=service.port, **config)


def answered(tmp_path, answer, *job_and_server, how=queued, **config):
    """Run the hook against a service that answers so; the run has the ``requests`` it made."""
    with fake_service(answer, hangs_up=True) as service:
        run = how(tmp_path, service, *job_and_server, **config)
    run.requests = service.requests
    return run


def started(tmp_path, service, submitted, waited=7200, **config):
    submitted.id, submitted.Job_Owner = "17.hill", "carol@login1"
    submitted.qtime = int(time.time() - waited)
    event = Event(RUNJOB, submitted, requestor="Scheduler")
    config = service.patience("budget_seconds") | config
    return run_hook(tmp_path, event, port=service.port, **config)


def test_the_question_is_the_job_in_the_words_of_the_api(tmp_path):
    (tmp_path / "token").write_text("wt_1_secret\n")
    with fake_service(prediction(), hangs_up=True) as service:
        run = queued(tmp_path, service, cluster="hill", token_file=str(tmp_path / "token"))
    assert run.verdict == "accepted"
    assert service.requests == [
        {
            "cluster": "hill",
            "user": "carol",
            "project": "zeolite",
            "queue": "batch",
            "application": "relax",
            "requested_walltime": 3600,
            "requested_processors": 8,
            "requested_memory": 2 * 1024 * 1024,
        }
    ]
    assert "Authorization: Bearer wt_1_secret\r\n" in service.headers[0]
    assert re.search(r"User-Agent: walltimed_hook\.py/[0-9.]+ \([a-z]+\)\r\n", service.headers[0])


def test_the_hook_tells_what_it_sees_of_a_job_and_leaves_out_what_it_cannot_read(tmp_path):
    submitted = Job(walltime=Duration(3600), select="2:ncpus=8:ngpus=4+1:ncpus=1")
    submitted.Variable_List = {"PBS_O_WORKDIR": "/home/carol/r\x01un"}
    tagged = "<jsdl-hpcpa:Argument>{}</jsdl-hpcpa:Argument>"
    submitted.Submit_arguments = tagged.format("-J") + tagged.format("job.sh")
    submitted.array_indices_submitted, submitted.depend = "1-10:2,15", "afterok:17.server"
    submitted.interactive = True
    (told,) = answered(tmp_path, prediction(), submitted, mode="observe").requests
    assert {name: told[name] for name in told if name not in NAMES} == {
        "work_dir": "/home/carol/r?un",
        "submit_line": "-J job.sh",
        "gpus": 8,
        "array_size": 6,
        "constraint": "2:ncpus=8:ngpus=4+1:ncpus=1",
        "dependency": "afterok",
        "interactive": True,
    }
    submitted.array_indices_submitted, submitted.Variable_List = "1-x", None
    (told,) = answered(tmp_path, prediction(), submitted, mode="observe").requests
    assert not {"array_size", "work_dir"} & told.keys()
    silent = {"mode": "observe", "facts": False}
    (told,) = answered(tmp_path, prediction(), submitted, **silent).requests
    assert not told.keys() - NAMES


@pytest.mark.parametrize(
    ("select", "cores"), [("2:ncpus=8:mem=4gb+1:ncpus=4", 20), ("3", 3), ("host=a:ncpus=2", 2)]
)
def test_chunks_are_counted_in_cores(tmp_path, select, cores):
    submitted = Job(walltime=Duration(60), select=select)
    run = answered(tmp_path, prediction(), submitted)
    assert run.requests[0]["requested_processors"] == cores


def test_a_job_that_asks_for_no_core_keeps_its_memory_in_one_piece(tmp_path):
    run = answered(tmp_path, prediction(), Job(walltime=Duration(60), ncpus=0, mem="16gb"))
    assert run.requests[0]["requested_memory"] == 16 * 1024 * 1024
    assert "requested_processors" not in run.requests[0]


@pytest.mark.parametrize(
    ("written", "kibibytes"),
    [
        ("2048", 2),
        ("2048b", 2),
        ("3kb", 3),
        ("3mb", 3 * 1024),
        ("3GB", 3 * 1024**2),
        ("3tb", 3 * 1024**3),
        ("0kb", None),
        ("much", None),
    ],
)
def test_memory_is_told_in_kib_whatever_its_unit(tmp_path, written, kibibytes):
    run = answered(tmp_path, prediction(), Job(walltime=Duration(60), ncpus=1, mem=written))
    assert run.requests[0].get("requested_memory") == kibibytes


def test_names_that_are_missing_are_not_told_and_long_ones_are_cut(tmp_path):
    submitted = job()
    submitted.Job_Name, submitted.Account_Name, submitted.project = "x" * 300, "", None
    with fake_service(prediction(), hangs_up=True) as service:
        queued(tmp_path, service, submitted)
        submitted.project = "silica"
        queued(tmp_path, service, submitted)
    without, named = service.requests
    assert "project" not in without
    assert without["application"] == "x" * 255
    assert named["project"] == "silica"


@pytest.mark.parametrize(
    ("interval", "soft"),
    [
        ({"lower": 60.0, "upper": 1800.5, "coverage": 0.9}, 1801),
        ({"lower": 60.0, "upper": 400.0, "coverage": 0.9}, 422),
        ({"lower": 60.0, "upper": 3600.0, "coverage": 0.9}, None),
        (None, 422),
    ],
)
def test_the_length_is_the_mean_runtime_and_the_soft_walltime_the_upper_end(
    tmp_path, interval, soft
):
    answer = prediction(mean_walltime=600.5, interval=interval)
    run = answered(tmp_path, answer, mode="soft")
    assert (run.resources["walltimed_length"], run.resources["soft_walltime"]) == (601, soft)


@pytest.mark.parametrize("upper", [0, -1, "soon", 1e300, None, [300]])
@pytest.mark.parametrize("mode", ["observe", "order", "soft"])
def test_an_impossible_upper_end_matters_to_no_mode_but_soft_which_plans_nothing(
    tmp_path, mode, upper
):
    interval = {"lower": 60.0, "upper": upper, "coverage": 0.9}
    run = answered(tmp_path, prediction(interval=interval), mode=mode)
    assert (run.verdict, run.resources["soft_walltime"]) == ("accepted", None)
    assert len(run.warnings) == (mode == "soft")


@pytest.mark.parametrize("mean", [0, -1, 3601, "soon", 1e300])
def test_an_impossible_mean_changes_nothing(tmp_path, mean):
    run = answered(tmp_path, prediction(mean_walltime=mean), mode="order")
    assert run.resources["walltimed_length"] is None


@pytest.mark.parametrize(
    ("mode", "length", "soft"), [("observe", None, None), ("order", 422, None), ("soft", 422, 1801)]
)
def test_observe_sets_the_mark_alone_order_the_length_and_soft_both(tmp_path, mode, length, soft):
    run = answered(tmp_path, prediction(), mode=mode)
    assert run.resources["walltimed_length"] == length
    assert run.resources["soft_walltime"] == soft
    assert run.resources["walltimed_prediction"] == "0b7c-42"
    assert run.resources["walltime"] == 3600


def test_a_job_has_the_priority_of_its_user_where_the_site_asks_for_accuracy(tmp_path):
    answer = prediction(priorities=[{"initial_priority": 43}])
    assert answered(tmp_path, answer, mode="order").resources["walltimed_priority"] is None
    run = answered(tmp_path, answer, mode="order", accuracy=True)
    assert run.resources["walltimed_priority"] == 43
    (waiting,) = run.requests[1].pop("jobs")
    assert run.requests[1] == {"cluster": "default"}
    assert abs(waiting.pop("submit_time") - time.time()) < 60
    assert waiting == {"job_id": "submitted", "user": "carol", "requested_walltime": 3600}


@pytest.mark.parametrize("priorities", [None, [], [{}], [{"initial_priority": "high"}]])
def test_a_priority_that_is_none_leaves_the_prediction_and_the_job(tmp_path, priorities):
    run = answered(tmp_path, prediction(priorities=priorities), mode="order", accuracy=True)
    assert run.verdict == "accepted"
    assert run.resources["walltimed_length"] == 422
    assert run.resources["walltimed_priority"] is None
    assert len(run.warnings) == 1


def test_a_site_without_the_resource_for_the_mark_gets_its_soft_walltime(tmp_path):
    run = answered(tmp_path, prediction(), job(is_marked=False), mode="soft")
    assert run.resources["soft_walltime"] == 1801
    assert run.warnings == []
    assert [message for _, message in run.log] == [
        f"walltimed: no resource named walltimed_{name}" for name in ("prediction", "length")
    ]


@pytest.mark.parametrize("predicted", [3601, 1e6, 1e9])
def test_a_prediction_above_the_request_is_none(tmp_path, predicted):
    run = answered(tmp_path, prediction(predicted_walltime=predicted), mode="soft")
    assert run.resources["soft_walltime"] is run.resources["walltimed_prediction"] is None
    assert "above the request" in run.warnings[0]


@pytest.mark.parametrize("predicted", [3600, 3599.5])
def test_a_soft_walltime_stays_below_the_limit(tmp_path, predicted):
    run = answered(tmp_path, prediction(predicted_walltime=predicted), mode="soft")
    assert run.resources["soft_walltime"] is None
    assert run.resources["walltimed_prediction"] == "0b7c-42"


@pytest.mark.parametrize("resource", ["min_walltime", "max_walltime", "soft_walltime"])
def test_shrink_to_fit_jobs_and_soft_walltimes_of_others_are_left_alone(tmp_path, resource):
    submitted = job(**{resource: Duration(60)})
    before = dict(submitted.Resource_List)
    run = answered(tmp_path, prediction(), submitted, mode="soft")
    assert (dict(run.resources), run.requests) == (before, [])


def test_a_job_without_any_walltime_is_left_alone(tmp_path):
    run = answered(tmp_path, prediction(), Job(ncpus=1), mode="soft")
    assert (run.verdict, run.requests) == ("accepted", [])


SURE = {"lower": 300.0, "upper": 1000.0, "coverage": 0.9}
LONG_DEFAULT = Server(default="24:00:00")


@pytest.mark.parametrize(
    ("answer", "config", "limit"),
    [
        ({}, {}, 1500),
        ({}, {"limit_margin": 2}, 2000),
        ({}, {"limit_margin": 0.5}, 1000),
        ({"interval": SURE | {"coverage": 0.8}}, {}, None),
        ({"interval": SURE | {"coverage": 0.8}}, {"limit_coverage": 0.8}, 1500),
        ({"interval": SURE | {"upper": 10.0}, "predicted_walltime": 2.0}, {}, None),
        ({"interval": SURE | {"upper": 10.0}}, {}, 633),
        ({"interval": SURE | {"upper": 57_599.0}}, {}, 86_399),
        ({"interval": SURE | {"upper": 57_600.0}}, {}, None),
        ({"interval": None}, {}, None),
        ({"basis": {"jobs": 5, "reason": "young-cluster"}}, {}, None),
        ({"basis": {"jobs": 4, "reason": "history"}}, {}, None),
        ({}, {"mode": "soft"}, None),
    ],
)
def test_a_job_without_a_walltime_gets_a_margin_above_its_interval(tmp_path, answer, config, limit):
    asked = Job(ncpus=1)
    config = {"mode": "default-limit"} | config
    run = answered(
        tmp_path, prediction(**{"interval": SURE} | answer), asked, LONG_DEFAULT, **config
    )
    assert run.requests[0]["requested_walltime"] == 24 * 3600
    assert run.resources["walltime"] == limit
    assert run.warnings == []


@pytest.mark.parametrize(
    ("job_and_server", "walltime"), [((), 3600), ((Job(ncpus=1), LONG_DEFAULT), 1500)]
)
def test_a_default_limit_leaves_the_users_walltime_alone_and_sets_no_soft_one(
    tmp_path, job_and_server, walltime
):
    run = answered(tmp_path, prediction(interval=SURE), *job_and_server, mode="default-limit")
    assert (run.resources["walltime"], run.resources["soft_walltime"]) == (walltime, None)


@pytest.mark.parametrize("bad", [-5, 0, float("nan"), float("inf"), "300", True, 1e9 + 1, [300]])
@pytest.mark.parametrize("field", ["upper", "coverage"])
def test_an_interval_that_is_none_sets_nothing(tmp_path, field, bad):
    answer = prediction(interval=SURE | {field: bad})
    run = answered(tmp_path, answer, Job(ncpus=1), LONG_DEFAULT, mode="default-limit")
    assert run.verdict == "accepted"
    assert run.resources["walltime"] is run.resources["walltimed_prediction"] is None


HOURS = {hours: f"{hours:02d}:00:00" for hours in range(1, 5)}


@pytest.mark.parametrize(
    ("queue", "server", "hours"),
    [
        ("", Server(queues={"workq": (HOURS[1], HOURS[2])}, default=HOURS[3], most=HOURS[4]), 1),
        ("", Server(queues={"workq": (None, HOURS[2])}, default=HOURS[3], most=HOURS[4]), 3),
        ("", Server(queues={"workq": (None, HOURS[2])}, most=HOURS[4]), 2),
        ("", Server(most=HOURS[4]), 4),
        ("batch", Server(queues={"workq": (HOURS[1], None), "batch": (HOURS[2], None)}), 2),
        ("batch@hill", Server(queues={"batch": (HOURS[2], None)}), 2),
        ("not there", Server(default=HOURS[3]), 3),
        ("", Server(default_queue=None, default=HOURS[3]), 3),
    ],
)
def test_a_job_without_a_walltime_is_predicted_with_the_one_that_pbs_will_give_it(
    tmp_path, queue, server, hours
):
    submitted = Job(ncpus=1, queue=queue)
    run = answered(tmp_path, prediction(), submitted, server, mode="soft")
    assert run.requests[0]["requested_walltime"] == hours * 3600
    assert (run.resources["soft_walltime"], run.resources["walltime"]) == (1801, None)


def test_a_soft_walltime_stays_below_the_default_too(tmp_path):
    server = Server(default="00:07:02")
    run = answered(tmp_path, prediction(), Job(ncpus=1), server, mode="soft")
    assert run.resources["soft_walltime"] is None


@pytest.mark.parametrize("config", [{}, {"queues": ["workq"]}])
def test_a_job_without_a_queue_goes_to_the_default_queue(tmp_path, config):
    run = answered(tmp_path, prediction(), job(queue=""), **config)
    assert run.requests[0]["queue"] == "workq"


@pytest.mark.parametrize(
    ("predicted", "config", "soft"),
    [
        (0.5, {}, 60),
        (60, {}, 60),
        (60.5, {}, 61),
        (0.5, {"soft_floor_seconds": 1}, 1),
        (0.5, {"soft_floor_seconds": 600}, 600),
        (0.5, {"soft_floor_seconds": 3600}, None),
    ],
)
def test_a_soft_walltime_has_a_floor(tmp_path, predicted, config, soft):
    answer = prediction(predicted_walltime=predicted, interval=None)
    run = answered(tmp_path, answer, mode="soft", **config)
    assert run.resources["soft_walltime"] == soft


def test_a_job_that_waited_long_is_predicted_again_at_its_start(tmp_path):
    submitted = job(soft_walltime=Duration(1800), walltimed_prediction="old-1")
    run = answered(tmp_path, prediction(), submitted, mode="soft", how=started)
    assert run.resources["soft_walltime"] == 1801
    assert run.resources["walltimed_prediction"] == "0b7c-42.old-1"
    (asked,) = run.requests
    assert (asked["user"], asked["job_id"]) == ("carol", "17.hill")
    assert "submit_time" not in asked, "what ended while it waited counts"


@pytest.mark.parametrize(
    ("mark", "written"),
    [
        ("old-1.older", "0b7c-42.old-1"),
        ("", "0b7c-42"),
        ("a user's own", "0b7c-42"),
        ("x" * 2**20, "0b7c-42"),
    ],
)
def test_the_mark_names_the_new_prediction_and_the_one_it_replaces(tmp_path, mark, written):
    submitted = job(soft_walltime=Duration(1800), walltimed_prediction=mark)
    run = answered(tmp_path, prediction(), submitted, how=started)
    assert run.resources["walltimed_prediction"] == written


@pytest.mark.parametrize(("waited", "is_asked"), [(3600, False), (3601, True)])
def test_an_hour_of_waiting_makes_a_second_look_worth_its_while(
    tmp_path, monkeypatch, waited, is_asked
):
    now = int(time.time())
    monkeypatch.setattr(time, "time", lambda: now)
    submitted = job(soft_walltime=Duration(1800), walltimed_prediction="old")
    run = answered(tmp_path, prediction(), submitted, waited=waited, mode="soft", how=started)
    assert bool(run.requests) is is_asked
    assert run.resources["soft_walltime"] == (1801 if is_asked else 1800)


def test_a_soft_walltime_of_somebody_else_survives_the_start(tmp_path):
    submitted = job(soft_walltime=Duration(1800))
    run = answered(tmp_path, prediction(), submitted, mode="soft", how=started)
    assert (run.resources["soft_walltime"], run.requests) == (1800, [])


@pytest.mark.parametrize(
    ("config", "is_asked"),
    [
        ({"mode": "off"}, False),
        ({"users": ["alice"]}, False),
        ({"users": ["carol"]}, True),
        ({"queues": ["long"]}, False),
        ({"queues": ["batch"]}, True),
    ],
)
def test_only_the_allowed_are_asked_about(tmp_path, config, is_asked):
    run = answered(tmp_path, prediction(), **config)
    assert bool(run.requests) is is_asked


def test_a_service_that_hangs_costs_the_budget_once_per_pause(tmp_path):
    with fake_service(None) as service:
        runs = [queued(tmp_path, service, mode="soft") for _ in range(5)]
        assert (service.connections, len(service.requests)) == (1, 1)
    assert [run.verdict for run in runs] == ["accepted"] * 5
    assert [len(run.warnings) for run in runs] == [1, 0, 0, 0, 0]
    assert is_late(runs[0])


def test_the_pause_after_a_failure_has_fifteen_seconds(tmp_path, monkeypatch):
    now = 1_000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with fake_service(GARBAGE["nothing"], hangs_up=True) as service:
        asked = []
        for passed in (0, 14.9, 15):
            now = 1_000.0 + passed
            queued(tmp_path, service)
            asked.append(len(service.requests))
    assert asked == [1, 1, 2]


def test_a_clock_that_is_set_back_does_not_prolong_the_pause(tmp_path, monkeypatch):
    with fake_service(GARBAGE["nothing"], hangs_up=True) as service:
        queued(tmp_path, service, pause_seconds=0.001)
        monkeypatch.setattr(time, "time", lambda: 1_000.0)
        time.sleep(0.002)
        queued(tmp_path, service)
    assert len(service.requests) == 2


@pytest.mark.parametrize("status", [400, 422])
def test_a_job_that_is_refused_begins_no_pause(tmp_path, status):
    with fake_service(http(status, b"{}"), hangs_up=True) as service:
        runs = [queued(tmp_path, service, mode="soft") for _ in range(2)]
    assert len(service.requests) == 2, "it says nothing about the jobs of others"
    assert [run.verdict for run in runs] == ["accepted"] * 2
    assert runs[0].warnings == ["walltimed: RefusedError: the service takes no such job"]


def test_what_is_logged_of_an_answer_is_short(tmp_path):
    told = []
    for answer in (http(500, b"", "X: " + "y" * 300), prediction(predicted_walltime="z" * 300)):
        with fake_service(answer, hangs_up=True) as service:
            told += queued(tmp_path, service).warnings
        del sys.walltimed_silent_until
    begin = b"HTTP/1.1 500 Whatever\r\nContent-Length: 0\r\n"[:40]
    assert told == [
        f"walltimed: ValueError: HTTP answer: {begin!r}",
        f"walltimed: ValueError: no walltime: {'z' * 40}",
    ]


def test_a_budget_that_is_used_up_before_the_service_is_asked_says_so(tmp_path):
    run = run_hook(tmp_path, Event(QUEUEJOB, job()), port=1, budget_seconds=0)
    assert run.verdict == "accepted"
    assert "budget" in run.warnings[0]


def is_late(run):
    """Whether the budget was used up."""
    return re.search("timed out|budget", run.warnings[0]) is not None


def test_an_answer_on_a_connection_that_stays_open_is_not_waited_for(tmp_path):
    with fake_service(prediction()) as service:
        run = queued(tmp_path, service, mode="soft", budget_seconds=20)
    assert run.verdict == "accepted", "the alarm would have rejected it"
    assert run.resources["soft_walltime"] == 1801


def test_an_answer_with_a_long_head_sets_nothing(tmp_path):
    run = answered(tmp_path, LONG_HEAD, mode="soft")
    assert run.resources["soft_walltime"] is None
    assert "head" in run.warnings[0]


@pytest.mark.parametrize(("more", "is_read_on"), [(0, True), (1, False)])
def test_after_8_kib_without_an_end_no_more_of_a_head_is_read(tmp_path, more, is_read_on):
    with fake_service(prediction(), hangs_up=True) as service:
        body_of = queued(tmp_path, service).names["body_of"]
    begin = b"HTTP/1.1 200 OK\r\nX: "
    pieces = iter([begin.ljust(8192 + more, b"y"), b"\r\nContent-Length: 2\r\n\r\n{}"])
    try:
        is_read = body_of(lambda: next(pieces)) == b"{}"
    except ValueError:
        is_read = False
    assert is_read is is_read_on


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_prediction_with_a_name_that_is_none_is_not_noted_down(tmp_path, name):
    run = answered(tmp_path, prediction(prediction_id=name), mode="soft")
    assert run.resources["walltimed_prediction"] is None
    assert run.resources["soft_walltime"] == 1801, "what was predicted counts"


@pytest.mark.parametrize(
    "predicted", [-5, 0, float("nan"), float("inf"), "300", True, 1e9 + 1, 10**400, None, [300]]
)
def test_a_prediction_that_is_no_walltime_sets_nothing(tmp_path, predicted):
    run = answered(tmp_path, prediction(predicted_walltime=predicted), mode="soft")
    assert run.verdict == "accepted"
    assert run.resources["soft_walltime"] is run.resources["walltimed_prediction"] is None


def test_a_broken_configuration_rejects_nobody(tmp_path):
    (tmp_path / "hook.json").write_text("{")
    run = Run(Event(QUEUEJOB, job()), str(tmp_path / "hook.json"))
    assert (run.verdict, run.resources["soft_walltime"]) == ("accepted", None)
    assert Run(Event(QUEUEJOB, job()), str(tmp_path / "none")).verdict == "accepted"


def test_a_pbs_that_cannot_log_rejects_nobody(tmp_path):
    """As OpenPBS 23.06 that was built with Python 3.10 or newer."""
    run = Run(Event(QUEUEJOB, job()), str(tmp_path / "none"), logs=False)
    assert (run.verdict, run.log) == ("accepted", [])


def test_a_pbs_that_cannot_log_sets_soft_walltimes_without_our_resources(tmp_path):
    run = answered(tmp_path, prediction(), job(is_marked=False), mode="soft", logs=False)
    assert run.resources["soft_walltime"] == 1801


def test_a_job_that_pbs_would_never_make_is_accepted(tmp_path):
    event = Event(QUEUEJOB, object())
    event.job = type("Odd", (), {"Resource_List": {}})()
    assert run_hook(tmp_path, event, mode="soft").verdict == "accepted"


@pytest.mark.parametrize(
    ("files", "predicted", "prediction_id"),
    [
        (["hook_queuejob.in"], 8.2, "ae9a578995d4e84a-2"),
        (["hook_runjob.in", "hook_runjob.data"], 24.5, "ae9a578995d4e84a-3"),
    ],
)
def test_events_of_a_real_server_come_out_as_they_did(tmp_path, files, predicted, prediction_id):
    lines = lines_of(*(CAPTURED / file for file in files))
    event = event_of(lines)
    before = resources_of(event)
    answer = prediction(predicted_walltime=predicted, prediction_id=prediction_id, interval=None)
    with fake_service(answer, hangs_up=True) as service:
        config = {"mode": "soft", "soft_floor_seconds": 1, "predict_again_after": 2}
        run = run_hook(tmp_path, event, server_of(lines), port=service.port, **config)
    assert run.verdict == "accepted"
    (asked,) = service.requests
    assert (asked["user"], asked["queue"]) == ("alice", "workq")
    out = (CAPTURED / files[0]).with_suffix(".out")
    set_then = before | set_in(lines_of(out))
    if replaced := before.get("walltimed_prediction"):
        set_then["walltimed_prediction"] += f".{replaced}"  # which that release did not note down
    set_then["walltimed_length"] = str(ceil(predicted))  # nor this
    assert resources_of(event) == set_then


def without(*absent):
    """A real job that lacks something, and what the server shows."""
    lines = lines_of(CAPTURED / "hook_queuejob.in", CAPTURED / "hook_runjob.data")
    for each in absent:
        del lines[f"pbs.event().job.{each}"]
    return event_of(lines), server_of(lines)


def test_a_real_job_without_a_walltime_gets_a_default_limit(tmp_path):
    event, server = without("Resource_List[walltime]")
    answer = prediction(predicted_walltime=422, interval=SURE)
    with fake_service(answer, hangs_up=True) as service:
        run_hook(tmp_path, event, server, port=service.port, mode="default-limit")
    set_now = resources_of(event)
    assert (set_now["walltime"], "soft_walltime" in set_now) == ("1500", False)


def test_a_real_job_without_a_walltime_gets_its_queues(tmp_path):
    event, server = without("queue", "Resource_List[walltime]")
    with fake_service(prediction(), hangs_up=True) as service:
        run_hook(tmp_path, event, server, port=service.port)
    (asked,) = service.requests
    assert (asked["queue"], asked["requested_walltime"]) == ("workq", 3600)


def test_the_switch_stops_it_before_its_settings_are_read(tmp_path, monkeypatch):
    off, hook = tmp_path / "walltimed.off", tmp_path / "hook.py"
    hook.write_text(pbs_stand_in.HOOK.read_text().replace("/etc/walltimed/walltimed.off", str(off)))
    monkeypatch.setattr(pbs_stand_in, "HOOK", hook)
    on = answered(tmp_path, prediction(), mode="soft")
    off.write_text("")
    stopped = answered(tmp_path, prediction(), mode="soft")
    broken = answered(tmp_path, prediction(), token="x")
    assert (len(on.requests), on.resources["soft_walltime"]) == (1, 1801)
    assert (stopped.verdict, stopped.requests, stopped.warnings) == ("accepted", [], [])
    assert stopped.resources["soft_walltime"] is None
    assert broken.warnings == []
