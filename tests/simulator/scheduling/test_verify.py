"""Finished schedules: as files, under the checks of ``verify``, and what these find."""

import io
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from workloads import schedule_of, workload_of

from simulator.engine.policies import POLICIES
from simulator.scheduling.estimates import Estimates
from simulator.scheduling.schedule_file import (
    NoResultError,
    WrittenSchedule,
    schedule_tables,
    write_result,
)
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import simulate
from simulator.scheduling.verify import verify
from simulator.scheduling.workload import first_jobs, prepare
from simulator.traces.completions import RecordedLog
from simulator.traces.swf import read_swf

TRACES = Path(__file__).parents[4] / "shared/traces"

JOBS = [
    (0, 2, 10, 10),
    (1, 4, 5, 5),
    (2, 2, 8, 8),
    (3, 2, 9, 9),
    (4, 1, 30, 30),
]


LOGS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 4), st.integers(1, 30), st.integers(1, 30)),
    max_size=20,
)


@pytest.fixture
def written(tmp_path):
    """Write a schedule and read it back as a result."""

    def write(schedule):
        path = tmp_path / "schedule.swf.gz"
        write_result(schedule, path)
        return WrittenSchedule.of(read_swf(path))

    return write


def violated(result):
    return [finding.name for finding in verify(result) if finding.violated]


def test_a_job_that_starts_in_the_second_of_its_submission_starts_not_before_it(written):
    lines = ("; MaxProcs: 2", "1 2.7 -1 0.3 1 -1 -1 1 9.5 -1 1 1 1 1 1 1 -1 -1")
    workload = prepare(read_swf(io.BytesIO("\n".join(lines).encode())))
    result = written(simulate(workload, Semantics(), Estimates.named("exact")))
    assert (result.trace.submit[0], result.start[0], result.end[0]) == (2, 2, 3)
    assert violated(result) == []


def test_a_result_carries_the_schedule_and_its_rules(written):
    schedule = schedule_of(
        JOBS, 4, estimates=np.array([5, 5, 8, 9, 20]), policy="conservative", events="sequential"
    )
    result = written(schedule)
    assert result.start.tolist() == schedule.start.tolist()
    assert result.estimate.tolist() == [5, 5, 8, 9, 20]
    assert result.corrections.tolist() == schedule.corrections.tolist()
    assert result.backfilled.tolist() == schedule.backfilled.tolist()
    promised = schedule.promise - schedule.workload.submit
    assert result.predicted_wait.tolist() == promised.tolist()
    assert result.semantics == schedule.semantics
    assert result.size == 4
    assert result.trace.header["SimulationPolicy"].startswith("conservative: every job")
    assert result.trace.header["SimulationEstimates"].startswith("given")
    assert result.trace.header["SimulationInput"] == "5 jobs; nothing left out"


def test_a_wait_that_nobody_predicted_is_unknown(written):
    assert written(schedule_of(JOBS, 4, policy="easy")).predicted_wait.tolist() == [-1] * 5


def test_a_plain_log_is_no_result():
    with pytest.raises(NoResultError, match="SimulationRules"):
        WrittenSchedule.of(read_swf(io.BytesIO(b"; MaxProcs: 4")))


@examples(150)
@given(
    jobs=LOGS,
    rules=st.fixed_dictionaries(
        {
            "policy": st.sampled_from(list(POLICIES)),
            "events": st.sampled_from(["batch", "sequential"]),
            "depth": st.integers(1, 3),
            "compression": st.sampled_from(["start-order", "keep", "replan"]),
        }
    ),
    shares=st.lists(st.floats(0.05, 1.0), min_size=20, max_size=20),
)
def test_every_schedule_passes_its_checks(jobs, rules, shares, tmp_path_factory):
    requests = [request for *_, request in sorted(jobs, key=lambda job: job[0])]
    estimates = [max(1, int(share * most)) for share, most in zip(shares, requests, strict=False)]
    path = tmp_path_factory.mktemp("schedules") / "schedule.swf"
    for guessed in (None, np.array(estimates, dtype=np.int64)):
        schedule = schedule_of(jobs, 4, estimates=guessed, **rules)
        write_result(schedule, path)
        assert violated(WrittenSchedule.of(read_swf(path))) == []


@examples(150)
@given(
    jobs=LOGS,
    policy=st.sampled_from(["easy", "easy-sjbf"]),
    events=st.sampled_from(["batch", "sequential"]),
)
def test_easy_never_delays_the_head_beyond_its_reservation_if_estimates_are_exact(
    jobs, policy, events, tmp_path_factory
):
    path = tmp_path_factory.mktemp("schedules") / "schedule.swf"
    rules = Semantics(policy=policy, events=events)
    write_result(simulate(workload_of(jobs, 4), rules, Estimates.named("exact")), path)
    findings = {
        finding.name: finding.violated for finding in verify(WrittenSchedule.of(read_swf(path)))
    }
    assert findings["the head of the queue is not delayed"] == 0


def tampered(result, **columns):
    changed = {name: getattr(result.trace, name).copy() for name in columns}
    for name, values in columns.items():
        for job, value in values.items():
            changed[name][job] = value
    return {
        each.name: each for each in verify(WrittenSchedule.of(replace(result.trace, **changed)))
    }


def test_what_is_found_out_is_said_of_its_job(written):
    result = written(schedule_of(JOBS, 4, policy="easy"))
    assert result.start.tolist() == [0, 10, 2, 15, 15]
    early = tampered(result, wait={0: -1})["no start before submission"]
    assert early.violations == ("job 1 starts 1 s too early",)
    crowded = tampered(result, wait={1: 0})["no more processors held than there are"]
    assert crowded.violations == (
        "6 of 4 processors are held at 1",
        "8 of 4 processors are held at 2",
    )
    wrong = tampered(result, think_time={2: 0, 3: 10})["estimates between 1 s and the request"]
    assert wrong.violations == ("job 3 is estimated at 0 s", "job 4 is estimated at 10 s")
    late = tampered(result, wait={1: 10})["the head of the queue is not delayed"]
    assert late.violations == ("job 2 starts at 11, its reservation was 10",)
    kept = tampered(result, wait={1: 9})["the head of the queue is not delayed"]
    assert kept.violated == 0
    for marks in ({2: 0}, {0: 1, 1: 1}):
        assert tampered(result, cpu_time=marks)["backfilled jobs are marked"].violated


def test_of_many_violations_five_are_listed_and_all_are_counted(written):
    result = written(schedule_of([(0, 1, 5, 9)] * 7, 4, policy="fcfs"))
    found = tampered(result, think_time=dict.fromkeys(range(7), 0))
    wrong = found["estimates between 1 s and the request"]
    assert (wrong.violated, len(wrong.violations)) == (7, 5)


def test_who_passes_and_what_was_planned_is_said(written):
    result = written(schedule_of(JOBS, 4, policy="fcfs"))
    assert result.start.tolist() == [0, 10, 15, 15, 23]
    passing = tampered(result, wait={2: 50})["starts in the order of submission"]
    assert passing.violations == ("job 4 passes a job that was submitted earlier",)
    planned = written(schedule_of(JOBS, 4, policy="conservative"))
    assert planned.predicted_wait.tolist() == [0, 9, 0, 12, 11]
    late = tampered(planned, wait={4: 12})["planned starts are kept"]
    assert late.violations == ("job 5 waits 12 s, 11 s were planned",)


@pytest.mark.parametrize(
    ("rules", "checked"),
    [
        ({"policy": "fcfs"}, {"starts in the order of submission", "backfilled jobs are marked"}),
        ({"policy": "fcfs", "order": "sjf"}, set()),
        ({"policy": "easy", "order": "sjf"}, set()),
        (
            {"policy": "easy"},
            {"backfilled jobs are marked", "the head of the queue is not delayed"},
        ),
        (
            {"policy": "conservative"},
            {"backfilled jobs are marked", "planned starts are kept"},
        ),
        ({"policy": "conservative", "compression": "replan"}, {"backfilled jobs are marked"}),
        (
            {"policy": "conservative", "estimated_running": False},
            {"backfilled jobs are marked"},
        ),
        (
            {"policy": "fcfs-pinned", "pinning": 5},
            {"starts in the order of submission", "backfilled jobs are marked"},
        ),
    ],
    ids=lambda given: str(given if isinstance(given, dict) else sorted(given)),
)
def test_each_schedule_is_checked_for_what_its_rules_promise(written, rules, checked):
    always = {
        "no start before submission",
        "no more processors held than there are",
        "estimates between 1 s and the request",
    }
    found = verify(written(schedule_of(JOBS, 4, **rules)))
    assert {each.name for each in found} == always | checked


def test_a_promise_does_not_bind_where_an_estimate_was_outlived(written):
    result = written(schedule_of(JOBS, 4, estimates=[9, 5, 8, 9, 20], policy="conservative"))
    assert "planned starts are kept" not in {each.name for each in verify(result)}


def test_a_file_tells_whole_nodes_times_before_zero_and_that_nothing_was_promised(written):
    early = [(submit - 100, *rest) for submit, *rest in JOBS]
    schedule = schedule_of(early, 16, cores=4, policy="easy")
    result = written(schedule)
    assert result.processors.tolist() == [1, 1, 1, 1, 1]
    assert result.size == 4
    assert result.start.tolist() == [start - 100 for start in schedule.start]
    assert (result.end - result.start).tolist() == [10, 5, 8, 9, 30]
    assert result.predicted_wait.tolist() == [-1] * 5
    assert result.trace.header["SimulationMachine"] == (
        "4 nodes of 4 processors, whole nodes to a job"
    )


def test_a_schedule_of_a_schedule_has_its_own_rules(written):
    result = written(schedule_of(JOBS, 4, policy="easy"))
    again = simulate(prepare(result.trace), Semantics(policy="fcfs"), Estimates.named("exact"))
    assert written(again).semantics.policy == "fcfs"


def test_a_table_has_a_row_for_each_job_on_the_clock_of_the_log():
    jobs = [(submit - 100, *rest) for submit, *rest in JOBS]
    schedule = schedule_of(jobs, 4, estimates=[10, 5, 8, 9, 20])
    [table] = schedule_tables(RecordedLog(schedule.workload.trace), [schedule])
    rows = list(table.rows())
    assert (
        rows[2].items()
        >= {
            "job": 3,
            "user": "1",
            "processors": 2,
            "submit_time": -98,
            "simulated_start": -98,
            "simulated_end": -90,
            "simulated_wait": 0,
            "simulated_runtime": 8,
            "simulated_request": 8,
            "estimate": 8,
            "corrections": 0,
            "backfilled": True,
            "in_gap": False,
            "wait_at_arrival": None,
        }.items()
    )
    assert [row["corrections"] for row in rows] == [0, 0, 0, 0, 1]


@pytest.mark.traces
@pytest.mark.parametrize("estimates", ["requested", "exact", "max-usage"])
@pytest.mark.parametrize(
    "rules",
    [
        {"policy": "fcfs"},
        {"policy": "easy"},
        {"policy": "easy", "events": "sequential"},
        {"policy": "easy", "depth": 3},
        {"policy": "easy-sjbf"},
        {"policy": "easy", "order": "psp-aging"},
        {"policy": "conservative"},
        {"policy": "conservative", "compression": "keep", "events": "sequential"},
        {"policy": "conservative", "compression": "replan", "order": "wfp"},
        {"policy": "fcfs-pinned", "pinning": 3600},
    ],
    ids=lambda rules: "-".join(map(str, rules.values())),
)
@pytest.mark.parametrize("name", ["SDSC-SP2-1998-4.2-cln", "CTC-SP2-1996-3.1-cln"])
def test_schedules_of_real_logs_pass_their_checks(name, rules, estimates, written):
    path = TRACES / f"{name}.swf.gz"
    if not path.exists():
        pytest.skip(f"the real traces are not in {TRACES}")
    workload = prepare(beginning(path))
    schedule = simulate(workload, Semantics(**rules), Estimates.named(estimates))
    assert violated(written(schedule)) == []


@cache
def beginning(path):
    """The first jobs of a log, read once."""
    return first_jobs(read_swf(path), 2000)
