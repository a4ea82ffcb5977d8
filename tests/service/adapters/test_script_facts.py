"""Facts of a job by its script are those that the filters send."""

import pytest

from predictors.facts import script_hash_of
from service.adapters.script_facts import facts_in

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
