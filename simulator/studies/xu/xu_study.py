"""Does tuning pay? Tuned knn against untuned knn and other methods, on one log.

Reference:
    Xu L., Xiong M. and Xiao Y., "On-line Prediction of Job Execution Time Using Schedule
    Historical Data", Application Research of Computers 37(3), 2019, section 3.
"""

from pathlib import Path
from typing import Any

from simulator.studies.study import Played, Study, Takes, names_of, write_text
from simulator.studies.xu.equal_shares import TuningComparison, tables
from simulator.studies.xu.published import PAPER, PublishedComparison, published_tables
from simulator.studies.xu.xu_exhibits import EXHIBITS
from simulator.studies.xu.xu_parts import Part, parts, play


def report(played: Played) -> str:
    """The tables of every log."""
    texts = [f"{_name(part)}\n{_tables(part, found)}" for part, found in played]
    return "\n".join([*texts, *([PAPER] if any(part.as_published for part, _ in played) else [])])


def _name(part: Part) -> str:
    return part.trace if part.year is None else f"{part.trace}, {part.year}"


def _tables(part: Part, found: TuningComparison | PublishedComparison) -> str:
    if isinstance(found, PublishedComparison):
        return published_tables(found, part.plan)
    return tables(found)


def records(played: Played) -> dict[str, Any]:
    """The comparisons by log."""
    return {"logs": {_name(part): found.as_dict() for part, found in played}}


def write(directory: Path, title: str, text: str, played: Played) -> None:
    """Write the tables, and the curves of every log as SVG."""
    from simulator.studies.xu.pictures import write_pictures  # noqa: PLC0415 - needs matplotlib

    write_text(directory, title, text, played)
    names = names_of([Path(part.trace) for part, _ in played])
    for part, found in played:
        if isinstance(found, PublishedComparison):
            continue
        write_pictures(found, directory, names[Path(part.trace)].replace("/", "-").strip("-"))


STUDY = Study(
    title="Tuned knn beside untuned knn and other methods (Xu et al. 2019, section 3)",
    takes=Takes.TRACES,
    runs=parts,
    play=play,
    report=report,
    records=records,
    write=write,
    exhibits=EXHIBITS,
)
