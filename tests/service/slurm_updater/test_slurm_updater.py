"""The updater: right, sparing with slurmctld, and harmless whatever else happens."""

import json
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from io import BytesIO
from itertools import count
from math import ceil, inf
from pathlib import Path

import msgspec
import pytest
from asgi_client import run_of
from fake_service import fake_service, http
from hypothesis import given
from hypothesis import strategies as st
from running_service import WALLTIMED, Service
from slurm_stand_in import SlurmStandIn

from predictors.aged_length import aged_length
from predictors.response_ratio import GROWTH, response_ratio
from service.slurm_updater.following import follow
from service.slurm_updater.machine import Machine, read_nodes
from service.slurm_updater.planning import (
    LARGEST_SITE_FACTOR,
    Estimate,
    Mode,
    Order,
    UpdateRules,
    wanted_site_factor,
    wanted_time_min,
)
from service.slurm_updater.service_calls import NonsenseError, ServiceQueries
from service.slurm_updater.slurm import Slurm, SlurmError, SlurmSilentError, keeps_limits
from service.slurm_updater.squeue import UnreadableQueueError, read_queue, tasks_of
from service.slurm_updater.updater import Updater, UpdaterOptions
from service.slurm_updater.updates import MOST_CREDIT, UpdatePace
from simulator.scheduling.ratio_rules import RatioRules
from terminal.client import RemoteError

SAMPLES = Path(__file__).parents[4] / "shared" / "samples" / "slurm"
NOW = 1_795_282_100.0
"""A minute after the recorded queue."""

NAMED = 'a|b, "c" ü'
"""The name of job 4."""


class InProcessClient:
    """The calls of ``terminal.client.Client``, made inside this process."""

    def __init__(self, service) -> None:
        self.service = service
        self.calls: list[str] = []
        self.raises: Exception | None = None
        self.answers: bytes | None = None

    def call(self, verb, path, body=None):
        self.calls.append(path)
        if self.raises:
            raise self.raises
        if self.answers is not None:
            return self.answers
        answer = self.service.send(path, msgspec.json.encode(body), method=verb)
        if answer.is_error:
            raise RemoteError(answer.status_code, answer.text)
        return answer.content


@pytest.fixture
def slurm(tmp_path):
    directory = tmp_path / "bin"
    directory.mkdir()
    return SlurmStandIn(directory)


@pytest.fixture
def client(service):
    """A service that knows alice: her jobs run a tenth of what she asks for."""
    ended = NOW - 100_000
    runs = [
        run_of(f"h{i}", user="alice", runtime=360.0, end_time=ended + i, cluster="private")
        for i in range(8)
    ]
    service.complete(*runs)
    return InProcessClient(service)


@pytest.fixture
def updater(slurm, client):
    """Makes updaters whose clock stands still and who never wait."""

    def make(*, clock=lambda: NOW, **options):
        asking, commands = ServiceQueries(client), Slurm(slurm.directory, timeout=5)
        return Updater(
            commands,
            asking,
            UpdaterOptions(**options),
            clock=clock,
            sleep=lambda _seconds: None,
        )

    return make


def recorded(slurm):
    return queue_of((slurm.directory / "squeue.out").read_bytes())


def queue_of(shown, cluster="private"):
    return list(read_queue(BytesIO(shown), cluster))


def test_a_text_in_place_of_a_job_is_left_out_also_one_that_is_no_text():
    assert not list(read_queue(BytesIO(rb'{"jobs": ["a", "\ud800", {"\ud800": 1}]}'), "hill"))


def test_a_queue_is_read_as_slurm_showed_it(slurm):
    jobs = {job.target: job for job in recorded(slurm)}
    assert set(jobs) == {"1", "2_1", "2_[3,5,7,9]", "4", "6+0", "6+1", "9", "10"}
    named = jobs["4"].submission
    assert (named.application, named.user, named.queue) == (NAMED, "alice", "short")
    assert (named.requested_walltime, named.requested_processors) == (5400, 8)
    assert named.requested_memory == 100 * 1024
    assert jobs["4"].admin_comment == "the site's note; x=1"
    assert jobs["10"].time_min == 5
    assert jobs["1"].started == 1795282028
    assert jobs["4"].started is None


def test_held_jobs_and_jobs_without_a_limit_are_left_alone(slurm):
    names = {job.submission.application for job in recorded(slurm)}
    assert not names & {"held", "endless"}


@pytest.mark.parametrize("version", ["22.05", "24.11", "26.05"])
def test_queues_of_all_versions_are_read(version):
    file = SAMPLES / version / "squeue_json.json"
    if not file.exists():
        pytest.skip(f"needs {file}")
    jobs = {job.job_id: job for job in queue_of(file.read_bytes(), "mini")}
    shown = {str(job["job_id"]): job for job in json.loads(file.read_bytes())["jobs"]}
    running = {number for number, job in shown.items() if "RUNNING" in job["job_state"]}
    assert running <= set(jobs)
    for job in jobs.values():
        assert job.limit >= 1
        assert job.submission.user in {"alice", "bob"}
        assert job.admin_comment.startswith("wtp=")


@pytest.mark.parametrize(
    ("shown", "tasks"),
    [
        ("1,3,7-9", "1,3,7-9"),
        ("1-9:4%2", "1,5,9"),
        ("7", "7"),
        ("1-3,...", None),
        ("0x1f", None),
        ("1-9999999:2", None),
        ("", None),
    ],
)
def test_tasks_are_named_as_scontrol_takes_them(shown, tasks):
    assert tasks_of(shown) == tasks


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(changes=st.dictionaries(st.text(), JSON, max_size=5), data=st.data())
def test_no_queue_whatsoever_breaks_the_reader(changes, data):
    whole = json.loads((Path(__file__).parents[2] / "data/slurm/squeue_22.05.json").read_bytes())
    job = whole["jobs"][3]
    for name in data.draw(st.lists(st.sampled_from(sorted(job)), max_size=6)):
        changes[name] = data.draw(JSON)
    read = queue_of(json.dumps({"jobs": [job | changes, job]}).encode())
    assert read[-1].job_id == "4"


@pytest.mark.parametrize("body", [b"", b"slurm_load_jobs error: Unable to contact", b'{"jobs": 3}'])
def test_what_is_no_queue_is_said_to_be_none(body):
    with pytest.raises(UnreadableQueueError):
        queue_of(body)


def test_predictions_are_noted_down_behind_what_others_wrote(slurm, updater):
    done = updater().round()
    updates = dict(slurm.apply())
    assert set(updates) == {"2_[3,5,7,9]", "4", "6+0", "6+1", "10"}
    assert updates["4"]["AdminComment"].startswith("the site's note; x=1;wtp=")
    assert all(set(settings) == {"AdminComment"} for settings in updates.values())
    assert (done.updated, done.refused, done.postponed) == (5, {}, 0)


def test_what_is_right_is_not_touched_again_nor_asked_about(slurm, updater, client):
    keeper = updater(order=Order.SHORTEST_FIRST)
    keeper.round()
    assert slurm.apply()
    client.calls.clear()
    assert keeper.round().planned == []
    assert slurm.updates() == []
    assert client.calls == []


@pytest.mark.parametrize(
    ("options", "asked_in_hours"),
    [
        ({"order": Order.SHORTEST_FIRST}, [0, 1, 2, 4, 8, 16]),
        ({"order": Order.PSP}, [0]),
        ({"mode": Mode.OBSERVE}, [0]),
    ],
)
def test_a_job_that_waits_long_is_predicted_again_but_ever_more_rarely(
    slurm, client, options, asked_in_hours
):
    slurm.keep("own")
    hours = iter(range(25))
    keeper = Updater(
        Slurm(slurm.directory),
        ServiceQueries(client),
        UpdaterOptions(**options),
        clock=lambda: NOW + 3600 * next(hours),
    )
    asked = []
    for hour in range(20):
        hours = iter([hour] * 3)
        client.calls.clear()
        keeper.round(dry_run=True)
        asked += [hour] * client.calls.count("/v1/predictions/batch")
    assert asked == asked_in_hours


def test_a_job_that_is_predicted_again_learns_from_what_ended_while_it_waited(slurm, client):
    slurm.keep("own")
    (job,) = recorded(slurm)
    asking = ServiceQueries(client)
    before = asking.predictions([job])[job.job_id].predicted
    submission = job.submission
    ended = [
        run_of(
            f"new{place}",
            user=submission.user,
            cluster="private",
            requested_walltime=submission.requested_walltime,
            runtime=submission.requested_walltime / 2,
            end_time=submission.submit_time + 1 + place,
        )
        for place in range(8)
    ]
    client.service.complete(*ended)
    after = asking.predictions([job])[job.job_id].predicted
    assert before < submission.requested_walltime / 2 <= after


def test_a_lost_comment_is_written_again_with_the_same_prediction(slurm, updater):
    keeper = updater()
    keeper.round()
    first = dict(slurm.apply())["10"]["AdminComment"]
    slurm.change("own", admin_comment="somebody's")
    keeper.round()
    assert dict(slurm.apply())["10"]["AdminComment"] == f"somebody's;{first}"


def test_the_prediction_that_the_filter_noted_down_stays(slurm, updater):
    slurm.change("own", admin_comment="wtp=filter-1")
    updater().round()
    assert "10" not in dict(slurm.updates())


def test_a_comment_that_cannot_be_written_back_unchanged_stays(slurm, updater):
    slurm.becomes("25.05.4")
    slurm.change(NAMED, admin_comment="caf\ufffd")
    updater(mode=Mode.SOFT).round()
    assert "4" not in dict(slurm.updates())


@pytest.mark.parametrize(
    ("version", "parameters", "safe"),
    [
        ("22.05.8", "bf_interval=2,time_min_as_soft_limit", False),
        ("25.05.3", "time_min_as_soft_limit", False),
        ("25.05.4", "time_min_as_soft_limit", True),
        ("26.05.5", "bf_interval=2,time_min_as_soft_limit", True),
        ("26.05.5", "bf_interval=2", False),
        ("26.05.5", "no_time_min_as_soft_limit", False),
        ("", "time_min_as_soft_limit", False),
    ],
)
def test_limits_are_kept_from_25_05_4_on_with_the_option_only(version, parameters, safe):
    assert keeps_limits(version, parameters) is safe


def test_no_time_min_is_set_where_slurm_would_lower_limits(slurm, updater):
    done = updater(mode=Mode.SOFT).round()
    assert not any("TimeMin" in settings for _, settings in slurm.updates())
    assert "25.05.4" in done.warnings[0]


def test_time_min_is_set_below_the_limit_and_noted_down(slurm, updater):
    slurm.becomes("25.05.4")
    updater(mode=Mode.SOFT).round()
    updates = dict(slurm.apply())
    assert updates["4"]["TimeMin"] == "9"  # a tenth of 90 minutes
    assert updates["4"]["AdminComment"].endswith(";wtm=9")
    assert updates["6+0"]["TimeMin"] == "1"
    assert slurm.job("own")["time_minimum"] == 5, "the user's own"
    assert "TimeMin" not in updates["10"]
    assert not any(name in settings for settings in updates.values() for name in ("TimeLimit",))


def test_a_prediction_of_the_whole_limit_sets_no_time_min(slurm, updater):
    slurm.becomes("25.05.4")
    slurm.change(NAMED, user_name="stranger")
    updater(mode=Mode.SOFT).round()
    assert set(dict(slurm.updates())["4"]) == {"AdminComment"}


def test_time_min_is_taken_back_when_slurm_would_lower_limits_from_now_on(slurm, updater):
    slurm.becomes("25.05.4")
    keeper = updater(mode=Mode.SOFT)
    keeper.round()
    slurm.apply()
    slurm.config = slurm.config.replace("time_min_as_soft_limit,", "")
    slurm.write()
    keeper.round()
    updates = dict(slurm.apply())
    comment = slurm.job(NAMED)["admin_comment"]
    assert updates["4"] == {"TimeMin": "0", "AdminComment": comment}
    assert "wtm=" not in comment
    assert "10" not in updates


def test_another_updater_knows_what_is_its_own(slurm, updater):
    slurm.becomes("25.05.4")
    updater(mode=Mode.SOFT).round()
    slurm.apply()
    slurm.change(NAMED, time_limit=20, submit_time=NOW - 3600)
    updater(mode=Mode.SOFT).round()
    assert dict(slurm.apply())["4"]["TimeMin"] == "2"


FILTERED = {"admin_comment": "wtp=filter-1;wtm=30", "time_minimum": 30}
"""What ``job_submit.lua`` leaves in a job in mode soft."""


SOFTLY = {"TimeMin": "9", "AdminComment": "wtp=filter-1;wtm=9"}
TAKEN_BACK = {"TimeMin": "0", "AdminComment": "wtp=filter-1"}


@pytest.mark.parametrize(
    ("version", "mode", "update"),
    [
        ("25.05.4", Mode.SOFT, SOFTLY),
        ("25.05.4", Mode.OBSERVE, None),
        ("25.05.4", Mode.OFF, None),
        ("22.05.8", Mode.OBSERVE, TAKEN_BACK),  # which would lower limits
    ],
)
def test_what_the_filter_set_is_kept_right_or_left_or_taken_back(
    slurm, updater, version, mode, update
):
    slurm.becomes(version, soft=version != "22.05.8")
    slurm.change(NAMED, **FILTERED, submit_time=NOW - 3600)
    updater(mode=mode).round()
    assert dict(slurm.apply()).get("4") == update
    assert slurm.job(NAMED)["time_minimum"] == int((update or {}).get("TimeMin", 30))


def test_what_the_filter_has_just_predicted_is_left(slurm, updater):
    slurm.becomes("25.05.4")
    slurm.change(NAMED, **FILTERED, submit_time=NOW - 60)
    updater(mode=Mode.SOFT).round()
    assert "4" not in dict(slurm.apply())


@pytest.mark.parametrize(("floor", "time_min"), [(60, "9"), (1200, "20"), (100_000, None)])
def test_time_min_has_a_floor(slurm, updater, floor, time_min):
    slurm.becomes("25.05.4")
    updater(mode=Mode.SOFT, soft_floor=floor).round()
    assert dict(slurm.updates())["4"].get("TimeMin") == time_min


@pytest.mark.parametrize("elapsed", [100, 200, 10_000])
@pytest.mark.parametrize("version", ["22.05.8", "25.05.4"])
def test_the_time_min_of_a_running_job_is_left_to_slurm(slurm, updater, client, elapsed, version):
    slurm.becomes(version)
    slurm.job("running").update(
        start_time=NOW - elapsed, time_minimum=3, admin_comment="wtp=filter-1;wtm=3"
    )
    slurm.keep("running")
    done = updater(mode=Mode.SOFT, order=Order.SHORTEST_FIRST).round()
    assert (done.jobs, done.asked, done.planned) == (1, 0, [])
    assert slurm.updates() == []
    assert client.calls == []


def test_the_stand_in_leaves_the_time_min_of_a_running_job_as_slurm_does(slurm):
    commands = Slurm(slurm.directory)
    running = slurm.job("running")["job_id"]
    commands.update(str(running), {"TimeMin": "2", "AdminComment": "x"})
    slurm.apply()
    assert slurm.job("running")["time_minimum"] == 0
    assert slurm.job("running")["admin_comment"] == "x"
    with pytest.raises(SlurmError, match="time limit is invalid"):
        commands.update("4", {"TimeMin": "5000"})


@pytest.mark.parametrize(
    ("before", "mark"), [({}, ""), ({"time_minimum": 30, "admin_comment": "wtm=30"}, ";wtm=30")]
)
def test_an_update_that_came_too_late_is_reported_and_its_mark_taken_back(
    slurm, updater, before, mark
):
    slurm.becomes("25.05.4")
    slurm.job(NAMED).update({"admin_comment": ""} | before)
    slurm.keep(NAMED)
    slurm.does("start", "4")
    done = updater(mode=Mode.SOFT).round()
    assert (done.updated, set(done.refused)) == (0, {"4"})
    assert "just started" in done.refused["4"]
    first, mended = slurm.apply()
    assert first[1]["TimeMin"] == "9"
    assert set(mended[1]) == {"AdminComment"}
    job = slurm.job(NAMED)
    assert job["time_minimum"] == before.get("time_minimum", 0)
    prediction, *noted = sorted(job["admin_comment"].split(";"), reverse=True)
    assert prediction.startswith("wtp=")
    assert [f";{each}" for each in noted] == ([mark] if mark else [])


def test_a_job_that_came_too_late_and_is_requeued_is_set_right_again(slurm, updater):
    slurm.becomes("25.05.4")
    slurm.keep(NAMED)
    late = slurm.does("start", "4")
    keeper = updater(mode=Mode.SOFT)
    keeper.round()
    slurm.apply()
    late.unlink()
    slurm.change(NAMED, job_state="PENDING")
    keeper.round()
    assert dict(slurm.apply())["4"]["TimeMin"] == "9"
    assert slurm.job(NAMED)["time_minimum"] == 9


def test_rounds_that_set_no_time_min_read_the_queue_once(slurm, updater, monkeypatch):
    slurm.becomes("25.05.4")
    reads = []
    shown_queue = Slurm.shown_queue
    monkeypatch.setattr(Slurm, "shown_queue", lambda *args: reads.append(1) or shown_queue(*args))
    keeper = updater(mode=Mode.SOFT)
    keeper.round()
    assert len(reads) == 2
    keeper.round()
    assert len(reads) == 3


def test_short_jobs_go_first(slurm, updater):
    slurm.keep(NAMED, "own", "het")
    updater(order=Order.SHORTEST_FIRST, mode=Mode.OFF).round()
    factors = {job: int(settings["SiteFactor"]) for job, settings in slurm.updates()}
    assert factors["6+0"] > factors["10"] > factors["4"] > 0


def test_jobs_of_accurate_users_go_first_and_age(slurm, updater, client):
    precise = [
        run_of(f"p{i}", user="precise", runtime=3600.0, end_time=NOW - 50_000, cluster="private")
        for i in range(3)
    ]
    client.service.complete(*precise)
    slurm.job("own")["user_name"] = "precise"
    waited = slurm.job("mine") | {"comment": "", "submit_time": NOW - 90_000}
    slurm.jobs.append(waited | {"job_id": 99, "name": "old"})
    slurm.keep(NAMED, "own", "old")
    updater(order=Order.PSP).round()
    factors = {job: int(settings["SiteFactor"]) for job, settings in slurm.updates()}
    assert factors["99"] == 10_000 > factors["10"] > factors["4"] > 0


def test_without_multifactor_no_site_factor_is_set(slurm, updater):
    slurm.config = slurm.config.replace("multifactor", "basic")
    slurm.write()
    done = updater(order=Order.PSP).round()
    assert not any("SiteFactor" in settings for _, settings in slurm.updates())
    assert "priority/multifactor" in done.warnings[0]


@given(
    waits=st.tuples(st.integers(0, 6 * 86400), st.integers(0, 6 * 86400)),
    predicted=st.tuples(st.integers(1, 200_000), st.integers(1, 200_000)),
)
def test_age_and_site_factor_have_the_order_that_a_backtest_plays(waits, predicted):
    def priority(wait, seconds):
        estimate = Estimate(predicted=seconds, prediction_id="p-1")
        a_second_each = rules(order=Order.SJF_AGING, largest=86400)
        return wait + wanted_site_factor(a_job(5000), estimate, a_second_each)

    def key(wait, seconds):
        return aged_length(-wait, 60 * ceil(max(seconds, 60) / 60))

    pairs = list(zip(waits, predicted, strict=True))
    assert priority(*pairs[0]) - priority(*pairs[1]) == key(*pairs[1]) - key(*pairs[0])


def test_what_a_day_of_waiting_is_worth_is_slurms_own_setting(slurm, updater):
    slurm.keep(NAMED, "own", "het")
    without = updater(order=Order.SJF_AGING, mode=Mode.OFF).round()
    assert "sjf-aging needs a PriorityWeightAge" in without.warnings[0]
    slurm.config += "PriorityWeightAge       = 7000\nPriorityMaxAge          = 7-00:00:00\n"
    slurm.write()
    updater(order=Order.SJF_AGING, mode=Mode.OFF).round()
    factors = {job: int(settings["SiteFactor"]) for job, settings in slurm.updates()}
    assert 1000 > factors["6+0"] > factors["10"] > factors["4"]
    updater(order=Order.SJF_AGING, mode=Mode.OFF, site_factor=20_000).round()
    beside = {job: int(settings["SiteFactor"]) for job, settings in slurm.updates()}
    assert beside["6+0"] == pytest.approx(20 * factors["6+0"], abs=20), "beside fair share"


WAITS = st.tuples(st.integers(0, 40 * 86400), st.integers(0, 40 * 86400))
LENGTHS = st.tuples(st.integers(1, 200_000), st.integers(1, 200_000))


@given(waits=WAITS, means=LENGTHS)
def test_site_factors_have_the_order_of_the_ratio_of_wait_and_length_within_a_step(waits, means):
    def ratio(wait, seconds):
        return response_ratio(wait, 60 * ceil(max(seconds, 60) / 60))

    def factor(wait, seconds):
        estimate = Estimate(predicted=1, prediction_id="p-1", mean=seconds)
        by_ratio = rules(order=Order.RESPONSE_RATIO, largest=10_000)
        return wanted_site_factor(a_job(5000), estimate, by_ratio, wait)

    first, second = zip(waits, means, strict=True)
    if ratio(*first) >= GROWTH * ratio(*second):
        assert factor(*first) > factor(*second) or factor(*first) == 10_000
    assert factor(first[0] + 3600, first[1]) >= factor(*first)


def test_a_ratio_has_the_numbers_of_the_site():
    estimate = Estimate(predicted=1, prediction_id="p-1", mean=3600)
    numbers = {"order": Order.RESPONSE_RATIO, "largest": 10_000}
    usual = wanted_site_factor(a_job(5000), estimate, rules(**numbers), 3600)
    assert usual == 50 * 55, "of (1 + 4) / 1 over 4 / 12: 15 = 1.05 ^ 55.5"
    numbers["ratio"] = RatioRules.of("3600,600,7200")
    own = wanted_site_factor(a_job(5000), estimate, rules(**numbers), 3600)
    assert own == 50 * 28, "of (1 + 1) / 1 over 1 / 2: 4 = 1.05 ^ 28.4"


def test_a_site_factor_is_renewed_when_the_ratio_has_grown(slurm, updater):
    slurm.keep(NAMED)
    times = [NOW]
    keeper = updater(order=Order.RESPONSE_RATIO, mode=Mode.OFF, clock=lambda: times[-1])

    def updated_after(minutes):
        times.append(NOW + 60 * minutes)
        return keeper.round().updated

    updated = [updated_after(minutes) for minutes in range(0, 240, 10)]
    assert updated[0] == 1
    assert 2 <= sum(updated) < 20, "in four hours"
    factors = [int(settings["SiteFactor"]) for _, settings in slurm.updates()]
    assert factors == sorted(set(factors))


@pytest.mark.parametrize(
    ("weights", "largest"),
    [
        ("", 10_000),
        ("PriorityWeightAge = 1000\n", 200_000),
        ("PriorityWeightAge = 1000\nPriorityWeightFairShare = 7000\n", 7_000),
        ("PriorityWeightFairShare = 7000\nPriorityWeightJobSize = 500\n", 7_500),
    ],
)
def test_the_ratio_weighs_as_much_as_all_other_factors(slurm, updater, weights, largest):
    slurm.keep(NAMED)
    slurm.config += weights
    slurm.write()
    updater(order=Order.RESPONSE_RATIO, mode=Mode.OFF).round()
    ((_, settings),) = slurm.updates()
    updater(order=Order.RESPONSE_RATIO, mode=Mode.OFF, site_factor=200).round()
    ((_, steps),) = slurm.updates()
    assert int(settings["SiteFactor"]) == largest * int(steps["SiteFactor"]) // 200 > 0


def test_who_has_waited_longest_goes_first(slurm, updater):
    slurm.keep(NAMED, "own", "het")
    for name, hours in ((NAMED, 50), ("own", 60), ("het", 1)):
        slurm.job(name)["submit_time"] = NOW - 3600 * hours
    slurm.write()
    done = updater(order=Order.RESPONSE_RATIO, mode=Mode.OFF, overdue_after=40 * 3600.0).round()
    factors = {job: int(settings["SiteFactor"]) for job, settings in slurm.updates()}
    assert factors["10"] > factors["4"] > 10_000 > factors["6+0"]
    assert done.warnings == []
    without = updater(order=Order.RESPONSE_RATIO, mode=Mode.OFF).round()
    assert "--first-after" in without.warnings[0]


@given(
    priority=st.floats(min_value=0, max_value=1e300),
    predicted=st.floats(min_value=1, max_value=1e9),
    largest=st.integers(100, LARGEST_SITE_FACTOR),
    order=st.sampled_from([Order.PSP, Order.SHORTEST_FIRST, Order.SJF_AGING]),
)
def test_site_factors_stay_in_the_range_that_scontrol_takes(priority, predicted, largest, order):
    estimate = Estimate(predicted=predicted, prediction_id="p-1", priority=priority)
    factor = wanted_site_factor(a_job(600), estimate, rules(order=order, largest=largest))
    assert 0 <= factor <= largest


@given(predicted=st.floats(min_value=1e-3, max_value=1e9), minutes=st.integers(1, 10_000))
def test_time_min_is_always_below_the_limit(predicted, minutes):
    estimate = Estimate(predicted=predicted, prediction_id="p-1")
    wanted = wanted_time_min(a_job(minutes), estimate, rules())
    assert 0 <= wanted < minutes


@pytest.mark.parametrize(
    ("upper", "minutes"), [(None, 11), (1801.0, 31), (60.0, 11), (36_000.0, 0)]
)
def test_time_min_is_the_upper_end_of_the_interval_and_never_below_the_prediction(upper, minutes):
    estimate = Estimate(predicted=601.0, prediction_id="p-1", mean=700.0, upper=upper)
    assert wanted_time_min(a_job(600), estimate, rules()) == minutes


def a_job(minutes):
    shown = {"job_id": 7, "job_state": "PENDING", "submit_time": 1, "priority": 1}
    body = json.dumps({"jobs": [shown | {"time_limit": minutes}]})
    return queue_of(body.encode())[0]


def rules(**changes):
    allowing = {"mode": Mode.SOFT, "sets_time_min": True, "keeps_limits": True}
    return UpdateRules(
        **allowing | {"soft_floor": 60.0, "order": Order.NONE, "largest": 100} | changes
    )


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({"users": frozenset({"bob"})}, set()),
        ({"partitions": frozenset({"long"})}, set()),
        ({"accounts": frozenset({"physics"})}, set()),
        (
            {"users": frozenset({"alice"}), "partitions": frozenset({"short"})},
            {"2_[3,5,7,9]", "4", "6+0", "6+1", "10"},
        ),
    ],
)
def test_only_who_is_allowed_is_concerned(slurm, updater, options, left):
    updater(**options).round()
    assert {job for job, _ in slurm.updates()} == left


def test_updates_end_with_the_interval_and_each_job_has_its_turn(slurm, client):
    ticks = count()
    keeper = Updater(
        Slurm(slurm.directory),
        ServiceQueries(client),
        UpdaterOptions(interval=4.0),
        clock=lambda: NOW + next(ticks),
        sleep=lambda _seconds: None,
    )
    done = keeper.round()
    assert (done.updated, done.postponed) == (2, 3)
    rounds = [{job for job, _ in slurm.updates()}]
    for _ in range(2):
        slurm.write()  # somebody undoes it every time
        keeper.round()
        rounds.append({job for job, _ in slurm.updates()})
    assert not rounds[0] & rounds[1]
    assert len(set().union(*rounds)) == 5


COUNTED = "\tREQUEST_UPDATE_JOB    ( 3001) count:{}  ave_time:1999   total_time:{}\n"
"""A line of sdiag; times are microseconds."""


class PacedUpdates:
    """Updates that take seconds of a clock of their own, and the pauses after them."""

    def __init__(self, slurm, share):
        self.now, self.pauses = 0.0, []
        self.pace = UpdatePace(Slurm(slurm.directory), share, self.sleep, lambda: self.now)

    def sleep(self, seconds):
        self.now += seconds
        self.pauses.append(seconds)

    def update(self, *took, longest=inf):
        for seconds in took:
            self.pace.time(lambda seconds=seconds: self.pass_time(seconds), longest=longest)

    def pass_time(self, seconds):
        self.now += seconds


def test_updates_take_their_share_of_slurmctlds_time(slurm):
    slurm.counts(COUNTED.format(10, 20_000))
    paced = PacedUpdates(slurm, 0.05)
    paced.pace.read()
    paced.update(*[0.005] * 100)
    assert paced.now == pytest.approx(100 * 0.002 / 0.05 - MOST_CREDIT, abs=0.2)
    assert paced.pauses[-1] == pytest.approx(0.035)
    paced.update(0.005, longest=0.001)
    assert paced.pauses[-1] == 0.001


def test_updates_after_one_that_waited_long_come_sooner_for_a_second(slurm):
    slurm.counts(COUNTED.format(10, 20_000))
    paced = PacedUpdates(slurm, 0.05)
    paced.pace.read()
    paced.update(*[0.005] * 100)
    before = paced.now
    paced.update(10.0, *[0.005] * 100)
    passed = before + 10.0 + 101 * 0.04 - paced.now
    assert passed == pytest.approx(MOST_CREDIT + 0.04, abs=0.05)


def test_the_time_of_updates_is_counted_again_and_again_and_anew_after_midnight(slurm):
    pace, found = PacedUpdates(slurm, 0.05).pace, []
    for counts in [(10, 20_000), (20, 30_000), (20, 30_000), (5, 25_000)]:
        slurm.counts(COUNTED.format(*counts))
        pace.read()
        found.append(pace.seconds)
    assert found == pytest.approx([0.002, 0.0015, 0.0015, 0.002])


def test_updates_that_waited_for_the_scheduler_delay_no_others(slurm):
    pace, total = PacedUpdates(slurm, 0.05).pace, 0
    for reading, seconds in enumerate([0.001, 0.2, 0.001, 0.001, 0.2], start=1):
        total += int(10e6 * seconds)
        slurm.counts(COUNTED.format(10 * reading, total))
        pace.read()
    assert pace.seconds == pytest.approx(0.001)


def test_without_sdiag_the_time_until_the_answer_counts(slurm):
    (slurm.directory / "sdiag").unlink()
    paced = PacedUpdates(slurm, 0.5)
    paced.pace.read()
    paced.update(0.2, *[0.02] * 100)
    assert paced.pauses[-1] == pytest.approx(0.02)


def test_many_updates_go_through_one_scontrol(slurm, updater, monkeypatch):
    for job in slurm.jobs:
        job["admin_comment"] = ""
    slurm.write()
    started = []
    start = Slurm.start
    monkeypatch.setattr(Slurm, "start", lambda *args: started.append(args[1]) or start(*args))
    assert updater().round().updated == 5
    assert (started, len(slurm.updates())) == (["scontrol"], 5)


def test_a_long_queue_is_read_in_pieces(slurm, monkeypatch):
    monkeypatch.setattr("service.slurm_updater.squeue.PIECE", 7)
    assert {job.target for job in recorded(slurm)} >= {"1", "2_[3,5,7,9]", "4", "6+1"}


def test_the_updater_loads_nothing_large():
    """Each of these is more than a third of the rest together, on the host of slurmctld."""
    script = """
import sys
import service.slurm_updater.following
print(*{"numba", "numpy", "pydantic", "sqlalchemy", "typer"} & set(sys.modules))
"""
    command = [sys.executable, "-c", script]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "\n"


def test_a_refused_update_is_reported_and_not_tried_again(slurm, updater):
    slurm.keep("own")
    slurm.does("refuse", "Job/step already completing or completed for job 10\n")
    keeper = updater()
    assert "already completing" in keeper.round().refused["10"]
    assert len(slurm.updates()) == 1
    assert keeper.round().planned == []
    assert slurm.updates() == []


def test_without_the_right_to_update_nothing_more_is_tried(slurm, updater):
    slurm.does("refuse", "Access/permission denied for job 2\n")
    with pytest.raises(SlurmError, match="permission"):
        updater().round()
    assert len(slurm.updates()) == 1


@pytest.mark.parametrize("command", ["hang-show", "hang-squeue", "hang-update"])
def test_a_slurm_that_hangs_ends_the_round_in_time(slurm, client, command):
    slurm.does(command)
    keeper = Updater(Slurm(slurm.directory, timeout=0.3), ServiceQueries(client), UpdaterOptions())
    began = time.monotonic()
    with pytest.raises(SlurmSilentError):
        keeper.round()
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"<html>",
        b"{}",
        b'{"predictions": []}',
        b'{"predictions": [{"predicted_walltime": -1, "prediction_id": "x"}]}',
    ],
)
def test_garbage_changes_no_job(slurm, updater, client, answer):
    slurm.keep("own")
    client.answers = answer
    with pytest.raises(NonsenseError):
        updater(order=Order.PSP).round()
    assert slurm.updates() == []


def test_a_service_that_is_away_changes_no_job(slurm, updater, client):
    client.raises = ConnectionError("nobody there")
    with pytest.raises(ConnectionError):
        updater().round()
    assert slurm.updates() == []


def test_a_job_that_the_service_refuses_spoils_no_other(slurm, updater):
    slurm.change("own", time_limit=20_000_000)
    updater().round()
    assert {job for job, _ in slurm.updates()} == {"2_[3,5,7,9]", "4", "6+0", "6+1"}


def test_following_goes_on_after_rounds_that_fail(slurm, updater, client):
    slurm.keep("own")
    waits = []

    def sleep(seconds):
        waits.append(seconds)
        client.raises = None
        if len(waits) == 3:
            raise KeyboardInterrupt

    client.raises = ConnectionError("nobody there")
    follow(updater(), UpdaterOptions(interval=7.0), sleep)
    assert len(waits) == 3
    assert all(1.0 <= wait <= 7.0 for wait in waits)
    assert dict(slurm.updates())["10"]["AdminComment"].startswith("wtp=")


def test_the_command_follows_until_it_is_ended(slurm):
    words = ["slurm-updater", "--url", "http://127.0.0.1:1", "--slurm-bin", slurm.directory]
    process = subprocess.Popen([WALLTIMED, *words], stderr=subprocess.PIPE, text=True)
    with process:
        lines = [process.stderr.readline() for _ in range(2)]
        process.send_signal(signal.SIGTERM)
    assert "following the queue" in lines[0]
    assert "No service answers" in lines[1]
    assert process.returncode == 0


@pytest.fixture
def command(walltimed, slurm):
    """Runs the command against the stand-in and a service that is not there."""
    return lambda *words: walltimed("slurm-updater", "--slurm-bin", slurm.directory, *words)


def test_one_round_without_a_service_fails_and_says_so(command, slurm):
    code, _, told = command("--once", "--url", "http://127.0.0.1:1", "--timeout", "1")
    assert code == 4
    assert "No service answers" in told
    assert slurm.updates() == []


def test_one_round_without_slurm_fails_and_says_so(command, slurm):
    (slurm.directory / "squeue").unlink()
    code, _, told = command("--once")
    assert code == 4
    assert "squeue" in told


def test_a_dry_run_says_what_would_be_changed_and_changes_nothing(
    command, slurm, monkeypatch, client
):
    reached = nullcontext(client)
    monkeypatch.setattr("service.slurm_updater.following.Client", lambda *_, **__: reached)
    code, told, _ = command("--dry-run", "--json", "--order", "shortest-first")
    planned = {change["target"]: change["settings"] for change in json.loads(told)["planned"]}
    assert code == 0
    assert planned["4"]["SiteFactor"] == "7600"
    code, told, _ = command("--dry-run")
    assert "wtp=" in told
    assert "5 would be changed" in told
    assert slurm.updates() == []


def test_a_service_on_a_unix_socket_is_reached(command, slurm, sqlite_url):
    code, _, told = command("--once", "--url", "unix:/nonexistent/socket")
    assert code == 4
    assert "unix:" in told
    with Service(sqlite_url) as service:
        code, _, _ = command("--once", "--url", f"unix:{service.socket}")
    assert code == 0
    assert len(slurm.updates()) == 5


def test_a_token_is_read_from_its_file(command, slurm, tmp_path):
    (tmp_path / "token").write_text("wt_1_secret\n")
    slurm.keep("own")
    with fake_service(http(401, b"{}"), hangs_up=True) as service:
        code, _, _ = command("--once", "--url", service.url, "--token-file", tmp_path / "token")
    assert code == 1
    assert "Authorization: Bearer wt_1_secret\r\n" in service.headers[0]
    assert slurm.updates() == []


def test_nothing_to_do_is_a_wrong_option(command):
    assert command("--mode", "off", "--no-hand-over")[0] == 2
    assert command("--ratio", "3600,60,7200")[0] == 2
    code, _, complaint = command("--order", "response-ratio", "--ratio", "4h")
    assert (code, "such as 14400,600,43200, not '4h'" in " ".join(complaint.split())) == (2, True)


def test_mode_off_hands_the_queue_over_and_changes_no_job(
    command, slurm, monkeypatch, client, updater
):
    updater(mode=Mode.SOFT, order=Order.SHORTEST_FIRST).round()
    assert slurm.updates()
    client.calls.clear()
    monkeypatch.setattr(
        "service.slurm_updater.following.Client", lambda *_, **__: nullcontext(client)
    )
    machine = Machine(nodes=read_nodes("n1|short|0/4/0/4"))
    monkeypatch.setattr(Slurm, "machine", lambda *_: machine)
    code, told, _ = command("--mode", "off", "--order", "none", "--once", "--json")
    assert code == 0
    assert json.loads(told)["asked"] == 0
    assert slurm.updates() == []
    assert [path.rpartition("/")[2] for path in client.calls] == ["snapshot"]


@pytest.mark.parametrize(
    ("options", "noted", "asked"),
    [
        ({}, {}, 0),
        ({"order": Order.SHORTEST_FIRST}, {}, 1),
        ({"order": Order.SHORTEST_FIRST}, FILTERED, 1),
        ({"order": Order.SJF_AGING}, {}, 1),
        ({"mode": Mode.SOFT}, FILTERED, 0),
        ({"mode": Mode.SOFT}, {}, 1),
    ],
)
def test_what_the_submit_filter_has_noted_is_not_asked_again(slurm, updater, options, noted, asked):
    slurm.config += "PriorityWeightAge       = 7000\n"
    slurm.becomes("25.05.4")
    slurm.change(NAMED, **{"admin_comment": "wtp=0190-1", **noted})
    slurm.keep(NAMED)
    assert updater(**options).round(dry_run=True).asked == asked


def test_a_reset_takes_back_what_was_set_and_asks_nobody(slurm, updater, client):
    slurm.becomes("25.05.4")
    slurm.change(NAMED, **FILTERED)
    slurm.change("own", time_minimum=7, admin_comment="mine")
    slurm.keep(NAMED, "own", "wrap")
    slurm.factors = "4|900\n10|0\n"
    slurm.write()
    planned = updater().reset(dry_run=True).planned
    assert slurm.updates() == []
    assert [change.settings for change in planned] == [{"SiteFactor": "0", **TAKEN_BACK}]
    assert updater().reset().updated == 1
    assert [job for job, _ in slurm.apply()] == ["4"]
    assert client.calls == []
    assert updater().reset().planned == []


def test_jobs_of_the_highest_priority_are_updated_first(slurm, updater):
    slurm.keep(NAMED, "wrap")
    for number, job in enumerate(slurm.jobs):
        job["priority"] = 1000 + number
    slurm.write()
    targets = {job.job_id: job.priority for job in recorded(slurm)}
    planned = [targets[each.job_id] for each in updater(mode=Mode.OBSERVE).round().planned]
    assert planned == sorted(planned, reverse=True)


def test_while_the_switch_is_there_slurm_and_the_service_are_not_asked(
    updater, slurm, client, tmp_path
):
    off = tmp_path / "walltimed.off"
    following = updater(mode=Mode.SOFT, off_switch=str(off))
    off.write_text("")
    client.raises = SlurmError("asked")
    (slurm.directory / "squeue").rename(slurm.directory / "squeue.away")
    update = following.round()
    assert (update.jobs, update.planned) == (0, [])
    assert update.warnings == [f"{off} is there: nothing is done."]
    (slurm.directory / "squeue.away").rename(slurm.directory / "squeue")
    off.unlink()
    client.raises = None
    assert following.round().planned
