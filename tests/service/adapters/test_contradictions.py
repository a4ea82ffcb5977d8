"""Records of which one field contradicts the others."""

import doctest
import time

import pytest

from predictors.jobs import Status
from service.adapters import runs as contradictions
from service.adapters.pbs import completion_of
from service.adapters.runs import Doubt, Reason, checked_elapsed
from service.adapters.sacct_text import read_sacct

RECORD = (
    "03/01/2024 11:01:00;E;501.srv;user=ada group=g jobname=cfd queue=workq ctime=1709287000 "
    "start=1709287260 exec_host=n1/0*4+n2/0*4 Resource_List.ncpus=8 Resource_List.nodect=2 "
    "Resource_List.walltime=02:00:00 end=1709290860 Exit_status=0 "
)


def test_the_example_of_the_rule_holds():
    assert doctest.testmod(contradictions).failed == 0


@pytest.mark.parametrize(
    ("used", "runtime", "doubt"),
    [
        ("resources_used.cput=03:50:00 resources_used.walltime=00:00:00", 3600, Doubt.ELAPSED),
        ("resources_used.cput=03:50:00 resources_used.walltime=00:00:05", 3600, Doubt.ELAPSED),
        ("resources_used.cput=03:50:00 resources_used.walltime=00:20:00", 3600, Doubt.ELAPSED),
        ("resources_used.cput=00:00:00 resources_used.walltime=00:00:00", 3600, Doubt.ELAPSED),
        ("resources_used.cput=00:00:03 resources_used.walltime=00:00:05", 3600, Doubt.ELAPSED),
        ("resources_used.walltime=00:00:05", 3600, Doubt.ELAPSED),
        ("resources_used.cput=03:50:00 resources_used.walltime=00:30:00", 1800, None),
        ("resources_used.cput=00:30:00 resources_used.walltime=00:04:00", 240, None),  # busy
        ("resources_used.cput=03:50:00 resources_used.walltime=00:59:55", 3595, None),
        ("resources_used.cput=03:50:00 resources_used.walltime=01:00:30", 3600, None),
    ],
)
def test_a_used_walltime_counts_only_where_a_suspension_explains_it(used, runtime, doubt):
    found = completion_of(RECORD + used)
    assert found.completion.runtime == runtime
    assert found.doubts == ((doubt,) if doubt else ())


def test_a_run_that_the_used_walltime_makes_short_is_still_killed_at_its_limit():
    killed = RECORD.replace("02:00:00", "01:00:00").replace("status=0", "status=271")
    found = completion_of(f"{killed} resources_used.walltime=00:00:00").completion
    assert (found.runtime, found.status) == (3600, Status.TIMEOUT)


def row(**changes):
    cells = {
        "JobIDRaw": "1", "Submit": "1709287000", "Start": "1709287260", "End": "1709290860",
        "ElapsedRaw": "3600", "TimelimitRaw": "120", "NCPUS": "4", "NNodes": "2",
        "State": "COMPLETED",
    } | changes  # fmt: skip
    ((_, found),) = read_sacct(["|".join(cells) + "\n", "|".join(cells.values()) + "\n"])
    return found


@pytest.mark.parametrize(
    ("changes", "runtime", "doubts"),
    [
        ({}, 3600, ()),
        ({"ElapsedRaw": "0"}, 3600, (Doubt.ELAPSED,)),
        ({"ElapsedRaw": "5"}, 3600, (Doubt.ELAPSED,)),
        ({"ElapsedRaw": "1800"}, 1800, ()),  # suspended, as far as the row says
        ({"ElapsedRaw": "1800", "Suspended": "00:30:00"}, 1800, ()),
        ({"ElapsedRaw": "60", "Suspended": "00:59:00"}, 60, ()),
        ({"ElapsedRaw": "1800", "Suspended": "00:00:00"}, 3600, (Doubt.ELAPSED,)),
        ({"ElapsedRaw": "1800", "TotalCPU": "04:00:00"}, 3600, (Doubt.ELAPSED,)),
        ({"ElapsedRaw": "7200"}, 7200, (Doubt.CLOCK_CHANGE,)),
        ({"End": "1709287260"}, 3600, (Doubt.CLOCK_CHANGE,)),
        ({"ElapsedRaw": "90000"}, 3600, (Doubt.ELAPSED,)),
        ({"End": "4294967296"}, 3600, (Doubt.FUTURE_END,)),  # a clock of the far future
        ({"End": "2035-01-01T00:00:00", "ElapsedRaw": "60"}, 60, (Doubt.FUTURE_END,)),
        ({"End": "2035-01-01T00:00:00", "TotalCPU": "09:00:00"}, 3600, (Doubt.FUTURE_END,)),
        ({"TimelimitRaw": "10"}, 3600, (Doubt.OVERRUN,)),
        ({"Submit": "1709288000"}, 3600, (Doubt.SUBMITTED_LATER,)),
    ],
)
def test_no_field_of_a_row_is_believed_against_the_others(changes, runtime, doubts):
    found = row(**changes)
    assert found.completion.runtime == runtime
    assert found.completion.end_time - found.completion.start_time >= runtime
    assert found.doubts == doubts


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"End": "2106-02-07T06:28:15", "ElapsedRaw": ""}, Reason.ENDLESS),
        ({"TimelimitRaw": "4294967296"}, Reason.NO_LIMIT),
        ({"Start": "1970-01-01T01:00:00"}, Reason.UNKNOWN_START),  # 0 in Berlin
        ({"End": "1969-12-31T19:00:00"}, Reason.UNKNOWN_END),  # 0 in New York
    ],
)
def test_a_sentinel_of_a_clock_or_a_limit_is_left_out_by_name(changes, reason):
    assert row(**changes).reason is reason


def test_a_record_without_a_creation_time_has_the_time_it_was_queued():
    changed = RECORD.replace("ctime=1709287000", "ctime=Unknown qtime=1709287100")
    assert completion_of(changed).completion.submission.submit_time == 1709287100


def test_a_job_has_a_processor_on_each_of_its_nodes():
    found = row(NCPUS="1", NNodes="4")
    assert found.completion.submission.requested_processors == 4
    assert found.doubts == (Doubt.FEW_PROCESSORS,)


def test_a_run_that_ends_in_the_future_is_named():
    start = int(time.time()) + 86400
    assert row(Start=str(start), End=str(start + 3600)).doubts == (Doubt.FUTURE,)


@pytest.mark.parametrize(("elapsed", "span"), [(None, 5.0), (0.0, 9.0), (5.0, -100.0)])
def test_small_differences_and_ends_before_the_start_are_no_business_of_the_rule(elapsed, span):
    assert checked_elapsed(elapsed, span=span)[1] is None
