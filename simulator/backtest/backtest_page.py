"""The page of a backtest: one HTML file that needs no other files."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from simulator.backtest import gains
from simulator.backtest.backtest_pictures import belief_drawings, drawings
from simulator.backtest.document import method_rows
from simulator.backtest.gains import GainInterval
from simulator.backtest.plays import FULL_LOOP_JOBS, SHAKE_SECONDS, Play
from simulator.backtest.remarks import played_by, remarks
from simulator.backtest.site import BY_REQUEST, ReadLog
from simulator.backtest.verdict import HEADLINES, Backtest, judge, period, users_of
from simulator.backtest.winners import GroupChange, GroupChanges
from simulator.reports import palette
from simulator.scheduling.estimates import EXACT, REQUESTED
from simulator.traces.cleaning import in_words
from terminal.files import write_whole
from terminal.words import big, change, changes, counted, duration, less_or_more, share

LISTED: Mapping[str, int] = {
    "users": 6,
    "accounts": 4,
    "queues": 4,
    "job sizes": 8,
    "requests": 5,
    "months": 4,
}
"""Number of the largest gains, and of the largest losses, that are listed of each kind."""

MONTHS = 12
"""Number of months up to which all are listed, as the calendar has them."""

HEADS: Mapping[str, str] = {
    "users": "user",
    "accounts": "account",
    "queues": "queue",
    "job sizes": "processors",
    "requests": "requested",
    "months": "month",
}
"""Head of the column with the names, by kind of group."""

LABELS: Mapping[str, str] = {
    REQUESTED: "today's requests",
    BY_REQUEST: "ordered by request",
    EXACT: "run times known exactly",
}


RULES: Mapping[str, str] = {
    "never-ran": "never ran",
    "endless": "ran or waited for more than 31 years",
    "zero-run": "ran for 0 s",
    "no-request": "had no requested walltime",
    "unlimited-request": "asked for more than 366 days",
    "no-processors": "had no number of processors",
    "too-wide": "were wider than the machine",
    "no-partition": "were in a queue of no partition",
    "beyond-request (kill)": "ran longer than requested and are ended at their request",
    "late-submission (sorted)": "stood in the log after later submissions and are sorted",
}
"""Treatment of jobs, in words that follow a number."""


class Card(NamedTuple):
    """A number before and after.

    Attributes:
        margin: of ``after``; empty for one play.
    """

    title: str
    before: str
    after: str
    margin: str
    gained: GainInterval


class GroupTable(NamedTuple):
    """A table of the groups of one kind."""

    caption: str
    head: str
    changes: Sequence[GroupChange]


def write_page(tested: Backtest, path: Path, log: ReadLog, command: str) -> None:
    """Write the page of a backtest of ``log`` that was started by ``command``."""
    write_whole(path, page(tested, log, command))


def page(tested: Backtest, log: ReadLog, command: str) -> str:
    """Return the whole page."""
    judged = judge(tested)
    believed = tested.believed.headline()
    shown = tested.changes if tested.somebody_waits else ()
    return (
        _templates()
        .get_template("page.html")
        .render(
            title=f"Would predicted run times help? {log.name}",
            about=_about(tested),
            palette=palette.css(),
            tested=tested,
            judged=judged,
            headline=HEADLINES[judged.verdict],
            believed="" if believed in judged.reason else believed,
            played_by=played_by(tested),
            cards=list(_cards(tested)),
            rows=method_rows(tested),
            gain_drawings=drawings(tested),
            remarks=remarks(tested),
            group_sentences=[
                each.sentence() for each in shown if each.kind in {"users", "accounts"}
            ],
            group_tables=[group_table(each) for each in shown if each.largest(1)],
            belief_drawings=belief_drawings(tested),
            facts=facts_of(tested, log, command),
        )
    )


def _templates() -> Environment:
    """Return the templates, with the words and figures that they use."""
    environment = Environment(
        loader=PackageLoader("simulator", "backtest"), autoescape=True, undefined=StrictUndefined
    )
    words = (big, change, changes, counted, duration, less_or_more, share)
    own = (palette.name_of_method, signed, tone, tone_of_group, two_digits)
    environment.globals.update({each.__name__: each for each in (*words, *own)})
    environment.globals.update(
        labels=LABELS, coverage=f"{gains.COVERAGE:.0%}", material=f"{gains.MATERIAL:.0%}"
    )
    return environment


def _about(tested: Backtest) -> str:
    users = users_of(tested)
    return (
        f"{counted(tested.today[0].jobs, 'job')} of "
        f"{counted(users, 'user') if users else 'unknown users'}, {period(tested)}; played "
        f"{counted(tested.repetitions, 'time')}"
    )


def _cards(tested: Backtest) -> Iterator[Card]:
    wait = partial(duration, beside=gains.mean_wait(tested.today))
    yield _card(tested, "Average wait", lambda play: play.wait, show=wait, margin=duration)
    yield _card(tested, "Bounded slowdown", lambda play: play.bounded_slowdown, show=two_digits)
    yield _card(
        tested, "Processor-hours idle while jobs wait", lambda play: play.idle / 3600, show=big
    )


def _card(
    tested: Backtest,
    title: str,
    measure: Callable[[Play], float],
    *,
    show: Callable[[float], str],
    margin: Callable[[float], str] | None = None,
) -> Card:
    """Return a card; its margin may be shown in another unit."""
    after = gains.of(tested.predicted, measure)
    return Card(
        title=title,
        before=show(gains.of(tested.today, measure).mean),
        after=show(after.mean),
        margin=(margin or show)(after.margin) if tested.repetitions > 1 else "",
        gained=gains.gain(tested.today, tested.predicted, measure),
    )


def group_table(found: GroupChanges) -> GroupTable:
    """Return the table of one kind of group: the largest changes, or all of them in order."""
    listed = found.largest(LISTED[found.kind])
    if found.kind == "job sizes" or (found.kind == "months" and len(found.changes) <= MONTHS):
        listed = found.changes
    caption = found.kind.capitalize()
    if len(listed) < len(found.changes):
        caption += f": largest gains and losses of {len(found.changes):,}"
    return GroupTable(caption, HEADS[found.kind], listed)


def tone(gained: GainInterval) -> str:
    """Return the class of the page's style for a gain."""
    if gained.is_gain:
        return "good"
    return "bad" if gained.is_loss else "quiet"


def tone_of_group(each: GroupChange) -> str:
    """Return the class of the page's style for a group."""
    return "good" if each.is_better else "bad" if each.is_worse else "quiet"


def two_digits(number: float) -> str:
    """Return a slowdown, with two digits after the point below ten."""
    return f"{number:.2f}" if number < 9.995 else f"{number:,.1f}"


def signed(hours: float) -> str:
    """Return hours with their sign."""
    return f"{hours:+,.0f}".replace("-", "\u2212")


def facts_of(tested: Backtest, log: ReadLog, command: str) -> dict[str, str]:
    """Return the facts on how a backtest was computed, the log first."""
    first = tested.today[0]
    facts = {
        "Log": log.name,
        "Dates": period(tested),
        "Jobs": f"{first.jobs:,} simulated, {len(tested.site.trace):,} read from the log",
        "Users": f"{users_of(tested):,}",
        "Utilisation": f"{share(first.utilisation)}, {big(first.work / 3600)} processor-hours",
        "Repetitions": _repetitions(tested),
        **_rules(tested),
        "Estimates": "whole seconds, at least 1; running jobs that outlive theirs get a longer one",
        "Machine": _machine(tested),
    }
    if tested.site.cores_per_node:
        facts["Nodes"] = f"{tested.site.cores_per_node} cores, whole nodes to a job"
    if log.left_out:
        facts["Records left out"] = in_words(log.left_out)
    if log.malformed:
        facts["Malformed lines"] = f"{log.malformed:,} skipped"
    today = datetime.fromtimestamp(time.time(), UTC)
    return {
        **facts,
        "Computed": f"{today:%-d %b %Y}, walltimed {version('walltimed')}",
        "Command": command,
        "Jobs left out or changed": _treated(tested.counts),
    }


def _rules(tested: Backtest) -> dict[str, str]:
    """Return the rules of today, and those of the other columns where they differ."""
    site = tested.site
    today = site.semantics.card(site.trace)
    with_predictions = site.rules_of(tested.in_force).card(site.trace)
    return {
        "In force": f"{tested.in_force}, profile {tested.profile}",
        **today,
        "Ordered by request": site.rules_of(BY_REQUEST).card()["Order"],
        "With predictions": "; ".join(
            f"{name}: {text}" for name, text in with_predictions.items() if text != today.get(name)
        ),
    }


def _machine(tested: Backtest) -> str:
    site = tested.site
    if site.partitions:
        return "; ".join(f"{each.name}: {each.processors:,} processors" for each in site.partitions)
    workload = site.workloads()[0]
    size = f"{workload.processors_of_machine * (workload.cores_per_node or 1):,} processors"
    note = site.trace.header.get("MaxProcsNote")
    return f"{size}, {note}" if note and not site.processors else size


def _repetitions(tested: Backtest) -> str:
    text = (
        f"{tested.plays_in_words}: the log as it is, and with every submission moved by up to "
        f"{SHAKE_SECONDS} s"
    )
    if len(tested.site.trace) > FULL_LOOP_JOBS and tested.repetitions > 1:
        text += "; the moved ones take over the predictions of the log as it is"
    return text


def _treated(counts: Mapping[str, int]) -> str:
    return "; ".join(f"{number:,} {RULES.get(rule, rule)}" for rule, number in counts.items()) or (
        "none"
    )
