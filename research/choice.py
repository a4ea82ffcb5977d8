"""Compares the cost of auto with that of every single method, the request included, in hindsight.

    .venv/bin/python research/choice.py LOG... --limit 20000

Prints a row for each log and price. The cost of a prediction is its error, plus the price if it is
too short, in mean runtimes of the log; the jobs of a young site are included.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
import typer
from played_logs import LogPart, Traces, log_parts, play_logs, run_script

from predictors.answers import DistributionMethod
from predictors.auto import FEWEST_RUNS, KNOWN, STRANGERS, Auto, Candidate, CandidateCosts
from predictors.candidates import Decision
from predictors.jobs import Completion, Submission
from predictors.memory.columns import NOBODY, Floats
from predictors.registry import AUTO, create
from predictors.tuning.forest_learning import learned_anew
from simulator.cli.options import Distributed, Processes
from simulator.replay.trace_replay import InProcess, play_jobs, replay, start_of
from simulator.reports.tables import text_table
from terminal.console import out
from terminal.options import Limit

if TYPE_CHECKING:
    from predictors.base import Predictor

PRICES = (0.0, 1.0, 3.0, 10.0)
"""Prices of an underestimate, each of a site of its own, in mean runtimes."""

POINTS = ("max-usage", "last-two", "percentile", "knn")
"""Methods without a price."""

PRICED = ("least-cost", "attention")
GOALS = (0.01, 0.03)
"""How far the cost of auto may be above that of the best method: nearly always, and never."""

USERS = "users"

PARTS: Mapping[str, Callable[[Candidate], bool]] = {
    "request": lambda candidate: candidate.decision.request_share > 0,
    "forest": attrgetter("is_forest"),
    "strangers": STRANGERS[1:].__contains__,
    USERS: lambda _: False,
}
"""Parts of auto that are left out in turn, with their candidates. Without strangers, users without
earlier runs get the cautious quantile; without users, the sums of the cluster decide."""


class Row(NamedTuple):
    """Costs at one price.

    Attributes:
        price: of an underestimate, in mean runtimes.
        costs: mean cost of the predictions for all jobs, in seconds, by method.
        without: mean cost of auto without a part, by part; without starts it is not told which
            jobs run.
        rate: share of the jobs that auto underestimates.
    """

    price: float
    costs: Mapping[str, float]
    without: Mapping[str, float]
    rate: float

    @property
    def best(self) -> str:
        """The single method that cost least."""
        return min((name for name in self.costs if name != AUTO), key=self.costs.__getitem__)

    @property
    def over_best(self) -> float:
        """Cost of auto over that of the best single method, as a relative difference."""
        return self.costs[AUTO] / self.costs[self.best] - 1


class Divisible(Auto):
    """``auto`` that can answer without one of its parts."""

    _left_out = ""

    def without(self, part: str, submission: Submission) -> float:
        """Return the prediction in seconds that it would make without a part."""
        self._left_out = part
        seconds = self.predict(submission).predicted_walltime
        self._left_out = ""
        return seconds

    def _answering(self, submission: Submission) -> tuple[DistributionMethod, Decision]:
        if not self._left_out:
            return super()._answering(submission)
        costs, is_of_part = self._costs(submission), PARTS[self._left_out]
        if self._left_out == USERS:
            costs = self._costs_of_cluster(costs)
        runs = self._attention.running.like(submission) is not NOBODY
        kept = [each for each in costs if runs or not each[0].decision.running]
        candidate, _ = min((each for each in kept if not is_of_part(each[0])), key=itemgetter(1))
        return self._forest if candidate.is_forest else self._attention, candidate.decision

    def _costs_of_cluster(self, costs: CandidateCosts) -> CandidateCosts:
        known, strangers = self.cluster_costs()
        of_cluster = known if costs[0][0] == KNOWN[0] else strangers
        return [(candidate, of_cluster[candidate.name]) for candidate, _ in costs]


class Played(NamedTuple):
    """Predictions in seconds, by job and price.

    Attributes:
        without: of auto without a part, by part.
        forest: of the method forest.
    """

    auto: Floats
    without: Mapping[str, Floats]
    forest: Floats


def played_by_auto(
    log: Sequence[Completion],
    prices: Sequence[float],
    every: int,
    parts: Sequence[str] = (),
) -> Played:
    """Play a log to auto, to one without starts, and to forest, which have the same forests.

    Args:
        log: the runs.
        prices: of an underestimate, in mean runtimes.
        every: number of ended runs between two forests; 0 for none.
        parts: that auto answers without, too.
    """
    told = [Divisible(price=price, every=0) for price in prices]
    sites = [*told, *(Auto(price=price, every=0) for price in prices)]
    predicted = np.empty((len(log), len(sites)))
    of_forest = np.empty((len(log), len(told)))
    without = {part: np.empty_like(of_forest) for part in parts}
    ended = 0

    def submitted(job: int) -> None:
        submission = log[job].submission
        for place, site in enumerate(sites):
            predicted[job, place] = site.predict(submission).predicted_walltime
        for place, site in enumerate(told):
            of_forest[job, place] = site.forest.predict(submission).predicted_walltime
            for part, seconds in without.items():
                seconds[job, place] = site.without(part, submission)

    def observe(job: int) -> None:
        nonlocal ended
        for site in sites:
            site.observe(log[job])
        ended += 1
        if is_due(ended, every):
            renew(sites)

    def started(job: int) -> None:
        for site in told:
            site.started(start_of(log[job]))

    play_jobs(log, ended=observe, submitted=submitted, started=started)
    without["starts"] = predicted[:, len(told) :]
    return Played(predicted[:, : len(told)], without, of_forest)


def is_due(ended: int, every: int) -> bool:
    """Return whether a forest is learned after a number of ended runs."""
    return every > 0 and ended >= FEWEST_RUNS and (ended - FEWEST_RUNS) % every == 0


def renew(sites: Sequence[Auto]) -> None:
    """Learn a forest, and put it in force on all sites."""
    learned = learned_anew(sites[0].forest)
    for site in sites:
        site.renew(learned)


def compare(log: Sequence[Completion], every: int) -> list[Row]:
    """Play a log to auto and to every single method."""
    players: dict[str, Predictor] = {name: create(name) for name in POINTS}
    players |= {
        f"{name}:{price:g}": create(name, price=price) for name in PRICED for price in PRICES
    }
    played = replay(log, InProcess(players))
    predicted = {name: answers.predicted for name, answers in played.answers.items()}
    by_auto = played_by_auto(log, PRICES, every, tuple(PARTS))
    actual = np.array([min(run.runtime, run.submission.requested_walltime) for run in log])
    rows = []
    for place, price in enumerate(PRICES):
        seconds = {"requested": played.requested, AUTO: by_auto.auto[:, place]}
        seconds |= {name: predicted[name] for name in POINTS}
        seconds |= {name: predicted[f"{name}:{price:g}"] for name in PRICED}
        seconds["forest"] = by_auto.forest[:, place]
        costs = {name: mean_cost(each, actual, price) for name, each in seconds.items()}
        without = {
            part: mean_cost(each[:, place], actual, price) for part, each in by_auto.without.items()
        }
        rate = float((by_auto.auto[:, place] < actual).mean())
        rows.append(Row(price, costs, without, rate))
    return rows


def mean_cost(predicted: Floats, actual: Floats, price: float) -> float:
    """Return the mean error, plus the price of each underestimate, in seconds."""
    penalty = price * actual.mean()
    return float((np.abs(predicted - actual) + penalty * (predicted < actual)).mean())


def table(parts: Sequence[tuple[LogPart, list[Row]]]) -> str:
    """Return the rows of all logs as a table of text, and how many reach the goals.

    The last columns say how much more auto costs without a part.
    """
    names = tuple(parts[0][1][0].without)
    heads = (
        *("log", "price", "best single", "its cost", "attention", AUTO, "to the best", "rate"),
        *(f"- {name}" for name in names),
    )
    lines = [
        (
            Path(part.trace).name.split(".")[0],
            f"{row.price:g}",
            row.best,
            *(f"{row.costs[name]:,.0f}" for name in (row.best, "attention", AUTO)),
            f"{row.over_best:+.1%}",
            f"{row.rate:.1%}",
            *(f"{row.without[name] / row.costs[AUTO] - 1:+.1%}" for name in names),
        )
        for part, rows in parts
        for row in rows
    ]
    over = [row.over_best for _, rows in parts for row in rows]
    counts = [sum(each <= goal for each in over) for goal in GOALS]
    return (
        f"{text_table(heads, lines)}\n\nat most {GOALS[0]:.0%} above the best: {counts[0]} of "
        f"{len(over)}; at most {GOALS[1]:.0%}: {counts[1]}; below it: {sum(e < 0 for e in over)}"
    )


def play(part: LogPart) -> list[Row]:
    """Play a log."""
    return compare(part.runs(), part.options)


def main(
    traces: Traces,
    limit: Limit = None,
    every: Annotated[int, typer.Option(min=0, help="Runs between two forests.")] = 2_000,
    processes: Processes = None,
    distributed: Distributed = None,
) -> None:
    """Print what auto costs beside every single method, for each log and price.

    Example: python research/choice.py SDSC-SP2-1998-4.2-cln.swf.gz --limit 20000
    """
    parts = log_parts(traces, limit, every)
    played = list(play_logs(play, parts, processes=processes, distributed=distributed))
    out.print(table(played), soft_wrap=True, markup=False)


if __name__ == "__main__":
    run_script(main)
