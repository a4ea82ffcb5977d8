"""The verdict: turn on, observe only, not worth it here, or too little data; with the reason.

The verdict is about the method and the profile that would be in force, never about what won in
hindsight.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from simulator.reports.backtest import gains
from simulator.reports.backtest.believability import Believability, Quality, compare
from simulator.reports.backtest.gains import MATERIAL, PlayRange
from simulator.reports.backtest.repetitions import Play, Plays
from simulator.reports.backtest.site import BacktestSite
from simulator.reports.backtest.special_logs import BacktestVerdict, SpecialLog, unusual
from simulator.reports.backtest.winners import GroupChanges, changes_of
from simulator.reports.words import change, duration, less_or_more, one_in, share, told_apart
from simulator.scheduling.estimates import EXACT, REQUESTED
from simulator.scheduling.workload import Workload
from simulator.traces.shake import FEWEST_REPETITIONS

LONGER_LONGEST = 1.5
"""The longest wait may grow by this factor; beyond it the page warns."""

HEADLINES: Mapping[BacktestVerdict, str] = {
    "turn-on": "Turn it on",
    "observe": "Observe only",
    "not-worth-it": "Not worth it here",
    "too-little-data": "Too little data",
}


class Judged(NamedTuple):
    """A verdict.

    Attributes:
        verdict: one of ``HEADLINES``.
        sentence: why, in one sentence.
        details: the figures behind it, and what limits them.
    """

    verdict: BacktestVerdict
    sentence: str
    details: str = ""

    @property
    def reason(self) -> str:
        """The sentence and the details."""
        return f"{self.sentence} {self.details}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtest:
    """A log under today's requests and under predictions.

    Attributes:
        site: the site.
        plays: the plays of each source of estimates.
        in_force: the method that would be in force, as it is called in ``plays``.
        profile: where its predictions would act.
        believed: how good a model of the machine this is.
        special: what is unusual about the log.
        changes: who gains and who loses.
        counts: number of jobs that each rule changed or left out.
    """

    site: BacktestSite
    plays: Plays
    in_force: str
    profile: str
    believed: Believability
    special: Sequence[SpecialLog]
    changes: Sequence[GroupChanges]
    counts: Mapping[str, int]

    @property
    def today(self) -> Sequence[Play]:
        """Plays by requests."""
        return self.plays[REQUESTED]

    @property
    def predicted(self) -> Sequence[Play]:
        """Plays by the method that would be in force."""
        return self.plays[self.in_force]

    @property
    def methods(self) -> Sequence[str]:
        """The methods, what would be in force first."""
        others = [name for name in self.plays if name not in {REQUESTED, EXACT, self.in_force}]
        return [self.in_force, *others]

    @property
    def somebody_waits(self) -> bool:
        """Whether there is any wait that could change."""
        return any(play.wait >= 1 for play in (*self.today, *self.predicted))

    @property
    def repetitions(self) -> int:
        """Number of plays with each source of estimates."""
        return len(self.today)

    def wait_gain(self, name: str) -> PlayRange:
        """Relative decrease of the wait against the requests."""
        return gains.gain(self.today, self.plays[name], lambda play: play.wait)

    def slowdown_gain(self, name: str) -> PlayRange:
        """Relative decrease of the bounded slowdown against the requests."""
        return gains.gain(self.today, self.plays[name], lambda play: play.bounded_slowdown)


def backtest_of(site: BacktestSite, plays: Plays, in_force: str, profile: str) -> Backtest:
    """Put together what the plays of a site show."""
    today = plays[REQUESTED]
    believed = compare(site, today[0])
    return Backtest(
        site=site,
        plays=plays,
        in_force=in_force,
        profile=profile,
        believed=believed,
        special=unusual(site, today, believed),
        changes=list(changes_of(site.groupings, today, plays[in_force])),
        counts=counts_of(site.workloads(), len(site.trace)),
    )


def counts_of(workloads: Sequence[Workload], jobs: int) -> Mapping[str, int]:
    """Number of jobs that each rule changed or left out, on all machines together."""
    counts: dict[str, int] = {}
    for workload in workloads:
        for rule, number in workload.counts.items():
            counts[rule] = counts.get(rule, 0) + number
    removed = sum(number for rule, number in counts.items() if "(" not in rule)
    counts["no-partition"] = jobs - removed - sum(map(len, workloads))
    return {rule: number for rule, number in counts.items() if number}


def judge(tested: Backtest) -> Judged:
    """The verdict on what would be in force."""
    decided = next((each for each in tested.special if each.verdict), None)
    if decided is not None and decided.verdict is not None:
        return Judged(decided.verdict, decided.sentence)
    wait, slowdown = tested.wait_gain(tested.in_force), tested.slowdown_gain(tested.in_force)
    verdict, sentence = _of_gains(tested.in_force, wait, slowdown, tested.repetitions)
    figures = _figures(tested, wait, slowdown)
    careful: BacktestVerdict = "observe" if verdict == "turn-on" else verdict
    if tested.believed.quality is Quality.POOR and tested.repetitions >= FEWEST_REPETITIONS:
        return Judged(
            careful,
            "The simulation is a poor model of this machine, so its figures are a hint and no "
            f"promise: {sentence[:1].lower()}{sentence[1:]}",
            " ".join(
                [figures, tested.believed.comparison(), *(each.sentence for each in tested.special)]
            ),
        )
    if tested.special:
        first, *others = (each.sentence for each in tested.special)
        return Judged(careful, first, " ".join([*others, sentence, figures]))
    return Judged(verdict, sentence, figures)


def _of_gains(
    name: str, wait: PlayRange, slowdown: PlayRange, repetitions: int
) -> tuple[BacktestVerdict, str]:
    """The verdict by the gains alone, and the reason."""
    if repetitions < FEWEST_REPETITIONS:
        return "observe", f"One play or two cannot tell a gain by {name} from chance: see --shake."
    gained, lost = wait.is_gain or slowdown.is_gain, wait.is_loss or slowdown.is_loss
    if gained and lost:
        better, worse = ("waits", "slowdowns") if wait.is_gain else ("slowdowns", "waits")
        return "observe", f"With {name} {better} would get shorter but {worse} longer."
    if lost:
        return "not-worth-it", _lost(name, wait, slowdown)
    if gained:
        return "turn-on", _gained(name, wait, slowdown)
    if all(max(abs(each.low), abs(each.high)) < 2 * MATERIAL for each in (wait, slowdown)):
        return "not-worth-it", f"With {name} the schedule would hardly change."
    return "observe", f"What {name} would change is no more than chance on this log."


def _gained(name: str, wait: PlayRange, slowdown: PlayRange) -> str:
    if wait.is_gain and slowdown.is_gain:
        return f"With {name}, jobs would wait less and be slowed down less, in every repetition."
    better, rest = _decided(wait, slowdown, by_wait=wait.is_gain)
    return f"With {name} {better} would get smaller in every repetition, and {rest}."


def _lost(name: str, wait: PlayRange, slowdown: PlayRange) -> str:
    if wait.is_loss and slowdown.is_loss:
        return f"Jobs would be worse off with {name} than with today's requests."
    worse, rest = _decided(wait, slowdown, by_wait=wait.is_loss)
    return (
        f"Jobs would be worse off with {name}: {worse} would get larger in every repetition, and "
        f"{rest}."
    )


def _decided(wait: PlayRange, slowdown: PlayRange, *, by_wait: bool) -> tuple[str, str]:
    """Name of the deciding measure, and a phrase on the other, which neither gains nor loses."""
    which, other, rest = (
        ("waits", "slowdowns", slowdown) if by_wait else ("slowdowns", "waits", wait)
    )
    way = "change no more than by chance" if rest.matters else "hardly change"
    return which, f"{other} would {way}"


def _figures(tested: Backtest, wait: PlayRange, slowdown: PlayRange) -> str:
    """The gains in one sentence."""
    before = gains.of(tested.today, lambda play: play.wait)
    after = gains.of(tested.predicted, lambda play: play.wait)
    now, then = told_apart(before.mean, after.mean)
    return (
        f"With {tested.in_force}, jobs would wait {then} on average instead of {now}: "
        f"{less_or_more(wait.mean)} today ({_between(wait)}). The "
        f"slowdown would be {_smaller_or_larger(slowdown.mean)} ({_between(slowdown)})."
    )


def _between(gained: PlayRange) -> str:
    """The interval, the lower gain first."""
    low, high = change(-gained.high), change(-gained.low)
    return f"{low} in all repetitions" if low == high else f"{low} to {high} in the repetitions"


def _smaller_or_larger(gained: float) -> str:
    if abs(gained) < 0.0005:
        return "the same"
    return f"{share(abs(gained))} {'smaller' if gained > 0 else 'larger'}"


def remarks(tested: Backtest) -> list[str]:
    """Sentences that stand beside the verdict."""
    found = []
    requested, predicted = tested.today[0], tested.predicted[0]
    found.append(
        f"Users' requests miss the run time by {duration(requested.error)} on average; predictions "
        f"of {tested.in_force} would miss it by {duration(predicted.error)}."
    )
    found.append(
        f"{one_in(predicted.underestimation_rate).capitalize()} would run longer than predicted. "
        "Nothing happens to a job that does: it may still run as long as its user asked."
        if predicted.underestimation_rate
        else "No job would run longer than predicted."
    )
    longest = [float(np.max([play.longest_wait for play in each])) for each in
               (tested.today, tested.predicted)]  # fmt: skip
    if longest[1] > LONGER_LONGEST * longest[0]:
        found.append(
            f"The longest wait in all plays would grow from {duration(longest[0])} to "
            f"{duration(longest[1])}: some job pays for the others."
        )
    if _beats_exact(tested):
        found.append(
            "A method may even beat exactly known run times: which small job slips into which gap "
            "is chance, and the scheduler's rules are not the best use of perfect knowledge."
        )
    return found


def _beats_exact(tested: Backtest) -> bool:
    exact = tested.wait_gain(EXACT).mean
    return any(tested.wait_gain(name).mean > exact + MATERIAL for name in tested.methods)


def as_document(tested: Backtest) -> dict[str, Any]:
    """The verdict for machines, schema 1; durations are seconds, times are Unix seconds."""
    judged = judge(tested)
    begin, end = dates(tested)
    requested = {
        "wait": _record(gains.of(tested.today, lambda play: play.wait)),
        "bounded_slowdown": _record(gains.of(tested.today, lambda play: play.bounded_slowdown)),
        "underestimation_rate": outran_request(tested),
    }
    return {
        "schema": 1,
        "verdict": judged.verdict,
        "reason": judged.reason,
        "in_force": {"method": tested.in_force, "profile": tested.profile},
        "methods": [_method(tested, name) for name in tested.methods],
        "requested": requested,
        "jobs": tested.today[0].jobs,
        "users": users_of(tested),
        "from": begin,
        "to": end,
    }


def _method(tested: Backtest, name: str) -> dict[str, Any]:
    plays = tested.plays[name]
    return {
        "method": name,
        "profile": tested.profile,
        "wait": _record(gains.of(plays, lambda play: play.wait)),
        "bounded_slowdown": _record(gains.of(plays, lambda play: play.bounded_slowdown)),
        "underestimation_rate": plays[0].underestimation_rate,
    }


def _record(interval: PlayRange) -> dict[str, float]:
    return {"mean": interval.mean, "low": interval.low, "high": interval.high}


def outran_request(tested: Backtest) -> float:
    """Share of the jobs that ran longer in the log than their user had asked."""
    beyond = sum(
        number for rule, number in tested.counts.items() if rule.startswith("beyond-request")
    )
    return beyond / max(1, tested.today[0].jobs)


def users_of(tested: Backtest) -> int:
    """Number of users that the log names."""
    return int(np.count_nonzero(np.unique(tested.site.trace.user) >= 0))


def dates(tested: Backtest) -> tuple[float | None, float | None]:
    """Unix seconds of the first submission and of the last end in the log; None without dates."""
    trace = tested.site.trace
    if not trace.unix_start:
        return None, None
    return float(trace.submit.min()) + trace.unix_start, float(trace.end.max()) + trace.unix_start


def period(tested: Backtest) -> str:
    """The dates of the log, such as ``28 Jul 2002 to 1 May 2003`` or ``dates unknown``."""
    days = [f"{datetime.fromtimestamp(each, UTC):%-d %b %Y}" for each in dates(tested) if each]
    return " to ".join(dict.fromkeys(days)) or "dates unknown"
