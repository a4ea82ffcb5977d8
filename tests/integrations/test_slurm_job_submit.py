"""job_submit.lua in a stand-alone Lua, against a service that is well, slow, wrong or gone."""

import re
import typing
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from fake_service import (
    BAD_NAMES,
    GARBAGE,
    LONG_HEAD,
    TOLD,
    fake_service,
    full_backlog,
    http,
    prediction,
)
from slurm_scripts import JOB, LUAS, SCRIPTS, UNLIMITED, UNSET, VARIANTS, Site

from predictors.aged_length import site_factor
from predictors.response_ratio import (
    LONGEST,
    OFFSET,
    factor_of_steps,
    response_ratio,
    steps_of_ratio,
)
from service.site.host_files import filter_values, with_json_values
from simulator.scheduling.ratio_rules import RatioRules
from terminal.options import Ratio
from terminal.words import duration

pytestmark = pytest.mark.skipif(not LUAS, reason="needs lua5.1, 5.3 or 5.4 with lua-socket")
PATIENT = 3.0
"""Seconds: a budget that no machine is too busy to tell from the default."""


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


def answered(site, answer, job=JOB, **config):
    """Submit a job to a site whose service answers so; what was done, and the questions."""
    with fake_service(answer) as service:
        (done,) = submit(site, service, job, **config)
    return done, service.requests


def test_the_question_is_the_job_in_the_words_of_the_api(site):
    token = site.directory / "token"
    token.write_text("wt_1_secret\n")
    with fake_service(prediction()) as service:
        submit(site, service, JOB, mode="observe", token_file=str(token))
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
        "interactive": True,
    }
    assert "Authorization: Bearer wt_1_secret\r\n" in service.headers[0]
    assert service.headers[0].startswith("POST /v1/predictions HTTP/1.1\r\n")
    assert re.search(r"User-Agent: walltimed\.lua/[0-9.]+ \(observe\)\r\n", service.headers[0])


def asked(site, **job):
    """What the service is asked about a job; nothing if it is not asked."""
    with fake_service(prediction(predicted_walltime=60)) as service:
        (done,) = submit(site, service, JOB | job, mode="observe")
    assert done.errors == []
    return next(iter(service.requests), {})


@pytest.mark.parametrize(
    ("job", "processors"),
    [
        ({"num_tasks": 3, "cpus_per_task": 2, "min_cpus": 1}, 6),
        ({"num_tasks": UNSET, "cpus_per_task": 2, "min_cpus": UNSET}, 2),
        ({"num_tasks": UNSET, "cpus_per_task": 65534, "min_cpus": UNSET}, 1),
        ({"num_tasks": 2, "cpus_per_task": 1, "min_cpus": 5}, 5),
        ({"num_tasks": 0, "cpus_per_task": 1, "min_cpus": 0}, 1),
    ],
)
def test_processors_are_those_of_all_tasks_or_the_least_that_were_asked_for(
    any_site, job, processors
):
    assert asked(any_site, **job)["requested_processors"] == processors


@pytest.mark.parametrize(
    ("per_core", "per_node", "nodes", "kibibytes"),
    [
        (1, UNSET, UNSET, 1024),
        (0, 500, UNSET, 500 * 1024 / 4),
        (UNSET, 1, UNSET, 256),
        (UNSET, 500, 2, 2 * 500 * 1024 / 4),
        (0, 0, UNSET, None),
        (UNSET, UNSET, UNSET, None),
    ],
)
def test_memory_is_told_for_each_processor(any_site, per_core, per_node, nodes, kibibytes):
    job = {"min_mem_per_cpu": per_core, "min_mem_per_node": per_node, "min_nodes": nodes}
    assert asked(any_site, **job).get("requested_memory") == kibibytes


@pytest.mark.parametrize(
    ("job", "seconds"),
    [
        ({"time_limit": 0}, None),
        ({"time_limit": 1}, 60),
        ({"time_limit": UNSET}, 600),
        ({"time_limit": UNSET, "partition": "middle"}, 1800),
        ({"time_limit": UNSET, "partition": "bare"}, 1200),
        ({"time_limit": UNSET, "partition": "long"}, None),
        ({"time_limit": UNSET, "partition": "nowhere"}, None),
        ({"time_limit": 60, "partition": "nowhere"}, 3600),
        ({"time_limit": 60, "partition": "middle,long"}, 3600),
    ],
)
def test_the_limit_is_the_users_or_that_of_the_partition(any_site, job, seconds):
    found = asked(any_site, **job)
    assert found.get("requested_walltime") == seconds
    assert not found or found["queue"] == job.get("partition", "short").split(",")[0]


def test_the_account_that_was_named_wins(any_site):
    assert asked(any_site, account="silica")["project"] == "silica"


@pytest.mark.parametrize(
    ("mode", "changes", "is_told"),
    [
        ("off", {}, False),
        ("observe", {"admin_comment": "wtp=0b7c-42"}, False),
        ("advise", {"admin_comment": "wtp=0b7c-42"}, True),
        ("order", {"admin_comment": "wtp=0b7c-42"}, True),
        ("soft", {"admin_comment": "wtp=0b7c-42"}, True),
        ("default-limit", {"admin_comment": "wtp=0b7c-42"}, True),
    ],
)
def test_every_rung_of_the_ladder_does_what_it_says_and_no_more(site, mode, changes, is_told):
    done, _ = answered(site, prediction(), mode=mode)
    assert done.changes == changes
    assert bool(done.told) is is_told
    assert done.result == 0


def written(site, service, variant):
    """Write the site's settings in this form, for a patient filter at the service's address."""
    patient = service.patience("budget_ms", seconds=1000)
    rest = "".join(
        f" c.{name} = {value}" for name, value in {"port": service.port, **patient}.items()
    )
    head, _, table = variant.rpartition("return ")
    config = f"{head}local c = {table}{rest} return c"
    (site.directory / "walltimed_config.lua").write_text(config)


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_the_switch_stops_a_filter_however_its_settings_are_written(site, variant):
    with fake_service(prediction()) as service:
        written(site, service, variant)
        (on,) = site.submit(JOB)
        site.off.write_text("")
        (off,) = site.submit(JOB)
        site.off.unlink()
        (on_again,) = site.submit(JOB)
    assert on.changes == on_again.changes == {"admin_comment": "wtp=0b7c-42"}
    assert (off.result, off.changes, off.told, off.errors) == (0, {}, [], [])
    assert len(service.requests) == 2


@pytest.mark.parametrize(("error", "is_off"), [(2, False), (13, True), (20, False)])
def test_a_switch_that_only_root_may_read_is_there_all_the_same(site, error, is_off):
    """ENOENT, EACCES as after ``touch`` under a strict umask, and ENOTDIR."""
    filter_ = site.directory / "walltimed.lua"
    filter_.write_text(
        "local open = io.open\n"
        "io.open = function(path, ...)\n"
        f'  if path == "{site.off}" then return nil, "no", {error} end\n'
        "  return open(path, ...)\n"
        f"end\n{filter_.read_text('utf-8')}",
        "utf-8",
    )
    with fake_service(prediction()) as service:
        site.configure(port=service.port, **service.patience("budget_ms", seconds=1000))
        (job,) = site.submit(JOB)
    assert (len(service.requests) == 0) is is_off
    assert (job.result, job.errors) == (0, [])


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_what_connect_has_written_wins_over_the_sites_own_settings(site, variant):
    with fake_service(prediction()) as service:
        written(site, service, variant)
        connected = with_json_values("", {"mode": "observe"}, Path("x"))
        (site.directory / "walltimed_site.json").write_text(connected)
        site.submit(JOB)
    assert "(observe)" in service.headers[0]


def test_an_address_that_connect_has_written_wins_over_a_socket_of_the_site(site):
    with fake_service(prediction()) as service:
        site.configure(unix_socket="/nowhere", **service.patience("budget_ms", seconds=1000))
        address = filter_values(f"http://127.0.0.1:{service.port}")
        connected = with_json_values('{"mode": "soft", "unix_socket": "/no"}', address, Path("x"))
        (site.directory / "walltimed_site.json").write_text(connected)
        site.submit(JOB)
    assert "(soft)" in service.headers[0]


@pytest.mark.parametrize("connected", ["{", '{"mode": ["soft"]}', '{"mode": "soft"} or so', "[]"])
def test_a_file_that_connect_has_not_written_turns_it_off(site, connected):
    site.configure()
    (site.directory / "walltimed_site.json").write_text(connected)
    (done,) = site.submit(JOB)
    assert (done.result, done.changes) == (0, {})
    assert "is not what walltimed connect writes" in done.errors[0]


NO_AGE = "PriorityType=priority/multifactor\n"
BY_AGE = f"{NO_AGE}PriorityWeightAge=604800\n"


@pytest.mark.parametrize("minutes", [1, 8, 61, 359, 360, 5000])
@pytest.mark.parametrize("mode", ["order", "soft"])
def test_the_site_factor_is_that_of_the_updater_and_of_a_backtest(tmp_path, minutes, mode):
    site = Site(tmp_path, LUAS[0], BY_AGE)
    job = JOB | {"time_limit": 5000}
    done, _ = answered(site, prediction(predicted_walltime=60 * minutes - 1), job, mode=mode)
    assert done.changes["site_factor"] == str(site_factor(60 * minutes, 86400))
    assert done.errors == []


def test_an_order_goes_by_the_mean_runtime(tmp_path):
    site = Site(tmp_path, LUAS[0], BY_AGE)
    done, _ = answered(site, prediction(mean_walltime=600.5), mode="order")
    assert done.changes["site_factor"] == str(site_factor(660, 86400))


@pytest.mark.parametrize("minutes", [1, 10, 11, 61, 359, 720, 5000])
@pytest.mark.parametrize(
    ("conf", "largest"),
    [
        (BY_AGE, 200 * 604800),
        (NO_AGE, 10_000),
        (f"{BY_AGE}PriorityWeightFairshare=50000\nPriorityWeightJobSize=1000\n", 51_000),
    ],
)
def test_the_first_response_ratio_is_that_of_the_updater(tmp_path, minutes, conf, largest):
    site, job = Site(tmp_path, LUAS[0], conf), JOB | {"time_limit": 5000}
    config = {"mode": "order", "order": "response-ratio"}
    done, _ = answered(site, prediction(predicted_walltime=60 * minutes - 1), job, **config)
    lowest = OFFSET / LONGEST
    steps = steps_of_ratio(response_ratio(0, 60 * minutes), lowest)
    assert done.changes["site_factor"] == str(factor_of_steps(steps, largest))


def test_the_first_ratio_has_the_bounds_of_the_site(tmp_path):
    site, job = Site(tmp_path, LUAS[0], NO_AGE), JOB | {"time_limit": 5000}
    config = {"mode": "order", "order": "response-ratio", "ratio": "3600,60,7200"}
    for seconds, steps in ((60, 98), (3600, 14), (7200, 0), (9000, 0)):  # ln(120) / ln(1.05) = 98.1
        done, _ = answered(site, prediction(predicted_walltime=seconds), job, **config)
        assert done.changes["site_factor"] == str(50 * steps)
    done, _ = answered(
        site, prediction(predicted_walltime=60), job, **config | {"ratio": "1,1,9999999"}
    )
    assert done.changes["site_factor"] == "10000", "no more than the largest"


def test_the_usual_numbers_of_the_ratio_are_the_same_everywhere():
    lua = (SCRIPTS / "walltimed.lua").read_text("utf-8")
    (numbers,) = re.findall(r'^  ratio = "([\d,]+)",', lua, re.MULTILINE)
    assert RatioRules.of(numbers) == RatioRules()
    assert f"default: {numbers}." in str(typing.get_args(Ratio)[1].help)


@pytest.mark.parametrize(
    "ratio", ["14400", "0,600,43200", "1,0,5", "1,9,5", "1,1,1000000001", 7, ""]
)
def test_impossible_numbers_of_the_ratio_are_refused(tmp_path, ratio):
    site = Site(tmp_path, LUAS[0], NO_AGE)
    done, _ = answered(site, prediction(), mode="order", order="response-ratio", ratio=ratio)
    assert (done.result, done.changes) == (0, {})
    assert f"such as 14400,600,43200, not {ratio}" in done.errors[0]


def test_an_unknown_order_is_refused(tmp_path):
    done, _ = answered(Site(tmp_path, LUAS[0], BY_AGE), prediction(), mode="order", order="random")
    assert (done.result, done.changes) == (0, {})
    assert "no such order: random" in done.errors[0]


@pytest.mark.parametrize(
    ("conf", "largest"),
    [
        (BY_AGE, 86400),
        (f"{BY_AGE}PriorityMaxAge=14-0\n", 43200),
        (f"{BY_AGE}PriorityMaxAge=1-12:00:00\n", 403200),
        (f"{BY_AGE}PriorityMaxAge=20160\n", 43200),
        (f"{BY_AGE}PriorityMaxAge=336:00:00\n", 43200),
        (f"{BY_AGE}PriorityMaxAge=20160:00\n", 43200),
        ("PriorityWeightAge=1000\n", 142),
        ("PriorityType=priority/basic\nPriorityWeightAge=1000\n", None),
        (NO_AGE, None),
    ],
)
def test_a_day_of_length_counts_as_much_as_a_day_of_age(tmp_path, conf, largest):
    site = Site(tmp_path, LUAS[0], conf)
    done, _ = answered(site, prediction(predicted_walltime=60), mode="order")
    wanted = None if largest is None else str(site_factor(60, largest))
    assert done.changes.get("site_factor") == wanted
    assert bool(done.errors) == (largest is None)


@pytest.mark.parametrize(("own", "factor"), [({}, "997"), ({"site_factor": 5}, None)])
def test_a_site_chooses_the_largest_site_factor_and_keeps_its_own_ones(any_site, own, factor):
    config = {"mode": "order", "largest_site_factor": 1000}
    done, _ = answered(any_site, prediction(predicted_walltime=60), JOB | own, **config)
    assert done.changes.get("site_factor") == factor


@pytest.mark.parametrize(
    ("version", "parameters", "is_set"),
    [
        ("25.05.4", "bf_interval=30,time_min_as_soft_limit", True),
        ("26.05.0", "time_min_as_soft_limit", True),
        ("25.05.3", "time_min_as_soft_limit", False),
        ("24.11.5", "time_min_as_soft_limit", False),
        ("22.05.8", "time_min_as_soft_limit", False),
        ("25.06.0", "time_min_as_soft_limit", True),
        ("25.05.10", "time_min_as_soft_limit", True),
        ("25.04.9", "time_min_as_soft_limit", False),
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
    config = {"largest_site_factor": 1000} | ({"slurm_version": version} if version else {})
    done, _ = answered(site, prediction(), mode="soft", **config)
    assert done.changes.get("time_min") == ("31" if is_set else None), "the interval ends at 1801 s"
    assert ("site_factor" in done.changes) is not is_set, "either plans or an order"
    assert done.changes["admin_comment"] == "wtp=0b7c-42" + ";wtm=31" * is_set
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
    done, _ = answered(site, prediction(interval=None), job, **SOFT)
    assert done.changes.get("time_min") == time_min


@pytest.mark.parametrize(
    ("predicted", "config", "time_min"),
    [
        (0.5, {}, "1"),
        (60, {}, "1"),
        (61, {}, "2"),
        (61, {"soft_floor_seconds": 300}, "5"),
        (301, {"soft_floor_seconds": 300}, "6"),
        (61, {"soft_floor_seconds": 3600}, None),
    ],
)
def test_time_min_has_a_floor(tmp_path, predicted, config, time_min):
    site = Site(tmp_path, LUAS[0], SOFT_CONF)
    answer = prediction(predicted_walltime=predicted, interval=None)
    done, _ = answered(site, answer, **SOFT, **config)
    assert done.changes.get("time_min") == time_min


@pytest.mark.parametrize(
    ("predicted", "told"),
    [
        (0.25, "0.2 s"),
        (0.96, "1 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (89.4 * 60, "89 min"),
        (89.6 * 60, "1.5 h"),
        (98.3 * 3600, "98.3 h"),
        (98.4 * 3600, "4.1 days"),
    ],
)
def test_advice_has_the_words_of_commands_and_pages(any_site, predicted, told):
    answer = prediction(predicted_walltime=predicted, interval=None, likely=None)
    done, _ = answered(any_site, answer, JOB | {"time_limit": 240 * 60}, mode="advise")
    assert told == duration(predicted)
    assert done.told == [f"walltimed: predicted {told}, requested 10.0 days"]


@pytest.mark.parametrize("mode", ["order", "soft", "default-limit"])
def test_a_planned_time_is_told_only_where_it_is_planned_or_ordered_by(any_site, mode):
    done, _ = answered(any_site, prediction(interval=None), mode=mode)
    assert done.told[:1] == ["walltimed: likely 5 min, planned 7 min of the 60 min requested"]
    done, _ = answered(any_site, prediction(interval=None), mode="advise")
    assert done.told == ["walltimed: likely 5 min, requested 60 min"]


@pytest.mark.parametrize(
    ("interval", "told"),
    [
        (
            {"lower": 0.0, "upper": 1800, "coverage": 0.9},
            "likely 5 min, range 0 s to 30 min (90%),",
        ),
        (
            {"lower": 60, "upper": 1800, "coverage": 0.95},
            "likely 5 min, range 1 min to 30 min (95%),",
        ),
        (
            {"lower": 60, "upper": 1800, "coverage": 0.7},
            "likely 5 min, range 1 min to 30 min (70%),",
        ),
        ({"lower": 60, "upper": 1800}, "likely 5 min,"),
        ({"lower": 60, "coverage": 0.9}, "likely 5 min,"),
    ],
)
def test_a_range_is_told_with_its_share_of_runs(any_site, interval, told):
    done, _ = answered(any_site, prediction(interval=interval), mode="advise")
    assert done.told == [f"walltimed: {told} requested 60 min"]


@pytest.mark.parametrize(("limit", "is_told"), [(8, False), (9, True)])
def test_only_who_asks_for_more_than_is_predicted_is_told(any_site, limit, is_told):
    done, _ = answered(any_site, prediction(), JOB | {"time_limit": limit}, mode="advise")
    assert bool(done.told) is is_told


CUT = {
    "limit_warning": True,
    "limit_probability": 0.72,
    "like_runs": 9,
    "like_hits": 6,
    "longer_walltime": 21_600.0,
}
"""Fields of the answer about a job that will probably be cut."""

LIKE_NINE = "6 of your last 9 jobs like this one were ended at their limit; this one's is 1:00:00"


@pytest.mark.parametrize(
    ("job", "changes", "told"),
    [
        (
            {"partition": "long"},
            {},
            f"{LIKE_NINE}; ask for 6:00:00, or save its state before",
        ),
        (
            {"time_limit": 30, "partition": "short"},  # whose jobs may run for an hour
            {"like_hits": 0},
            (
                "such a job is ended at its limit of 0:30:00 with a probability of 72%; "
                "ask for 1:00:00, or save its state before"
            ),
        ),
        (
            {"partition": "short"},
            {},
            f"{LIKE_NINE}; save its state before",
        ),
        (
            {"partition": "long"},
            {"longer_walltime": None},
            f"{LIKE_NINE}; save its state before",
        ),
    ],
)
def test_a_job_that_will_probably_be_cut_is_warned_with_what_its_partition_allows(
    site, job, changes, told
):
    answer = prediction(**(CUT | changes))
    done, _ = answered(site, answer, JOB | job, mode="advise")
    assert done.told == [f"walltimed: {told}"]
    assert done.changes == {"admin_comment": "wtp=0b7c-42"}


def test_without_a_warning_or_before_advice_nobody_reads_of_a_limit(any_site):
    calm, _ = answered(any_site, prediction(**(CUT | {"limit_warning": False})), mode="advise")
    assert "limit" not in calm.told[0]
    quiet, _ = answered(any_site, prediction(**CUT), mode="observe")
    assert quiet.told == []


def test_without_history_nobody_is_told(any_site):
    answer = prediction(basis={"jobs": 0, "reason": "cold-start"})
    done, _ = answered(any_site, answer, mode="advise")
    assert (done.told, done.changes) == ([], {"admin_comment": "wtp=0b7c-42"})


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
        (JOB | {"time_limit": UNSET}, upper(60) | {"predicted_walltime": 30.0}, None),
        (JOB | {"time_limit": UNSET}, upper(61) | {"predicted_walltime": 30.0}, "2"),
        (JOB | {"time_limit": UNSET}, upper(300, coverage=0.89), None),
        (JOB | {"time_limit": UNSET}, upper(300, coverage=1), "8"),
        (JOB | {"time_limit": UNSET}, upper(300, coverage=1.1), None),
        (JOB | {"time_limit": UNSET}, {"interval": {"lower": 1, "upper": 300}}, None),
        (JOB | {"time_limit": UNSET}, {"interval": None}, None),
        (JOB | {"time_limit": UNSET}, {"basis": {"jobs": 5, "reason": "young-cluster"}}, None),
        (JOB | {"time_limit": UNSET}, {"basis": {"jobs": 16, "reason": "others"}}, None),
        (JOB | {"time_limit": UNSET}, {"basis": {"jobs": 4, "reason": "history"}}, None),
        (JOB | {"time_limit": UNSET, "partition": "long"}, {}, None),
    ],
)
def test_a_default_limit_is_for_jobs_without_one(any_site, job, answer, time_limit):
    done, _ = answered(any_site, prediction(**answer), job, mode="default-limit")
    assert done.changes.get("time_limit") == time_limit


@pytest.mark.parametrize("field", ["predicted_walltime", "upper"])
@pytest.mark.parametrize("value", [-5, 0, float("nan"), float("inf"), "300", None, [300], 1e300])
def test_what_is_no_walltime_sets_no_limit(any_site, field, value):
    interval = {"interval": {"lower": 1.0, "upper": value, "coverage": 0.9}}
    answer = prediction(**(interval if field == "upper" else {field: value}))
    done, _ = answered(any_site, answer, JOB | {"time_limit": UNSET}, mode="default-limit")
    assert not {"time_limit", "time_min"} & done.changes.keys()


@pytest.mark.parametrize("limit", [1, 5, 60, UNLIMITED])
@pytest.mark.parametrize("predicted", [0.5, 30, 1e6])
def test_no_rung_ever_touches_a_limit_that_the_user_gave(tmp_path, limit, predicted):
    site = Site(tmp_path, LUAS[0], SOFT_CONF)
    config = {"mode": "default-limit", "slurm_version": "26.05.1"}
    answer = prediction(predicted_walltime=predicted)
    done, _ = answered(site, answer, JOB | {"time_limit": limit}, **config)
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
    done, requests = answered(any_site, prediction(), mode="advise", **config)
    assert bool(requests) is is_asked
    assert bool(done.changes) is is_asked


@pytest.mark.parametrize(
    ("comment", "config"),
    [("x walltimed=off", {}), ("no-walltimed", {"opt_out": "no-walltimed"})],  # as it is written
)
def test_a_user_can_opt_out_in_the_comment(any_site, comment, config):
    job = JOB | {"comment": comment}
    done, requests = answered(any_site, prediction(), job, mode="advise", **config)
    assert (done.changes, requests) == ({}, [])


@pytest.mark.parametrize("comment", ["site", "long " * 200, ""])
def test_an_admin_comment_is_added_to(any_site, comment):
    done, _ = answered(any_site, prediction(), JOB | {"admin_comment": comment}, mode="observe")
    assert done.changes["admin_comment"] == f"{comment};wtp=0b7c-42".lstrip(";")


@pytest.mark.parametrize(("name", "is_noted"), [("a" * 64, True), ("a" * 65, False)])
def test_the_name_of_a_prediction_has_at_most_64_characters(any_site, name, is_noted):
    done, _ = answered(any_site, prediction(prediction_id=name), mode="observe")
    assert done.changes == ({"admin_comment": f"wtp={name}"} if is_noted else {})


def test_many_jobs_share_one_connection(site):
    with fake_service(prediction()) as service:
        done = submit(site, service, *[JOB] * 20, mode="observe")
    assert all(job.changes for job in done)
    assert (len(service.requests), service.connections) == (20, 1)
    assert sum(job.seconds for job in done) < 20, "none waited for more than there was"


def test_a_connection_that_the_service_closes_is_not_used_again(any_site):
    answer = http(200, TOLD, "Connection: close")
    with fake_service(answer) as service:
        done = submit(any_site, service, JOB, JOB, mode="observe")
    assert all(job.changes for job in done)
    assert service.connections == 2


def test_a_head_that_has_not_ended_after_just_8_kib_is_read_on(any_site):
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(TOLD)}\r\nX: ".encode()
    done, _ = answered(any_site, head.ljust(8192 - 2, b"y") + b"\r\n\r\n" + TOLD, mode="observe")
    assert done.changes == {"admin_comment": "wtp=0b7c-42"}


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (LONG_HEAD, "a head without end"),
        (GARBAGE["no status"], "not an answer"),
        (GARBAGE["a length that is too long"], "an answer of no length, or too long"),
        (GARBAGE["a server error"], "HTTP 500 without a prediction"),
        (None, "timeout"),
    ],
)
def test_the_log_says_in_a_line_what_was_wrong_and_for_how_long_nobody_is_asked(
    any_site, answer, told
):
    done, _ = answered(any_site, answer, mode="observe")
    (line,) = done.errors  # an assertion of Lua 5.1 says where it stands, too
    assert line.startswith("walltimed: ")
    assert line.endswith(f"{told}; no predictions for 15 s")
    if answer in {LONG_HEAD, GARBAGE["a server error"]}:
        assert line == f"walltimed: {told}; no predictions for 15 s"


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


@pytest.mark.parametrize("how", ["gone", "hung", "full"])
def test_a_unix_socket_that_is_gone_hangs_or_is_full_is_asked_once_per_pause(
    site, socket_file, how
):
    site.configure(mode="observe", unix_socket=str(socket_file))
    with ExitStack() as stack:
        if how == "hung":
            service = stack.enter_context(fake_service(None, path=socket_file))
        elif how == "full":
            stack.enter_context(full_backlog(socket_file))
        first, second = site.submit(JOB, JOB)
        assert how != "hung" or service.connections == 1
    assert first.changes == second.changes == {}
    assert first.result == second.result == 0
    assert first.seconds < PATIENT
    assert (len(first.errors), len(second.errors)) == (1, 0)


@pytest.mark.parametrize(("answers", "hangs_up"), [(1, True), (2, False)])
def test_a_connection_that_is_stale_or_holds_another_answer_is_replaced_at_once(
    site, answers, hangs_up
):
    with fake_service(prediction() * answers, hangs_up=hangs_up) as service:
        done = submit(site, service, *[JOB] * 5, mode="observe")
    assert [job.changes for job in done] == [{"admin_comment": "wtp=0b7c-42"}] * 5
    assert not any(job.errors for job in done)
    assert len(service.requests) == service.connections == 5


def test_a_service_that_hangs_costs_the_budget_once_per_pause(site):
    with fake_service(None) as service:
        done = submit(site, service, *[JOB] * 10, mode="advise")
        assert (service.connections, len(service.requests)) == (1, 1)
    assert [job.result for job in done] == [0] * 10
    assert not any(job.changes for job in done)
    assert [len(job.errors) for job in done] == [1] + [0] * 9
    assert "timeout" in done[0].errors[0]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_prediction_with_a_name_that_is_none_is_not_noted_down(site, name):
    job = JOB | {"time_limit": UNSET}
    done, _ = answered(site, prediction(prediction_id=name), job, mode="default-limit")
    assert done.changes == {"time_limit": "10"}, "what was predicted counts"


def test_a_service_that_is_gone_is_asked_once_per_pause(site):
    with fake_service() as service:
        pass
    done = submit(site, service, *[JOB] * 3, mode="advise")
    assert [job.result for job in done] == [0] * 3
    assert [len(job.errors) for job in done] == [1, 0, 0]
    assert not any(job.changes for job in done)


def test_the_pause_ends(any_site):
    with fake_service(http(500, b"{}")) as service:
        done = submit(any_site, service, *[JOB] * 3, mode="advise", pause_seconds=0)
    assert len(service.requests) == 3
    assert [job.result for job in done] == [0] * 3


CLOCKS = """
local now, log, gettime = 2000000000, slurm.log_error, require("socket").gettime
slurm.log_error = function(...) now = now - 86400; log(...) end
os.time = function() return now end
local looks = 0
require("socket").gettime = function() looks = looks + 1; return gettime() - looks * 1000 end
"""
"""Of a machine that is a day back after each failure, and a quarter of an hour at each look."""


def test_a_clock_that_is_set_back_prolongs_no_pause_and_no_budget(any_site):
    with fake_service(None) as service:
        any_site.configure(port=service.port, mode="observe", pause_seconds=15, budget_ms=200)
        config = any_site.directory / "walltimed_config.lua"
        config.write_text(CLOCKS + config.read_text())
        done = any_site.submit(JOB, JOB)
    assert [len(job.errors) for job in done] == [1, 1]
    assert len(service.requests) == 2


@pytest.mark.parametrize("status", [400, 422])
def test_a_question_that_is_refused_begins_no_pause(any_site, status):
    with fake_service(http(status, b'{"error": "x"}')) as service:
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


@pytest.mark.parametrize(("name", "told"), [("é" * 127, "é" * 127), ("é" * 128, "é" * 127)])
def test_a_long_name_is_cut_between_characters(any_site, name, told):
    assert asked(any_site, name=name)["application"] == told


@pytest.mark.parametrize(
    "job", [{}, {"time_limit": "soon", "name": {}}, {"time_limit": 60, "partition": 7}]
)
def test_a_job_that_slurm_would_never_make_is_passed_on(site, job):
    done, _ = answered(site, prediction(), job, mode="advise")
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
