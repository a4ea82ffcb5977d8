import json

import numpy as np
import pytest
from typer.testing import CliRunner
from workloads import log_of

from service.cli import app
from simulator.studies.study import StudyError
from simulator.studies.wait_prediction import (
    Case,
    ForecastWaits,
    WaitErrors,
    compare,
    runs,
    tables,
    wait_errors,
)
from simulator.traces.swf import write_swf


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
    wanted = runs([trace], None, method=["last-two"])
    assert len(wanted) == len(set(wanted)) == 2 * 5
    lines = tables([(case, wait_errors(case)) for case in wanted]).splitlines()[2:]
    assert len(lines) == 10
    assert all(line.startswith("small") for line in lines)
    assert [line.split()[-4] for line in lines if "exact" in line.split()[3]] == ["exact"] * 4


def test_the_command_prints_a_line_for_every_simulation_of_the_policies_asked_for(trace):
    command = ["experiment", "wait-prediction", trace, "--method", "last-two", "--processes", "1"]
    result = CliRunner().invoke(app, [*command, "--policy", "easy", "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)["records"]
    assert [(each["policy"], each["plans_by"], each["estimates"]) for each in found] == [
        ("easy", "requests", "requested"),
        ("easy", "requests", "last-two"),
        ("easy", "requests", "exact"),
        ("easy", "estimates", "last-two"),
        ("easy", "estimates", "exact"),
    ]
    assert found[0]["median"] == 10.0
    refused = CliRunner().invoke(app, [*command, "--policy", "best"])
    assert "no policy best" in str(refused.exception)


@pytest.mark.parametrize("method", ["oracle", "knn:k=none", "file:{empty}"])
def test_what_estimates_nothing_is_refused_before_a_log_is_read(method, tmp_path):
    empty = tmp_path / "predictions.csv"
    empty.touch()
    with pytest.raises(StudyError):
        runs([tmp_path / "missing.swf"], None, method=["knn", method.format(empty=empty)])
