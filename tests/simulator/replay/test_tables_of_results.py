"""A table of results/, made again by pandas from what replay --output wrote."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import walltimed  # noqa: F401 - a fixture

ROOT = Path(__file__).parents[3]
LOG = ROOT.parent / "shared" / "traces" / "SDSC-SP2-1998-4.2-cln.swf.gz"
KEPT = ROOT / "results" / "calibration" / "least-cost.txt"

TENTHS = 10

pytestmark = [
    pytest.mark.traces,
    pytest.mark.lengthy(30),
    pytest.mark.skipif(not LOG.exists(), reason="needs the logs of ../shared/traces"),
]


def row(kind, asked, is_so, seconds):
    """A line of the table, up to the goal."""
    tenths = (100 * (each.mean() - asked) for each in np.array_split(is_so, TENTHS))
    off = 100 * (is_so.mean() - asked)
    return [
        kind, f"{asked:.0%}", f"{is_so.mean():.1%}", f"{off:+.1f}",
        *(f"{each:+.1f}" for each in tenths), f"{seconds.median():,.0f}",
    ]  # fmt: skip


def test_a_table_of_calibration_comes_out_to_the_digit(walltimed, tmp_path):  # noqa: F811
    file = tmp_path / "predictions.parquet"
    code, _, complaint = walltimed(
        "replay", LOG, "--in-process", "-m", "least-cost", "--output", file
    )
    assert code == 0, complaint
    jobs = pd.read_parquet(file).sort_values("submit_time", kind="stable")
    actual = jobs[["runtime", "requested_walltime"]].min(axis="columns")
    made = []
    for share in (50, 80, 90, 95):
        lower, upper = jobs[f"lower_{share}"], jobs[f"upper_{share}"]
        inside = (lower <= actual) & (actual <= upper)
        made.append(row("interval", share / 100, inside, upper - lower))
    for rate in (5, 10, 20):
        predicted = jobs[f"outlived_{rate}"]
        made.append(row("underestimates", rate / 100, predicted < actual, predicted))
    _, _, after = KEPT.read_text().partition(f"SDSC-SP2-1998-4, least-cost: {len(jobs):,} jobs\n")
    lines = after.splitlines()[2:9]
    kept = [line.partition("  reached")[0].partition("  missed")[0].split() for line in lines]
    assert len(jobs) == 54_009
    assert made == kept
