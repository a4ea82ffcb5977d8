from pathlib import Path

import numpy as np
import pytest
from typer import Typer
from typer.testing import CliRunner
from wait_prediction import (
    Case,
    ForecastWaits,
    WaitErrors,
    cases,
    compare,
    main,
    table,
    wait_errors,
)
from workloads import log_of

from simulator.traces.cleaning import NoJobError
from simulator.traces.swf import write_swf
from terminal.console import CommandError


@pytest.fixture
def trace(tmp_path):
    """Two jobs fill the machine; a third is told 20 s by requests and waits 10 s."""
    file = tmp_path / "small.swf"
    write_swf(log_of([(0, 4, 10, 20), (0, 4, 5, 5), (20, 4, 5, 5)], 4), str(file))
    return str(file)


def test_errors_are_those_of_jobs_that_waited_or_were_told_so():
    told = ForecastWaits(
        predicted=np.array([0, 0, 50, 10, 30]),
        actual=np.array([0, 5, 20, 10, 0]),
        lower=np.array([0, -1, 30, 9, 0]),
        upper=np.array([0, -1, 60, 10, 40]),
    )
    assert compare(told) == WaitErrors(
        jobs=5, queued=4, median=17.5, mean=16.25, early=0.25, asked=3, within=2 / 3
    )
    nothing = np.array([0])
    assert compare(ForecastWaits(nothing, nothing, nothing - 1, nothing - 1)) == WaitErrors(
        1, 0, 0.0, 0, 0
    )


def test_requests_tell_too_long_waits_and_exact_runtimes_the_true_ones(trace):
    told = {
        source: wait_errors(Case(trace, None, "easy", "requests", source))
        for source in ("requested", "exact")
    }
    assert told["requested"] == WaitErrors(jobs=3, queued=1, median=10.0, mean=10.0, early=0.0)
    assert told["exact"] == WaitErrors(jobs=3, queued=1, median=0.0, mean=0.0, early=0.0)


def test_every_case_is_a_line_of_the_table(trace):
    wanted = cases([Path(trace)], None, methods=["last-two"])
    assert len(wanted) == len(set(wanted)) == 2 * 5
    lines = table([(case, wait_errors(case)) for case in wanted]).splitlines()[2:]
    assert len(lines) == 10
    assert all(line.startswith("small") for line in lines)
    assert [line.split()[-4] for line in lines if "exact" in line.split()[3]] == ["exact"] * 4


def test_the_script_prints_a_line_for_every_simulation_of_the_policies_asked_for(trace):
    script = Typer()
    script.command()(main)
    words = [trace, "--method", "last-two", "--processes", "1"]
    printed = CliRunner().invoke(script, [*words, "--policy", "easy"])
    assert printed.exit_code == 0, printed.output
    assert [line.split()[1:4] for line in printed.output.splitlines()[2:]] == [
        ["easy", "requests", "requested"],
        ["easy", "requests", "last-two"],
        ["easy", "requests", "exact"],
        ["easy", "estimates", "last-two"],
        ["easy", "estimates", "exact"],
    ]
    refused = CliRunner().invoke(script, [*words, "--policy", "best"])
    assert "no policy best" in str(refused.exception)


@pytest.mark.parametrize("method", ["oracle", "knn:k=none", "file:{empty}"])
def test_a_method_that_estimates_nothing_is_refused_before_a_log_is_read(method, tmp_path):
    empty = tmp_path / "predictions.csv"
    empty.touch()
    with pytest.raises(CommandError):
        cases([tmp_path / "missing.swf"], None, methods=["knn", method.format(empty=empty)])


def test_a_log_without_a_job_to_simulate_is_refused(tmp_path):
    (tmp_path / "empty.swf").write_text("; MaxProcs: 1\n")
    [case, *_] = cases([tmp_path / "empty.swf"], None)
    with pytest.raises(NoJobError, match=r"empty\.swf has no job"):
        wait_errors(case)
