"""Is learned likeness better on unseen logs? Each log is played with what other logs taught.

The weights are learned from the other logs that are given, or come from a file. Attention is
played with these weights. ``auto`` answers with attention or with least-cost, as the rounds before
have chosen. Each price is that of a site of its own, whose rounds judge by it.
"""

import atexit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from attention_examples import Examples, Recipe, examples_of, name_of, together
from least_cost import published_methods
from numpy.typing import NDArray
from tradeoff import Curve, Point, curve_of, point_of

from predictors.jobs import Completion
from predictors.measures import Seconds
from predictors.methods.attention import Attention
from predictors.methods.attention_network import UnusableWeightsError, Weights, shipped
from predictors.methods.least_cost import LeastCost
from predictors.tuning.cluster_round import SimulatedRounds
from predictors.tuning.plan import TuningPlan
from predictors.tuning.tunables import FIRST
from simulator.cli.experiment import run_script
from simulator.cli.study_table import TRACES, Experiment, option
from simulator.replay.trace_replay import play_jobs
from simulator.reports.tables import text_table
from simulator.studies.study import LogPart, Played, Study, StudyError, Takes, log_parts, runs_of

if TYPE_CHECKING:
    from predictors.base import Predictor

PRICES = (0.0, 0.3, 1.0, 3.0, 10.0)
"""Of attention: where it is compared with least-cost."""

FURTHER_PRICES = (30.0, 100.0, 300.0, 1000.0)
"""Of attention: it comes to be as seldom too short as the most
careful published methods."""

REFERENCE_PRICES = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""Of least-cost: close enough to interpolate between."""

KINDS = ("attention", "auto")
"""What is made of learned weights."""

SHIPPED_WEIGHTS = "shipped"
"""Stands for the file of the weights that come with the package."""

PUBLISHED = (
    "last-two",
    "max-usage",
    "percentile=50",
    "percentile=85",
    "percentile=95",
    "knn, beta=0.02",
    "knn, beta=0.3",
)
"""Of the methods and settings that the study of least-cost compares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """Results of one log whose jobs took no part in learning.

    Attributes:
        name: of the log.
        jobs: how many there are, the first ones included.
        attention: at PRICES, in their order.
        further: attention at FURTHER_PRICES.
        auto: what auto answers, at the same prices.
        mean_runtime: seconds; the unit of the prices.
        reference: least-cost.
        published: methods of the papers, at one or more settings each.
    """

    name: str
    jobs: int
    attention: Sequence[Point]
    further: Sequence[Point]
    auto: Sequence[Point]
    mean_runtime: float
    reference: Curve
    published: Sequence[Point]

    def gains(self, points: Sequence[Point]) -> Sequence[float]:
        """Relative difference from least-cost's error at equal underestimation rates, by price."""
        return [
            point.error / self.reference.error_at(point.underestimation_rate) - 1
            for point in points
        ]

    def over(self, other: Point) -> float:
        """Attention's error over another's at its rate; NaN where it never has that."""
        curve = curve_of("attention", [*self.attention, *self.further])
        return curve.error_at(other.underestimation_rate) / other.error - 1

    def cost(self, point: Point, price: float) -> float:
        """Mean cost of an answer: its error, and the price where it is too short."""
        return point.error + price * self.mean_runtime * point.underestimation_rate

    def regrets(self) -> Sequence[tuple[float, str]]:
        """Regret of auto against the best single method in hindsight, with that method, by price.

        Of attention and least-cost the one at the same price counts, of the methods of the papers
        any that was played.
        """
        found = []
        for place, price in enumerate(PRICES):
            same = _label("least-cost", price)
            single = [
                ("attention", self.attention[place]),
                (
                    "least-cost",
                    next(each for each in self.reference.points if each.setting == same),
                ),
                *((each.setting, each) for each in self.published),
            ]
            best = min(single, key=lambda each: self.cost(each[1], price))
            ratio = self.cost(self.auto[place], price) / self.cost(best[1], price)
            found.append((ratio - 1, best[0]))
        return found


class Lesson(NamedTuple):
    """Input of learning.

    Attributes:
        examples: folder with them.
        others: places of those that are of other logs.
        recipe: how to learn.
    """

    examples: str
    others: NDArray[np.int64]
    recipe: Recipe


def runs(
    paths: Sequence[Path],
    limit: int | None,
    *,
    weights: str | None = None,
    **learning: Any,
) -> Sequence[LogPart]:
    """A part for each log; the examples of all of them are drawn once, into a temporary folder.

    A limit is one on what is played. What is learned from is drawn from whole logs, as it is for
    the weights that are shipped.

    Args:
        paths: of the logs.
        limit: jobs of each that are played, or all.
        weights: a file of them, or SHIPPED_WEIGHTS: nothing is learned.
        learning: what is other than in Recipe, by name.

    Raises:
        StudyError: there are no logs to learn from, or the weights are none, or know a log.
    """
    recipe = replace(Recipe(), **learning)
    if weights is not None:
        if recipe != Recipe():
            raise StudyError("With --weights nothing is learned: leave --jobs, --passes, --seed.")
        learned = weights_of(weights)
        refuse_known(paths, learned)
        return log_parts(paths, limit, learned.to_bytes())
    if len(paths) < 2:
        raise StudyError("Give at least two logs: each is played with what the others taught.")
    folder = mkdtemp(prefix="walltimed-likeness-")
    atexit.register(rmtree, folder, ignore_errors=True)
    owners = save_examples(paths, recipe, Path(folder))
    return [
        part._replace(options=Lesson(folder, np.flatnonzero(owners != place), recipe))
        for place, part in enumerate(log_parts(paths, limit))
    ]


def weights_of(file: str) -> Weights:
    """The weights in a file, or those that come with the package.

    Raises:
        StudyError: there is no such file, or none of weights.
    """
    if file == SHIPPED_WEIGHTS:
        return shipped()
    try:
        return Weights.from_bytes(Path(file).read_bytes())
    except (OSError, UnusableWeightsError) as error:
        raise StudyError(f"The weights {file} cannot be used: {error}") from error


def refuse_known(paths: Sequence[Path], weights: Weights) -> None:
    """Refuse logs that the weights were learned from: they show nothing of others.

    Raises:
        StudyError: it names the first of them.
    """
    taught = {log["name"] for log in weights.origin.get("logs", ())}
    for path in paths:
        if name_of(path) in taught:
            raise StudyError(f"The weights were learned from {name_of(path)}, among others.")


def save_examples(paths: Sequence[Path], recipe: Recipe, folder: Path) -> NDArray[np.int64]:
    """Save examples of all logs in one folder; which log each of them is from."""
    found = [examples_of(runs_of(path, None), jobs=recipe.jobs, seed=recipe.seed) for path in paths]
    together(found).save(folder)
    return np.repeat(np.arange(len(found)), [len(each) for each in found])


def play(part: LogPart) -> Likeness:
    """Learn from the other logs, or take the weights that there are, and play this one."""
    teaching = part.options
    if isinstance(teaching, bytes):
        weights = Weights.from_bytes(teaching)
    else:
        from learn_attention import learn  # noqa: PLC0415 - PyTorch, which --weights does not need

        examples = Examples.load(Path(teaching.examples))
        weights = learn(examples, teaching.recipe, chosen=teaching.others)
    return likeness(name_of(part.trace), part.runs(), weights)


def likeness(name: str, log: Sequence[Completion], weights: Weights) -> Likeness:
    """Play a log to attention, least-cost and the methods of the papers."""
    rounds = SimulatedRounds(
        first=FIRST,
        prices=PRICES,
        plan=TuningPlan(),
        every=TuningPlan().test,
    )
    predicted = estimates_of(log, rounds, weights)
    actual = np.array([min(run.runtime, run.submission.requested_walltime) for run in log])
    points = {label: point_of(label, seconds, actual) for label, seconds in predicted.items()}
    ours = {kind: [_label(kind, price) for price in PRICES] for kind in KINDS}
    reference = [_label("least-cost", price) for price in REFERENCE_PRICES]
    return Likeness(
        name=name,
        jobs=len(log),
        attention=[points[label] for label in ours["attention"]],
        further=[points[_label("attention", price)] for price in FURTHER_PRICES],
        auto=[points[label] for label in ours["auto"]],
        mean_runtime=float(actual.mean()),
        reference=curve_of("least-cost", [points[label] for label in reference]),
        published=[points[label] for label in PUBLISHED],
    )


def estimates_of(
    log: Sequence[Completion], rounds: SimulatedRounds, weights: Weights
) -> Mapping[str, Seconds]:
    """Predictions of each method for every job, from the runs that had ended at its submission.

    A whole distribution is made once for all prices: there are a million jobs.
    """
    attention = Attention(weights=weights)
    cheap = LeastCost(price=REFERENCE_PRICES[0])
    priced = {_label("least-cost", price): cheap.repriced(price) for price in REFERENCE_PRICES}
    methods = published_methods()
    published = {label: methods[label] for label in PUBLISHED}
    learning: list[Predictor] = [attention, cheap, *published.values()]
    priced_and_published: dict[str, Predictor] = {**priced, **published}
    predicted = {label: np.empty(len(log)) for label in priced_and_published}
    ours = {kind: np.empty((len(PRICES), len(log))) for kind in KINDS}
    further = np.empty((len(FURTHER_PRICES), len(log)))
    prices, further_prices = np.array(PRICES), np.array(FURTHER_PRICES)
    same = [_label("least-cost", price) for price in PRICES]

    def learn(job: int) -> None:
        least = np.array([predicted[label][job] for label in same])
        answers = {Attention.name: ours["attention"][:, job].copy(), LeastCost.name: least}
        rounds.observe(log[job], answers)
        for each in learning:
            each.observe(log[job])

    def ask(job: int) -> None:
        submission = log[job].submission
        for label, method in priced_and_published.items():
            predicted[label][job] = method.predict(submission).predicted_walltime
        ours["attention"][:, job] = attention.estimates(submission, prices)
        for place, chosen in enumerate(rounds.methods):
            is_attention = chosen == Attention.name
            other = predicted[same[place]][job]
            ours["auto"][place, job] = ours["attention"][place, job] if is_attention else other
        further[:, job] = attention.estimates(submission, further_prices)

    play_jobs(log, ended=learn, submitted=ask)
    predicted |= {
        _label(kind, price): ours[kind][place]
        for kind in KINDS
        for place, price in enumerate(PRICES)
    }
    return predicted | {
        _label("attention", price): further[place] for place, price in enumerate(FURTHER_PRICES)
    }


def _label(method: str, price: float) -> str:
    return f"{method}, price={price:g}"


def tables_of(found: Sequence[Likeness]) -> str:
    """The study as tables of text; in each the median and the worst log are the last lines."""
    found = sorted(found, key=lambda each: each.name)
    return "\n\n".join(
        [
            gains_table("attention against least-cost", found, lambda log: log.attention),
            regrets_table(found),
            published_table(found),
            details(found),
        ]
    )


def gains_table(
    title: str, found: Sequence[Likeness], chosen: Callable[[Likeness], Sequence[Point]]
) -> str:
    """Errors against those of least-cost at equal underestimation rates."""
    gains = np.array([each.gains(chosen(each)) for each in found])
    lines = [
        (each.name, f"{each.jobs:,}", *map(_percent, row))
        for each, row in zip(found, gains, strict=True)
    ]
    lines += [
        (name, "", *(_percent(_of_known(summary, column)) for column in gains.T))
        for name, summary in (("median", np.median), ("worst", np.max))
    ]
    return text_table((title, "jobs", *(f"price {price:g}" for price in PRICES)), lines)


def regrets_table(found: Sequence[Likeness]) -> str:
    """The cost of auto against that of the best single method in hindsight."""
    lines = [
        (
            each.name,
            *(f"{_percent(share)} {best}" for share, best in each.regrets()),
        )
        for each in found
    ]
    heads = (
        "auto's cost over the best in hindsight",
        *(f"price {price:g}" for price in PRICES),
    )
    return text_table(heads, lines)


def published_table(found: Sequence[Likeness]) -> str:
    """Attention against the methods of the papers, each at its own rate."""
    names = [point.setting for point in found[0].published]
    ratios = np.array([[each.over(point) for point in each.published] for each in found])
    lines = [
        (name, *map(_percent, ratios[:, place]), _percent(_of_known(np.median, ratios[:, place])))
        for place, name in enumerate(names)
    ]
    heads = ("attention against", *(_short(each.name) for each in found), "median")
    return text_table(heads, lines)


def details(found: Sequence[Likeness]) -> str:
    """Table of attention's underestimation rates and errors."""
    lines = [
        (
            each.name,
            *(f"{point.underestimation_rate:.1%} {point.error:,.0f}" for point in each.attention),
        )
        for each in found
    ]
    heads = ("underestimated, error in s", *(f"price {price:g}" for price in PRICES))
    return text_table(heads, lines)


def _of_known(
    summary: Callable[[NDArray[np.float64]], float], shares: NDArray[np.float64]
) -> float:
    """The summary of those that there are; NaN without any."""
    finite = shares[~np.isnan(shares)]
    return summary(finite) if len(finite) else np.nan


def _percent(share: float) -> str:
    return "-" if np.isnan(share) else f"{share:+.1%}"


def _short(name: str) -> str:
    """The first two words of a log's name."""
    return "-".join(name.split("-")[:2])


def tables(played: Played) -> str:
    """The tables of all logs."""
    return tables_of([found for _, found in played])


STUDY = Study(
    title="attention, learned from other logs, and auto",
    takes=Takes.TRACES,
    runs=runs,
    play=play,
    tables=tables,
)

EXPERIMENT = Experiment(
    "likeness",
    """Play each log to attention with weights that were learned from the other logs.

    Compares attention with least-cost and the methods of the papers where they underestimate
    equally often. All jobs count, those of new users too; runtimes count up to the request.
    Learning needs PyTorch (pip install torch), and all logs at once; with --weights nothing is
    learned, and one log will do.

    For example:

        python research/likeness.py *.swf.gz
        python research/likeness.py --weights shipped site.swf.gz
    """,
    TRACES,
    {
        "weights": option(
            str | None, metavar="FILE", help="Play these; shipped: those of the package."
        ),
        "jobs": option(int, default=12_000, min=1, help="Drawn from each log."),
        "passes": option(int, default=10, min=1, help="Over what was drawn."),
        "seed": option(int, default=1, help="Of the draw and of learning."),
    },
)

if __name__ == "__main__":
    run_script(EXPERIMENT, STUDY)
