"""Facts of a job by its script are those that the filters send."""

import json

import pytest

from predictors.facts import script_hash_of
from service.adapters.script_facts import facts_in
from service.contract.queue_bodies import UnqueuedJobBody

PLACE = {"name": "job.sh", "work_dir": "/home/ada", "host": "login1.hill.example"}
KNOWN = {"work_dir": "/home/ada", "submit_line": "job.sh", "submit_host": "login1"}


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ("-n 4", {}),
        ("-q high -C 'ivy&ib' -d afterok:17 -a 1-10:2,15%4 -N 2-4",
         {"qos": "high", "constraint": "ivy&ib", "dependency": "afterok", "array_size": 6,
          "nodes": 2}),
        ("--qos=high --array=0-9 -N2 --gres=gpu:a100:4",
         {"qos": "high", "array_size": 10, "nodes": 2, "gpus": 8, "gpu_type": "a100"}),
        ("-G 3", {"gpus": 3}),
        ("--gpus=a100:2,v100:1", {"gpus": 3, "gpu_type": "a100"}),
        ("--gpus-per-task=2 -n 3", {"gpus": 6}),
        ("-D /scratch/x", {"work_dir": "/scratch/x"}),
        ("--comment='wt:rule=align wt:size=1.5e3 wt:rule=b'",
         {"features": {"rule": "align", "size": 1500.0}}),
        ("--comment='wt:a=-2 wt:b=nan wt:c=1e400 wt:d=-inf wt:e=007'",
         {"features": {"a": -2.0, "b": "nan", "c": "1e400", "d": "-inf", "e": 7.0}}),
        ("--array=x,y --nodes=many --gres=gpu:", {}),
    ],
)  # fmt: skip
def test_options_of_sbatch_are_facts(options, facts):
    script = f"#!/bin/sh\n#SBATCH {options}\nrun --size 3\n"
    expected = KNOWN | {"script_hash": script_hash_of(script)} | facts
    assert facts_in(script, **PLACE) == expected


def test_of_a_script_for_pbs_what_the_hook_sees_is_a_fact():
    script = "#PBS -l select=2:ncpus=8:ngpus=2\n#PBS -q long\nrun\n"
    assert facts_in(script, **PLACE) == {
        "work_dir": "/home/ada",
        "constraint": "2:ncpus=8:ngpus=2",
        "gpus": 4,
    }
    lab = script.replace("#PBS", "#LAB")
    assert facts_in(lab, **PLACE, prefix="#LAB") == facts_in(script, **PLACE)
    assert facts_in("", **PLACE) == {"work_dir": "/home/ada"}


@pytest.mark.parametrize(
    "options",
    [
        "--comment='wt:" + "n" * 100 + "=1 wt:a=" + "v" * 1000 + "'",
        "--comment='" + " ".join(f"wt:f{n}={n}" for n in range(30)) + "'",
        "-q " + "q" * 1000 + " -C " + "c" * 9000 + " -D /" + "d" * 9000,
        "-a 0-4294967294 -N 99999999999 -G 99999999999",
        "-d '' -C '' -q '' --comment=''",
        "-C 'a\tb\x00\x1b[0m' -q '\u2028é'",
        "--gres=gpu:" + "a" * 900 + ":2",
    ],
)
def test_no_fact_of_a_script_keeps_the_service_from_answering(options):
    script = f"#SBATCH -t 60 {options}\nrun\n"
    facts = facts_in(script, name="j" * 300, work_dir="/x\n" + "y" * 9000, host="h" * 500)
    UnqueuedJobBody.model_validate_json(json.dumps({"requested_walltime": 3600, **facts}))
