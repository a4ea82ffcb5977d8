"""Limits of running jobs are extended where the site allows it: once, marked, and within bounds."""

from datetime import datetime

import msgspec
import pytest
from fake_service import fake_service, http
from slurm_stand_in import SlurmStandIn
from structlog.testing import capture_logs

from service.slurm_updater.extending import ExtensionRules
from service.slurm_updater.following import logged_round
from service.slurm_updater.planning import Mode
from service.slurm_updater.service_calls import LongerLimit, NonsenseError, ServiceQueries
from service.slurm_updater.slurm import Slurm
from service.slurm_updater.updater import Updater, UpdaterOptions
from terminal.client import Client, RemoteError

STARTED = 1_795_282_028.0
"""Start of job 1, whose limit is 60 minutes and whose partition is short."""

LATE = STARTED + 3000
ON = ExtensionRules(partitions=frozenset({"short"}), share=1.0)


class Answers:
    """Grants what it is set to, and notes what it is asked."""

    def __init__(self) -> None:
        self.minutes, self.asked, self.error = 90.0, [], None

    def longer_limits(self, cluster, most, rules):
        self.asked.append((cluster, dict(most), rules))
        if self.error:
            raise self.error
        walltime = None if self.minutes is None else 60 * self.minutes
        reason = "delays" if walltime is None else "granted"
        return [LongerLimit(name, walltime, 0.0, 0.7, reason) for name in most]


@pytest.fixture
def slurm(tmp_path):
    directory = tmp_path / "bin"
    directory.mkdir()
    stand_in = SlurmStandIn(directory)
    running = next(job for job in stand_in.jobs if job["job_id"] == 1)
    stand_in.jobs = [running | {"time_limit": 60, "admin_comment": "the site's; x=1"}]
    stand_in.write()
    return stand_in


@pytest.fixture
def answers():
    return Answers()


@pytest.fixture
def updater(slurm, answers):
    def make(extensions=ON, *, now=LATE, **options):
        return Updater(
            Slurm(slurm.directory, timeout=5),
            answers,
            UpdaterOptions(mode=Mode.OFF, extensions=extensions, **options),
            clock=lambda: now,
            sleep=lambda _seconds: None,
        )

    return make


def name_of(slurm):
    return slurm.jobs[0]["name"]


def test_a_late_job_is_extended_marked_and_reported(slurm, updater, answers):
    done = updater().round()
    assert slurm.apply() == [("1", {"TimeLimit": "90", "AdminComment": "the site's; x=1;wtx=60"})]
    assert slurm.jobs[0]["time_limit"] == 90
    assert answers.asked == [("private", {"1": 120}, ON)]
    (extended,) = done.extended.values()
    assert (extended.job, extended.before, extended.after) == ("1", 60, 90)
    assert (extended.delay, extended.probability) == (0.0, 0.7)
    assert (done.updated, done.refused) == (1, {})


def test_a_job_is_extended_once_also_by_an_updater_that_was_started_again(slurm, updater, answers):
    keeper = updater()
    keeper.round()
    slurm.apply()
    answers.minutes = 170.0
    later = STARTED + 5000
    updater(now=later).round()
    slurm.change(name_of(slurm), admin_comment="")
    keeper.round()
    assert slurm.updates() == []
    assert len(answers.asked) == 1


@pytest.mark.parametrize(
    "case",
    [
        (ExtensionRules(), {}, LATE),
        (ExtensionRules(partitions=frozenset({"long"})), {}, LATE),
        (ExtensionRules(by_comment=True), {}, LATE),
        (ExtensionRules(), {"comment": "walltimed=extend"}, LATE),
        (ON, {"comment": "walltimed=off"}, LATE),
        (ON, {"admin_comment": "wtx=30"}, LATE),
        (ON, {"admin_comment": "caf\ufffd"}, LATE),
        (ON, {"job_state": "PENDING"}, LATE),
        (ON, {"het_job_id": 1, "het_job_offset": 0, "array_job_id": 0}, LATE),
        (ON, {}, STARTED + 2879),
    ],
)
def test_jobs_that_are_not_opted_in_not_late_or_not_markable_are_not_asked_about(
    slurm, updater, answers, case
):
    rules, job, now = case
    slurm.change(name_of(slurm), **job)
    updater(rules, now=now).round()
    assert answers.asked == []
    assert slurm.updates() == []


def test_a_comment_opts_in_where_the_site_heeds_comments(slurm, updater):
    slurm.change(name_of(slurm), comment="project 7, walltimed=extend", admin_comment="")
    updater(ExtensionRules(by_comment=True)).round()
    assert slurm.updates() == [("1", {"TimeLimit": "90", "AdminComment": "wtx=60"})]


def sinfo(slurm, longest):
    (slurm.directory / "sinfo").write_text(f"#!/bin/sh\necho 'n1|short|4/0/0/4|NO|1:4:1|{longest}'")
    (slurm.directory / "sinfo").chmod(0o755)


@pytest.mark.parametrize(
    ("longest", "most"), [("1:10:00", 70), ("infinite", 120), ("2-00:00:00", 120), ("n/a", 120)]
)
def test_a_limit_never_exceeds_that_of_the_partition(slurm, updater, answers, longest, most):
    sinfo(slurm, longest)
    answers.minutes = most
    done = updater().round()
    assert answers.asked[0][1] == {"1": most}
    assert [each.after for each in done.extended.values()] == [most]


def test_a_job_at_the_limit_of_the_partition_is_not_asked_about(slurm, updater, answers):
    sinfo(slurm, "1:00:00")
    updater().round()
    assert answers.asked == []
    assert slurm.updates() == []


def test_a_limit_ends_before_the_next_reservation(slurm, updater, answers):
    start = datetime.fromtimestamp(STARTED + 100 * 60 + 30).isoformat()  # noqa: DTZ006 - as Slurm
    past = datetime.fromtimestamp(STARTED).isoformat()  # noqa: DTZ006
    (slurm.directory / "config").write_text(
        f"{slurm.config}\nReservationName=now StartTime={past} EndTime=x Flags=\n"
        f"ReservationName=maint StartTime={start} EndTime={start} Flags=MAINT\n"
    )
    updater().round()
    assert answers.asked[0][1] == {"1": 100}


def test_what_is_not_granted_is_asked_for_again_in_the_next_round(slurm, updater, answers):
    answers.minutes = None
    keeper = updater()
    assert keeper.round().extended == {}
    assert slurm.updates() == []
    answers.minutes = 61.0
    assert len(keeper.round().extended) == 1


def test_a_refused_extension_is_not_reported_as_one(slurm, updater):
    slurm.does("refuse", "Requested time limit is invalid")
    done = updater().round()
    assert done.extended == {}
    assert "invalid" in done.refused["1"]


def test_a_service_that_has_no_queue_is_said_once_and_other_changes_go_on(slurm, updater, answers):
    answers.error = RemoteError(404, "There is no queue.")
    done = updater().round()
    assert done.warnings == [
        "limits are not extended: The service answered 404: There is no queue."
    ]
    assert slurm.updates() == []


def test_a_dry_run_shows_extensions_and_makes_none(slurm, updater):
    done = updater().round(dry_run=True)
    assert [change.settings["TimeLimit"] for change in done.planned] == ["90"]
    assert slurm.updates() == []


def test_each_extension_is_logged(updater):
    with capture_logs() as logs:
        logged_round(updater(), [])
    (line,) = [each for each in logs if each["event"] == "a limit was extended"]
    expected = {"job": "1", "before": 60, "after": 90, "partition": "short", "delay": 0.0}
    assert expected.items() <= line.items()


@pytest.mark.parametrize("walltime", [-60.0, 0.0, 7260.0, 1e300])
def test_an_answer_beyond_the_bound_is_nonsense(walltime):
    limit = {"job_id": "1", "walltime": walltime, "delay": 0, "probability": 1, "reason": "granted"}
    answer = http(200, msgspec.json.encode({"limits": [limit]}))
    with fake_service(answer) as fake, Client(fake.url, timeout=5) as client:
        service = ServiceQueries(client)
        with pytest.raises(NonsenseError):
            service.longer_limits("hill", {"1": 120}, ON)
