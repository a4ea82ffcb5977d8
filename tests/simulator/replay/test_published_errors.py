"""Whole real logs against errors that were computed independently of this project."""

from pathlib import Path

import pytest

from predictors.registry import create
from simulator.replay.trace_replay import InProcess, replay
from simulator.reports.method_summary import summarise
from simulator.traces.cleaning import REPLAY_RULES, clean
from simulator.traces.completions import completions
from simulator.traces.swf import read_swf

TRACES = Path(__file__).parents[4] / "shared" / "traces"

METHODS = ("requested", "last-two", "max-usage")

# Mean absolute error in seconds and share of underestimated jobs, for each method.
EXPECTED = {
    "SDSC-SP2-1998-4.2-cln": (54_009, (9_466, 0.077), (4_177, 0.483), (4_764, 0.254)),
    "CTC-SP2-1996-3.1-cln": (77_216, (13_173, 0.093), (7_232, 0.481), (8_076, 0.263)),
    "HPC2N-2002-2.2-cln": (202_871, (27_974, 0.073), (13_324, 0.487), (16_313, 0.288)),
    "ANL-Intrepid-2009-1": (68_936, (4_090, 0.178), (1_995, 0.548), (2_029, 0.333)),
}


@pytest.mark.traces
@pytest.mark.parametrize(
    "name",
    [
        "SDSC-SP2-1998-4.2-cln",
        *(pytest.param(name, marks=pytest.mark.long) for name in [*EXPECTED][1:]),
    ],
)
def test_a_whole_log_has_the_errors_of_an_independent_causal_computation(name):
    path = TRACES / f"{name}.swf.gz"
    if not path.exists():
        pytest.skip(f"needs the real trace {path}")
    players = InProcess({method: create(method) for method in METHODS})
    trace, _ = clean(read_swf(path), REPLAY_RULES)
    summaries = summarise(replay(list(completions(trace)), players))
    jobs, *expected = EXPECTED[name]
    assert [summary.measures.jobs for summary in summaries] == [jobs] * 3
    for summary, (error, underestimated) in zip(summaries, expected, strict=True):
        assert round(summary.measures.mean_absolute_error) == error
        assert round(summary.measures.underestimation_rate, 3) == underestimated
