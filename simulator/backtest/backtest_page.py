"""The page of a backtest: the verdict, three numbers, pictures, who gains, and the rules last."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path

from simulator.backtest import gains
from simulator.backtest.backtest_pictures import Drawing, belief_drawings, drawings
from simulator.backtest.backtest_style import STYLE_SHEET
from simulator.backtest.gains import GainInterval
from simulator.backtest.plays import FULL_LOOP_JOBS, SHAKE_SECONDS, Play
from simulator.backtest.remarks import remarks
from simulator.backtest.site import BY_REQUEST
from simulator.backtest.verdict import (
    HEADLINES,
    Backtest,
    judge,
    outran_request,
    period,
    users_of,
)
from simulator.backtest.winners import GroupChange, GroupChanges
from simulator.reports.page import paragraph, section
from simulator.reports.palette import name_of_method
from simulator.scheduling.estimates import EXACT, REQUESTED
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
"""As many are all listed, as the calendar has them."""

HEADS: Mapping[str, str] = {
    "users": "user",
    "accounts": "account",
    "queues": "queue",
    "job sizes": "processors",
    "requests": "requested",
    "months": "month",
}
"""What stands above the names of each kind of group."""

ROOMY = frozenset({0, 2, 4, 5, 6})
"""Places of the figures of a method for which there is no room in a narrow window."""

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
"""What is done with jobs, in words that follow a number."""

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="walltimed backtest">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<header><h1>{title}</h1><p class="about">{about}</p></header>
<main>
{body}
</main>
</body>
</html>
"""


def write_page(tested: Backtest, path: Path, name: str, facts: Mapping[str, str]) -> None:
    """Write one HTML file that needs no other files.

    Args:
        tested: what there is to show.
        path: the file.
        name: name of the log.
        facts: what else belongs under "How this was computed", such as the command.
    """
    write_whole(path, page(tested, name, facts))


def page(tested: Backtest, name: str, facts: Mapping[str, str]) -> str:
    """The whole page."""
    users = users_of(tested)
    about = (
        f"{counted(tested.today[0].jobs, 'job')} of "
        f"{counted(users, 'user') if users else 'unknown users'}, {period(tested)}; played "
        f"{counted(tested.repetitions, 'time')}"
    )
    return _PAGE.format(
        title=escape(f"Would predicted run times help? {name}"),
        about=escape(about),
        style=STYLE_SHEET,
        body="\n".join(_sections(tested, name, facts)),
    )


def _sections(tested: Backtest, name: str, facts: Mapping[str, str]) -> Iterator[str]:
    yield _verdict(tested)
    yield _numbers(tested)
    yield _section("Today, ordered by request, and with predictions", _columns(tested))
    yield _figures(drawings(tested))
    yield _section("What else there is to say", "".join(map(paragraph, remarks(tested))))
    yield _section("All methods", _methods(tested))
    if tested.changes and tested.somebody_waits:
        yield _section("Who gains, who loses", _winners(tested))
    belief = paragraph(tested.believed.sentence()) + _figures(belief_drawings(tested))
    yield _section("Can this be believed?", belief)
    yield _section("How this was computed", _computed(tested, name, facts))


def _verdict(tested: Backtest) -> str:
    judged = judge(tested)
    believed = tested.believed.headline()
    if believed in judged.sentence:
        believed = ""
    return (
        f'<section class="verdict {judged.verdict}"><strong>{HEADLINES[judged.verdict]}</strong>'
        f"{paragraph(judged.sentence)}"
        f'<p class="details">{escape(believed)}</p>'
        f'<p class="details">{escape(judged.details)}</p></section>'
    )


def _numbers(tested: Backtest) -> str:
    hours: Callable[[Play], float] = lambda play: play.idle / 3600  # noqa: E731
    wait = partial(duration, beside=gains.mean_wait(tested.today))
    cards = (
        _card(tested, "Average wait", lambda play: play.wait, wait, margin=duration),
        _card(tested, "Bounded slowdown", lambda play: play.bounded_slowdown, _two_digits),
        _card(tested, "Processor-hours idle while jobs wait", hours, big),
    )
    return f'<section class="numbers">{"".join(cards)}</section>'


def _card(
    tested: Backtest,
    title: str,
    measure: Callable[[Play], float],
    show: Callable[[float], str],
    *,
    margin: Callable[[float], str] | None = None,
) -> str:
    """A number before and after, and its margin, which may be shown in another unit."""
    before = gains.of(tested.today, measure)
    after = gains.of(tested.predicted, measure)
    gained = gains.gain(tested.today, tested.predicted, measure)
    about = f"± {(margin or show)(after.margin)}; " if tested.repetitions > 1 else ""
    return (
        f'<div><span class="quiet">{escape(title)}</span>'
        f'<span class="value"><i>{show(before.mean)} →</i> {show(after.mean)}</span>'
        f'<span class="change">{escape(about)}'
        f'<span style="display:inline" class="{_tone(gained)}">'
        f"{escape(less_or_more(gained.mean))} today</span></span></div>"
    )


def _columns(tested: Backtest) -> str:
    """The three ways to run the queue, with the longest wait and the interval of the change."""
    heads = ("", "today", "ordered by request", f"with {tested.in_force}")
    names = (REQUESTED, BY_REQUEST, tested.in_force)
    wait = gains.mean_wait(tested.today)
    longest = _longest(tested.today)
    rows: Mapping[str, tuple[Callable[[Sequence[Play]], float], Callable[[float], str]]] = {
        "mean wait": (gains.mean_wait, partial(duration, beside=wait)),
        "bounded slowdown": (gains.mean_slowdown, _two_digits),
        "longest wait": (_longest, partial(duration, beside=longest)),
    }
    changes_of_rows = {"mean wait": tested.wait_gain, "bounded slowdown": tested.slowdown_gain}
    lines = []
    for label, (measure, show) in rows.items():
        cells = [show(measure(tested.plays[name])) for name in names]
        if label in changes_of_rows:
            gained = changes_of_rows[label]
            cells[1:] = [
                f"{cell}<br>{_change(gained(name))}"
                for cell, name in zip(cells[1:], names[1:], strict=True)
            ]
        lines.append(f"<tr><td>{label}</td>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    return _table("", heads, lines)


def _longest(plays: Sequence[Play]) -> float:
    return gains.of(plays, lambda play: play.longest_wait).mean


def _tone(gained: GainInterval) -> str:
    if gained.is_gain:
        return "good"
    return "bad" if gained.is_loss else "quiet"


def _two_digits(number: float) -> str:
    return f"{number:.2f}" if number < 9.995 else f"{number:,.1f}"


def _figures(drawn: Sequence[Drawing]) -> str:
    html = "".join(
        f'<figure><h3>{escape(each.title)}</h3><div role="img" aria-label="'
        f'{escape(each.title)}">{each.svg}</div>'
        f"<figcaption>{escape(each.caption)}</figcaption></figure>"
        for each in drawn
    )
    return f'<section class="pictures">{html}</section>' if html else ""


def _section(title: str, content: str) -> str:
    return f"<section>{section(title, content)}</section>"


def _extra(head: str) -> str:
    """Columns with a star are left out where there is no room."""
    return ' class="extra"' if head.endswith("*") else ""


def _table(caption: str, heads: Sequence[str], rows: Sequence[str]) -> str:
    cells = "".join(
        f'<th scope="col"{_extra(head)}>{escape(head.rstrip("*"))}</th>' for head in heads
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return (
        f'<div class="scroll"><table>{title}<thead><tr>{cells}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _methods(tested: Backtest) -> str:
    heads = (
        "method",
        "mean wait*",
        "change of wait",
        "bounded slowdown*",
        "change of slowdown",
        "9 of 10 wait at most*",
        "longest wait*",
        "mean error*",
        "run longer than told",
    )
    names = (REQUESTED, BY_REQUEST, *tested.methods, EXACT)
    rows = [_method_row(tested, name) for name in names]
    note = (
        f"In bold what would be in force. Changes against today: mean, and {gains.COVERAGE:.0%} "
        f"interval over {tested.plays_in_words} and {counted(tested.weeks, 'week')}; "
        f"green and red: the whole interval is less or more, and the mean by "
        f"{gains.MATERIAL:.0%}. Mean wait and bounded slowdown: means of the plays. "
        "Other figures are of the log as it is, played once. Mean error: how far the "
        "request or the prediction is from the run time."
    )
    return _table("", heads, rows) + f'<p class="quiet">{escape(note)}</p>'


def _method_row(tested: Backtest, name: str) -> str:
    plays, first = tested.plays[name], tested.plays[name][0]
    label = LABELS.get(name, name)
    by_request = name in {REQUESTED, BY_REQUEST}
    short = outran_request(tested) if by_request else first.underestimation_rate
    cells = [
        duration(gains.mean_wait(plays), beside=gains.mean_wait(tested.today)),
        "" if name == REQUESTED else _change(tested.wait_gain(name)),
        _two_digits(gains.mean_slowdown(plays)),
        "" if name == REQUESTED else _change(tested.slowdown_gain(name)),
        duration(first.p90_wait, beside=tested.today[0].p90_wait),
        duration(first.longest_wait, beside=tested.today[0].longest_wait),
        duration(first.error),
        share(short),
    ]
    force = ' class="force"' if name == tested.in_force else ""
    mark = f'<b style="--mark:var(--method-{name_of_method(name)},var(--quiet))"></b>'
    html = "".join(
        f'<td class="extra">{cell}</td>' if place in ROOMY else f"<td>{cell}</td>"
        for place, cell in enumerate(cells)
    )
    return f"<tr{force}><td>{mark}{_method_name(label)}</td>{html}</tr>"


def _method_name(label: str) -> str:
    """The method, and its parameters small below it."""
    name, _, parameters = label.partition(":")
    below = f"<small>{escape(parameters.replace(',', ', '))}</small>" if parameters else ""
    return f"{escape(name)}{below}"


def _change(gained: GainInterval) -> str:
    """The mean change and its range, coloured where it is more than chance."""
    mean, ends = change(-gained.mean), changes(-gained.high, -gained.low)
    spread = "" if ends == mean else f' <span class="range">({ends})</span>'
    return f'<span class="{_tone(gained)}">{mean}{spread}</span>'


def _winners(tested: Backtest) -> str:
    sentences = "".join(
        paragraph(each.sentence()) for each in tested.changes if each.kind in {"users", "accounts"}
    )
    tables = "".join(_changes(each) for each in tested.changes if each.largest(1))
    sentences += paragraph(
        "Mean waits, and hours of waiting saved over all jobs of a row. Green: less in every "
        "repetition; red: more in every repetition; grey: may be chance."
    )
    return f'{sentences}<div class="tables">{tables}</div>'


def _changes(found: GroupChanges) -> str:
    heads = (HEADS[found.kind], "jobs", "wait today", "predicted", "hours saved")
    listed = found.largest(LISTED[found.kind])
    if found.kind == "job sizes" or (found.kind == "months" and len(found.changes) <= MONTHS):
        listed = found.changes
    caption = found.kind.capitalize()
    if len(listed) < len(found.changes):
        caption += f": largest gains and losses of {len(found.changes):,}"
    return _table(caption, heads, [_change_row(each) for each in listed])


def _change_row(each: GroupChange) -> str:
    tone = "good" if each.is_better else "bad" if each.is_worse else "quiet"
    hours = f"{each.hours:+,.0f}".replace("-", "\u2212")
    cells = (f"{each.jobs:,}", duration(each.today), duration(each.predicted, beside=each.today))
    html = "".join(f"<td>{cell}</td>" for cell in cells)
    return f'<tr><td>{escape(each.name)}</td>{html}<td class="{tone}">{hours}</td></tr>'


def _computed(tested: Backtest, name: str, facts: Mapping[str, str]) -> str:
    first = tested.today[0]
    rows = {
        "Log": name,
        "Dates": period(tested),
        "Jobs": f"{first.jobs:,} simulated, {len(tested.site.trace):,} read from the log",
        "Users": f"{users_of(tested):,}",
        "Utilisation": f"{share(first.utilisation)}, {big(first.work / 3600)} processor-hours",
        "Repetitions": _repetitions(tested),
        **facts,
        "Jobs left out or changed": _treated(tested),
    }
    listed = "".join(
        f"<div><dt>{escape(key)}</dt><dd>{escape(value)}</dd></div>" for key, value in rows.items()
    )
    return f"<dl>{listed}</dl>"


def _repetitions(tested: Backtest) -> str:
    text = (
        f"{tested.plays_in_words}: the log as it is, and with every submission moved by up to "
        f"{SHAKE_SECONDS} s"
    )
    if len(tested.site.trace) > FULL_LOOP_JOBS and tested.repetitions > 1:
        text += "; the moved ones take over the predictions of the log as it is"
    return text


def _treated(tested: Backtest) -> str:
    counts = [f"{number:,} {RULES.get(rule, rule)}" for rule, number in tested.counts.items()]
    return "; ".join(counts) or "none"
