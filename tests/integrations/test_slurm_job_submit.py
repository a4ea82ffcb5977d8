"""job_submit.lua in a stand-alone Lua, against a service that is well, slow, wrong or gone."""

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from fake_service import GARBAGE, fake_service, http, prediction
from slurm_scripts import JOB, LUAS, UNLIMITED, UNSET, Site

pytestmark = pytest.mark.skipif(not LUAS, reason="needs lua5.1, 5.3 or 5.4 with lua-socket")
BUDGET = 0.2
SLACK = 0.15  # a busy machine may be late to wake the script up


@pytest.fixture(params=LUAS)
def site(request, tmp_path):
    return Site(tmp_path, request.param)


@pytest.fixture
def any_site(tmp_path):
    """One Lua is enough where the language's version makes no difference."""
    return Site(tmp_path, LUAS[0])


def submit(site, service, *jobs, **config):
    site.configure(port=service.port, **service.patience("budget_ms", seconds=1000) | config)
    return site.submit(*jobs or [JOB])


def test_the_question_is_the_job_in_the_words_of_the_api(site):
    with fake_service(prediction()) as service:
        submit(site, service, JOB, mode="observe", token="wt_1_secret")
    (asked,) = service.requests
    assert asked.pop("submit_time") > 1.7e9
    assert asked == {
        "cluster": "hill",
        "user": "carol",
        "project": "zeolite",
        "queue": "short",
        "application": "relax",
        "requested_walltime": 3600,
        "requested_processors": 4,
        "requested_memory": 2000 * 1024,
    }
    assert "Authorization: Bearer wt_1_secret\r\n" in service.headers[0]
    assert service.headers[0].startswith("POST /v1/predictions HTTP/1.1\r\n")


@pytest.mark.parametrize(
    ("mode", "changes", "is_told"),
    [
        ("off", {}, False),
        ("observe", {"admin_comment": "wtp=0b7c-42"}, False),
        ("advise", {"admin_comment": "wtp=0b7c-42"}, True),
        ("soft", {"admin_comment": "wtp=0b7c-42"}, True),
        ("default-limit", {"admin_comment": "wtp=0b7c-42"}, True),
    ],
)
def test_every_rung_of_the_ladder_does_what_it_says_and_no_more(site, mode, changes, is_told):
    with fake_service(prediction()) as service:
        (done,) = submit(site, service, mode=mode)
    assert done.changes == changes
    assert bool(done.told) is is_told
    assert done.result == 0


@pytest.mark.parametrize(
    ("version", "parameters", "is_set"),
    [
        ("25.05.4", "bf_interval=30,time_min_as_soft_limit", True),
        ("26.05.0", "time_min_as_soft_limit", True),
        ("25.05.3", "time_min_as_soft_limit", False),
        ("24.11.5", "time_min_as_soft_limit", False),
        ("22.05.8", "time_min_as_soft_limit", False),
        ("25.05", "time_min_as_soft_limit", False),
        ("26.05.0", "bf_interval=30", False),
        (None, "time_min_as_soft_limit", False),
    ],
)
def test_time_min_is_set_only_where_it_cannot_lower_the_limit(
    tmp_path, version, parameters, is_set
):
    commented_out = "# SchedulerParameters=time_min_as_soft_limit\n"
    site = Site(tmp_path, LUAS[0], f"{commented_out}schedulerParameters={parameters}\n")
    config = {"slurm_version": version} if version else {}
    with fake_service(prediction()) as service:
        (done,) = submit(site, service, mode="soft", **config)
    assert done.changes.get("time_min") == ("8" if is_set else None)
    assert "time_limit" not in done.changes


SOFT = {"mode": "soft", "slurm_version": "25.05.4"}
SOFT_CONF = "SchedulerParameters=time_min_as_soft_limit\n"


@pytest.mark.parametrize(
    ("job", "time_min"),
    [
        (JOB | {"time_min": 5}, None),
        (JOB | {"time_limit": 8}, None),
        (JOB | {"time_limit": 9}, "8"),
        (JOB | {"time_limit": UNSET}, "8"),
        (JOB | {"time_limit": UNLIMITED}, None),
    ],
)
def test_time_min_is_never_the_limit_or_above_nor_replaces_the_users(tmp_path, job, time_min):
    site = Site(tmp_path, LUAS[0], SOFT_CONF)
    with fake_service(prediction()) as service:
        (done,) = submit(site, service, job, **SOFT)
    assert done.changes.get("time_min") == time_min


def upper(seconds, coverage=0.9):
    interval = {"lower": 1.0, "upper": float(seconds), "coverage": coverage}
    return {"interval": interval, "predicted_walltime": 200.0 if seconds == 300 else 421.5}


@pytest.mark.parametrize(
    ("job", "answer", "time_limit"),
    [
        (JOB, {}, None),
        (JOB | {"time_limit": UNSET}, {}, "10"),
        (JOB | {"time_limit": UNSET}, upper(300), "8"),
        (JOB | {"time_limit": UNSET}, upper(10), "10"),  # 421.5 s were predicted, and a half more
        (JOB | {"time_limit": UNSET}, upper(300, coverage=0.89), None),
        (JOB | {"time_limit": UNSET}, {"interval": {"lower": 1, "upper": 300}}, None),
        (JOB | {"time_limit": UNSET}, {"interval": None}, None),
        (JOB | {"time_limit": UNSET, "partition": "long"}, {}, None),
    ],
)
def test_a_default_limit_is_for_jobs_without_one(any_site, job, answer, time_limit):
    with fake_service(prediction(**answer)) as service:
        (done,) = submit(any_site, service, job, mode="default-limit")
    assert done.changes.get("time_limit") == time_limit


@pytest.mark.parametrize("limit", [1, 5, 60, UNLIMITED])
@pytest.mark.parametrize("predicted", [0.5, 30, 1e6])
def test_no_rung_ever_touches_a_limit_that_the_user_gave(tmp_path, limit, predicted):
    site = Site(tmp_path, LUAS[0], SOFT_CONF)
    with fake_service(prediction(predicted_walltime=predicted)) as service:
        (done,) = submit(
            site,
            service,
            JOB | {"time_limit": limit},
            mode="default-limit",
            slurm_version="26.05.1",
        )
    assert "time_limit" not in done.changes
    assert int(done.changes.get("time_min", 0)) < limit


@pytest.mark.parametrize(
    ("config", "is_asked"),
    [
        ({"users": ["alice", "carol"]}, True),
        ({"users": ["alice"]}, False),
        ({"accounts": ["zeolite"]}, True),
        ({"accounts": []}, False),
        ({"partitions": ["short"]}, True),
        ({"partitions": ["long"]}, False),
        ({"users": ["carol"], "partitions": ["long"]}, False),
    ],
)
def test_only_the_allowed_are_asked_about(any_site, config, is_asked):
    with fake_service(prediction()) as service:
        (done,) = submit(any_site, service, mode="advise", **config)
    assert bool(service.requests) is is_asked
    assert bool(done.changes) is is_asked


def test_a_user_can_opt_out_in_the_comment(any_site):
    with fake_service(prediction()) as service:
        (done,) = submit(any_site, service, JOB | {"comment": "x walltimed=off"}, mode="advise")
    assert (done.changes, service.requests) == ({}, [])


def test_an_admin_comment_is_added_to(any_site):
    with fake_service(prediction()) as service:
        (done,) = submit(any_site, service, JOB | {"admin_comment": "site"}, mode="observe")
    assert done.changes["admin_comment"] == "site;wtp=0b7c-42"


def test_many_jobs_share_one_connection(site):
    with fake_service(prediction()) as service:
        done = submit(site, service, *[JOB] * 20, mode="observe")
    assert all(job.changes for job in done)
    assert (len(service.requests), service.connections) == (20, 1)


@pytest.fixture
def socket_file():
    """A short path: a socket's may have 107 characters."""
    with TemporaryDirectory() as directory:
        yield Path(directory) / "socket"


@pytest.mark.parametrize("hangs_up", [False, True])
def test_a_unix_socket_serves_as_well(site, socket_file, hangs_up):
    site.configure(mode="observe", unix_socket=str(socket_file), budget_ms=2000)
    with fake_service(prediction(), path=socket_file, hangs_up=hangs_up) as service:
        done = site.submit(JOB, JOB, JOB)
    assert [each.changes for each in done] == [{"admin_comment": "wtp=0b7c-42"}] * 3
    assert len(service.requests) == 3
    assert service.connections == (3 if hangs_up else 1)


@pytest.mark.parametrize("hangs", [False, True])
def test_a_unix_socket_that_is_gone_or_hangs_costs_no_more_than_the_budget(
    site, socket_file, hangs
):
    site.configure(mode="observe", unix_socket=str(socket_file))
    with ExitStack() as stack:
        if hangs:
            stack.enter_context(fake_service(None, path=socket_file))
        first, second = site.submit(JOB, JOB)
    assert first.changes == second.changes == {}
    assert first.result == second.result == 0
    assert first.seconds < BUDGET + SLACK
    assert second.seconds < SLACK


def test_a_connection_that_went_stale_is_replaced_at_once(site):
    with fake_service(prediction(), hangs_up=True) as service:
        done = submit(site, service, *[JOB] * 5, mode="observe")
    assert [job.changes for job in done] == [{"admin_comment": "wtp=0b7c-42"}] * 5
    assert not any(job.errors for job in done)


def test_a_service_that_hangs_costs_the_budget_once_per_pause(site):
    with fake_service(None) as service:
        done = submit(site, service, *[JOB] * 10, mode="advise")
    assert BUDGET - 0.01 <= done[0].seconds <= BUDGET + SLACK
    assert sum(job.seconds for job in done[1:]) < 0.05
    assert [job.result for job in done] == [0] * 10
    assert not any(job.changes for job in done)
    assert [len(job.errors) for job in done] == [1] + [0] * 9


def test_an_answer_that_trickles_in_costs_no_more_than_the_budget(site):
    with fake_service(prediction(), seconds_per_byte=0.02) as service:
        (done,) = submit(site, service, mode="advise")
    assert done.seconds <= BUDGET + SLACK
    assert (done.result, done.changes) == (0, {})


def test_a_service_that_is_gone_costs_nothing(site):
    with fake_service() as service:
        pass
    done = submit(site, service, *[JOB] * 3, mode="advise")
    assert [job.result for job in done] == [0] * 3
    assert sum(job.seconds for job in done) < BUDGET
    assert not any(job.changes for job in done)


def test_the_pause_ends(any_site):
    with fake_service(http(500, b"{}")) as service:
        done = submit(any_site, service, *[JOB] * 3, mode="advise", pause_seconds=0)
    assert len(service.requests) == 3
    assert [job.result for job in done] == [0] * 3


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_changes_nothing(site, kind):
    with fake_service(GARBAGE[kind], hangs_up=True) as service:
        done = submit(site, service, JOB, JOB, mode="default-limit", pause_seconds=0)
    for job in done:
        assert (job.result, job.changes, job.told) == (0, {}, [])
        assert job.seconds <= BUDGET + SLACK


def test_a_question_that_is_refused_begins_no_pause(any_site):
    with fake_service(http(422, b'{"error": "x"}')) as service:
        done = submit(any_site, service, JOB, JOB, mode="observe")
    assert len(service.requests) == 2
    assert not any(job.errors or job.changes for job in done)


def test_hostile_names_stay_inside_their_quotes(site):
    name = 'a","user":"root\\\n\x01\x7f{}' + "x" * 400
    with fake_service(prediction()) as service:
        submit(site, service, JOB | {"name": name}, mode="observe")
    (asked,) = service.requests
    assert asked["user"] == "carol"
    assert asked["application"] == name[:255]


@pytest.mark.parametrize(
    "job", [{}, {"time_limit": "soon", "name": {}}, {"time_limit": 60, "partition": 7}]
)
def test_a_job_that_slurm_would_never_make_is_passed_on(site, job):
    with fake_service(prediction()) as service:
        (done,) = submit(site, service, job, mode="advise")
    assert done.result == 0


@pytest.mark.parametrize(
    "config", ["return", "return {", 'return { mode = "loud" }', 'error("no")', None]
)
def test_a_broken_configuration_turns_it_off(site, config):
    path = site.directory / "walltimed_config.lua"
    path.unlink() if config is None else path.write_text(config)
    (done,) = site.submit(JOB)
    assert (done.result, done.changes) == (0, {})
    assert len(done.errors) == 1


def test_a_missing_library_turns_it_off(site):
    (site.directory / "walltimed.lua").unlink()
    (done,) = site.submit(JOB)
    assert (done.result, done.changes) == (0, {})


def test_a_host_name_is_never_looked_up(site):
    site.configure(host="localhost", port=1, mode="advise")
    (done,) = site.submit(JOB)
    assert "no address" in done.errors[0]
    assert done.result == 0
