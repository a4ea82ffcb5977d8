"""Sentences beside the verdict: harm, a year, the bound of exact runtimes, start, way back."""

from collections.abc import Iterator

import numpy as np

from predictors.response_ratio import OVERDUE_SHARE, QUARTER
from simulator.backtest import gains
from simulator.backtest.order_effect import ASSUMED
from simulator.backtest.plays import CandidateChoice, Play
from simulator.backtest.site import WEEKS
from simulator.backtest.verdict import Backtest
from simulator.scheduling.estimates import EXACT
from simulator.scheduling.ratio_rules import RESPONSE_RATIO
from simulator.scheduling.semantics import HAND_OVERS, PBS, SLURM
from terminal.words import HOUR, big, counted, duration, less_or_more, listed, one_in

NEAR = 1.1
"""Predictions of a week are good if their error is at most this multiple of the whole log's."""

LEAST_SHOWN = 0.05
"""A smaller number would be written as 0.0."""

HOURS_OF_YEAR = 8766

FIRST_WEEK = (
    "In the first week predictions are recorded and scored (mode observe), and no job changes."
)

WAY_BACK = (
    "To go back, walltimed connect --off ends every effect on new jobs, and on Slurm walltimed "
    "slurm-updater --reset takes site factors and TimeMin back from waiting ones. Jobs keep the "
    "time limits of their users all the time."
)


def played_by(tested: Backtest) -> str:
    """Return a sentence on scheduler and profile of the plays, and on how the order counts."""
    parts = [f"Played by {tested.scheduler}, profile {tested.profile}"]
    if tested.site.effect is not None:
        parts.append(tested.site.effect.comparison())
    elif tested.profile in HAND_OVERS and tested.scheduler == SLURM:
        assumed = listed(ASSUMED[HAND_OVERS[tested.profile]["order"]])
        parts.append(f"without --slurm-config this assumes {assumed}, and no other weights")
    elif tested.profile in HAND_OVERS and tested.scheduler == PBS:
        parts.append("the order is a job_sort_formula in place of the site's own")
    return f"{'; '.join(parts)}."


def remarks(tested: Backtest) -> list[str]:
    """List the sentences that stand beside the verdict."""
    return [*_errors(tested), *_changes(tested), *_first(tested), *_start(tested)]


def _first(tested: Backtest) -> Iterator[str]:
    """Say after which wait a job goes first, by the logged waits of the last quarter."""
    rules = tested.site.handed_over
    if rules is None or rules.order != RESPONSE_RATIO:
        return
    trace = tested.site.trace
    waits = trace.wait[trace.submit >= trace.submit.max(initial=0) - QUARTER]
    after = OVERDUE_SHARE * float(waits.max(initial=0))
    if after > 0:
        yield (
            f"Let a job go first that has waited for {duration(after)}, three quarters of the "
            f"longest wait of the log's last quarter: slurm-updater --first-after "
            f"{after / HOUR:.1f}{rules.ratio.option}, or T = {after:.0f} in the formula of "
            "docs/pbs.md."
        )


def _errors(tested: Backtest) -> Iterator[str]:
    requested, predicted = tested.today[0], tested.predicted[0]
    yield (
        f"Users' requests miss the run time by {duration(requested.error)} on average; predictions "
        f"of {tested.in_force} would miss it by {duration(predicted.error)}."
    )
    if predicted.choice is not None:
        yield from _candidates(predicted.choice)
    if not predicted.underestimation_rate:
        yield "No job would run longer than predicted."
        return
    yield (
        f"{one_in(predicted.underestimation_rate).capitalize()} would run longer than predicted. "
        "Nothing happens to a job that does: it may still run as long as its user asked."
    )


def _candidates(choice: CandidateChoice) -> Iterator[str]:
    """Say whom the candidates of auto answer at the end, and what each would have cost."""
    if not choice.users:
        return
    answered = listed(
        [f"{counted(count, 'user')} by {name}" for name, count in choice.users.items()]
    )
    others = [f"{name} {cost:+.0%}" for name, cost in choice.costs.items() if cost]
    first = next(iter(choice.costs))
    yield f"At the end auto answers {answered}. Cost against {first} alone: {listed(others)}."


def _changes(tested: Backtest) -> Iterator[str]:
    yield tested.harm.sentence()
    if in_a_year := ", and ".join(_in_a_year(tested)):
        yield f"In a year {in_a_year}."
    exact = tested.wait_gain(EXACT)
    yield _of_exact(exact.mean)
    if any(tested.wait_gain(name).mean > exact.mean + gains.MATERIAL for name in tested.methods):
        yield (
            "A method may look better than run times known exactly: perfect predictions do not "
            "guarantee the best schedule."
        )


def _in_a_year(tested: Backtest) -> Iterator[str]:
    """Yield the hours by which a year changes, without those that would be written as 0.0."""
    idle, waited = tested.idle_hours_a_year, tested.waited_hours_a_year
    size = tested.site.cores_of_node
    hours, unit = abs(idle) / size, "node" if size > 1 else "processor"
    if hours >= LEAST_SHOWN:
        alike = hours / HOURS_OF_YEAR
        yield (
            f"{big(hours)} {unit}-hours {'fewer' if idle >= 0 else 'more'} would be idle while "
            f"jobs wait{f', as many as {big(alike)} {unit}s have' if alike >= LEAST_SHOWN else ''}"
        )
    if abs(waited) >= LEAST_SHOWN:
        yield f"jobs would wait {big(abs(waited))} hours {'less' if waited >= 0 else 'more'} in all"


def _of_exact(gained: float) -> str:
    """Say how far better predictions could help, by the gain of exact runtimes."""
    if not gained:
        return "Nor would run times known exactly change the average wait."
    waits = (
        "with run times known exactly, handed over in the same way, jobs would wait "
        f"{less_or_more(gained)} today"
    )
    if gained < 0:
        return f"Better predictions alone would not shorten waits here: {waits}."
    return f"What not to hope for: {waits}. Better predictions would bring little beyond that."


def _start(tested: Backtest) -> Iterator[str]:
    good = weeks_until_good(tested.predicted[0])
    if good is not None:
        yield (
            "Without any history predictions would have been as good as over the whole log from "
            f"week {good + 1} on; an import of old accounting records saves that time."
            if good
            else "Predictions would have been as good as over the whole log from the first week on."
        )
    yield FIRST_WEEK
    yield WAY_BACK


def weeks_until_good(play: Play) -> int | None:
    """Return the number of weeks until the error first is near that of the whole log, or None."""
    if WEEKS not in play.groups:
        return None
    near = np.flatnonzero(play.groups[WEEKS].error <= NEAR * play.error)
    return int(near[0]) if len(near) else None
