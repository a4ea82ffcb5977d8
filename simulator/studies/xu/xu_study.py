"""Xu et al. 2019, sections 2 and 3: knn tuned as the paper does, beside untuned knn and others.

Reference:
    Xu L., Xiong M. and Xiao Y., "On-line Prediction of Job Execution Time Using Schedule
    Historical Data", Application Research of Computers 37(3), 2019.
"""

from dataclasses import asdict
from typing import Any

from simulator.studies.study import LogPart, Played, Study, Takes
from simulator.studies.xu.published import PAPER, parts, play, published_tables
from simulator.studies.xu.xu_exhibits import EXHIBITS


def tables(played: Played) -> str:
    """The tables of every log."""
    return "\n".join(
        f"{_name(part)}\n{published_tables(found, part.options.plan)}" for part, found in played
    )


def _name(part: LogPart) -> str:
    year = part.options.year
    return part.trace if year is None else f"{part.trace}, {year}"


def records(played: Played) -> dict[str, Any]:
    """The comparisons by log."""
    return {"logs": {_name(part): asdict(found) for part, found in played}}


STUDY = Study(
    title="Tuned knn beside untuned knn and other methods (Xu et al. 2019, section 3)",
    takes=Takes.TRACES,
    runs=parts,
    play=play,
    tables=tables,
    notes=lambda _: PAPER,
    records=records,
    exhibits=EXHIBITS,
)
