"""Nominal and observed levels of small logs."""

import pytest
from calibration import play, table
from played_logs import LogPart, log_parts

from simulator.traces.cleaning import NoJobError
from terminal.console import CommandError


@pytest.mark.parametrize("method", ["least-cost", "auto:every=2000"])
def test_a_log_of_few_jobs_is_calibrated_without_numbers_that_are_none(method, tmp_path):
    log = tmp_path / "few.swf"
    log.write_text("".join(f"{n} {n} 0 9 1 -1 -1 1 9 -1 1 1 1 1 1 1 -1 -1\n" for n in range(1, 5)))
    found = play(LogPart(str(log), None, method))
    assert "nan" not in table(found)
    assert all(len(level.tenths) == 4 for level in found.levels)


def test_a_log_without_jobs_is_refused_and_no_goal_reached_on_it(tmp_path):
    (tmp_path / "empty.swf").write_text("; MaxProcs: 4\n")
    with pytest.raises(NoJobError, match=r"empty\.swf has no job"):
        play(LogPart(str(tmp_path / "empty.swf"), None, "least-cost"))


def test_a_missing_log_is_refused_before_another_is_played(tmp_path):
    with pytest.raises(CommandError, match="no file"):
        log_parts([tmp_path / "missing.swf"], None)
