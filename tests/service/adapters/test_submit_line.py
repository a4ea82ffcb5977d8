"""The limit on a command line that has lost its quotes."""

import pytest

from service.adapters.slurm_fields import request_of, requested_limit
from terminal.words import slurm_walltime


@pytest.mark.parametrize(
    ("line", "typed"),
    [
        ("sbatch -t 5 job.sh", "5"),
        ("sbatch -t5 job.sh", "5"),
        ("sbatch --time=1-00 job.sh", "1-00"),
        ("sbatch --time 2:00:00 job.sh", "2:00:00"),
        ("/usr/bin/srun -J x -n 4 --exclusive -t 30 hostname", "30"),
        ("sbatch --parsable --qos=long -p long -t 1-02:03:00 -N 4 --wrap x", "1-02:03:00"),
        ("sbatch job.sh -t 5", None),
        ("sbatch -J x --wrap timeout -t 5", None),
        ("sbatch --wrap=x job.sh -t 5", None),
        ("sbatch -J two words -t 5 job.sh", None),
        ("sbatch --time-min=3 job.sh", None),
        ("sbatch -t", ""),
        ("", None),
        (None, None),
        (["sbatch", "-t", "5"], None),
    ],
)
def test_an_option_is_read_only_as_far_as_it_is_certain(line, typed):
    assert request_of(line) == typed


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("5", 300),
        ("1:30", 120),
        ("0:01", 60),
        ("1:00:00", 3600),
        ("1-0", 86400),
        ("1-2:3", 93780),
        ("1-02:03:00", 93780),
        ("soon", None),
        ("-5", None),
        ("", None),
        ("1:2:3:4:5", None),
    ],
)
def test_limits_are_read_in_every_form_that_slurm_takes(written, seconds):
    assert slurm_walltime(written) == seconds


def test_zero_and_unlimited_are_no_limit():
    assert requested_limit(submit_line="sbatch -t UNLIMITED j", final=420) is None
    assert requested_limit(submit_line="sbatch -t 0 j", final=420) is None


def test_a_line_without_a_limit_leaves_the_final_one():
    assert requested_limit(submit_line="sbatch j", final=420) == 420
    assert requested_limit(submit_line="sbatch -t soon j", final=420) == 420
