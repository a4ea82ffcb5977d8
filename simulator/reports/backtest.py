"""Shows on one page what predictions would change at a site, from the site's own log."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from simulator.replay.method_spec import MethodSpec
from simulator.replay.trace_replay import InProcess, Replay, replay
from simulator.reports import comparison, replay_pictures, schedule_pictures
from simulator.reports.comparison import Outcome, outcome
from simulator.reports.method_summary import LEGEND, MethodSummary, summarise, summary_table
from simulator.reports.page import note, page, paragraph, picture, preformatted, section
from simulator.reports.tables import text_table
from simulator.scheduling.estimates import EXACT, REQUESTED, Estimates
from simulator.scheduling.measures import bounded_slowdown
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.workload import Workload
from simulator.traces.cleaning import REPLAY_RULES, clean
from simulator.traces.completions import completions
from simulator.traces.trace import Trace

LISTED = 10
"""Number of users with the largest gains, and of those with the largest losses, in the list."""

FEWEST_JOBS = 10
"""Users with fewer jobs are not listed: their average would mean nothing."""

Progress = Callable[[int], object]


class UserGain(NamedTuple):
    """The change for one user; waits are mean seconds."""

    user: int
    jobs: int
    wait: float
    new_wait: float
    slowdown: float
    new_slowdown: float

    @property
    def saved(self) -> float:
        """Seconds of waiting saved over all jobs of the user."""
        return (self.wait - self.new_wait) * self.jobs


@dataclass(frozen=True, slots=True)
class Backtest:
    """A log under today's requests and under predictions.

    Attributes:
        played: the log, with every method's predictions.
        summaries: summaries of the methods, the requests first.
        outcomes: simulated schedules by requests, by each method, and by exact runtimes.
        users: names of users by their numbers, where the log has names.
    """

    played: Replay
    summaries: Sequence[MethodSummary]
    outcomes: Sequence[Outcome]
    users: Mapping[int, str] = field(default_factory=dict)

    @property
    def today(self) -> Outcome:
        """By requests."""
        return self.outcomes[0]

    def best(self) -> Outcome:
        """The outcome of the predictions under which jobs wait least."""
        return min(self.outcomes[1:-1], key=lambda each: each.measures.wait)

    def gains(self) -> list[UserGain]:
        """The gains of users with FEWEST_JOBS or more under the best predictions, largest first."""
        users, places = np.unique(self.today.schedule.workload.trace.user, return_inverse=True)
        jobs = np.bincount(places)
        columns = [
            np.bincount(places, values) / jobs
            for each in (self.today, self.best())
            for values in (
                each.schedule.wait,
                bounded_slowdown(each.schedule.wait, each.schedule.workload.runtime),
            )
        ]
        wait, slow, new_wait, new_slow = (column.tolist() for column in columns)
        rows = zip(users.tolist(), jobs.tolist(), wait, new_wait, slow, new_slow, strict=True)
        gains = [UserGain(*row) for row in rows]
        return sorted(
            (gain for gain in gains if gain.jobs >= FEWEST_JOBS), key=lambda gain: -gain.saved
        )


def backtest(
    trace: Trace,
    workload: Workload,
    semantics: Semantics,
    methods: Sequence[str],
    *,
    progress: Progress | None = None,
) -> Backtest:
    """Replay a log to every method, and simulate the site's scheduler with each.

    Args:
        trace: the log as it was read.
        workload: the same log for the site's machine.
        semantics: the rules of the site's scheduler.
        methods: method specs as ``MethodSpec`` reads them.
        progress: called with the number of jobs that were just played or simulated.
    """
    asked = {name: MethodSpec.parse(name).predictor() for name in (REQUESTED, *methods)}
    runs = list(completions(clean(trace, REPLAY_RULES)[0]))
    played = replay(runs, InProcess(asked), progress=progress)
    outcomes = [
        outcome(
            workload,
            semantics,
            lambda name=name: Estimates.named(name),  # type: ignore[misc]
            progress=progress,
        )
        for name in (REQUESTED, *methods, EXACT)
    ]
    return Backtest(played, summarise(played), outcomes)


def write_page(tested: Backtest, path: Path, title: str, facts: Mapping[str, str]) -> None:
    """Write one HTML file that needs no other files."""
    with TemporaryDirectory() as directory:
        drawn = Path(directory)
        sections = [
            section("In short", "".join(paragraph(sentence) for sentence in verdict(tested))),
            *_predictions(tested, drawn),
            *_schedules(tested, drawn),
            section("Users", preformatted(users_table(tested)) + note(_USERS)),
        ]
        path.write_text(page(title, facts, sections), encoding="utf-8")


def _predictions(tested: Backtest, drawn: Path) -> list[str]:
    """Sections with the errors of today's requests and of each method's predictions."""
    replay_pictures.distributions(tested.played, drawn / "distributions.png")
    replay_pictures.errors_per_user(tested.played, drawn / "errors.png")
    return [
        section(
            "Requests and predictions",
            preformatted(summary_table(tested.summaries)) + note(LEGEND),
        ),
        picture(
            "Actual, requested and predicted walltimes",
            drawn / "distributions.png",
            "The closer a line is to the black line, the better.",
            embedded=True,
        ),
        picture(
            "Errors of every user",
            drawn / "errors.png",
            "Red: error of the users' requests. Coloured: error of the predictions.",
            embedded=True,
        ),
    ]


def _schedules(tested: Backtest, drawn: Path) -> list[str]:
    """Sections with the gains of the schedule."""
    schedule_pictures.waits(tested.outcomes, drawn / "waits.png")
    schedule_pictures.gains_by_month(tested.outcomes, drawn / "months.png")
    return [
        section(
            "The schedule under your policy",
            preformatted(comparison.table(tested.outcomes)) + note(comparison.LEGEND),
        ),
        picture(
            "Waits",
            drawn / "waits.png",
            "The schedule with requests is simulated as well, so that both compare fairly.",
            embedded=True,
        ),
        picture(
            "Month by month",
            drawn / "months.png",
            "Values below 100 are better than with requests.",
            embedded=True,
        ),
    ]


def verdict(tested: Backtest) -> list[str]:
    """The result in sentences with numbers."""
    requested = tested.summaries[0]
    best, today = tested.best(), tested.today
    method = next(each for each in tested.summaries if each.method == best.schedule.estimates)
    gains = tested.gains()
    better = sum(gain.new_wait < gain.wait for gain in gains)
    change = 1 - best.measures.wait / max(today.measures.wait, 1e-9)
    bound = 1 - tested.outcomes[-1].measures.wait / max(today.measures.wait, 1e-9)
    return [
        _sentence(
            f"Requests are wrong by {_hours(requested.measures.mean_absolute_error)} on average,",
            f"predictions of {method.method} by {_hours(method.measures.mean_absolute_error)}.",
        ),
        _sentence(
            f"{best.measures.corrected:.1%} of the jobs would outlive their prediction and be",
            "given more time, up to their request: no job is ended for a prediction.",
        ),
        _sentence(
            f"With {method.method} jobs would wait {_hours(best.measures.wait)} instead of",
            f"{_hours(today.measures.wait)} on average: {_less_or_more(change)}. If run times",
            f"were known exactly it would be {_less_or_more(bound)}.",
        ),
        _sentence(
            f"Of {len(gains):,} users with at least {FEWEST_JOBS} jobs {better:,} would wait",
            f"less on average, {len(gains) - better:,} as long or longer.",
        ),
        _sentence(
            "A few per cent may be chance: averages move by as much when submissions move by a",
            "minute. walltimed simulate --shake shows by how much on this log.",
        ),
    ]


def _sentence(*parts: str) -> str:
    return " ".join(parts)


_USERS = """\
The users who save most and those who lose most waiting time over all their jobs. Columns are the
mean wait in hours and the mean bounded slowdown, with requests and with the best predictions.
"""


def users_table(tested: Backtest) -> str:
    """The table of the users with the largest gains and losses."""
    gains = tested.gains()
    shown = gains if len(gains) <= 2 * LISTED else [*gains[:LISTED], *gains[-LISTED:]]
    heads = ("user", "jobs", "wait", "new", "slowdown", "new", "hours saved")
    rows = [
        (
            tested.users.get(gain.user, str(gain.user)),
            f"{gain.jobs:,}",
            f"{gain.wait / 3600:,.2f}",
            f"{gain.new_wait / 3600:,.2f}",
            f"{gain.slowdown:,.1f}",
            f"{gain.new_slowdown:,.1f}",
            f"{gain.saved / 3600:+,.0f}",
        )
        for gain in shown
    ]
    return text_table(heads, rows)


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:,.1f} h" if seconds >= 3600 else f"{seconds / 60:,.0f} min"


def _less_or_more(share: float) -> str:
    return f"{share:.0%} less" if share >= 0 else f"{-share:.0%} more"
