"""Effect of predictions on schedules: methods, policies and profiles, on shaken logs.

The tables and pictures show all logs together, then each log.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from simulator.replay.method_spec import MethodSpec, usual_methods
from simulator.reports.backtest.gains import GainInterval
from simulator.reports.page import picture
from simulator.reports.palette import colours_of, name_of_method
from simulator.reports.replay_pictures import STYLE, save
from simulator.reports.tables import text_table
from simulator.reports.words import counted, duration
from simulator.scheduling.estimates import EXACT, REQUESTED
from simulator.scheduling.semantics import PROFILES
from simulator.studies.scheduling.scheduling_changes import (
    MethodChange,
    Summary,
    lines_of,
    summaries,
)
from simulator.studies.scheduling.scheduling_plays import (
    POLICIES,
    TODAY,
    PolicyProfile,
    SourcePart,
    play,
)
from simulator.studies.study import Played, Study, StudyError, Takes, first_word, names_of


def tables(played: Played) -> str:
    """Table of all logs together, then of each log."""
    lines = list(lines_of(played))
    logs = dict.fromkeys(part.trace for part, _ in played)
    return "\n".join([summary_table(lines), *(log_table(trace, played, lines) for trace in logs)])


SUMMARY_LEGEND = """\
wait, slowdown: change of mean wait and bounded slowdown in the median log
against requests under EASY, and (alone) against requests under the same policy;
longest: longest wait over that by requests under EASY, in the worst log. Goals:
-15%, -25%, 1.25 (* missed), and no log worse off in every repetition.
"""


def summary_table(lines: Sequence[MethodChange]) -> str:
    """The goals, reached or missed."""
    heads = ("all logs", "wait", "alone", "slowdown", "alone", "longest", "goals")
    rows: list[Sequence[str]] = []
    rules: PolicyProfile | None = None
    for (here, estimates), found in summaries(lines).items():
        if here != rules:
            rows.append((", ".join(here), *[""] * (len(heads) - 1)))
            rules = here
        rows.append(
            (
                f"  {short(estimates)}",
                _marked(f"{found.wait:+.0%}", "wait", found),
                f"{found.alike[0]:+.0%}",
                _marked(f"{found.slowdown:+.0%}", "slowdown", found),
                f"{found.alike[1]:+.0%}",
                _marked(f"{found.longest:.2f}", "longest", found),
                found.verdict,
            )
        )
    return f"{text_table(heads, rows)}\n{SUMMARY_LEGEND}"


def _marked(text: str, goal: str, found: Summary) -> str:
    return f"{text}{'*' if goal in found.missed else ' '}"


def log_table(trace: str, played: Played, lines: Sequence[MethodChange]) -> str:
    """The changes on one log, mean and range of the repetitions."""
    part, found = next((p, f) for p, f in played if (p.trace, p.estimates) == (trace, REQUESTED))
    today = found.plays[TODAY]
    wait, slowdown, longest = (np.mean([each[place] for each in today]) for place in range(3))
    rows: list[Sequence[str]] = []
    for rules in product(POLICIES, PROFILES):
        here = [line for line in lines if (line.log, line.rules) == (part.log, rules)]
        rows += [(", ".join(rules), *[""] * 5)] if here else []
        rows += [
            (
                f"  {short(line.estimates)}",
                *_change(line.today.wait),
                *_change(line.today.slowdown),
                f"{line.today.longest.mean:.2f}",
            )
            for line in here
        ]
    heads = (part.log, "wait", "", "slowdown", "", "longest")
    return (
        f"{part.log}: {found.jobs:,} jobs, {counted(len(today), 'play')}. By requests under EASY: "
        f"wait {duration(wait)},\nbounded slowdown {slowdown:.1f}, longest wait "
        f"{duration(longest)}\n"
        f"{text_table(heads, rows)}"
    )


def short(estimates: str) -> str:
    """A name of at most 20 letters."""
    specs = {spec for spec in usual_methods() if ":" in spec}
    return name_of_method(estimates) if estimates in specs else estimates[:20]


def _change(change: GainInterval) -> tuple[str, str]:
    return f"{change.mean:+.0%}", f"({100 * change.low:+.0f} to {100 * change.high:+.0f})"


def draw(lines: Sequence[MethodChange], path: Path) -> None:
    """Changes by log and method, with the ranges of the repetitions."""
    logs = list(dict.fromkeys(line.log for line in lines))
    methods = list(dict.fromkeys(line.estimates for line in lines))
    titles = ("mean wait", "bounded slowdown", "longest wait")
    with rc_context(STYLE):
        figure = Figure(figsize=(10, 7.5), layout="constrained")
        for place, (axes, title) in enumerate(
            zip(figure.subplots(3, 1, sharex=True), titles, strict=True)
        ):
            for number, (method, colour) in enumerate(
                zip(methods, colours_of(methods), strict=True)
            ):
                own = [line for line in lines if line.estimates == method]
                changes = [line.today[place] for line in own]
                means = np.array([change.mean for change in changes]) - (place == 2)
                ends = [[c.mean - c.low for c in changes], [c.high - c.mean for c in changes]]
                shift = (number - (len(methods) - 1) / 2) * 0.8 / len(methods)
                axes.errorbar(
                    [logs.index(line.log) + shift for line in own],
                    means,
                    yerr=ends,
                    fmt="o",
                    markersize=4,
                    color=colour,
                    label=short(method),
                )
            axes.axhline(0, color="0.5", linewidth=1)
            axes.set(title=f"{title}, against requests under EASY")
            axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.set_xticks(range(len(logs)), logs)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=5)
        save(figure, path)


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
