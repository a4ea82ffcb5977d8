"""Compares the cost of auto with that of every single method, the request included, in hindsight.

    .venv/bin/python research/choice.py LOG... --limit 20000

Prints a row for each log and price. The cost of a prediction is its error, plus the price if it is
too short, in mean runtimes of the log; the jobs of a young site are included.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
import typer
from played_logs import LogPart, Traces, log_parts, play_logs, run_script

from predictors.auto import FEWEST_RUNS, Auto
from predictors.jobs import Completion
from predictors.memory.columns import Floats
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


class Row(NamedTuple):
    """Costs at one price.

    Attributes:
        price: of an underestimate, in mean runtimes.
        costs: mean cost of the predictions for all jobs, in seconds, by method.
        unaware: mean cost of auto that is not told which jobs run.
        rate: share of the jobs that auto underestimates.
    """

    price: float
    costs: Mapping[str, float]
    unaware: float
    rate: float

    @property
    def best(self) -> str:
        """The single method that cost least."""
        return min((name for name in self.costs if name != AUTO), key=self.costs.__getitem__)

    @property
    def over_best(self) -> float:
        """Cost of auto over that of the best single method, as a relative difference."""
        return self.costs[AUTO] / self.costs[self.best] - 1


def predictions_of_auto(
    log: Sequence[Completion], prices: Sequence[float], every: int
) -> tuple[Floats, Floats, Floats]:
    """Return the predictions of auto, of one without starts, and of forest, by job and price.

    The sites of all prices have the same forests.

    Args:
        log: the runs.
        prices: of an underestimate, in mean runtimes.
        every: number of ended runs between two forests; 0 for none.
    """
    told = [Auto(price=price, every=0) for price in prices]
    sites = [*told, *(Auto(price=price, every=0) for price in prices)]
    predicted = np.empty((len(log), len(sites)))
    of_forest = np.empty((len(log), len(told)))
    ended = 0

    def submitted(job: int) -> None:
        submission = log[job].submission
        for place, site in enumerate(sites):
            predicted[job, place] = site.predict(submission).predicted_walltime
        for place, site in enumerate(told):
            of_forest[job, place] = site.forest.predict(submission).predicted_walltime

    def observe(job: int) -> None:
        nonlocal ended
        for site in sites:
            site.observe(log[job])
        ended += 1
        if every and ended >= FEWEST_RUNS and (ended - FEWEST_RUNS) % every == 0:
            learned = learned_anew(sites[0].forest)
            for site in sites:
                site.renew(learned)

    def started(job: int) -> None:
        for site in told:
            site.started(start_of(log[job]))

    play_jobs(log, ended=observe, submitted=submitted, started=started)
    return predicted[:, : len(told)], predicted[:, len(told) :], of_forest


def compare(log: Sequence[Completion], every: int) -> list[Row]:
    """Play a log to auto and to every single method."""
    players: dict[str, Predictor] = {name: create(name) for name in POINTS}
    players |= {
        f"{name}:{price:g}": create(name, price=price) for name in PRICED for price in PRICES
    }
    played = replay(log, InProcess(players))
    predicted = {name: answers.predicted for name, answers in played.answers.items()}
    of_auto, unaware, of_forest = predictions_of_auto(log, PRICES, every)
    actual = np.array([min(run.runtime, run.submission.requested_walltime) for run in log])
    rows = []
    for place, price in enumerate(PRICES):
        seconds = {"requested": played.requested, AUTO: of_auto[:, place]}
        seconds |= {name: predicted[name] for name in POINTS}
        seconds |= {name: predicted[f"{name}:{price:g}"] for name in PRICED}
        seconds["forest"] = of_forest[:, place]
        costs = {name: mean_cost(each, actual, price) for name, each in seconds.items()}
        without = mean_cost(unaware[:, place], actual, price)
        rows.append(Row(price, costs, without, float((of_auto[:, place] < actual).mean())))
    return rows


def mean_cost(predicted: Floats, actual: Floats, price: float) -> float:
    """Return the mean error, plus the price of each underestimate, in seconds."""
    penalty = price * actual.mean()
    return float((np.abs(predicted - actual) + penalty * (predicted < actual)).mean())


def table(parts: Sequence[tuple[LogPart, list[Row]]]) -> str:
    """Return the rows of all logs as a table of text, and how many reach the goals."""
    heads = (
        *("log", "price", "best single", "its cost", "attention", "without starts", AUTO),
        *("to the best", "rate"),
    )
    lines = [
        (
            Path(part.trace).name.split(".")[0],
            f"{row.price:g}",
            row.best,
            *(f"{cost:,.0f}" for cost in (row.costs[row.best], row.costs["attention"])),
            *(f"{cost:,.0f}" for cost in (row.unaware, row.costs[AUTO])),
            f"{row.over_best:+.1%}",
            f"{row.rate:.1%}",
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
