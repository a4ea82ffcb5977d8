"""What do predictions do to a schedule? Methods, policies and profiles, shaken again and again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from simulator.replay.method_spec import MethodSpec, usual_methods
from simulator.reports.backtest.gains import Interval
from simulator.reports.backtest.repetitions import SHAKE_SECONDS
from simulator.reports.palette import colours_of, name_of_method
from simulator.reports.replay_pictures import STYLE
from simulator.reports.tables import text_table
from simulator.reports.words import duration
from simulator.scheduling.estimates import EXACT, REQUESTED, Estimates, Said
from simulator.scheduling.measures import bounded_slowdown
from simulator.scheduling.profiles import PROFILES
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import simulate
from simulator.scheduling.workload import Workload, first_jobs, prepare
from simulator.studies.study import Played, Study, StudyError, Takes, write_text
from simulator.traces.shake import shaken
from simulator.traces.swf import read_swf
from simulator.traces.trace import Trace

POLICIES = ("easy", "easy-sjbf")
TODAY = ("easy", "regular")
"""Policy and profile that gains are counted against, by requests."""

WAIT_GOAL, SLOWDOWN_GOAL = -0.15, -0.25
"""Changes in the median log."""

LONGEST_GOAL = 1.25
"""The longest wait of every log, over that by requests."""

ASKED = Semantics(
    estimated_order=False, estimated_backfilling=False, estimated_running=False, guarded=True
)
"""Rules of the schedule in which methods are asked: EASY by requests."""

MEASURES = ("wait", "slowdown", "longest")


class Repetition(NamedTuple):
    """Mean wait, mean bounded slowdown and longest wait of one play; times in seconds."""

    wait: float
    slowdown: float
    longest: float


Rules = tuple[str, str]
"""A policy and a profile."""

Plays = Mapping[Rules, Sequence[Repetition]]
"""Of the log itself, then of its shaken copies."""


class Part(NamedTuple):
    """One source of estimates on one log.

    Attributes:
        trace: path of the log.
        limit: jobs after cleaning, or all.
        estimates: as ``Estimates.named`` reads them.
        shakes: number of shaken copies.
    """

    trace: str
    limit: int | None
    estimates: str
    shakes: int

    @property
    def log(self) -> str:
        """The first words of the log's name."""
        return "-".join(Path(self.trace).name.split(".")[0].split("-")[:2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one source of estimates on one log."""

    jobs: int
    plays: Plays


def runs(
    paths: Sequence[Path],
    limit: int | None,
    *,
    shake: int = 10,
    method: Sequence[str] = (),
    first: Sequence[str] = (),
) -> Sequence[Part]:
    """A part for each log and source of estimates.

    Raises:
        StudyError: a method is unknown, or a limit of one log is not understood.
    """
    limits = dict(map(_limit, first))
    try:
        for spec in method:
            MethodSpec.parse(spec).predictor()
    except ValueError as error:
        raise StudyError(str(error)) from error
    chosen = method or [name for name in usual_methods() if name != REQUESTED]
    return [
        Part(str(path), _limit_of(path, limits, limit), estimates, shake)
        for path in paths
        for estimates in (REQUESTED, *chosen, EXACT)
    ]


def _limit(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if not (name and number.isdecimal() and int(number)):
        raise StudyError(f"{text!r} is not of the form LOG=JOBS.")
    return name, int(number)


def _limit_of(path: Path, limits: Mapping[str, int], usual: int | None) -> int | None:
    found = [jobs for name, jobs in limits.items() if path.name.startswith(name)]
    return found[0] if found else usual


def play(part: Part) -> Outcome:
    """Play the log and its shaken copies under all rules.

    The method is asked once about each job, in a schedule of EASY by requests, when it knows what
    had ended there. All plays take over these answers, so that they differ by rules alone.
    """
    trace = first_jobs(_log(part.trace), part.limit)
    said = answers(trace, part.estimates)
    plays: dict[Rules, list[Repetition]] = {}
    jobs = 0
    for repetition in range(part.shakes + 1):
        copy = shaken(trace, SHAKE_SECONDS, repetition) if repetition else trace
        workload = prepare(copy)
        jobs = len(workload)
        known = Estimates(part.estimates, known=lambda each: _of_jobs(trace, said, each))
        for policy, profile in rules_of(part.estimates):
            semantics = Semantics.adjusted(profile, policy=policy)
            plays.setdefault((policy, profile), []).append(_measured(workload, semantics, known))
    return Outcome(jobs=jobs, plays=plays)


@lru_cache(1)
def _log(path: str) -> Trace:
    return read_swf(path)


def answers(trace: Trace, estimates: str) -> Said:
    """What is said of each line of the log; 0 of a line that cannot be simulated."""
    workload = prepare(trace)
    source = Estimates.named(estimates)
    said = source.beforehand(workload) or simulate(workload, ASKED, source).said
    lines = np.zeros((len(Said._fields), len(trace)), np.int64)
    lines[:, _places(trace, workload)] = said
    return Said._make(lines)


def _of_jobs(trace: Trace, said: Said, workload: Workload) -> Said:
    places = _places(trace, workload)
    return Said._make(column[places] for column in said)


def _places(trace: Trace, workload: Workload) -> Any:
    return np.searchsorted(trace.line, workload.trace.line)


def rules_of(estimates: str) -> Sequence[Rules]:
    """The rules to play; by requests all profiles are the same."""
    profiles = [TODAY[1]] if estimates == REQUESTED else list(PROFILES)
    return list(product(POLICIES, profiles))


def _measured(workload: Workload, semantics: Semantics, known: Estimates) -> Repetition:
    wait = simulate(workload, semantics, known).wait
    return Repetition(
        wait=float(wait.mean()),
        slowdown=float(bounded_slowdown(wait, workload.runtime).mean()),
        longest=float(wait.max()),
    )


class Change(NamedTuple):
    """What changed, repetition by repetition: a share, or a factor of the longest wait."""

    wait: Interval
    slowdown: Interval
    longest: Interval

    @classmethod
    def between(cls, before: Sequence[Repetition], after: Sequence[Repetition]) -> "Change":
        """From one to the other."""
        pairs = list(zip(before, after, strict=True))
        wait, slowdown = (
            Interval.of([_ratio(one[place], other[place]) - 1 for one, other in pairs])
            for place in (0, 1)
        )
        return cls(
            wait,
            slowdown,
            Interval.of([_ratio(one.longest, other.longest) for one, other in pairs]),
        )

    @property
    def is_worse(self) -> bool:
        """Whether wait or slowdown is worse in every repetition."""
        return self.wait.low > 0 or self.slowdown.low > 0


def _ratio(before: float, after: float) -> float:
    if before > 0:
        return after / before
    return 1.0 if after <= 0 else float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One source of estimates under one policy and profile on one log.

    Attributes:
        plays: those by requests under EASY, and its own.
        today: against requests under EASY.
        alike: against requests under the same policy: what predictions do, without its order.
    """

    log: str
    estimates: str
    rules: Rules
    plays: tuple[Sequence[Repetition], Sequence[Repetition]]
    today: Change
    alike: Change

    def as_record(self) -> dict[str, Any]:
        """For JSON."""
        policy, profile = self.rules
        return {
            "log": self.log,
            "estimates": self.estimates,
            "policy": policy,
            "profile": profile,
            "plays_by_requests": [play._asdict() for play in self.plays[0]],
            "plays": [play._asdict() for play in self.plays[1]],
            "against_easy_by_requests": _record(self.today),
            "against_requests": _record(self.alike),
        }


def _record(change: Change) -> dict[str, Any]:
    return {
        name: {"mean": each.mean, "low": each.low, "high": each.high}
        for name, each in change._asdict().items()
    }


def lines_of(played: Played) -> Iterator[Line]:
    """The changes on every log, those of requests under another policy first."""
    base = {part.trace: found.plays for part, found in played if part.estimates == REQUESTED}
    for part, found in played:
        for rules, plays in found.plays.items():
            if (part.estimates, rules) != (REQUESTED, TODAY):
                before = base[part.trace]
                yield Line(
                    log=part.log,
                    estimates=part.estimates,
                    rules=rules,
                    plays=(before[TODAY], plays),
                    today=Change.between(before[TODAY], plays),
                    alike=Change.between(before[rules[0], TODAY[1]], plays),
                )


class Summary(NamedTuple):
    """All logs of one source of estimates under the same rules.

    Attributes:
        wait, slowdown: change in the median log.
        alike: the same against requests under the same policy.
        longest: the worst log's.
        missed: goals that are not reached.
    """

    wait: float
    slowdown: float
    alike: tuple[float, float]
    longest: float
    missed: Sequence[str]

    @property
    def verdict(self) -> str:
        """Whether all goals are reached, and whether a log is worse off."""
        if "worse" in self.missed:
            return "missed, worse"
        return "missed" if self.missed else "reached"

    @classmethod
    def of(cls, lines: Sequence[Line]) -> "Summary":
        """Of at least one log."""
        wait, slowdown = (
            median(change.mean for change in (line.today[place] for line in lines))
            for place in (0, 1)
        )
        alike = tuple(
            median(change.mean for change in (line.alike[place] for line in lines))
            for place in (0, 1)
        )
        longest = max(line.today.longest.mean for line in lines)
        reached = {
            "wait": wait <= WAIT_GOAL,
            "slowdown": slowdown <= SLOWDOWN_GOAL,
            "longest": longest <= LONGEST_GOAL,
            "worse": not any(line.today.is_worse for line in lines),
        }
        missed = [goal for goal, is_reached in reached.items() if not is_reached]
        return cls(wait, slowdown, (alike[0], alike[1]), longest, missed)


def summaries(lines: Sequence[Line]) -> Mapping[tuple[Rules, str], Summary]:
    """By rules and estimates."""
    keys = dict.fromkeys((line.rules, line.estimates) for line in lines)
    return {
        key: Summary.of([line for line in lines if (line.rules, line.estimates) == key])
        for key in sorted(keys, key=lambda key: _place(key[0]))
    }


@cache
def _place(rules: Rules) -> int:
    return list(product(POLICIES, PROFILES)).index(rules)


def report(played: Played) -> str:
    """What holds on all logs, then every log."""
    lines = list(lines_of(played))
    logs = dict.fromkeys(part.trace for part, _ in played)
    return "\n".join([summary_table(lines), *(log_table(trace, played, lines) for trace in logs)])


SUMMARY_LEGEND = """\
wait, slowdown: change of mean wait and bounded slowdown in the median log
against requests under EASY, and (alone) against requests under the same policy;
longest: longest wait over that by requests under EASY, in the worst log. Goals:
-15%, -25%, 1.25 (* missed), and no log worse off in every repetition.
"""


def summary_table(lines: Sequence[Line]) -> str:
    """The goals, reached or missed."""
    heads = ("all logs", "wait", "alone", "slowdown", "alone", "longest", "goals")
    rows: list[Sequence[str]] = []
    rules: Rules | None = None
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


def log_table(trace: str, played: Played, lines: Sequence[Line]) -> str:
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
        f"{part.log}: {found.jobs:,} jobs, {len(today)} plays. By requests under EASY: wait "
        f"{duration(wait)},\nbounded slowdown {slowdown:.1f}, longest wait {duration(longest)}\n"
        f"{text_table(heads, rows)}"
    )


def short(estimates: str) -> str:
    """A name of at most 20 letters."""
    known = {spec for spec in usual_methods() if ":" in spec}
    return name_of_method(estimates) if estimates in known else estimates[:20]


def _change(change: Interval) -> tuple[str, str]:
    return f"{change.mean:+.0%}", f"({100 * change.low:+.0f} to {100 * change.high:+.0f})"


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


def write(directory: Path, title: str, text: str, played: Played) -> None:
    """Write the tables, and a picture for each policy and profile."""
    write_text(directory, title, text, played)
    lines = list(lines_of(played))
    for rules in product(POLICIES, PROFILES):
        draw([line for line in lines if line.rules == rules], directory / f"{'-'.join(rules)}.svg")


def draw(lines: Sequence[Line], path: Path) -> None:
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
        figure.savefig(path)


STUDY = Study(
    title="What predictions do to a schedule: methods, policies and profiles, shaken",
    takes=Takes.TRACES,
    runs=runs,
    play=play,
    report=report,
    records=records,
    write=write,
)
