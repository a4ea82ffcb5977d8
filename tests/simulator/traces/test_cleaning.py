import io

import pytest

from simulator.traces.cleaning import REPLAY_RULES, RULES, SIMULATION_RULES, UnknownRuleError, clean
from simulator.traces.swf import read_swf

# job submit wait run allocated cpu memory requested time memory status user group exe queue …
JOB = "{job} 0 0 {run} {allocated} -1 -1 {requested} {request} -1 {status} 1 1 1 1 1 -1 -1"
SOUND = {"run": 60, "allocated": 4, "requested": -1, "request": 600, "status": 1}


def trace_of(*changes):
    jobs = [JOB.format(**{"job": n, **SOUND, **change}) for n, change in enumerate(changes, 1)]
    return read_swf(io.BytesIO("\n".join(["; MaxProcs: 8", *jobs]).encode()))


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("never-ran", {"run": -1}),
        ("never-ran", {"run": -1359981030}),
        ("endless", {"run": 2147483647}),
        ("zero-run", {"run": 0}),
        ("cancelled-waiting", {"status": 5, "run": 0}),
        ("no-request", {"request": -1}),
        ("no-request", {"request": 0}),
        ("unlimited-request", {"request": 2147483647}),
        ("no-processors", {"allocated": -1}),
        ("too-wide", {"allocated": 9}),
        ("repeated-job", {"job": 1}),
    ],
)
def test_each_rule_removes_what_it_names_and_counts_it(rule, change):
    kept, removed = clean(trace_of({}, change, {}), [rule])
    assert kept.line.tolist() == [2, 4]
    assert removed == {rule: 1}


@pytest.mark.parametrize(
    "change",
    [
        {"run": 900},  # beyond its request: data, not corruption
        {"allocated": -1, "requested": 2},
        {"request": 366 * 86400},
        {"status": 5},  # cancelled while it ran
    ],
)
def test_usable_jobs_stay(change):
    kept, _ = clean(trace_of(change), SIMULATION_RULES)
    assert len(kept) == 1


def test_a_zero_run_can_be_learned_from_and_not_be_scheduled():
    trace = trace_of({"run": 0})
    assert len(clean(trace, REPLAY_RULES)[0]) == 1
    assert len(clean(trace, SIMULATION_RULES)[0]) == 0


def test_a_job_that_breaks_several_rules_counts_once_under_the_first():
    kept, removed = clean(trace_of({"run": -1, "request": -1}), ["no-request", "never-ran"])
    assert len(kept) == 0
    assert removed == {"no-request": 1, "never-ran": 0}


def test_a_machine_of_unknown_size_has_no_job_too_wide():
    trace = read_swf(io.BytesIO(JOB.format(job=1, **{**SOUND, "allocated": 10**6}).encode()))
    assert len(clean(trace, ["too-wide"])[0]) == 1


def test_an_unknown_rule_is_refused_with_the_known_ones():
    with pytest.raises(UnknownRuleError, match=r"'flurries'.*never-ran"):
        clean(trace_of({}), ["flurries"])


def test_every_rule_says_what_it_removes():
    assert all(rule.__doc__ for rule in RULES.values())
