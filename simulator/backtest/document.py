"""The verdict for machines, and in 80 columns of text.

In the document, of schema 2, every name of a duration or a rate has its unit.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from textwrap import fill
from typing import Any, Self

from simulator.backtest import gains
from simulator.backtest.believability import ROUGH, Believability, Quality
from simulator.backtest.gains import FEWEST_WEEKS, GainInterval
from simulator.backtest.harm import LONGEST_WAIT_FACTOR, MOST_USERS, Harm
from simulator.backtest.order_effect import OrderEffect
from simulator.backtest.plays import Play
from simulator.backtest.remarks import (
    FIRST_WEEK,
    WAY_BACK,
    played_by,
    remarks,
    weeks_until_good,
)
from simulator.backtest.site import BY_REQUEST
from simulator.backtest.verdict import (
    HEADLINES,
    Backtest,
    dates,
    judge,
    outran_request,
    users_of,
)
from simulator.reports.tables import text_table
from simulator.scheduling.estimates import EXACT, REQUESTED
from terminal.words import changes, counted, duration, share


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodRow:
    """Figures of one source of estimates; times are seconds, intervals are of the repetitions.

    Attributes:
        is_in_force: whether the site would answer with this method.
        first: the play of the log itself.
        idle_hours: processor-hours that are idle while a job waits.
        wait_gain: relative decrease of the wait against today.
        slowdown_gain: relative decrease of the bounded slowdown against today.
        has_all_plays: its means are over as many plays as today's.
        ran_longer: share of the jobs that run longer than predicted, or in the log than requested.
    """

    name: str
    is_in_force: bool
    first: Play
    wait: GainInterval
    longest_wait: GainInterval
    bounded_slowdown: GainInterval
    idle_hours: GainInterval
    wait_gain: GainInterval
    slowdown_gain: GainInterval
    has_all_plays: bool
    ran_longer: float

    @classmethod
    def of(cls, tested: Backtest, name: str) -> Self:
        """Return the row of one source of estimates."""
        plays = tested.plays[name]
        by_request = name in {REQUESTED, BY_REQUEST}
        return cls(
            name=name,
            is_in_force=name == tested.in_force,
            first=plays[0],
            wait=gains.of(plays, lambda play: play.wait),
            longest_wait=gains.of(plays, lambda play: play.longest_wait),
            bounded_slowdown=gains.of(plays, lambda play: play.bounded_slowdown),
            idle_hours=gains.of(plays, lambda play: play.idle / 3600),
            wait_gain=tested.wait_gain(name),
            slowdown_gain=tested.slowdown_gain(name),
            has_all_plays=len(plays) == tested.repetitions,
            ran_longer=outran_request(tested) if by_request else plays[0].underestimation_rate,
        )

    @property
    def is_today(self) -> bool:
        """Whether this is the row that the others are compared with."""
        return self.name == REQUESTED

    @property
    def is_predicted(self) -> bool:
        """Whether the estimates are no requests."""
        return self.name not in {REQUESTED, BY_REQUEST}


def method_rows(tested: Backtest) -> dict[str, MethodRow]:
    """Return the rows by name: both orders by requests, every method, and exact runtimes."""
    names = (REQUESTED, BY_REQUEST, *tested.methods, EXACT)
    return {name: MethodRow.of(tested, name) for name in names}


def as_document(tested: Backtest) -> dict[str, Any]:
    """Return the verdict with all its figures; times are Unix seconds."""
    judged = judge(tested)
    begin, end = dates(tested)
    months, of_months = gains.months_gained(tested.today, tested.predicted)
    rows = method_rows(tested)
    today = rows[REQUESTED]
    return {
        "schema": 2,
        "verdict": judged.verdict,
        "reason": judged.reason,
        "scheduler": tested.scheduler,
        "in_force": {"method": tested.in_force, "profile": tested.profile},
        "order": _order(tested.site.effect),
        "job_pairs_in_order": None if tested.sorting is None else asdict(tested.sorting),
        "believability": _believability(tested.believed),
        "today": _figures(today) | {"underestimation_rate": today.ran_longer},
        "ordered_by_request": _figures(rows[BY_REQUEST]) | _change(rows[BY_REQUEST]),
        "methods": [_method(tested, rows[name]) for name in tested.methods],
        "exact": _figures(rows[EXACT]) | _change(rows[EXACT]),
        "sampling": {
            "repetitions": tested.repetitions,
            "repetitions_of_other_methods": min(map(len, tested.plays.values())),
            "weeks_of_load": tested.weeks,
            "fewest_weeks": FEWEST_WEEKS,
            "coverage": gains.COVERAGE,
            "months_with_shorter_waits": months,
            "months": of_months,
        },
        "harm": _harm(tested.harm),
        "a_year": {
            "idle_processor_hours_saved": tested.idle_hours_a_year,
            "idle_node_hours_saved": tested.idle_hours_a_year / tested.site.cores_of_node,
            "waited_hours_saved": tested.waited_hours_a_year,
        },
        "weeks_until_predictions_are_good": weeks_until_good(tested.predicted[0]),
        "first_week": FIRST_WEEK,
        "way_back": WAY_BACK,
        "jobs": tested.today[0].jobs,
        "users": users_of(tested),
        "from_unix_seconds": begin,
        "to_unix_seconds": end,
    }


def _order(effect: OrderEffect | None) -> dict[str, Any] | None:
    """Return the effect of the order under a site's Slurm; None under other schedulers."""
    if effect is None:
        return None
    return {
        "largest_site_factor": effect.largest,
        "other_weights": effect.other_weights,
        "obstacle": effect.obstacle,
        "played_with": list(effect.lines),
    }


def _method(tested: Backtest, row: MethodRow) -> dict[str, Any]:
    beyond = {
        "change_beyond_order_by_request": {
            "wait_share": _shares(tested.wait_gain(row.name, BY_REQUEST)),
            "bounded_slowdown_share": _shares(tested.slowdown_gain(row.name, BY_REQUEST)),
        }
    }
    choice = {"choice": None if row.first.choice is None else row.first.choice._asdict()}
    return {"method": row.name} | _figures(row) | _change(row) | beyond | choice


def _figures(row: MethodRow) -> dict[str, Any]:
    """Return means over the repetitions, with the lowest and the highest of them."""
    return {
        "wait_seconds": _record(row.wait),
        "longest_wait_seconds": _record(row.longest_wait),
        "bounded_slowdown": _record(row.bounded_slowdown),
        "mean_error_seconds": row.first.error,
        "underestimation_rate": row.first.underestimation_rate,
        "idle_processor_hours": row.idle_hours.mean,
    }


def _change(row: MethodRow) -> dict[str, Any]:
    """Return changes against today, with the interval over repetitions and weeks."""
    return {
        "change": {
            "wait_share": _shares(row.wait_gain),
            "bounded_slowdown_share": _shares(row.slowdown_gain),
        }
    }


def _shares(gained: GainInterval) -> dict[str, float]:
    """Return a change, negative for less, of a gain."""
    return {"mean": -gained.mean, "low": -gained.high, "high": -gained.low}


def _record(interval: GainInterval) -> dict[str, float]:
    return {"mean": interval.mean, "low": interval.low, "high": interval.high}


def _believability(believed: Believability) -> dict[str, Any]:
    is_known = believed.quality is not Quality.UNKNOWN
    near, months = believed.near_months if is_known else (0, 0)
    return {
        "quality": believed.quality.value,
        "logged_wait_seconds": believed.logged_mean if is_known else None,
        "simulated_wait_seconds": believed.simulated_mean if is_known else None,
        "bound_factor": ROUGH,
        "months_within_bound": near,
        "months": months,
    }


def _harm(harm: Harm) -> dict[str, Any]:
    return {
        "is_beyond_bounds": bool(harm.reasons),
        "reasons": harm.reasons,
        "longest_wait_factor": harm.longest_factor,
        "longest_wait_factor_bound": LONGEST_WAIT_FACTOR,
        "users_waiting_longer_share": harm.longer_share.get("users", 0.0),
        "users_waiting_longer_share_bound": MOST_USERS,
        "classes_waiting_longer": list(harm.classes),
    }


WIDTH = 80


def text_of(tested: Backtest) -> str:
    """Return the verdict, a table of the methods, and remarks."""
    judged = judge(tested)
    verdict = fill(f"{HEADLINES[judged.verdict]}. {judged.sentence}", WIDTH)
    believed = tested.believed.headline()
    believed = "" if believed in judged.reason else believed
    pairs = tested.sorting.sentence if tested.sorting else ""
    for text in (pairs, played_by(tested), believed, judged.details):
        if text:
            verdict += f"\n\n{fill(text, WIDTH)}"
    heads = ("method", "wait", "change", "slowdown", "change", "short")
    rows = method_rows(tested)
    cells = [_cells(row, rows[REQUESTED]) for row in rows.values()]
    legend = (
        f"{_means(rows)}; change against today's requests, {gains.COVERAGE:.0%} "
        f"interval over {tested.plays_in_words} and {counted(tested.weeks, 'week')}; "
        "by-request: the queue ordered by requests; short: jobs that run longer than predicted. * "
        "would be in force."
    )
    if tested.site.effect is not None and tested.site.effect.obstacle:
        legend += " All rows but requested are played with the advised lines."
    sentences = "\n".join(
        fill(f"- {each}", WIDTH, subsequent_indent="  ") for each in remarks(tested)
    )
    return f"{verdict}\n\n{text_table(heads, cells)}\n{fill(legend, WIDTH)}\n\n{sentences}\n"


def _means(rows: Mapping[str, MethodRow]) -> str:
    """Return the heads of the means, which stand where all plays are in them."""
    whole = all(row.has_all_plays for row in rows.values())
    return f"Mean wait and bounded slowdown{'' if whole else ' where all were played'}"


def _cells(row: MethodRow, today: MethodRow) -> tuple[str, ...]:
    mark = " *" if row.is_in_force else ""
    return (
        f"{row.name[:24]}{mark}",
        duration(row.wait.mean, beside=today.wait.mean) if row.has_all_plays else "",
        "" if row.is_today else _range(row.wait_gain),
        f"{row.bounded_slowdown.mean:,.1f}" if row.has_all_plays else "",
        "" if row.is_today else _range(row.slowdown_gain),
        share(row.ran_longer) if row.is_predicted else "",
    )


def _range(gained: GainInterval) -> str:
    return changes(-gained.high, -gained.low, to="..")
