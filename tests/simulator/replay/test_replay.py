import numpy as np
import pytest
from hand_worked_log import run
from hypothesis import given
from hypothesis import strategies as st

from predictors.jobs import Basis, Interval, Prediction
from predictors.memory.columns import RUNNING
from predictors.memory.running_jobs import RunningJobs
from predictors.registry import create
from simulator.replay.trace_replay import (
    InProcess,
    play_jobs,
    replay,
    slices,
    start_of,
    steps,
)


class Diary:
    """Notes what it is asked and told; predicts how many runs it knows."""

    def __init__(self, largest_batch=1):
        self.methods = ("diary",)
        self.largest_batch = largest_batch
        self.entries = []
        self.known = 0

    def predict(self, method, submissions):
        self.entries.append(f"{method} asked for {','.join(each.job_id for each in submissions)}")
        basis = Basis(jobs=self.known, reason="history")
        return [
            Prediction(
                predicted_walltime=float(self.known),
                requested_walltime=each.requested_walltime,
                method=method,
                basis=basis,
                interval=Interval(lower=0.0, upper=1.0, coverage=0.9) if self.known else None,
            )
            for each in submissions
        ]

    def note(self, started):
        """Starts are told to methods that use them."""

    def observe(self, ended):
        self.known += len(ended)
        self.entries.append(f"told {','.join(each.submission.job_id for each in ended)}")


#  job  0    10   20   30   40   50
#  a    |=========|
#  b         |----====|             waits 10, ends at 40 when c and d arrive
#  c                        |==|
#  d                        |       runs 0 s: not known before its own submission
#  e                        |=      submitted together with c and d
HAND_WORKED = [
    run("a", 0, 20),
    run("b", 10, 20, wait=10),
    run("c", 40, 6),
    run("d", 40, 0),
    run("e", 40, 2),
]


def test_events_come_in_order_of_time_and_completions_first():
    diary = Diary()
    replay(HAND_WORKED, diary)
    assert diary.entries == [
        "diary asked for a",
        "diary asked for b",
        "told a,b",
        "diary asked for c",
        "diary asked for d",
        "told d",
        "diary asked for e",
        "told e,c",
    ]


def test_a_run_that_starts_and_ends_between_two_submissions_does_not_run_on():
    times = {"f": (1, 900, 1), "b": (2, 3, 30), "d": (3, 0, 30), "g": (60, 1, 1)}
    log = [run(job, submit, ran, wait=wait) for job, (submit, ran, wait) in times.items()]
    running, told = RunningJobs(), []

    def submitted(job):
        told.append(int(running.like(log[job].submission)[RUNNING]))

    play_jobs(
        log,
        ended=lambda job: running.ended(log[job]),
        submitted=submitted,
        started=lambda job: running.started(start_of(log[job])),
    )
    assert told == [0, 1, 1, 1], "at last f runs alone"
    diary = Diary()
    diary.note = lambda runs: diary.entries.append(f"{[each.submission.job_id for each in runs]}")
    replay(log, diary)
    assert diary.entries[-4:-1] == ["['b', 'd']", "told d,b", "diary asked for g"]


def test_submissions_between_which_no_run_ends_go_together_up_to_the_largest_batch():
    runs = [run(job, submit, 50) for job, submit in zip("abcde", (0, 1, 2, 3, 60), strict=True)]
    diary = Diary(largest_batch=3)
    replay(runs, diary)
    assert diary.entries == [
        "diary asked for a,b,c",
        "diary asked for d",
        "told a,b,c,d",
        "diary asked for e",
        "told e",
    ]


def test_answers_stand_in_the_order_of_the_log_whatever_the_order_of_submission():
    runs = [HAND_WORKED[place] for place in (4, 1, 0, 3, 2)]
    answers = replay(runs, Diary()).answers["diary"]
    # Of the three that came at once, the log's order decides: e, d, c.
    assert answers.predicted.tolist() == [2, 0, 0, 2, 3]
    assert answers.upper.tolist()[:2] == pytest.approx([1.0, float("nan")], nan_ok=True)
    assert len(answers.latencies) == 5


def test_a_submit_time_out_of_order_is_played_when_it_was():
    late, early = run("late", 100, 5), run("early", 0, 10)
    answers = replay([late, early], Diary()).answers["diary"]
    assert answers.predicted.tolist() == [1, 0]


def test_completions_at_one_time_keep_the_order_of_the_log():
    diary = Diary()
    replay([run("b", 0, 10), run("a", 5, 5), run("z", 1, 3), run("c", 10, 1)], diary)
    assert "told b,a" in diary.entries


def test_every_predictor_is_asked_and_told_alike():
    predictors = {name: create(name) for name in ("requested", "max-usage")}
    played = replay([run(n, 20 * n, 10 + n) for n in range(4)], InProcess(predictors))
    assert played.answers["requested"].predicted.tolist() == [100] * 4
    assert played.answers["max-usage"].predicted.tolist() == pytest.approx([100, 10, 11, 12])
    assert played.requested.tolist() == [100] * 4
    assert played.actual.tolist() == [10, 11, 12, 13]


def test_progress_counts_every_job_once():
    counted = []
    replay(HAND_WORKED, Diary(), progress=counted.append)
    assert sum(counted) == len(HAND_WORKED)


def test_an_empty_log_is_played_at_once():
    assert replay([], Diary()).answers["diary"].predicted.tolist() == []


def test_latencies_are_percentiles_over_requests():
    answers = replay(HAND_WORKED, Diary()).answers["diary"]
    answers.latencies[:] = [0.001, 0.002, 0.003]
    assert answers.latency(50) == pytest.approx(0.002)
    assert answers.predictions_per_second == pytest.approx(5 / 0.006)


whole_seconds = st.integers(0, 12)


@given(st.lists(st.tuples(whole_seconds, whole_seconds), max_size=30))
def test_a_submission_knows_exactly_the_runs_that_had_ended_and_were_submitted_before_it(jobs):
    submit = np.array([start for start, _ in jobs], dtype=float)
    end = np.array([start + length for start, length in jobs], dtype=float)
    known, asked = set(), []
    for step in steps(submit, end):
        known.update(step.ended)
        for job in step.submitted:
            before = {other for other in asked if end[other] <= submit[job]}
            assert known == before
            asked.append(job)
    assert known == set(asked) == set(range(len(jobs)))
    assert [submit[job] for job in asked] == sorted(submit)


def test_slices_are_no_larger_than_asked():
    assert list(slices("abcde", 2)) == ["ab", "cd", "e"]
