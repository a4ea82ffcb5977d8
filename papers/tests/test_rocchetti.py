"""Jobs and users that the study of Rocchetti et al. counts, and its plays on the twin of Slurm."""

import numpy as np
import pytest
from workloads import log_of, workload_of

from papers.rocchetti.rocchetti_study import cores
from papers.rocchetti.slurm_twin import (
    ASKING,
    STAYING,
    UserWaits,
    better_requests,
    distinct,
    twin_runs,
    user_waits,
    users_of,
)
from papers.study import Inputs
from simulator.traces.swf import write_swf

ACCURATE, FIRST, SECOND, THIRD = 1, 2, 3, 4


def jobs_of_four_users():
    """Jobs of (submission, processors, run, request, user); the first user asks well."""
    return [
        (0, 4, 500, 1000, ACCURATE),
        (0, 4, 100, 1000, FIRST),
        (0, 4, 120, 1000, SECOND),
        (0, 4, 390, 1000, THIRD),
        (9, 4, 900, 1000, FIRST),  # half of the request in the mean: accurate, too
    ]


def test_jobs_that_requested_one_core_are_in_no_class(tmp_path):
    log = log_of([(0, 8, 10, 10), (1, 32, 10, 10), (2, 8, 10, 10)], 64)
    log.requested_processors[:] = [1, 20, -1]  # the last one is not logged: as allocated
    write_swf(log, tmp_path / "UniLu-Gaia-2014-1.swf.gz")
    found = cores(Inputs(paths=[tmp_path], limit=None, processes=1))
    assert [each.share for each in found] == [0.5, 0.5, 0, 0, 0]


def test_users_are_accurate_by_the_mean_usage_of_their_jobs_and_every_second_other_asks_better():
    users = dict(users_of(workload_of(jobs_of_four_users(), 8)))
    assert users["accurate"].tolist() == [True, True, False, False, True]
    assert users[ASKING].tolist() == [False, False, True, False, False]
    assert users[STAYING].tolist() == [False, False, False, True, False]
    assert (users[ASKING] | users[STAYING]).tolist() == users["all others"].tolist()
    assert users["all"].all()


def test_a_better_request_is_a_quarter_above_the_run_and_at_most_the_old_one():
    workload = workload_of(jobs_of_four_users(), 8)
    assert better_requests(workload).tolist() == [660, 180, 180, 540, 1000]


def test_equal_stretches_of_the_twin_count_once():
    def waits(digest):
        known = {"play": "PSP on", "users": "all", "jobs": 1, "wait": 2.0}
        return UserWaits(log="Curie", digest=digest, **known)

    found = distinct([waits("a"), waits("a"), waits("b")])
    assert [(each.digest, each.stretches) for each in found] == [("a", 2), ("b", 2)]


@pytest.fixture
def busy_log(tmp_path):
    """Two users whose jobs take the whole machine; the second uses a tenth of its requests."""
    jobs = [(900 * n, 1024, 1200, 1500 if n % 2 else 12_000, 1 + n % 2) for n in range(200)]
    path = tmp_path / "UniLu-Gaia-2014-1.swf"
    write_swf(log_of(jobs, 1024), path)
    return path


def test_psp_on_the_twin_shortens_the_waits_of_those_who_ask_well_and_of_who_begins_to(busy_log):
    plays = [user_waits(run) for run in twin_runs("Gaia", busy_log, None)[:4]]
    off, on, better_off, better_on = ({each.users: each.wait for each in play} for play in plays)
    assert [play[0].play for play in plays] == [
        "PSP off",
        "PSP on",
        "PSP off, first half asks better",
        "PSP on, first half asks better",
    ]
    assert on["accurate"] < off["accurate"]
    assert on[ASKING] > off[ASKING]
    assert better_on[ASKING] < on[ASKING]
    assert better_off["all"] == pytest.approx(off["all"]), "one job at a time: nothing backfills"
    assert np.isclose(off["all others"], off[ASKING])
