"""Is learned likeness better on unseen logs? Each log is played with what the others taught."""

import atexit
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictors.jobs import Completion
from predictors.measures import Seconds
from predictors.methods.attention import Attention
from predictors.methods.attention_weights import Weights
from predictors.methods.least_cost import LeastCost
from simulator.learning.examples import Examples, examples_of, together
from simulator.learning.training import Recipe, learn
from simulator.replay.trace_replay import steps
from simulator.replay.tradeoff import Curve, Point, curve_of, point_of
from simulator.reports.tables import text_table
from simulator.studies.least_cost import published_methods
from simulator.studies.study import Played, Study, StudyError, Takes, runs_of

if TYPE_CHECKING:
    from predictors.base import Predictor

PRICES = (0.0, 0.3, 1.0, 3.0, 10.0)
"""Of attention: where it is compared with least-cost."""

REFERENCE_PRICES = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Of least-cost: close enough to interpolate between."""

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
    """What one log showed whose jobs took no part in learning.

    Attributes:
        name: of the log.
        jobs: how many there are, the first ones included.
        attention: at PRICES, in their order.
        reference: least-cost.
        published: methods of the papers, at one or more settings each.
    """

    name: str
    jobs: int
    attention: Sequence[Point]
    reference: Curve
    published: Sequence[Point]

    @property
    def gains(self) -> Sequence[float]:
        """By price, attention's error over that of least-cost where it underestimates as often."""
        return [
            point.error / self.reference.error_at(point.underestimation_rate) - 1
            for point in self.attention
        ]

    def over(self, other: Point) -> float:
        """Its error over another's, where it underestimates as often; NaN where it never does."""
        curve = curve_of("attention", self.attention)
        return curve.error_at(other.underestimation_rate) / other.error - 1

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


class Part(NamedTuple):
    """One log that is left out.

    Attributes:
        trace: path of the log.
        limit: jobs of it after cleaning, or all.
        examples: folder with what is learned from.
        others: places of the examples that are of other logs.
        recipe: how to learn.
    """

    trace: str
    limit: int | None
    examples: str
    others: NDArray[np.int64]
    recipe: Recipe


def runs(
    paths: Sequence[Path],
    limit: int | None,
    *,
    jobs: int = Recipe().jobs,
    passes: int = Recipe().passes,
    seed: int = Recipe().seed,
) -> Sequence[Part]:
    """A part for each log; the examples of all of them are drawn once, into a temporary folder.

    Raises:
        StudyError: there are no logs to learn from.
    """
    if len(paths) < 2:
        raise StudyError("Give at least two logs: each is played with what the others taught.")
    recipe = Recipe(jobs=jobs, passes=passes, seed=seed)
    folder = mkdtemp(prefix="walltimed-likeness-")
    atexit.register(rmtree, folder, ignore_errors=True)
    owners = save_examples(paths, limit, recipe, Path(folder))
    return [
        Part(str(path), limit, folder, np.flatnonzero(owners != place), recipe)
        for place, path in enumerate(paths)
    ]


def save_examples(
    paths: Sequence[Path], limit: int | None, recipe: Recipe, folder: Path
) -> NDArray[np.int64]:
    """Save examples of all logs in one folder; which log each of them is from."""
    found = [
        examples_of(runs_of(path, limit), jobs=recipe.jobs, seed=recipe.seed) for path in paths
    ]
    together(found).save(folder)
    return np.repeat(np.arange(len(found)), [len(each) for each in found])


def play(part: Part) -> Likeness:
    """Learn from the other logs, and play this one."""
    weights = learn(Examples.load(Path(part.examples)), part.recipe, chosen=part.others)
    return likeness(
        Path(part.trace).name.split(".swf")[0], runs_of(part.trace, part.limit), weights
    )


def likeness(name: str, log: Sequence[Completion], weights: Weights) -> Likeness:
    """Play a log to attention, least-cost and the methods of the papers."""
    predicted = estimates_of(log, weights)
    actual = np.array([min(run.runtime, run.submission.requested_walltime) for run in log])
    points = {label: point_of(label, seconds, actual) for label, seconds in predicted.items()}
    ours = [_label("attention", price) for price in PRICES]
    reference = [_label("least-cost", price) for price in REFERENCE_PRICES]
    return Likeness(
        name=name,
        jobs=len(log),
        attention=[points[label] for label in ours],
        reference=curve_of("least-cost", [points[label] for label in reference]),
        published=[points[label] for label in points if label not in {*ours, *reference}],
    )


def estimates_of(log: Sequence[Completion], weights: Weights) -> Mapping[str, Seconds]:
    """What each method says of every job, from the runs that had ended when it was submitted.

    A whole distribution is made once for all prices: there are a million jobs.
    """
    attention = Attention(weights=weights)
    cheap = LeastCost(price=REFERENCE_PRICES[0])
    priced = {_label("least-cost", price): cheap.repriced(price) for price in REFERENCE_PRICES}
    methods = published_methods()
    published = {label: methods[label] for label in PUBLISHED}
    learning: list[Predictor] = [attention, cheap, *published.values()]
    asked: dict[str, Predictor] = {**priced, **published}
    said = {label: np.empty(len(log)) for label in asked}
    estimates = np.empty((len(PRICES), len(log)))
    prices = np.array(PRICES)
    submit = np.array([run.submission.submit_time for run in log], dtype=float)
    end = np.array([run.end_time for run in log], dtype=float)
    for step in steps(submit, end):
        for job in step.ended:
            for each in learning:
                each.observe(log[job])
        for job in step.submitted:
            submission = log[job].submission
            estimates[:, job] = attention.estimates(submission, prices)
            for label, method in asked.items():
                said[label][job] = method.predict(submission).predicted_walltime
    said |= {_label("attention", price): estimates[place] for place, price in enumerate(PRICES)}
    return said


def _label(method: str, price: float) -> str:
    return f"{method}, price={price:g}"


def tables(found: Sequence[Likeness]) -> str:
    """The study as tables of text; in each the median and the worst log are the last lines."""
    found = sorted(found, key=lambda each: each.name)
    gains = np.array([each.gains for each in found])
    lines = [(each.name, f"{each.jobs:,}", *map(_percent, each.gains)) for each in found]
    lines += [
        (name, "", *map(_percent, summary(gains, axis=0)))
        for name, summary in (("median", np.nanmedian), ("worst", np.nanmax))
    ]
    heads = ("attention against least-cost", "jobs", *(f"price {price:g}" for price in PRICES))
    return "\n\n".join([text_table(heads, lines), published_table(found), details(found)])


def published_table(found: Sequence[Likeness]) -> str:
    """Attention against the methods of the papers, each at its own underestimation rate."""
    names = [point.setting for point in found[0].published]
    ratios = np.array([[each.over(point) for point in each.published] for each in found])
    lines = [
        (name, *map(_percent, ratios[:, place]), _percent(np.nanmedian(ratios[:, place])))
        for place, name in enumerate(names)
    ]
    heads = ("attention against", *(_short(each.name) for each in found), "median")
    return text_table(heads, lines)


def details(found: Sequence[Likeness]) -> str:
    """What attention underestimates, and its errors."""
    lines = [
        (
            each.name,
            *(f"{point.underestimation_rate:.1%} {point.error:,.0f}" for point in each.attention),
        )
        for each in found
    ]
    heads = ("underestimated, error in s", *(f"price {price:g}" for price in PRICES))
    return text_table(heads, lines)


def _percent(share: float) -> str:
    return "-" if np.isnan(share) else f"{share:+.1%}"


def _short(name: str) -> str:
    """The first two words of a log's name."""
    return "-".join(name.split("-")[:2])


def report(played: Played) -> str:
    """The tables of all logs."""
    return tables([found for _, found in played])


def records(played: Played) -> dict[str, Any]:
    """The comparisons by log."""
    return {"logs": {part.trace: found.as_dict() for part, found in played}}


STUDY = Study(
    title="attention, learned from the other logs and frozen, beside least-cost and the papers",
    takes=Takes.TRACES,
    runs=runs,
    play=play,
    report=report,
    records=records,
)
