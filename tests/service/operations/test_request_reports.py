"""How requests compared with runtimes, by hand."""

import pytest
from msgspec.structs import replace
from runs import a_run

from predictors.facts import Facts
from predictors.jobs import Status
from service.operations.request_reports import (
    WaitsByClass,
    application_reports,
    by_application,
    enough_for,
    extensions,
    queue_cuts,
    rounded_up,
    suggested_request,
    total,
)

HOUR = 3600.0


def run(runtime, *, request=10 * HOUR, wait=HOUR, processors=2, status=Status.COMPLETED, **fields):
    fields = {"queue": "short", "project": "p", "application": "solve"} | fields
    made = a_run(
        "1", start=wait, runtime=runtime, submit_time=0.0, requested_walltime=request,
        requested_processors=processors, **fields,
    )  # fmt: skip
    return replace(made, status=status)


def reports(runs, share=0.9):
    return application_reports(by_application(runs), share, WaitsByClass(runs))


def test_hours_are_processor_hours_and_waits_are_counted_run_by_run():
    (report,) = reports([run(HOUR), run(2 * HOUR)])
    hours = (report.requested_hours, report.used_hours, report.wait_hours)
    assert (report.runs, hours) == (2, (40.0, 6.0, 2.0))


def test_runs_of_one_name_are_told_apart_by_their_scripts():
    first, second = Facts(script_hash="~aaaaaaaaaa"), Facts(script_hash="~bbbbbbbbbb")
    short = [run(HOUR, facts=first) for _ in range(9)]
    runs = [*short, *(run(8 * HOUR, facts=second) for _ in range(9)), run(HOUR)]
    (together,) = application_reports(by_application(runs), 0.9, WaitsByClass(runs))
    assert (together.runs, together.script, together.suggested_request) == (19, None, 8 * HOUR)
    apart = application_reports(by_application(runs, "script"), 0.9, WaitsByClass(runs))
    assert [(each.script, each.runs, each.suggested_request) for each in apart] == [
        ("~aaaaaaaaaa", 9, HOUR), ("~bbbbbbbbbb", 9, 8 * HOUR), (None, 1, None)
    ]  # fmt: skip
    assert {each.application for each in apart} == {"solve"}


def test_the_suggestion_holds_the_wanted_share_of_the_runs():
    runs = [run(n * 600.0) for n in range(1, 11)]
    assert enough_for(runs, 0.9) == 5400.0, "the ninth run took 1 h 30 min"
    (report,) = reports(runs)
    assert report.suggested_request == 5400.0
    assert report.gain_hours == 10 * 2 * (10 - 1.5)


def test_runs_that_were_cut_off_are_held_by_no_known_request():
    runs = [run(600.0)] * 8 + [run(10 * HOUR, status=Status.TIMEOUT)] * 2
    assert enough_for(runs, 0.9) is None
    assert enough_for(runs, 0.8) == 600.0


def test_hours_of_runs_that_ended_at_their_limit_are_summed_by_job_and_queue():
    cut = [run(10 * HOUR), run(10 * HOUR - 30, queue="long", application="mesh")]
    lost = [run(10 * HOUR, status=Status.NODE_FAIL), run(HOUR)]
    sums = total(reports(cut + lost))
    assert (sums.cut_off, round(sums.cut_hours)) == (2, 40)
    assert [(each.queue, each.cut_off) for each in queue_cuts(cut + lost)] == [
        ("short", 1),
        ("long", 1),
    ]
    by_job = {each.application: each.cut_off for each in reports(cut + lost)}
    assert by_job == {"solve": 1, "mesh": 1}


@pytest.mark.parametrize(
    ("runtime", "status", "effect", "cut_off", "hours"),
    [
        (12 * HOUR, Status.COMPLETED, "saved", 0, 24.0),
        (12 * HOUR, Status.FAILED, "saved", 0, 24.0),
        (9 * HOUR, Status.COMPLETED, "not-needed", 0, 0.0),
        (20 * HOUR, Status.TIMEOUT, "cut", 1, 0.0),
        (20 * HOUR, Status.UNKNOWN, "cut", 1, 0.0),
        (12 * HOUR, Status.CANCELLED, "stopped", 0, 0.0),
        (12 * HOUR, Status.NODE_FAIL, "stopped", 0, 0.0),
    ],
)
def test_an_extended_limit_is_reported_with_what_it_did(runtime, status, effect, cut_off, hours):
    extended = replace(run(runtime, status=status), extended_to=20 * HOUR)
    (found,) = extensions([run(HOUR), extended])
    assert (found.requested_walltime, found.extended_to) == (10 * HOUR, 20 * HOUR)
    assert (found.effect, found.saved_hours) == (effect, hours)
    assert total(reports([extended])).cut_off == cut_off


def test_few_runs_suggest_nothing_and_no_suggestion_is_longer_than_the_request():
    assert enough_for([run(600.0)] * 4, 0.9) is None
    (report,) = reports([run(HOUR - 100, request=HOUR)] * 10)
    assert report.suggested_request is None
    assert report.gain_hours == 0.0


def test_what_waiting_cost_is_the_difference_to_jobs_that_asked_for_enough():
    thrifty = [run(300.0, request=420.0, wait=60.0, user="bob") for _ in range(20)]
    wasteful = [run(300.0, request=8 * HOUR, wait=HOUR) for _ in range(10)]
    found = {each.user: each for each in reports([*thrifty, *wasteful])}
    assert found["ada"].excess_wait_hours == pytest.approx(10 * (3600 - 60) / 3600)
    assert found["bob"].excess_wait_hours == 0.0
    together = total(reports([*thrifty, *wasteful])).excess_wait_hours
    assert together == pytest.approx(found["ada"].excess_wait_hours)


def test_what_waiting_cost_is_not_told_without_jobs_to_compare_with():
    (report,) = reports([run(300.0, request=8 * HOUR)] * 10)
    assert report.excess_wait_hours is None


def test_requests_are_rounded_up_to_what_people_write():
    asked = [61.0, 3600.0, 3601.0, 7 * HOUR, 25 * HOUR]
    assert [rounded_up(each) for each in asked] == [
        300.0,
        3600.0,
        4500.0,
        7 * HOUR,
        30 * HOUR,
    ]


def test_a_suggested_request_is_the_shortest_that_holds_the_share():
    levels, runtimes = (0.5, 0.9, 0.95, 0.99), (100.0, 200.0, 400.0, 900.0)
    assert suggested_request(levels, runtimes, 0.95, 3600.0) == 600.0
    assert suggested_request(levels, runtimes, 0.95, 600.0) is None
    assert suggested_request(levels, None, 0.95, 600.0) is None
