"""The jobs that are known to run, at any time, wherever a process began."""

import pytest
from runs import a_run

from predictors.jobs import Submission
from predictors.memory.columns import ELAPSED, ENDED, NOBODY, RUNNING
from predictors.memory.running_jobs import MOST_ENDED, RunningJobs, Start


def start_of(run, known_from=None):
    return Start(run.submission, run.start_time, known_from or run.start_time)


def like(running, at, **different):
    known = {"user": "ada", "requested_walltime": 3600.0} | different
    return running.like(Submission(submit_time=at, **known))


def summary(running, at):
    found = like(running, at)
    count = int(min(found[RUNNING], len(found) - ELAPSED))
    return int(found[RUNNING]), int(found[ENDED]), found[ELAPSED : ELAPSED + count].tolist()


def test_like_jobs_run_from_their_start_to_their_end():
    running = RunningJobs()
    runs = [a_run(f"{place}", start=1_000.0 + 100 * place) for place in range(3)]
    for run in runs:
        running.started(start_of(run))
    assert summary(running, 1_150.0) == (2, 0, [50.0, 150.0])
    assert summary(running, 1_250.0) == (3, 0, [50.0, 150.0, 250.0])
    running.ended(runs[1])  # at 1,700 s: it ran before, and the first began before it
    assert summary(running, 1_699.0) == (3, 0, [499.0, 599.0, 699.0])
    assert summary(running, 1_700.0) == (2, 1, [500.0, 700.0])


def test_a_start_counts_from_the_time_at_which_every_process_knows_of_it():
    running = RunningJobs()
    running.started(start_of(a_run("1"), known_from=1_005.0))
    assert like(running, 1_004.0) is NOBODY
    assert summary(running, 1_005.0) == (1, 0, [5.0])


@pytest.mark.parametrize(
    "different",
    [{"user": "bob"}, {"application": "b.out"}, {"requested_walltime": 60.0}, {"user": None}],
)
def test_other_jobs_are_not_like_it(different):
    running = RunningJobs()
    running.started(start_of(a_run("1")))
    assert like(running, 1_050.0, **different) is NOBODY


def test_of_many_jobs_evenly_spaced_elapsed_times_stand_for_all():
    running = RunningJobs()
    for place in range(71):
        running.started(start_of(a_run(f"{place}", start=1_000.0 + place)))
    jobs, _, elapsed = summary(running, 1_070.0)
    assert (jobs, elapsed) == (71, [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0])


def test_a_job_whose_end_was_lost_does_not_run_beyond_its_request():
    running = RunningJobs()
    running.started(start_of(a_run("1")))
    assert summary(running, 4_599.0)[0] == 1
    assert like(running, 4_600.0) is NOBODY


def test_a_job_that_starts_again_runs_once():
    running = RunningJobs()
    for start in (1_000.0, 1_500.0, 1_200.0):
        running.started(start_of(a_run("1", start=start)))
    assert summary(running, 1_600.0) == (1, 0, [100.0])
    running.ended(a_run("1", start=900.0, runtime=100.0))  # an earlier run
    assert summary(running, 1_600.0)[0] == 1


def test_ends_that_were_read_with_the_starts_are_noted_again_in_order():
    """A process that begins anew, and one that saw everything happen."""
    runs = [a_run(f"{place}", start=1_000.0 + place, runtime=500.0 + place) for place in range(9)]
    seen, anew = RunningJobs(), RunningJobs()
    for run in runs:
        seen.started(start_of(run))
        anew.started(start_of(run)._replace(end_time=run.end_time))
    anew.reopen(runs)
    for run in runs:
        assert (like(seen, 1_503.0) == like(anew, 1_503.0)).all()
        for running in (seen, anew):
            running.ended(run)
    assert (
        summary(seen, 1_505.0)
        == summary(anew, 1_505.0)
        == (6, 0, pytest.approx(list(range(497, 503))))
    )


def test_only_the_last_ends_of_like_jobs_are_remembered():
    running = RunningJobs()
    for place in range(MOST_ENDED + 10):
        run = a_run(f"{place}", start=1_000.0 + place, runtime=10.0)
        running.started(start_of(run))
        running.ended(run)
    assert len(running) == MOST_ENDED
    assert like(running, 1_005.0) is NOBODY
    assert summary(running, 1_305.0)[0] == 10


def test_a_start_that_is_read_after_the_end_of_its_run_is_no_running_job():
    running, run = RunningJobs(), a_run("1", runtime=100.0)
    running.ended(run)  # its start is not known yet
    running.started(start_of(run)._replace(end_time=run.end_time))
    assert summary(running, 1_050.0)[0] == 1
    assert like(running, 1_100.0) is NOBODY


def test_a_start_that_is_read_again_with_its_end_has_ended():
    """The run ended between the read of its start and the note of it."""
    running, run = RunningJobs(), a_run("1", runtime=100.0)
    running.started(start_of(run))
    assert summary(running, 1_100.0)[0] == 1
    running.started(start_of(run)._replace(end_time=run.end_time))
    running.started(start_of(run))
    assert like(running, 1_100.0) is NOBODY


def test_a_process_that_begins_anew_forgets_what_one_that_saw_everything_has_forgotten():
    runs = [
        a_run(f"{place}", start=1_000.0 + place, runtime=600.0 - place % 7)
        for place in range(2 * MOST_ENDED)
    ]
    seen, anew = RunningJobs(), RunningJobs()
    in_order = sorted(runs, key=lambda run: run.end_time)
    for run in runs:
        seen.started(start_of(run))
        anew.started(start_of(run)._replace(end_time=run.end_time))
    for run in in_order[:100]:
        seen.ended(run)
    anew.reopen(in_order[100:])
    for run in in_order[100:]:
        time = run.end_time - 300.0
        assert (like(seen, time) == like(anew, time)).all()
        for running in (seen, anew):
            running.ended(run)
    assert len(seen) == len(anew) == MOST_ENDED
    for run in reversed(runs):  # some are read again, in another order
        anew.started(start_of(run)._replace(end_time=run.end_time))
    anew.forget_surplus()
    times = [run.end_time - 1.0 for run in in_order[MOST_ENDED:]]
    assert all((like(seen, time) == like(anew, time)).all() for time in times)
