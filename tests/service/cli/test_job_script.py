"""What job scripts ask for."""

import time

import pytest

from service.cli.ask import request_in
from service.cli.times import moment, period_of
from terminal.console import CommandError
from terminal.words import walltime

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
        "requested_memory": 2 * 1024 * 1024,
        "queue": "cpu",
        "application": "both",
    }


def test_limits_are_written_as_resource_managers_write_them():
    assert [walltime(each) for each in (600, 21600, 172800, None)] == [
        "0:10:00",
        "6:00:00",
        "2-00:00:00",
        "-",
    ]


@pytest.fixture
def in_utc(monkeypatch):
    """The machine's zone is UTC meanwhile."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("in_utc")
def test_times_are_told_in_the_zone_of_the_reader():
    noon = 1_700_049_600.0  # Wednesday, 15 November 2023, 12:00
    assert moment(noon + 3600, noon) == "13:00"
    assert moment(noon + 86400, noon) == "Thu 12:00"
    assert moment(noon + 30 * 86400, noon) == "15 Dec"


def test_periods():
    assert [period_of(each) for each in ("12h", "30d", "2w")] == [43200, 2592000, 1209600]
    for wrong in ("", "d", "0d", "-3d", "3", "3m"):
        with pytest.raises(CommandError):
            period_of(wrong)
