"""Effect of predictions on schedules: methods, policies and profiles, on shaken logs."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from simulator.replay.method_spec import MethodSpec, usual_methods
from simulator.reports.page import picture
from simulator.scheduling.estimates import EXACT, REQUESTED
from simulator.scheduling.semantics import PROFILES
from simulator.studies.scheduling.scheduling_changes import lines_of, summaries
from simulator.studies.scheduling.scheduling_plays import POLICIES, SourcePart, play
from simulator.studies.scheduling.scheduling_tables import draw, tables
from simulator.studies.study import (
    Played,
    Study,
    StudyError,
    Takes,
    first_word,
    names_of,
)


def runs(
    paths: Sequence[Path],
    limit: int | None,
    *,
    shake: int = 10,
    method: Sequence[str] = (),
    first: Sequence[str] = (),
) -> Sequence[SourcePart]:
    """A part for each log and source of estimates.

    Raises:
        StudyError: a method is unknown, or a limit of one log is not understood or of none.
    """
    limits = dict(map(_limit, first))
    for name in limits:
        if not any(path.name.startswith(name) for path in paths):
            raise StudyError(f"No log is named {name}, as --first has it.")
    try:
        for spec in method:
            MethodSpec.parse(spec).predictor()
    except ValueError as error:
        raise StudyError(str(error)) from error
    chosen = method or [name for name in usual_methods() if name != REQUESTED]
    names = names_of(paths, (_two_words, first_word))
    return [
        SourcePart(str(path), _limit_of(path, limits, limit), estimates, shake, names[path])
        for path in paths
        for estimates in (REQUESTED, *chosen, EXACT)
    ]


def _two_words(path: Path) -> str:
    return "-".join(first_word(path).split("-")[:2])


def _limit(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if not (name and number.isdecimal() and int(number)):
        raise StudyError(f"{text!r} is not of the form LOG=JOBS.")
    return name, int(number)


def _limit_of(path: Path, limits: Mapping[str, int], usual: int | None) -> int | None:
    """The limit of the longest name that the log's begins with."""
    found = [name for name in limits if path.name.startswith(name)]
    return limits[max(found, key=len)] if found else usual


def records(played: Played) -> dict[str, Any]:
    """Every change with its plays, and the goals."""
    lines = list(lines_of(played))
    return {
        "records": [line.as_record() for line in lines],
        "goals": [
            {
                "policy": rules[0],
                "profile": rules[1],
                "estimates": estimates,
                "wait": found.wait,
                "slowdown": found.slowdown,
                "longest": found.longest,
                "reached": not found.missed,
                "missed": found.missed,
            }
            for (rules, estimates), found in summaries(lines).items()
        ],
    }


def pictures(directory: Path, played: Played) -> Iterator[str]:
    """Draw a picture for each policy and profile."""
    lines = list(lines_of(played))
    for rules in product(POLICIES, PROFILES):
        path = directory / f"{'-'.join(rules)}.svg"
        draw([line for line in lines if line.rules == rules], path)
        yield picture(", ".join(rules), path, "Mean and range of the repetitions.")


STUDY = Study(
    title="What predictions do to a schedule: methods, policies and profiles, shaken",
    takes=Takes.TRACES,
    simulates=True,
    runs=runs,
    play=play,
    tables=tables,
    records=records,
    pictures=pictures,
)
