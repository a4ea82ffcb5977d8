"""The submissions that real Slurm 22.05, 24.11 and 26.05 showed to its plug-ins, played again."""

import json
from pathlib import Path

import pytest
from fake_service import fake_service, prediction
from slurm_scripts import LUAS, Site

from service.contract.bodies import AskedSubmission

SAMPLES = Path(__file__).parents[3] / "shared" / "samples" / "slurm"
VERSIONS = {"22.05": "22.05.8", "24.11": "24.11.5", "26.05": "26.05.5"}

pytestmark = [
    pytest.mark.skipif(not LUAS, reason="needs lua5.1, 5.3 or 5.4 with lua-socket"),
    pytest.mark.skipif(not SAMPLES.is_dir(), reason="needs ../shared/samples/slurm"),
]
WIDE = {"interval": {"lower": 1.0, "upper": 80.0, "coverage": 0.95}, "predicted_walltime": 30.0}


def shown(version, name):
    lines = (SAMPLES / version / name).read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(params=LUAS)
def site(request, tmp_path):
    return Site(tmp_path, request.param)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_submission_is_asked_about_and_no_limit_of_a_users_is_touched(site, version):
    jobs = shown(version, "job_submit_lua_fields.jsonl")
    with fake_service(prediction(**WIDE)) as service:
        site.configure(
            mode="default-limit", slurm_version=VERSIONS[version], port=service.port, budget_ms=2000
        )
        done = dict(zip((job["name"] for job in jobs), site.submit(*jobs), strict=False))
    assert {each.result for each in done.values()} == {0}
    assert not [each.errors for each in done.values() if each.errors]
    limits = {name: each.changes.get("time_limit") for name, each in done.items()}
    assert limits.pop("nolimit") == "2"
    assert set(limits.values()) == {None}
    assert not any("time_min" in each.changes for each in done.values()), "the option is not set"
    assert done["unlimited"].changes == {}

    asked = {each["application"]: each for each in service.requests}
    assert set(asked) == {job["name"] for job in jobs} - {"unlimited"}
    for each in service.requests:
        AskedSubmission.model_validate_json(json.dumps(each))
    assert asked["nolimit"]["requested_walltime"] == 600
    assert asked["timeout"]["requested_walltime"] == 60
    assert asked["wide"]["requested_processors"] == 8
    assert asked["train_model"]["requested_memory"] == 500 * 1024 / 2
    assert asked["md_prod"]["queue"] == "long"
    assert asked["ünï_ğ"]["queue"] == "short"
    assert {each["user"] for each in asked.values()} == {"alice", "bob"}
    assert not any("script" in each for each in service.requests)


@pytest.mark.parametrize("version", ["22.05", "26.05"])
def test_what_sbatch_shows_is_asked_about_where_there_is_a_limit(site, version):
    options = [
        line["options"]
        for line in shown(version, "cli_filter_lua.jsonl")
        if line["hook"] == "pre_submit"
    ]
    with fake_service(prediction(**WIDE)) as service:
        site.configure("walltimed_cli_config.lua", mode="advise", port=service.port, budget_ms=2000)
        done = site.submit(*options, script="cli_filter.lua", environment={"USER": "alice"})
    assert {each.result for each in done} == {0}
    asked = {each["application"]: each["requested_walltime"] for each in service.requests}
    assert asked["train_model"] == 300
    assert all(0 < seconds <= 366 * 86400 for seconds in asked.values())
    for each in service.requests:
        AskedSubmission.model_validate_json(json.dumps(each))
