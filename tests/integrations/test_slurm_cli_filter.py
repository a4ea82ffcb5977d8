"""cli_filter.lua in a stand-alone Lua: advice at sbatch, never in the way."""

import os
import re

import pytest
from fake_service import GARBAGE, STREAMS, fake_service, prediction
from patience import BUSY_SECONDS
from private_munge import REASON_TO_SKIP, PrivateMunge
from slurm_scripts import LUAS, Site

from terminal import munge

pytestmark = pytest.mark.skipif(not LUAS, reason="needs lua5.1, 5.3 or 5.4 with lua-socket")
OPTIONS = {"time": "01:00:00", "job-name": "relax", "partition": "short", "ntasks": "2"}


@pytest.fixture(params=LUAS)
def site(request, tmp_path):
    return Site(tmp_path, request.param)


@pytest.fixture
def any_site(tmp_path):
    """One Lua is enough where the language's version makes no difference."""
    return Site(tmp_path, LUAS[0])


def submit(site, service, options=OPTIONS, environment=None, **config):
    patient = service.patience("budget_ms", seconds=1000)
    config = {"port": service.port, "mode": "advise"} | patient | config
    site.configure("walltimed_cli_config.lua", **config)
    (done,) = site.submit(
        options, script="cli_filter.lua", environment={"USER": "carol"} | (environment or {})
    )
    return done


def asked(site, options=OPTIONS, environment=None):
    """The questions that the service is asked about a submission."""
    with fake_service(prediction()) as service:
        submit(site, service, options, environment)
    return service.requests


def test_the_user_is_told_how_long_such_jobs_ran(site):
    with fake_service(prediction()) as service:
        done = submit(site, service)
    numbers = "likely 5 min, range 1 min to 30 min (90%), requested 60 min"
    assert done.told == [f"walltimed: {numbers}"]
    (asked,) = service.requests
    assert re.search(r"User-Agent: cli_filter\.lua/[0-9.]+ \(advise\)\r\n", service.headers[0])
    assert asked.pop("submit_time")
    assert asked.pop("work_dir")
    assert asked == {
        "cluster": "hill",
        "user": "carol",
        "queue": "short",
        "application": "relax",
        "requested_walltime": 3600,
        "requested_processors": 2,
    }
    assert (done.result, done.changes) == (0, {})


@pytest.mark.parametrize("time", ["01:00:00", "00:59:30"])
def test_a_job_that_will_probably_be_cut_is_warned(site, time):
    cut = {"limit_warning": True, "like_runs": 9, "like_hits": 6, "longer_walltime": 21_600.0}
    with fake_service(prediction(predicted_walltime=60.0, **cut)) as service:
        done = submit(site, service, OPTIONS | {"time": time})
    assert done.told == [
        (
            "walltimed: 6 of your last 9 jobs like this one were ended at their limit; "
            "this one's is 1:00:00; ask for 6:00:00, or save its state before"
        )
    ]


@pytest.mark.parametrize("time", [None, "", "60", "2982616-04:14:00", "00:00:00", "UNLIMITED"])
def test_nothing_is_asked_without_a_limit(site, time):
    options = {key: value for key, value in OPTIONS.items() if key != "time"}
    with fake_service(prediction()) as service:
        done = submit(site, service, options if time is None else options | {"time": time})
    assert (done.result, done.told, service.requests) == (0, [], [])


@pytest.mark.parametrize(
    ("counts", "processors"),
    [
        ({"ntasks": "1", "cpus-per-task": "0"}, 1),  # as 22.05 shows what was not given
        ({"ntasks": "3", "cpus-per-task": "2"}, 6),
        ({"ntasks": "many"}, 1),
        ({"ntasks": "-1"}, 1),
    ],
)
def test_a_job_has_at_least_one_processor(site, counts, processors):
    assert asked(site, OPTIONS | counts)[0]["requested_processors"] == processors


@pytest.mark.parametrize(
    ("options", "kibibytes"),
    [
        ({}, None),
        ({"mem": "500"}, 500 * 1024 / 2),
        ({"mem": "4G"}, 2 * 1024**2),
        ({"mem": "4G", "nodes": "2-4"}, 4 * 1024**2),
        ({"mem-per-cpu": "1T"}, 1024**3),
        ({"mem": "0?"}, None),
        ({"mem": "0"}, None),
        ({"mem": "much"}, None),
        ({"mem": "500", "nodes": ""}, 500 * 1024 / 2),
    ],
)
def test_the_memory_is_what_was_asked_for_per_processor(any_site, options, kibibytes):
    assert asked(any_site, OPTIONS | options)[0].get("requested_memory") == kibibytes


@pytest.mark.parametrize(
    ("environment", "user"),
    [({"USER": "carol"}, "carol"), ({"USER": "", "LOGNAME": "dan"}, "dan"), ({"USER": ""}, None)],
)
def test_the_user_is_the_one_that_the_environment_names(site, environment, user):
    (question,) = asked(site, environment={"LOGNAME": ""} | environment)
    assert question.get("user") == user


def test_a_comment_stays_with_slurm(site):
    with fake_service(prediction()) as service:
        done = submit(site, service, OPTIONS | {"comment": "first run"})
    assert "comment" not in service.requests[0]
    assert done.told


def test_days_count(site):
    with fake_service(prediction(predicted_walltime=7500, interval=None, likely=None)) as service:
        done = submit(site, service, OPTIONS | {"time": "2-00:00:30"})
    assert service.requests[0]["requested_walltime"] == 2 * 86400 + 30
    assert done.told[0].endswith(": predicted 2.1 h, requested 48.0 h")


@pytest.mark.parametrize(
    ("time", "seconds"),
    [("00:00:01", 1), ("366-00:00:00", 366 * 86400), ("367-00:00:00", None)],
)
def test_times_are_read_from_a_second_to_a_year(any_site, time, seconds):
    found = [each["requested_walltime"] for each in asked(any_site, OPTIONS | {"time": time})]
    assert found == ([seconds] if seconds else [])


@pytest.mark.parametrize(
    ("options", "environment", "config"),
    [
        (OPTIONS | {"comment": "walltimed=off"}, {}, {}),
        (OPTIONS, {"WALLTIMED": "off"}, {}),
        (OPTIONS, {}, {"mode": "off"}),
    ],
)
def test_a_user_or_the_site_can_opt_out(site, options, environment, config):
    with fake_service(prediction()) as service:
        done = submit(site, service, options, environment, **config)
    assert (done.result, done.told, service.requests) == (0, [], [])


@pytest.mark.parametrize(
    "answer", [{"basis": {"jobs": 0, "reason": "cold-start"}}, {"predicted_walltime": 3600}]
)
def test_without_anything_to_say_it_is_silent(site, answer):
    with fake_service(prediction(**answer)) as service:
        assert submit(site, service).told == []


@pytest.mark.parametrize("answer", GARBAGE.values())
def test_a_service_that_is_not_well_is_asked_once_and_nobody_told(site, answer):
    with fake_service(answer, hangs_up=True) as service:
        done = submit(site, service)
        assert service.connections == 1
    assert (done.result, done.told, done.errors) == (0, [], [])


@pytest.mark.parametrize("peer", [(None, b""), *STREAMS.values()])
def test_a_peer_that_hangs_or_never_stops_costs_no_more_than_the_budget(site, peer):
    begins, goes_on = peer
    with fake_service(begins, forever=goes_on) as service:
        done = submit(site, service)
    assert (done.result, done.told, done.errors) == (0, [], [])
    assert done.seconds < 0.2 + BUSY_SECONDS


def test_a_broken_configuration_is_silent(site):
    (site.directory / "walltimed_cli_config.lua").write_text("return {")
    (done,) = site.submit(OPTIONS, script="cli_filter.lua")
    assert (done.result, done.told, done.errors) == (0, [], [])


@pytest.mark.parametrize(
    "answer",
    [{"interval": None}, {"basis": {"jobs": 5, "reason": "young-cluster"}}],
    ids=["no interval", "a young cluster"],
)
def test_without_an_interval_that_rests_on_history_no_range_is_told(site, answer):
    with fake_service(prediction(**answer)) as service:
        done = submit(site, service)
    assert done.told == ["walltimed: likely 5 min, requested 60 min"]


def test_a_user_without_runs_is_told_that_they_are_of_others(site):
    with fake_service(prediction(basis={"jobs": 5, "reason": "others"})) as service:
        (line,) = submit(site, service).told
    assert "range 1 min to 30 min (90%)" in line
    assert "of other users" in line


def authorization(service):
    (head,) = service.headers
    return re.search(r"Authorization: (\S+) (\S+)\r\n", head)


@pytest.mark.skipif(bool(REASON_TO_SKIP), reason=str(REASON_TO_SKIP))
def test_the_user_is_named_by_a_munge_credential(site):
    with PrivateMunge() as munged, fake_service(prediction()) as service:
        done = submit(site, service, munge=str(munged.command))
        scheme, credential = authorization(service).groups()
        assert scheme == "Munge"
        assert munge.decode(credential, munged.socket) == os.getuid()
    assert done.told


@pytest.mark.parametrize("command", ["/nonexistent/munge", "/bin/false", "echo 'no credential'"])
def test_without_a_credential_the_question_is_asked_all_the_same(any_site, command):
    with fake_service(prediction()) as service:
        done = submit(any_site, service, munge=command)
    assert done.told
    assert authorization(service) is None


def test_a_munge_that_hangs_takes_no_more_than_the_budget(any_site, tmp_path):
    hung = tmp_path / "munge"
    hung.write_text("#!/bin/sh\nexec sleep 60\n")
    hung.chmod(0o755)
    with fake_service(prediction()) as service:
        done = submit(any_site, service, munge=str(hung), budget_ms=200)
    assert (done.result, done.told) == (0, [])
    assert done.seconds < 0.2 + BUSY_SECONDS


def test_the_switch_silences_it(site):
    with fake_service(prediction()) as service:
        site.off.write_text("")
        done = submit(site, service)
    assert (done.told, service.requests) == ([], [])
