"""The verdict: turn on, observe only, not worth it here, indication only, or too little data.

The verdict is about the method and the profile that would be in force, never about the best method
in hindsight. The quality of the simulation and the harm to single jobs are parts of the rule.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from simulator.backtest import gains
from simulator.backtest.believability import Believability, Quality, compare
from simulator.backtest.gains import FEWEST_WEEKS, MATERIAL, GainInterval
from simulator.backtest.harm import Harm, harm_of
from simulator.backtest.plays import Play, Plays
from simulator.backtest.site import BY_REQUEST, BacktestSite
from simulator.backtest.sorting import Sorting
from simulator.backtest.special_logs import BacktestVerdict, SpecialLog, unusual
from simulator.backtest.winners import GroupChanges, changes_of
from simulator.scheduling.estimates import EXACT, REQUESTED
from simulator.traces.shake import FEWEST_REPETITIONS
from terminal.words import change, counted, duration, less_or_more, listed, share, told_apart

HEADLINES: Mapping[BacktestVerdict, str] = {
    "turn-on": "Turn it on",
    "observe": "Observe only",
    "not-worth-it": "Not worth it here",
    "indication": "Indication only",
    "too-little-data": "Too little data",
    "order-cannot-act": "No verdict",
}


class Judged(NamedTuple):
    """A verdict.

    Attributes:
        verdict: one of ``HEADLINES``.
        details: the figures behind the reason, and their limits.
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
        plays: the plays of each source of estimates.
        in_force: the method that would be in force, as it is called in ``plays``.
        profile: where predictions act.
        scheduler: the site's scheduler, as it was named.
        believed: how good a model of the machine this is.
        changes: changes of the waits of users and other groups.
        counts: number of jobs that each rule changed or left out.
        sorting: job pairs in the right order by request and by prediction; None without one.
    """

    site: BacktestSite
    plays: Plays
    in_force: str
    profile: str
    believed: Believability
    special: Sequence[SpecialLog]
    changes: Sequence[GroupChanges]
    harm: Harm
    counts: Mapping[str, int]
    scheduler: str = "easy"
    sorting: Sorting | None = None
    _gains: dict[tuple[str, str, str], GainInterval] = field(default_factory=dict, repr=False)

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
        """The methods, the one in force first."""
        known = {REQUESTED, BY_REQUEST, EXACT, self.in_force}
        others = [name for name in self.plays if name not in known]
        return [self.in_force, *others]

    @property
    def somebody_waits(self) -> bool:
        """Whether there is any wait that could change."""
        return any(play.wait >= 1 for play in (*self.today, *self.predicted))

    @property
    def repetitions(self) -> int:
        """Number of plays today, ordered by request, and with the method in force."""
        return len(self.today)

    @property
    def plays_in_words(self) -> str:
        """The number of plays, and that of other methods where it is smaller."""
        fewest = min(map(len, self.plays.values()))
        beside = f" ({fewest} of other methods and exact)" if fewest < self.repetitions else ""
        return counted(self.repetitions, "play") + beside

    @property
    def weeks(self) -> int:
        """Number of weeks of load."""
        return len(gains.weeks_of_load(self.today[0]))

    def wait_gain(self, name: str, than: str = REQUESTED) -> GainInterval:
        """Relative decrease of the wait against another source of estimates."""
        return self._gain(name, than, "wait")

    def slowdown_gain(self, name: str, than: str = REQUESTED) -> GainInterval:
        """Relative decrease of the bounded slowdown against another source of estimates."""
        return self._gain(name, than, "bounded_slowdown")

    def _gain(self, name: str, than: str, measure: gains.Measure) -> GainInterval:
        key = name, than, measure
        if key not in self._gains:
            self._gains[key] = gains.resampled_gain(self.plays[than], self.plays[name], measure)
        return self._gains[key]

    @property
    def idle_hours_a_year(self) -> float:
        """Processor-hours a year that would no longer be idle while jobs wait."""
        saved = gains.of(self.today, _idle).mean - gains.of(self.predicted, _idle).mean
        return saved / 3600 / max(self.site.years, 1 / 365.25)

    @property
    def waited_hours_a_year(self) -> float:
        """Hours a year that jobs would wait less, in all."""
        saved = gains.mean_wait(self.today) - gains.mean_wait(self.predicted)
        return saved * self.today[0].jobs / 3600 / max(self.site.years, 1 / 365.25)


def _idle(play: Play) -> float:
    return play.idle


def backtest_of(
    site: BacktestSite, plays: Plays, in_force: str, *, profile: str, scheduler: str
) -> Backtest:
    """Compare the plays of a site."""
    today = plays[REQUESTED]
    believed = compare(site, today)
    changes = list(changes_of(site.groupings, today, plays[in_force]))
    return Backtest(
        site=site,
        plays=plays,
        in_force=in_force,
        profile=profile,
        believed=believed,
        special=unusual(site, today, believed),
        changes=changes,
        harm=harm_of(today, plays[in_force], changes),
        scheduler=scheduler,
        counts=site.counts_of(site.workloads()),
    )


def judge(tested: Backtest) -> Judged:
    """Return the verdict on the method in force."""
    decided = next((each for each in tested.special if each.verdict), None)
    if decided is not None and decided.verdict is not None:
        return Judged(decided.verdict, decided.sentence)
    effect = tested.site.effect
    judged = _of_plays(tested)
    if effect is None or not effect.obstacle:
        return judged
    return Judged("order-cannot-act", effect.sentence(), f"With the advised lines: {judged.reason}")


def _of_plays(tested: Backtest) -> Judged:
    """Return the verdict by what was played."""
    if tested.weeks < FEWEST_WEEKS:
        return Judged("too-little-data", _few_weeks(tested.weeks), _figures(tested))
    judged = _limited(tested, _of_columns(tested))
    doubt = doubt_of(tested)
    if doubt:
        sentence = (
            f"{doubt} As far as that goes: {judged.sentence[:1].lower()}{judged.sentence[1:]}"
        )
        return judged._replace(verdict="indication", sentence=sentence)
    return judged


def _few_weeks(weeks: int) -> str:
    return (
        f"The log has {counted(weeks, 'week')} of load; at least {FEWEST_WEEKS} are needed to tell "
        "a gain from the luck of a month."
    )


def doubt_of(tested: Backtest) -> str:
    """Return why the simulation is no more than an indication; empty if it is more."""
    if tested.believed.quality in {Quality.POOR, Quality.UNKNOWN}:
        return tested.believed.headline()
    return ""


def _of_columns(tested: Backtest) -> Judged:
    """Return the verdict by today, the order by requests, and predictions."""
    name = tested.in_force
    verdict, sentence = _of_gains(
        name, tested.wait_gain(name), tested.slowdown_gain(name), tested.repetitions
    )
    details = f"{_figures(tested)} {_beside_requests(tested)}"
    beyond = tested.wait_gain(name, BY_REQUEST), tested.slowdown_gain(name, BY_REQUEST)
    if verdict == "turn-on" and not any(each.is_gain for each in beyond):
        verdict = "observe"
        sentence = (
            f"With {name} jobs would be better off than today, but no better than in a queue that "
            "is ordered by requests, which needs no prediction."
        )
    return Judged(verdict, sentence, details)


def _limited(tested: Backtest, judged: Judged) -> Judged:
    """Return the verdict within the bounds on harm, and with findings on an unusual log."""
    reasons = tested.harm.reasons
    if reasons and judged.verdict in {"turn-on", "observe"}:
        sentence = f"{judged.sentence} But {listed(reasons)}."
        judged = Judged("observe", sentence, judged.details)
    if not tested.special:
        return judged
    careful: BacktestVerdict = "observe" if judged.verdict == "turn-on" else judged.verdict
    first, *others = (each.sentence for each in tested.special)
    details = " ".join([*others, judged.sentence, judged.details])
    return Judged(careful, first, details)


def _of_gains(
    name: str, wait: GainInterval, slowdown: GainInterval, repetitions: int
) -> tuple[BacktestVerdict, str]:
    """Return the verdict by the gains alone, and the reason."""
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


def _gained(name: str, wait: GainInterval, slowdown: GainInterval) -> str:
    if wait.is_gain and slowdown.is_gain:
        return f"With {name}, jobs would wait less and be slowed down less, in nearly all samples."
    better, rest = _decided(wait, slowdown, by_wait=wait.is_gain)
    return f"With {name} {better} would get smaller in nearly all samples, and {rest}."


def _lost(name: str, wait: GainInterval, slowdown: GainInterval) -> str:
    if wait.is_loss and slowdown.is_loss:
        return f"Jobs would be worse off with {name} than with today's requests."
    worse, rest = _decided(wait, slowdown, by_wait=wait.is_loss)
    return (
        f"Jobs would be worse off with {name}: {worse} would get larger in nearly all samples, and "
        f"{rest}."
    )


def _decided(wait: GainInterval, slowdown: GainInterval, *, by_wait: bool) -> tuple[str, str]:
    """Return the name of the deciding measure, and a phrase on the undecided one."""
    which, other, rest = (
        ("waits", "slowdowns", slowdown) if by_wait else ("slowdowns", "waits", wait)
    )
    way = "change no more than by chance" if rest.matters else "hardly change"
    return which, f"{other} would {way}"


def _figures(tested: Backtest) -> str:
    """Return the gains, and the number of months with shorter waits."""
    wait, slowdown = tested.wait_gain(tested.in_force), tested.slowdown_gain(tested.in_force)
    if not (wait.is_any or slowdown.is_any):
        waited = duration(gains.mean_wait(tested.today))
        return f"With {tested.in_force} nothing changes: jobs wait {waited} on average, as today."
    before, after = gains.mean_wait(tested.today), gains.mean_wait(tested.predicted)
    now, then = told_apart(before, after)
    months, of_months = gains.months_gained(tested.today, tested.predicted)
    return (
        f"With {tested.in_force}, jobs would wait {then} on average instead of {now}: "
        f"{less_or_more(wait.mean)} today ({_between(wait)}), and less in {months} of "
        f"{counted(of_months, 'month')}. The slowdown would be "
        f"{_smaller_or_larger(slowdown.mean)} ({_between(slowdown)})."
    )


def _beside_requests(tested: Backtest) -> str:
    """Return the order by requests against today, and predictions against that order."""
    ordered = tested.wait_gain(BY_REQUEST)
    beyond = tested.wait_gain(tested.in_force, BY_REQUEST)
    slowdown = tested.slowdown_gain(tested.in_force, BY_REQUEST)
    if not any(each.is_any for each in (ordered, beyond, slowdown)):
        return "Nor does an order by requests change anything."
    return (
        f"A queue ordered by requests would make jobs wait {less_or_more(ordered.mean)} today "
        f"({_between(ordered)}); with predictions they would wait {less_or_more(beyond.mean)} that "
        f"({_between(beyond)}), and be slowed down {less_or_more(slowdown.mean)} that "
        f"({_between(slowdown)})."
    )


def _between(gained: GainInterval) -> str:
    """Return the interval, the lower gain first."""
    low, high = change(-gained.high), change(-gained.low)
    return low if low == high else f"{low} to {high}"


def _smaller_or_larger(gained: float) -> str:
    if abs(gained) < 0.0005:
        return "the same"
    return f"{share(abs(gained))} {'smaller' if gained > 0 else 'larger'}"


def outran_request(tested: Backtest) -> float:
    """Return the share of the jobs that ran longer in the log than requested."""
    beyond = sum(
        number for rule, number in tested.counts.items() if rule.startswith("beyond-request")
    )
    return beyond / max(1, tested.today[0].jobs)


def users_of(tested: Backtest) -> int:
    """Return the number of users that the log names."""
    return int(np.count_nonzero(np.unique(tested.site.trace.user) >= 0))


def dates(tested: Backtest) -> tuple[float | None, float | None]:
    """Return Unix seconds of the first submission and the last end; None without dates."""
    trace = tested.site.trace
    if not trace.unix_start:
        return None, None
    return float(trace.submit.min()) + trace.unix_start, float(trace.end.max()) + trace.unix_start


def period(tested: Backtest) -> str:
    """Return the dates of the log, such as ``28 Jul 2002 to 1 May 2003`` or ``dates unknown``."""
    days = [f"{datetime.fromtimestamp(each, UTC):%-d %b %Y}" for each in dates(tested) if each]
    return " to ".join(dict.fromkeys(days)) or "dates unknown"
