"""Compares the cost of auto, with what rounds learn, with that of each method it chooses from.

    .venv/bin/python research/learned.py LOG... --limit 20000

Prints a table for each log.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
import typer
from played_logs import LogPart, Traces, log_parts, play_logs, run_script

from predictors.jobs import Completion
from predictors.methods.attention import Attention
from predictors.methods.forest import Forest
from predictors.methods.least_cost import LeastCost
from predictors.registry import AUTO
from predictors.tuning.cluster_round import SimulatedRounds
from predictors.tuning.plan import TuningPlan
from predictors.tuning.tunables import FIRST, costs_of
from simulator.cli.options import Distributed, Processes
from simulator.replay.trace_replay import play_jobs
from simulator.reports.tables import text_table
from terminal.console import out
from terminal.options import Limit

PRICES = (0.0, 1.0, 3.0, 10.0)
"""Prices of an underestimate, each of a site of its own, in mean runtimes."""

METHODS = (Attention.name, LeastCost.name, Forest.name)
"""The methods that auto chooses from."""

GOAL = 0.01
"""How far the cost of auto may be above that of the best method."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Costs by method at one price.

    Attributes:
        price: of an underestimate, in mean runtimes.
        costs: mean cost of the predictions for all jobs, in seconds, by method.
        forest_over_attention: relative difference of their costs for the jobs that were submitted
            while a forest was in force; None without any.
        changes: what rounds adopted and dropped, in order, each with the number of ended runs.
    """

    price: float
    costs: Mapping[str, float]
    forest_over_attention: float | None
    changes: Sequence[str]

    def over(self, *others: str) -> float:
        """Return the cost of auto over the least of others, as a relative difference."""
        return self.costs[AUTO] / min(self.costs[each] for each in others) - 1

    @property
    def verdict(self) -> str:
        """Whether auto is near the best single method."""
        return "reached" if self.over(*METHODS) <= GOAL else "missed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """Results of one log.

    Attributes:
        jobs: number of jobs, the first ones included.
        sites: by price.
    """

    jobs: int
    sites: Sequence[Site]


class Sites:
    """Sites with the same runs and different prices, and the predictions that they get.

    Args:
        log: the runs.
        every: number of runs between two rounds.
        prices: of the sites, in mean runtimes.

    Attributes:
        predicted: seconds, by method, job and price.
        has_forest: whether a forest was in force at the submission, by job and price.
        rounds: of the sites.
    """

    def __init__(
        self, log: Sequence[Completion], every: int, prices: Sequence[float] = PRICES
    ) -> None:
        shape = (len(log), len(prices))
        self.predicted = {name: np.empty(shape) for name in (*METHODS, AUTO)}
        self._log = log
        self._attention, self._least_cost, self._forest = Attention(), LeastCost(), Forest()
        self._prices = np.array(prices)
        self.rounds = SimulatedRounds(
            first=FIRST, prices=prices, plan=TuningPlan(), every=every, forest=self._forest
        )
        self._forests = [self._forest for _ in prices]
        self.has_forest = np.zeros(shape, dtype=bool)

    def play(self) -> Self:
        """Play the log; return self."""
        play_jobs(self._log, ended=self.observe, submitted=self.predict)
        return self

    def predict(self, job: int) -> None:
        """Predict a job at its submission by all methods."""
        submission, predicted = self._log[job].submission, self.predicted
        for method in (self._attention, self._least_cost):
            predicted[method.name][job] = method.estimates(submission, self._prices)
        answers = {
            forest: forest.estimates(submission, self._prices) for forest in set(self._forests)
        }
        for place, forest in enumerate(self._forests):
            predicted[Forest.name][job, place] = answers[forest][place]
            self.has_forest[job, place] = forest.learned is not None
        for place, chosen in enumerate(self.rounds.methods):
            predicted[AUTO][job, place] = predicted[chosen][job, place]

    def observe(self, job: int) -> None:
        """Learn from a run that has ended; run a round if one is due."""
        run = self._log[job]
        for method in (self._attention, self._least_cost, self._forest):
            method.observe(run)
        others = (Attention.name, LeastCost.name)
        self.rounds.observe(run, {name: self.predicted[name][job].copy() for name in others})
        learned = [site.forest.now for site in self.rounds.sites]
        if learned != [forest.learned for forest in self._forests]:
            forests = {each: self._forest.retuned(each) for each in set(learned)}
            self._forests = [forests[each] for each in learned]


def compare(log: Sequence[Completion], every: int) -> Learned:
    """Play a log to sites of all prices."""
    sites = Sites(log, every).play()
    return Learned(
        jobs=len(log), sites=[site_of(sites, log, place) for place in range(len(PRICES))]
    )


def site_of(sites: Sites, log: Sequence[Completion], place: int) -> Site:
    """Return the results at one price."""
    actual = np.array([min(run.runtime, run.submission.requested_walltime) for run in log])
    price, grown = PRICES[place], sites.has_forest[:, place]
    costs = {
        name: costs_of(seconds[:, place], actual, price)
        for name, seconds in sites.predicted.items()
    }
    means = {name: float(each[grown].mean()) for name, each in costs.items() if grown.any()}
    return Site(
        price=price,
        costs={name: float(each.mean()) for name, each in costs.items()},
        forest_over_attention=means[Forest.name] / means[Attention.name] - 1 if means else None,
        changes=[
            f"{ended:,}: {change.subject} {change.action}"
            + (f" {change.after}" if change.subject == AUTO else "")
            for ended, at, change in sites.rounds.changes_by_price
            if at == price and change.action != "kept"
        ],
    )


def table(found: Learned) -> str:
    """Return the results of a log as a table of text."""
    rows = [
        (
            f"{site.price:g}",
            *(f"{site.costs[name]:,.0f}" for name in (*METHODS, AUTO)),
            "-" if site.forest_over_attention is None else f"{site.forest_over_attention:+.1%}",
            f"{site.over(Attention.name):+.1%}",
            f"{site.over(*METHODS):+.1%}",
            site.verdict,
            "; ".join(site.changes) or "-",
        )
        for site in found.sites
    ]
    heads = (
        "price",
        *METHODS,
        AUTO,
        "forest to attention",
        "auto to attention",
        "to the best",
        "goal",
        "changes",
    )
    return f"{found.jobs:,} jobs, mean cost in seconds\n{text_table(heads, rows)}"


def play(part: LogPart) -> Learned:
    """Play a log."""
    return compare(part.runs(), part.options)


def main(
    traces: Traces,
    *,
    every: Annotated[int, typer.Option(min=100, help="Ended runs between two rounds.")] = 2_000,
    limit: Limit = None,
    processes: Processes = None,
    distributed: Distributed = None,
) -> None:
    """Show what rounds learn on logs, and the cost of auto beside that of its methods.

    Sites with prices of an underestimate of 0, 1, 3 and 10 mean runtimes get the same jobs. A cost
    is the error, and the price where the prediction is too short. Every job counts. The goal: auto
    costs at most 1% more than the best single method.

    For example: python research/learned.py *.swf.gz --limit 20000
    """
    parts = log_parts(traces, limit, every)
    for part, found in play_logs(play, parts, processes=processes, distributed=distributed):
        out.print(f"{part.trace}: {table(found)}", markup=False, soft_wrap=True)


if __name__ == "__main__":
    run_script(main)
