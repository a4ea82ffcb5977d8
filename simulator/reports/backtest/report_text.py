"""A backtest in 80 columns of text: the verdict, and a line for each method."""

from textwrap import fill

from simulator.reports.backtest import gains
from simulator.reports.backtest.gains import GainInterval
from simulator.reports.backtest.remarks import remarks
from simulator.reports.backtest.site import BY_REQUEST
from simulator.reports.backtest.verdict import HEADLINES, Backtest, judge
from simulator.reports.tables import text_table
from simulator.reports.words import changes, counted, duration, share
from simulator.scheduling.estimates import EXACT, REQUESTED

WIDTH = 80


def text_of(tested: Backtest) -> str:
    """The verdict, the methods and what else there is to say."""
    judged = judge(tested)
    verdict = fill(f"{HEADLINES[judged.verdict]}. {judged.sentence}", WIDTH)
    for text in (tested.believed.headline(), judged.details):
        if text and text not in judged.sentence:
            verdict += f"\n\n{fill(text, WIDTH)}"
    heads = ("method", "wait", "change", "slowdown", "change", "short")
    names = (REQUESTED, BY_REQUEST, *tested.methods, EXACT)
    rows = [_row(tested, name) for name in names]
    legend = (
        f"Mean wait and bounded slowdown; change against today's requests, {gains.COVERAGE:.0%} "
        f"interval over {tested.plays_in_words} and {counted(tested.weeks, 'week')}; "
        "by-request: the queue ordered by requests; short: jobs that run longer than predicted. * "
        "would be in force."
    )
    sentences = "\n".join(
        fill(f"- {each}", WIDTH, subsequent_indent="  ") for each in remarks(tested)
    )
    return f"{verdict}\n\n{text_table(heads, rows)}\n{fill(legend, WIDTH)}\n\n{sentences}\n"


def _row(tested: Backtest, name: str) -> tuple[str, ...]:
    today, plays = tested.today, tested.plays[name]
    mark = " *" if name == tested.in_force else ""
    return (
        f"{name[:24]}{mark}",
        duration(gains.mean_wait(plays), beside=gains.mean_wait(today)),
        _range(tested.wait_gain(name), name),
        f"{gains.mean_slowdown(plays):,.1f}",
        _range(tested.slowdown_gain(name), name),
        "" if name in {REQUESTED, BY_REQUEST} else share(plays[0].underestimation_rate),
    )


def _range(gained: GainInterval, name: str) -> str:
    return "" if name == REQUESTED else changes(-gained.high, -gained.low, to="..")
