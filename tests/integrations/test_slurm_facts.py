"""What job_submit.lua says of a job beyond names and sizes, in the words of the API."""

import pytest
from fake_service import fake_service, prediction
from slurm_scripts import JOB, LUAS, UNSET, Site

from predictors.facts import script_hash_of

pytestmark = pytest.mark.skipif(not LUAS, reason="needs lua5.1, 5.3 or 5.4 with lua-socket")
SCRIPTS = [
    "#!/bin/sh\nrun --size 10 # small\n",
    "a" * 40_000,
    "\n  # nothing\n",
    "é\t#no comment\n#\n x 1.5e3 #yes\r\nlast line without end",
    "echo '\0\x01'",
    "9" * 40_000,
]
BATCH = JOB | {"script": "true\n"}


@pytest.fixture(params=LUAS)
def site(request, tmp_path):
    return Site(tmp_path, request.param)


@pytest.fixture
def any_site(tmp_path):
    return Site(tmp_path, LUAS[0])


def told(site, *jobs, **config):
    """What the service was told of each job, and what was done."""
    with fake_service(prediction(predicted_walltime=60)) as service:
        patience = service.patience("budget_ms", seconds=1000)
        site.configure(port=service.port, mode="observe", **patience | config)
        done = site.submit(*jobs)
    return service.requests, done


def test_the_filter_says_what_it_sees_of_a_job(site):
    job = BATCH | {
        "work_dir": "/home/carol/run 1",
        "qos": "high",
        "min_nodes": 2,
        "tres_per_node": "gres:gpu:a100:4",
        "array_inx": "1-10:2,15%4",
        "features": "ivy&ib",
        "dependency": "afterok:17",
        "alloc_node": "login1",
        "argc": 2,
    }
    (asked,), _ = told(site, job)
    assert asked.pop("requested_nodes") == 2
    assert {name: asked.get(name) for name in asked if name not in JOB} | {} == {
        **{name: asked[name] for name in ("cluster", "user", "project", "queue", "application")},
        **{name: asked[name] for name in ("requested_walltime", "requested_processors")},
        **{name: asked[name] for name in ("requested_memory", "submit_time")},
        "work_dir": "/home/carol/run 1",
        "script_hash": script_hash_of("true\n"),
        "qos": "high",
        "nodes": 2,
        "gpus": 8,
        "gpu_type": "a100",
        "array_size": 6,
        "constraint": "ivy&ib",
        "dependency": "afterok",
        "submit_host": "login1",
    }


def test_lua_and_python_give_a_script_the_same_hash(site):
    asked, done = told(site, *(BATCH | {"script": script} for script in SCRIPTS))
    assert [each["script_hash"] for each in asked] == [script_hash_of(each) for each in SCRIPTS]
    assert all(each.errors == [] for each in done)


@pytest.mark.parametrize(
    ("fields", "gpus", "kind"),
    [
        ({"tres_per_job": "gres:gpu:3"}, 3, None),
        ({"tres_per_job": "gres/gpu:a100:3"}, 3, "a100"),
        ({"tres_per_node": "gpu"}, 1, None),
        ({"tres_per_node": "gres:craynetwork:1,gres:gpu:v100:2", "min_nodes": 3}, 6, "v100"),
        ({"tres_per_task": "cpu=2,gres/gpu:1", "num_tasks": 4}, 4, None),
        ({"tres_per_task": "cpu=2", "num_tasks": 4}, None, None),
        ({"gres": "gpu:2", "min_nodes": UNSET}, 2, None),
        ({"tres_per_node": "gres:license:2"}, None, None),
        ({"tres_per_node": ",,::=gpu:"}, None, None),
    ],
)
def test_gpus_are_those_of_the_whole_job(any_site, fields, gpus, kind):
    (asked,), _ = told(any_site, BATCH | fields)
    assert (asked.get("gpus"), asked.get("gpu_type")) == (gpus, kind)


def test_bytes_that_are_no_text_cost_no_prediction(any_site):
    hostile = BATCH | {"work_dir": "/home/\x01\x7f\n/é", "dependency": "?", "array_inx": "1-x"}
    (asked,), (done,) = told(any_site, hostile)
    assert asked["work_dir"] == "/home/?/?"
    assert "dependency" not in asked
    assert "array_size" not in asked
    assert done.changes["admin_comment"].startswith("wtp=")


def test_a_long_script_costs_some_milliseconds(any_site):
    _, done = told(any_site, *[BATCH, BATCH | {"script": "ab#9. " * 30_000}] * 5)
    small, large = (min(each.seconds for each in jobs) for jobs in (done[::2], done[1::2]))
    assert large < small + 0.15


def test_a_job_without_a_script_is_interactive(any_site):
    (without, with_script), _ = told(any_site, JOB, BATCH)
    assert without["interactive"] is True
    assert "interactive" not in with_script


def test_features_are_read_from_the_comment_of_a_job(any_site):
    comment = "mine wt:rule=align wt:input_bytes=1500 wt:x=1e999 wt:=2 wt:a=b;c"
    (asked,), _ = told(any_site, BATCH | {"comment": comment})
    assert asked["features"] == {"rule": "align", "input_bytes": 1500, "a": "b"}
    many = " ".join(f"wt:f{number}={number}" for number in range(12))
    (asked,), _ = told(any_site, BATCH | {"comment": many})
    assert len(asked["features"]) == 8


def test_features_are_read_from_the_wckey_where_an_engine_writes_the_comment(any_site):
    told_twice = {"comment": "rule_align_wildcards_a", "wckey": "wt:rule=align,wt:input_bytes=1500"}
    (asked, other), _ = told(any_site, BATCH | told_twice, BATCH | {"wckey": "physics"})
    assert asked["features"] == {"rule": "align", "input_bytes": 1500}
    assert "features" not in other


def test_a_site_adds_features_of_its_own_or_tells_nothing(any_site):
    feature = 'return {mode="observe", port=%d, facts=%s, features=function(job) return '
    feature += "{rule=job.name, size=2.5, bad=0/0, no=function() end} end}"
    with fake_service(prediction(predicted_walltime=60)) as service:
        config = any_site.directory / "walltimed_config.lua"
        for facts in ("true", "false"):
            config.write_text(feature % (service.port, facts))
            any_site.submit(BATCH)
    one, other = service.requests
    assert one["features"] == {"rule": "relax", "size": 2.5}
    assert "features" not in other
    assert "script_hash" not in other


def test_a_feature_that_fails_costs_the_facts_and_not_the_prediction(any_site):
    with fake_service(prediction(predicted_walltime=60)) as service:
        (any_site.directory / "walltimed_config.lua").write_text(
            f'return {{mode="observe", port={service.port}, features=function() error("x") end}}'
        )
        (done,) = any_site.submit(BATCH)
    assert done.changes["admin_comment"].startswith("wtp=")
    assert "script_hash" not in service.requests[0]
