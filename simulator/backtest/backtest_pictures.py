"""The pictures of a backtest's page: drawings inside the page, in the page's own colours."""

import re
from collections.abc import Callable, Sequence
from io import StringIO
from typing import Any, NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from simulator.backtest import gains
from simulator.backtest.believability import Quality
from simulator.backtest.gains import GainInterval
from simulator.backtest.plays import QUANTILES, Play, Values
from simulator.backtest.site import BY_REQUEST
from simulator.backtest.verdict import Backtest
from simulator.reports import palette, pictures
from simulator.scheduling.estimates import EXACT, REQUESTED

WIDE = 5.2
"""Inches: at 72 to the inch its text can be read in a narrow and in a wide window."""

TEXT, QUIET, GRID = (palette.SURFACES[name].light for name in ("text", "quiet", "grid"))

STYLE: dict[Any, Any] = {
    **pictures.STYLE,
    "font.size": 9,
    "svg.fonttype": "none",
    "text.color": TEXT,
    "axes.labelcolor": QUIET,
    "axes.edgecolor": QUIET,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "grid.color": GRID,
}

MOST_SHOWN = 1.0
"""Gains and losses are drawn up to 100 percent."""

FAR_MONTH = 20
"""Multiple of the median month's wait from which hours are shown by powers of ten."""

OWN_LABEL = {REQUESTED: "today", BY_REQUEST: "ordered by request", EXACT: "run times known exactly"}


class Drawing(NamedTuple):
    """A picture as part of a page, with its caption."""

    title: str
    caption: str
    svg: str


def drawings(tested: Backtest) -> list[Drawing]:
    """Return the pictures of changes by predictions."""
    name, today = tested.in_force, "today's requests"
    chance = f"over {tested.plays_in_words}" if tested.repetitions > 1 else "of one play"
    run_times = Drawing(
        "Run times: asked for, predicted and real",
        "Share of the jobs that are no longer than the time below. It compares distributions: "
        "the nearer to the real line, the less is asked for in vain.",
        _drawn("times", 2.6, lambda figure: _run_times(figure, tested)),
    )
    if not tested.somebody_waits:
        return [run_times]
    found = [
        Drawing(
            "Every method against today's requests",
            f"Change of the mean wait and of the mean bounded slowdown against {today}. Dot: "
            f"mean {chance}; line: {gains.COVERAGE:.0%} interval. Left of the middle is better.",
            _drawn("gains", 0.9 + 0.27 * (len(tested.methods) + 2), lambda f: _gains(f, tested)),
        ),
        Drawing(
            "How long jobs wait",
            f"Share of the jobs that wait longer than the time below, by {today} and with {name}. "
            "A lower line is better.",
            _drawn("waits", 2.6, lambda figure: _waits(figure, tested)),
        ),
        run_times,
    ]
    if _months_of(tested):
        found.append(
            Drawing(
                "Month by month",
                f"Mean wait of the jobs submitted in a month, by {today} and with {name}. Band: "
                "lowest to highest of the plays.",
                _drawn("months", 2.6, lambda figure: _by_month(figure, tested)),
            )
        )
    return found


def belief_drawings(tested: Backtest) -> list[Drawing]:
    """Return pictures of the simulation beside the log; none if the log has no waits."""
    if tested.believed.quality is Quality.UNKNOWN:
        return []
    found = [
        Drawing(
            "Waits in the log and in the simulation",
            "Share of the jobs that wait longer than the time below. If the lines lie together, "
            "the simulation waits as this machine did.",
            _drawn("belief", 2.4, lambda figure: _believed(figure, tested)),
        )
    ]
    if _months_of(tested):
        found.append(
            Drawing(
                "The same by month",
                "Mean wait of the jobs submitted in a month.",
                _drawn("belief-months", 2.4, lambda figure: _believed_by_month(figure, tested)),
            )
        )
    return found


def _drawn(salt: str, height: float, draw: Callable[[Figure], None]) -> str:
    """Return a drawing as part of a page, its colours replaced by the page's own."""
    with rc_context({**STYLE, "svg.hashsalt": salt}):
        figure = Figure(figsize=(WIDE, height), layout="constrained")
        draw(figure)
        file = StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return _for_page(file.getvalue())


_VARIABLES = {
    **{colour.light: f"var(--method-{name})" for name, colour in palette.METHODS.items()},
    **{colour.light: f"var(--{name})" for name, colour in palette.SURFACES.items()},
}


def _for_page(svg: str) -> str:
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r' width="[\d.]+pt" height="[\d.]+pt"| height="[\d.]+pt"', "", body, count=2)
    body = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font: \1 system-ui, sans-serif", body)
    return re.sub(r"#[0-9a-f]{6}\b", lambda found: _VARIABLES.get(found[0], found[0]), body)


def _colour(name: str) -> str:
    return palette.colour_of(name).light


def _gains(figure: Figure, tested: Backtest) -> None:
    """Draw a line for each method, in two panels."""
    names = [BY_REQUEST, *tested.methods, EXACT]
    panels = figure.subplots(1, 2, sharey=True)
    measures = (("wait", tested.wait_gain), ("bounded slowdown", tested.slowdown_gain))
    for axes, (title, gained) in zip(panels, measures, strict=True):
        for row, name in enumerate(names):
            _interval(axes, -row, gained(name), _colour(name))
        _change_axis(axes, [gained(name) for name in names])
        axes.set_title(title, fontsize=9, loc="left", color=QUIET)
    panels[0].set_yticks([-row for row in range(len(names))], [_label(each) for each in names])
    panels[0].tick_params(axis="y", length=0, labelcolor=TEXT)
    panels[0].get_yticklabels()[1].set_fontweight("bold")
    panels[1].tick_params(axis="y", length=0)


def _label(name: str) -> str:
    label = OWN_LABEL.get(name, name)
    return label if len(label) <= 28 else f"{label[:27]}…"


def _interval(axes: Axes, row: int, gained: GainInterval, colour: str) -> None:
    low, high = (float(np.clip(-each, -1, MOST_SHOWN)) for each in (gained.high, gained.low))
    axes.plot([low, high], [row, row], color=colour, linewidth=2.2, solid_capstyle="round")
    axes.plot([np.clip(-gained.mean, -1, MOST_SHOWN)], [row], "o", color=colour, markersize=5)


def _change_axis(axes: Axes, gained: Sequence[GainInterval]) -> None:
    most = max(0.05, *(min(MOST_SHOWN, max(abs(each.low), abs(each.high))) for each in gained))
    axes.set_xlim(-1.1 * most, 1.1 * most)
    axes.set_ylim(-len(gained) + 0.4, 0.6)
    axes.axvline(0, color=palette.METHODS["requested"].light, linewidth=1.4, zorder=1)
    axes.xaxis.set_major_locator(MaxNLocator(4, symmetric=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:+.0%}" if x else "0"))
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)


def _style(name: str) -> dict[str, Any]:
    """Return colour and line style of estimates; today's line is dashed."""
    return {"color": _colour(name), "linestyle": "--" if name == REQUESTED else "-"}


def _waits(figure: Figure, tested: Backtest) -> None:
    axes = figure.subplots()
    for name, plays in ((REQUESTED, tested.today), (tested.in_force, tested.predicted)):
        _longer(axes, plays[0].wait_quantiles, _label(name), linewidth=1.8, **_style(name))
    _finish_waits(axes, [tested.today[0], tested.predicted[0]])


def _believed(figure: Figure, tested: Backtest) -> None:
    axes = figure.subplots()
    _longer(axes, tested.believed.logged, "the log", color=TEXT, linewidth=1.8)
    _longer(
        axes,
        tested.believed.simulated,
        "simulated, today's requests",
        linewidth=1.8,
        **_style(REQUESTED),
    )
    _finish_waits(axes, [tested.today[0]], also=tested.believed.logged)


def _longer(axes: Axes, quantiles: Values, label: str, **style: Any) -> None:
    """Draw the share of jobs above each time; waits below a minute lie left of the picture."""
    axes.plot(np.maximum(quantiles, 1.0), 1 - QUANTILES, label=label, **style)


def _finish_waits(axes: Axes, plays: Sequence[Play], also: Values | None = None) -> None:
    ends = [play.wait_quantiles[-1] for play in plays]
    ends += [] if also is None else [also[-1]]
    _time_axis(axes, 60.0, max(600.0, *ends))
    waiting = max(play.waiting for play in plays)
    if also is not None:
        waiting = max(waiting, float(np.mean(also > 60)))
    axes.set_ylim(0, min(1.0, 1.15 * waiting + 0.01))
    axes.set_xlabel("wait")
    axes.set_ylabel("share of jobs that wait longer")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.4g}%"))
    axes.legend(loc="upper right")


def _run_times(figure: Figure, tested: Backtest) -> None:
    axes = figure.subplots()
    curves = (
        (EXACT, "real", tested.plays[EXACT][0], 2.6),
        (REQUESTED, "asked for (today)", tested.today[0], 1.6),
        (tested.in_force, tested.in_force, tested.predicted[0], 1.6),
    )
    for name, label, play, width in curves:
        quantiles = np.maximum(play.estimate_quantiles, 1.0)
        axes.plot(quantiles, QUANTILES, label=label, linewidth=width, **_style(name))
    _time_axis(axes, 10.0, float(tested.today[0].estimate_quantiles[-1]))
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("run time")
    axes.set_ylabel("share of jobs no longer")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.4g}%"))
    axes.legend(loc="upper left")


def _time_axis(axes: Axes, shortest: float, longest: float) -> None:
    pictures.time_axis(axes, shortest, 1.1 * max(longest, 10 * shortest))


def _months_of(tested: Backtest) -> Sequence[str]:
    return next((each.names for each in tested.site.groupings if each.kind == "months"), ())


def _by_month(figure: Figure, tested: Backtest) -> None:
    axes = figure.subplots()
    for name, plays in ((REQUESTED, tested.today), (tested.in_force, tested.predicted)):
        hours = np.array([play.groups["months"].wait for play in plays]) / 3600
        places = np.arange(hours.shape[1])
        low, high = hours.min(axis=0), hours.max(axis=0)
        axes.fill_between(places, low, high, color=_colour(name), alpha=0.2, linewidth=0)
        axes.plot(places, hours.mean(axis=0), label=_label(name), marker=".", linewidth=1.4,
                  **_style(name))  # fmt: skip
    _month_axis(axes, _months_of(tested))


def _believed_by_month(figure: Figure, tested: Backtest) -> None:
    axes = figure.subplots()
    believed = tested.believed
    places = np.arange(len(believed.months))
    axes.plot(places, believed.logged_by_month / 3600, color=TEXT, marker=".", label="the log")
    axes.plot(places, believed.simulated_by_month / 3600, color=_colour(REQUESTED), marker=".",
              label="simulated, today's requests")  # fmt: skip
    _month_axis(axes, believed.months)
    waits = np.concatenate([believed.logged_by_month, believed.simulated_by_month])
    if np.nanmax(waits) > FAR_MONTH * np.nanmedian(waits):
        axes.set_yscale("symlog", linthresh=1.0)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda hours, _: f"{hours:,g}"))


def _month_axis(axes: Axes, months: Sequence[str]) -> None:
    step = max(1, -(-len(months) // 6))
    places = range(0, len(months), step)
    axes.set_xticks(list(places), [months[place] for place in places])
    axes.set_ylim(0, None)
    axes.set_ylabel("mean wait, hours")
    axes.legend(loc="best")
