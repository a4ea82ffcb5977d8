"""Times, limits and periods as people read and write them."""

import doctest
import time

import pytest

from terminal import options
from terminal.console import CommandError
from terminal.options import period_of
from terminal.words import moment, walltime


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
    assert doctest.testmod(options) == doctest.TestResults(failed=0, attempted=1)
    assert [period_of(each) for each in ("12h", "30d", "2w")] == [43200, 2592000, 1209600]
    for wrong in ("", "d", "0d", "-3d", "3", "3m"):
        with pytest.raises(CommandError):
            period_of(wrong)
