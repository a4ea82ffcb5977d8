"""What job scripts ask for."""

import re

import pytest

from service.adapters.job_scripts import request_in
from service.adapters.script_words import ScriptError

SLURM = """#!/bin/bash
#SBATCH --job-name=train -t 2-00:00:00
#SBATCH -N 2 --ntasks-per-node=4 -c2   # cores
#SBATCH --partition long,short
#SBATCH -A physics --mem=8G --exclusive
echo hello
#SBATCH --time=1
"""
PBS = """#!/bin/bash
#PBS -N train -q workq@server
#PBS -l select=2:ncpus=8:mem=4gb+1:ncpus=1
#PBS -l walltime=06:30:00 -P physics
"""


def test_lines_for_slurm_up_to_the_first_command():
    assert request_in(SLURM) == {
        "requested_walltime": 172800.0,
        "requested_processors": 16,
        "requested_nodes": 2,
        "exclusive": True,
        "requested_memory": 8 * 1024 * 1024 * 2 / 16,
        "queue": "long",
        "project": "physics",
        "application": "train",
    }


def test_lines_for_pbs():
    assert request_in(PBS) == {
        "requested_walltime": 23400.0,
        "requested_processors": 17,
        "requested_memory": 8 * 1024 * 1024 / 17,
        "queue": "workq",
        "project": "physics",
        "application": "train",
    }


@pytest.mark.parametrize(
    ("lines", "processors"),
    [
        ("#PBS -l nodes=2:ppn=8,walltime=1:00:00", 16),
        ("#PBS -l nodes=18:ppn=8+1:ppn=6", 150),
        ("#PBS -l nodes=a7:ppn=24+a8:ppn=24", 48),
        ("#PBS -l nodes=3", 3),
        ("#PBS -l procs=24", 24),
        ("  #PBS -l ncpus=4", 4),
        ("#PBS -l ncpus=4", 4),
        ("#SBATCH --nodes=2 --tasks-per-node 8", 16),
        ("#SBATCH -n 6\n  #SBATCH -n 8", 6),  # Slurm passes over what is indented
        ("#SBATCH -n 6", 6),
        ("#SBATCH --ntasks=6\n#SBATCH --cpus-per-task=2", 12),
        ("#SBATCH -J 'no end", 1),
        ("#SBATCH --gpus-per-node=2 --cpus-per-gpu=8", 16),
        ("#SBATCH -N2 --gpus-per-node=a100:4 --cpus-per-gpu=8", 64),
        ("#SBATCH -G 3 --cpus-per-gpu=4", 12),
        ("#SBATCH --gres=gpu:a100:2 --cpus-per-gpu=4", 8),
        ("#SBATCH --gpus=4 --ntasks-per-gpu=2 -c 3", 24),
        ("#SBATCH --nod=2 --ntasks-per-n=4 --cpus-per-t 2", 16),
        ("#PBS -V\n#PBS -l nodes=2:ppn=8\n#PBS -h", 16),
        ("#PBS -hVl ncpus=4", 4),
        ("#PBS -IX -l ncpus=4 -z", 4),
        ("#PBS -m\n#PBS -l ncpus=4", 4),
        ("#SBATCH -N 1k -t 5", 1024),
        ("#SBATCH -N 2-4 --ntasks-per-node=8", 16),
        ("#SBATCH -n 4 \\\n#SBATCH -t 5", 4),
        ("\ufeff#!/bin/sh\n#SBATCH -n 4", 4),
        ("#PBS -l nodes=1:ppn=4#shared,walltime=1:00:00 # it's\n#PBS -q long", 4),
        ("", 1),
    ],
)
def test_processors_are_counted_as_each_manager_counts_them(lines, processors):
    assert request_in(lines).get("requested_processors", 1) == processors


def test_components_of_a_heterogeneous_job_start_together():
    script = """#!/bin/sh
#SBATCH -p cpu -n 8 -t 1:00:00 --mem-per-cpu=1G -J both
#SBATCH hetjob
#SBATCH -p gpu -n 2 -t 2:00:00 --mem-per-cpu=6G
"""
    assert request_in(script) == {
        "requested_walltime": 7200.0,
        "requested_processors": 10,
        "requested_nodes": 2,
        "requested_memory": 2 * 1024 * 1024,
        "queue": "cpu",
        "application": "both",
    }


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ('#SBATCH --time="1"h', "--time=1h in line 1"),
        ("#SBATCH --time=1\\ h", "--time=1 h in line 1"),
        ("#!/bin/sh\n#SBATCH --job-name=run1h\n#SBATCH --time=1h", "--time=1h in line 3"),
        ("#SBATCH -t\n#SBATCH soon", "--time=soon in line 2"),
        ("#SBATCH -t 1h -t 2:00\n#SBATCH hetjob\n#SBATCH -t 1h", "--time=1h in line 3"),
        ("#SBATCH -t 1:2:3:4", "--time=1:2:3:4 in line 1"),
        ("#PBS -l ncpus=4\n#PBS -l mem=1gb,walltime=soon", "-l walltime=soon in line 2"),
        ("#PBS -lwalltime=999999999999:00:00", "-l walltime=999999999999:00:00 in line 1"),
    ],
)
def test_a_walltime_that_sbatch_refuses_is_refused_with_its_line(script, message):
    with pytest.raises(ScriptError, match=re.escape(message)):
        request_in(script)


SWITCH = """#!/bin/bash
#PBS -N solver
#PBS -V
#PBS -l walltime=02:00:00
#PBS -l nodes=2:ppn=8
#PBS -h
#PBS -q long
./solver
"""


def test_a_switch_of_pbs_takes_no_value():
    assert request_in(SWITCH) == {
        "requested_walltime": 7200.0,
        "requested_processors": 16,
        "queue": "long",
        "application": "solver",
    }


def test_unique_beginnings_of_options_are_understood():
    script = '#SBATCH --job=a --part="long" --acc proj --tim=10 -Hv -J b --requeue -sp gpu'
    found = request_in(script)
    assert (found["application"], found["queue"], found["project"]) == ("b", "gpu", "proj")
    assert found["requested_walltime"] == 600


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("#SBATCH --gpus-p=4", "line 1: --gpus-p is no option of sbatch that is known here"),
        (
            "#!/bin/sh\n#SBATCH --queue=x",
            "line 2: --queue is no option of sbatch that is known here",
        ),
        ("#SBATCH -Z 4", "line 1: -Z is no option of sbatch that is known here"),
        ("#SBATCH -J 'open", "line 1: a quote is not closed; the line is left out"),
        ("#PBS -Y x", "line 1: -Y is no option of qsub that is known here"),
        ("#PBS -V long", "line 1: 'long' belongs to no option"),
        ("#PBS -C #Q", "line 1: qsub takes -C from its command line alone, and so does ask"),
    ],
)
def test_what_is_not_understood_is_said(script, sentence):
    said = []
    request_in(script, said.append)
    assert said[0] == sentence


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ("--exclusive -N4", {"requested_processors": 4, "requested_nodes": 4, "exclusive": True}),
        ("--exclusive=user -n 2", {"requested_processors": 2}),
        ("-n 4 --hint=nomultithread", {"requested_processors": 4, "threads_per_core": 1}),
        ("-n 4 -c 2 --ntasks-per-core=1", {"requested_processors": 8, "threads_per_core": 2}),
        ("-n 3 --ntasks-per-node=1", {"requested_processors": 3, "requested_nodes": 3}),
        ("-N 2-4 --threads-per-core=1",
         {"requested_processors": 2, "requested_nodes": 2, "threads_per_core": 1}),
    ],
)  # fmt: skip
def test_what_decides_how_many_cores_a_job_takes_is_read(options, fields):
    assert request_in(f"#SBATCH {options}") == fields


@pytest.mark.parametrize(
    ("line", "notice"),
    [
        ("#SBATCH -n 0", "line 2: --ntasks=0 is no number and is left out"),
        ("#SBATCH --cpus-per-task=$N", "line 2: --cpus-per-task=$N is no number"),
        ("#SBATCH --ntasks=1000000000000", "--ntasks=1000000000000 is no number"),
        ("#SBATCH --nodes=many", "--nodes=many is no number"),
        ("#PBS -l nodes=4:ppn=all", "line 2: ppn=all is no number and counts as 1"),
        ("#PBS -q", "line 2: -q has no value"),
    ],
)
def test_a_value_that_is_none_is_said(line, notice):
    said = []
    request_in(f"#!/bin/sh\n{line}\n", said.append)
    assert any(notice in each for each in said)


def test_an_option_without_its_value_leaves_the_one_before():
    assert request_in("#PBS -q long\n#PBS -q\n#PBS -l walltime=60")["queue"] == "long"


def test_a_job_that_may_shrink_asks_for_its_longest_walltime():
    found = request_in("#PBS -l min_walltime=0:30:00,max_walltime=1:00:00")
    assert found["requested_walltime"] == 3600


@pytest.mark.parametrize(
    ("prefix", "script", "processors"),
    [
        ("#QSUB", "#!/bin/sh\n#PBS -l ncpus=2\n  #QSUB -l ncpus=4\n", 4),
        ("#$", "#$ -l ncpus=4\n#$HOME\n", 4),
        ("@PBS", "#!/bin/sh\n@PBS -V\n@PBS -l ncpus=4\necho\n@PBS -l ncpus=8\n", 4),
        ("#", "#-l ncpus=4\n", 4),
        ("", "#PBS -l ncpus=4\n", 1),
        ("#pbs", "#PBS -l ncpus=4\n", 1),
    ],
)
def test_lines_for_qsub_begin_with_the_prefix_that_it_is_given(prefix, script, processors):
    found = request_in(script, prefix=prefix)
    assert found.get("requested_processors", 1) == processors
