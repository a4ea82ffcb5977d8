"""Why not trees? Boosted ones and a forest beside ours, where they underestimate as often."""

from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tradeoff import Curve, Point, curve_of, point_of

from predictors.base import Predictor
from predictors.jobs import Completion, Submission
from predictors.measures import Seconds
from predictors.methods.attention import Attention
from predictors.methods.least_cost import LeastCost
from simulator.cli.experiment import run_script
from simulator.cli.study_table import TRACES, Experiment, option
from simulator.replay.trace_replay import events, play_jobs
from simulator.reports.tables import text_table
from simulator.studies.study import LogPart, Played, Study, Takes, log_parts

QUANTILES = (0.5, 0.7, 0.85, 0.95)
"""Of the usage: what a model is asked for, one model or one look at a forest for each."""

PRICES = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)

LAST_RUNS = 3
"""The user's last runs whose runtimes and usages are columns."""

NAMED = ("user", "group", "queue", "application")

TREES, LEAF = 50, 5
"""Of the forest: trees, and the least number of runs in a leaf."""

UNKNOWN = -1.0
"""A number below all others, because a column without any number cannot be trained on."""

Table = NDArray[np.float64]


class Training(NamedTuple):
    """Options of the study.

    Attributes:
        every: completions from one training to the next.
        window: number of the latest completions that are trained on.
    """

    every: int
    window: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Learner:
    """Results of one kind of trees on one log.

    Attributes:
        name: of the kind.
        points: at each of QUANTILES.
        trainings: how often it was trained.
        seconds_of_training: of one core, for one quantile of one training.
        microseconds: of one core, for one prediction at one quantile, in batches.
    """

    name: str
    points: Sequence[Point]
    trainings: int
    seconds_of_training: float
    microseconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Boosted:
    """Results of one log.

    Attributes:
        jobs: how many there are, the first ones included.
        learners: the kinds of trees.
        curves: least-cost and attention, at PRICES.
        microseconds: of a prediction, by the name of the curve.
    """

    jobs: int
    learners: Sequence[Learner]
    curves: Sequence[Curve]
    microseconds: Mapping[str, float]


class Columns:
    """Features of a job: its own fields, and its user's last runs that had ended."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str], int] = {}
        self._past: dict[str | None, deque[Completion]] = defaultdict(
            lambda: deque(maxlen=2 * LAST_RUNS)
        )

    def of(self, job: Submission) -> list[float]:
        """The columns of one job; names are numbers in order of appearance."""
        past = list(self._past[job.user])[::-1]
        row = [
            job.requested_walltime,
            job.requested_processors or UNKNOWN,
            job.requested_memory or UNKNOWN,
            job.submit_time % 86400,
            job.submit_time // 86400 % 7,
            *(self._number(name, getattr(job, name)) for name in NAMED),
        ]
        for place in range(LAST_RUNS):
            is_there = place < len(past)
            row.append(past[place].runtime if is_there else UNKNOWN)
            row.append(past[place].usage if is_there else UNKNOWN)
        row.append(float(np.mean([run.usage for run in past])) if past else UNKNOWN)
        return row

    def observe(self, run: Completion) -> None:
        """A run has ended."""
        self._past[run.submission.user].append(run)

    def _number(self, name: str, text: str | None) -> float:
        if text is None:
            return UNKNOWN
        return float(self._numbers.setdefault((name, text), len(self._numbers)))


class Boosting:
    """Gradient-boosted trees: one model for each quantile, by the quantile loss."""

    name = "boosted trees"

    def fit(self, table: Table, usages: Seconds) -> None:
        """Train from nothing."""
        from sklearn.ensemble import HistGradientBoostingRegressor  # noqa: PLC0415 - an extra

        self._models = [
            HistGradientBoostingRegressor(loss="quantile", quantile=quantile, random_state=0)
            for quantile in QUANTILES
        ]
        for model in self._models:
            model.fit(table, usages)

    def predict(self, table: Table) -> Table:
        """The usage by quantile and job."""
        return np.array([model.predict(table) for model in self._models])


class Forest:
    """A random forest whose leaves keep their runs: quantiles of all runs a job falls among.

    Reference:
        N. Meinshausen, "Quantile regression forests", JMLR 7, 2006.
    """

    name = "random forest"

    def fit(self, table: Table, usages: Seconds) -> None:
        """Train from nothing."""
        from sklearn.ensemble import RandomForestRegressor  # noqa: PLC0415 - an extra

        self._forest = RandomForestRegressor(TREES, min_samples_leaf=LEAF, random_state=0)
        self._forest.fit(table, usages)
        self._usages = usages
        self._members = [self._runs_by_leaf(leaves) for leaves in self._forest.apply(table).T]

    def predict(self, table: Table) -> Table:
        """The usage by quantile and job."""
        found = np.empty((len(QUANTILES), len(table)))
        for job, leaves in enumerate(self._forest.apply(table)):
            near = [runs[leaf] for runs, leaf in zip(self._members, leaves, strict=True)]
            sizes = [len(runs) for runs in near]
            usages = self._usages[np.concatenate(near)]
            order = np.argsort(usages)
            weights = np.repeat(1 / np.array(sizes), sizes)[order].cumsum() / TREES
            places = np.searchsorted(weights, QUANTILES).clip(max=len(order) - 1)
            found[:, job] = usages[order][places]
        return found

    @staticmethod
    def _runs_by_leaf(leaves: NDArray[np.int64]) -> dict[int, NDArray[np.int64]]:
        order = np.argsort(leaves, kind="stable")
        names, starts = np.unique(leaves[order], return_index=True)
        return dict(zip(names.tolist(), np.split(order, starts[1:]), strict=True))


def runs(
    paths: Sequence[Path], limit: int | None, *, every: int = 2_000, window: int = 10_000
) -> Sequence[LogPart]:
    """A part for each log."""
    return log_parts(paths, limit, Training(every, window))


def play(part: LogPart) -> Boosted:
    """Compare on one log: what is trained, and when, depends on runs that had ended only."""
    log, training = part.runs(), part.options
    actual = np.array([min(run.runtime, run.submission.requested_walltime) for run in log])
    table, rounds = causal_rounds(log, training.every)
    learners = [
        learner_of(kind, log, (table, rounds, actual), training.window)
        for kind in (Boosting, Forest)
    ]
    ours = {"least-cost": least_costs(log), "attention": attentions(log)}
    curves = [
        curve_of(
            name,
            [
                point_of(f"price={price:g}", seconds, actual)
                for price, seconds in zip(PRICES, found, strict=True)
            ],
        )
        for name, (found, _) in ours.items()
    ]
    costs = {name: microseconds for name, (_, microseconds) in ours.items()}
    return Boosted(jobs=len(log), learners=learners, curves=curves, microseconds=costs)


class Retraining(NamedTuple):
    """A training, and the jobs that are submitted until the next.

    Attributes:
        ended: the runs that have ended by then, in their order.
        submitted: the jobs that are predicted with what was trained on them.
    """

    ended: int
    submitted: list[int]


def causal_rounds(
    log: Sequence[Completion], every: int
) -> tuple[Table, tuple[list[int], list[Retraining]]]:
    """The columns of every job at its submission; the order of ends, and the rounds."""
    columns = Columns()
    rows: list[list[float]] = [[] for _ in log]
    ended: list[int] = []
    rounds = [Retraining(0, [])]
    for step in events(log):
        for job in step.ended:
            columns.observe(log[job])
        ended += step.ended
        if len(ended) >= rounds[-1].ended + every:
            rounds.append(Retraining(len(ended), []))
        for job in step.submitted:
            rows[job] = columns.of(log[job].submission)
        rounds[-1].submitted.extend(step.submitted)
    return np.array(rows), (ended, rounds)


def learner_of(
    kind: Callable[[], Any],
    log: Sequence[Completion],
    causal: tuple[Table, tuple[list[int], list[Retraining]], Seconds],
    window: int,
) -> Learner:
    """Train one kind of trees again and again; until the first training a job gets its request."""
    table, (ended, rounds), actual = causal
    requests = np.array([run.submission.requested_walltime for run in log])
    predicted = np.tile(requests, (len(QUANTILES), 1))
    model = kind()
    training = predicting = 0.0
    for each in rounds[1:]:
        latest = ended[max(0, each.ended - window) : each.ended]
        began = perf_counter()
        model.fit(table[latest], actual[latest] / requests[latest])
        fitted = perf_counter()
        jobs = each.submitted
        if jobs:
            usages = model.predict(table[jobs]).clip(0, 1)
            predicted[:, jobs] = np.maximum(
                np.minimum(1.0, requests[jobs]), usages * requests[jobs]
            )
        training += fitted - began
        predicting += perf_counter() - fitted
    predictions = sum(len(each.submitted) for each in rounds[1:])
    return Learner(
        name=model.name,
        points=[
            point_of(f"quantile={quantile:g}", seconds, actual)
            for quantile, seconds in zip(QUANTILES, predicted, strict=True)
        ],
        trainings=len(rounds) - 1,
        seconds_of_training=training / max(1, len(rounds) - 1) / len(QUANTILES),
        microseconds=predicting / max(1, predictions) / len(QUANTILES) * 1e6,
    )


def least_costs(log: Sequence[Completion]) -> tuple[Table, float]:
    """Predictions of least-cost by price and job, and the microseconds of one prediction."""
    first = LeastCost(price=PRICES[0])
    methods = [first, *(first.repriced(price) for price in PRICES[1:])]

    def predict(job: Submission) -> list[float]:
        return [method.predict(job).predicted_walltime for method in methods]

    found, microseconds = timed(log, first, predict)
    return found, microseconds / len(PRICES)


def attentions(log: Sequence[Completion]) -> tuple[Table, float]:
    """Predictions of attention with the shipped weights, and the microseconds of one job."""
    attention = Attention()
    prices = np.array(PRICES)
    return timed(log, attention, lambda job: attention.estimates(job, prices))


def timed(
    log: Sequence[Completion],
    method: Predictor,
    predict: Callable[[Submission], Sequence[float] | Seconds],
) -> tuple[Table, float]:
    """The predictions by price and job, and the microseconds of one call of ``predict``."""
    found = np.empty((len(PRICES), len(log)))
    spent = 0.0
    for run in log[:1]:  # it loads the machine code, which is no part of a prediction
        predict(run.submission)

    def ask(job: int) -> None:
        nonlocal spent
        began = perf_counter()
        found[:, job] = predict(log[job].submission)
        spent += perf_counter() - began

    play_jobs(log, ended=lambda job: method.observe(log[job]), submitted=ask)
    return found, spent / max(1, len(log)) * 1e6


def log_tables(found: Boosted) -> str:
    """Errors at equal underestimation, and what it cost."""
    lines = [
        (
            f"{learner.name}, {point.setting}",
            f"{point.underestimation_rate:.1%}",
            f"{point.error:,.0f}",
            *(_ratio(point, curve) for curve in found.curves),
        )
        for learner in found.learners
        for point in learner.points
    ]
    heads = (
        "trees",
        "underestimated",
        "error",
        *(f"{curve.name}'s error over it" for curve in found.curves),
    )
    costs = [
        (
            learner.name,
            f"{learner.trainings}",
            f"{learner.seconds_of_training:.2f} s",
            f"{learner.microseconds:.0f}",
        )
        for learner in found.learners
    ]
    costs += [(name, "0", "-", f"{cost:.0f}") for name, cost in found.microseconds.items()]
    return "\n".join(
        [
            f"{found.jobs:,} jobs; mean absolute errors in seconds",
            text_table(heads, lines),
            text_table(("cost", "trainings", "of one", "microseconds a prediction"), costs),
        ]
    )


def _ratio(point: Point, curve: Curve) -> str:
    error = curve.error_at(point.underestimation_rate)
    return "-" if np.isnan(error) or point.error == 0 else f"{error / point.error:.2f}"


def tables(played: Played) -> str:
    """The tables of every log."""
    return "\n".join(f"{part.trace}\n{log_tables(found)}" for part, found in played)


STUDY = Study(
    title="boosted trees and a random forest beside ours, where they underestimate equally often",
    takes=Takes.TRACES,
    runs=runs,
    play=play,
    tables=tables,
)

EXPERIMENT = Experiment(
    "boosted",
    """Compare gradient-boosted trees and a random forest with least-cost and attention.

    The trees (scikit-learn) are shown the job's fields and its user's last runs, are trained
    again and again on the latest completions, and are asked for several quantiles. Compared
    where they underestimate equally often, with what training and predicting cost. attention
    has the shipped weights, in whose learning the public logs took part.

    For example:

        python research/boosted.py SDSC-SP2-1998-4.2-cln.swf.gz --limit 30000
    """,
    TRACES,
    {
        "every": option(int, default=2_000, min=1, help="Completions between trainings."),
        "window": option(int, default=10_000, min=1, help="Completions that are trained on."),
    },
)

if __name__ == "__main__":
    run_script(EXPERIMENT, STUDY)
