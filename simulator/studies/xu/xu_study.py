"""Xu et al. 2019, sections 2 and 3: knn tuned as the paper does, beside untuned knn and others.

Reference:
    Xu L., Xiong M. and Xiao Y., "On-line Prediction of Job Execution Time Using Schedule
    Historical Data", Application Research of Computers 37(3), 2019.
"""

from dataclasses import asdict
from typing import Any

from simulator.reports.words import paragraph
from simulator.studies.study import LogPart, Played, Study, Takes
from simulator.studies.xu.published import (
    TENTHS,
    WINDOW,
    WITHIN,
    PublishedComparison,
    parts,
    play,
    published_tables,
)
from simulator.studies.xu.xu_exhibits import EXHIBITS


def tables(played: Played) -> str:
    """The tables of every log."""
    return "\n".join(
        f"{label_of(part)}\n{published_tables(found, part.options.plan)}" for part, found in played
    )


def records(played: Played) -> dict[str, Any]:
    """The comparisons by log."""
    return {"logs": {label_of(part): asdict(found) for part, found in played}}


def findings(played: Played) -> str:
    """The words of the paper, and what follows from the comparisons."""
    said = [_finding(label_of(part), found) for part, found in played]
    return f"{PAPER}\n" + "\n".join(map(paragraph, said)) + "\n"


def _finding(name: str, found: PublishedComparison) -> str:
    tuned = next(iter(found.errors))
    error, rate = found.errors[tuned]
    untuned, untuned_rate = found.errors["knn, untuned"]
    running = [f"{each:.0f}" for each in found.running[tuned][TENTHS]]
    low = running.index(min(running, key=float))
    direction = "does not rise" if float(running[-1]) <= float(running[0]) else "rises"
    return (
        f"{name}: tuned knn errs by {error:,.0f} s at {rate:.1%} underestimated jobs, untuned"
        f" knn by {untuned:,.0f} s at {untuned_rate:.1%}. Of the errors of tuned knn"
        f" {found.within[tuned]:.0%} are within {WITHIN:,} s, in the best {WINDOW:,} jobs in a row"
        f" {found.best_window:.0%}. Its error {direction} from the first tenth to the whole log"
        f" ({float(running[0]):,.0f} and {float(running[-1]):,.0f} s), and is least after"
        f" {10 * (low + 1)}% of the jobs."
    )


def label_of(part: LogPart) -> str:
    """The log of a part with its year."""
    year = part.options.year
    return part.trace if year is None else f"{part.trace}, {year}"


PAPER = """\
The paper (its Tables 3 and 4 did not survive in our copy; its text remains): against Tran &
Wolters' hybrid predictor the mean absolute error falls by 43% on HPC2N04 and by 77% on HPC2N05, at
a similar, slightly higher, share of underestimated jobs; SDSC04 has relatively large errors; 80% of
the errors of 9,000 jobs of HPC2N04 are below 1,000 s (Fig. 2); the error rises with the number of
jobs, with jumps (Fig. 3). Tran & Wolters' predictor is not built here, so the two percentages can
be neither confirmed nor denied: they are relative to a baseline that nothing above has.
"""

STUDY = Study(
    title="Tuned knn beside untuned knn and other methods (Xu et al. 2019, section 3)",
    takes=Takes.TRACES,
    runs=parts,
    play=play,
    tables=tables,
    notes=findings,
    records=records,
    exhibits=EXHIBITS,
)
