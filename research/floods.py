"""Measures what the runs of one user, however many, change for others, by method.

    .venv/bin/python research/floods.py
    .venv/bin/python research/floods.py --price 0

Thirty users have a hundred runs each, with names and projects of their own. Then one more user has
many. Prints, by method and flood, the share of others' runs within their 90% intervals, how far the
prediction moved that moved most, how many moved by more than 10%, and the median one; all beside
the same runs of others without the flood. Of `limits` this is the probability that a job ends at
its limit, and the change in points. With another price an underestimate costs as many of the
cluster's mean runtimes. The users of ``forest`` have two hundred runs each, on which its trees are
learned; ``one leaf`` is a forest whose trees tell nobody apart, the worst there is.
"""

from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from played_logs import run_script

from predictors.base import Predictor, Question, UncertainPredictor
from predictors.jobs import Completion, Submission
from predictors.limits import LimitHits
from predictors.methods.forest import Forest
from predictors.methods.forest_trees import LearnedForest, one_leaf
from predictors.registry import create
from predictors.tuning.forest_learning import learned_anew
from simulator.reports.tables import text_table
from terminal.console import out

USERS, RUNS = 30, 100
"""Number of users before the flood, and of runs of each."""

START, DRAWS, COVERAGE, SPREAD = 1e6, 300, 0.9, 0.5

GOAL = 0.1
"""Largest change that a flood is to make, as a share."""

ONE_LEAF = "one leaf"
"""A forest of one leaf, which holds all runs."""

METHODS: dict[str, dict[str, Any]] = {
    "attention": {},
    "auto": {"every": 0},
    "forest": {},
    "knn": {},
    "last-two": {},
    "least-cost": {},
    "max-usage": {},
    ONE_LEAF: {"learned": one_leaf()},
    "percentile": {},
}
"""Methods and their parameters."""

PRICED = ("attention", "auto", "forest", "least-cost", ONE_LEAF)
"""Methods whose predictions are estimates of least expected cost."""

LIMITS = "limits"

FLOODING = "flood"
"""The user whose runs flood."""

KINDS = {
    "short": "a second of the hour that was requested",
    "full": "the whole day that was requested",
    "alike": "a second, with the names, projects and requests of the others in turn",
    "mixed": "a second, and every 30th run is one of the others",
    "any": "any part of a request of a minute to a month, every second with names of the others",
}

LENGTHS = (500, 5_000, 20_000)


class Answers(NamedTuple):
    """Answers of a method to the users.

    Attributes:
        predicted: seconds, by user.
        within: share of further runs within the 90% intervals; None without intervals.
    """

    predicted: Sequence[float]
    within: float | None

    def moves(self, before: "Answers") -> list[float]:
        """Return by how much predictions have changed, as shares, in ascending order."""
        pairs = zip(self.predicted, before.predicted, strict=True)
        return sorted(abs(now / then - 1.0) for now, then in pairs)


def base(user: int) -> float:
    """Return the seconds around which the runs of a user take."""
    return 300.0 * 100.0 ** (user / (USERS - 1))


def usual_run(user: int, end: float, random: np.random.Generator) -> Completion:
    """Return a run of one of the users; its request is three times what is usual."""
    request = 3.0 * base(user)
    runtime = min(request, base(user) * random.lognormal(0.0, SPREAD))
    return a_run(f"u{user}", end, runtime, (request, f"p{user}", f"job-{chr(97 + user)}"))


def a_run(user: str, end: float, runtime: float, known: tuple[float, str, str]) -> Completion:
    """Return a run with a request, a project and an application."""
    request, project, application = known
    job = Submission(
        requested_walltime=request,
        submit_time=end - runtime,
        user=user,
        project=project,
        application=application,
    )
    return Completion(submission=job, start_time=end - runtime, end_time=end, runtime=runtime)


def history(method: str) -> list[Completion]:
    """Return the runs before the flood, of the users in turn."""
    random, count = np.random.default_rng(1), USERS * RUNS
    places = range(-count if method == Forest.name else 0, count)
    return [usual_run(each % USERS, START + 60.0 * each, random) for each in places]


@cache
def learned_forest() -> LearnedForest | None:
    """Return the trees that a round learns before the flood."""
    forest = Forest()
    for run in history(Forest.name):
        forest.observe(run)
    return learned_anew(forest)


def flood(kind: str, length: int, seed: int = 3) -> Iterator[Completion]:
    """Yield the runs of one user, a second apart."""
    start, random = START + 60.0 * USERS * RUNS, np.random.default_rng(seed)
    for number in range(length):
        end, other = start + number, usual_run(number // 30 % USERS, start + number, random)
        job = other.submission
        if kind == "mixed" and number % 30 == 29:
            yield other
        elif kind == "alike":
            known = job.requested_walltime, str(job.project), str(job.application)
            yield a_run(FLOODING, end, 1.0, known)
        elif kind == "any":
            yield any_run(end, job, random)
        elif kind == "full":
            yield a_run(FLOODING, end, 86_400.0, (86_400.0, "flood", "array"))
        else:
            yield a_run(FLOODING, end, 1.0, (3_600.0, "flood", "array"))


def any_run(end: float, other: Submission, random: np.random.Generator) -> Completion:
    """Return a run of the one user, of any length and request, with names of its own or not."""
    request = 60.0 * 43_200.0 ** random.random()
    is_alike = random.random() < 0.5
    names = (str(other.project), str(other.application)) if is_alike else (FLOODING, "array")
    return a_run(FLOODING, end, max(1.0, request * random.random()), (request, *names))


def of_others(runs: Iterator[Completion]) -> list[Completion]:
    """Return the runs that are not of the one user, which would have been there all the same."""
    return [run for run in runs if run.submission.user != FLOODING]


def taught(name: str, runs: Sequence[Completion], *, price: float = 1.0) -> Predictor:
    """Return a method that has observed runs."""
    priced = {"price": price} if name in PRICED else {}
    trees = {"learned": learned_forest()} if name == Forest.name else {}
    method = create(Forest.name if name == ONE_LEAF else name, **METHODS[name], **trees, **priced)
    for run in runs:
        method.observe(run)
    return method


def answers(method: Predictor) -> Answers:
    """Ask about a job of each user, long after the last run."""
    random, predicted, within = np.random.default_rng(2), [], 0
    for user in range(USERS):
        job = usual_run(user, 2.0 * START + 86_400.0, random).submission
        predicted.append(method.predict(job).predicted_walltime)
        if isinstance(method, UncertainPredictor):
            interval = method.ask(job, Question(coverage=COVERAGE)).interval
            if interval is not None:
                runs = (usual_run(user, START, random).runtime for _ in range(DRAWS))
                within += sum(interval.lower <= each <= interval.upper for each in runs)
    has_intervals = isinstance(method, UncertainPredictor)
    return Answers(predicted, within / (DRAWS * USERS) if has_intervals else None)


def probabilities(runs: Sequence[Completion]) -> list[float]:
    """Return the probability of each user's job to end at its limit, after some runs."""
    limits, random = LimitHits(), np.random.default_rng(2)
    for run in runs:
        limits.observe(run)
    jobs = (usual_run(user, 2.0 * START + 86_400.0, random).submission for user in range(USERS))
    return [limits.of(job).probability or 0.0 for job in jobs]


def probability_moves(kind: str, length: int) -> list[float]:
    """Return by how much a flood changes these probabilities, in ascending order."""
    before = probabilities([*history(LIMITS), *of_others(flood(kind, length))])
    now = probabilities([*history(LIMITS), *flood(kind, length)])
    return sorted(abs(one - other) for one, other in zip(before, now, strict=True))


def rows(name: str, price: float, kinds: Collection[str]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table of a method."""
    if name == LIMITS:
        for kind in kinds:
            for length in LENGTHS:
                yield (
                    name,
                    kind,
                    f"{length:,}",
                    "",
                    *_summary(probability_moves(kind, length)),
                )
        return
    earlier = history(name)
    before = answers(taught(name, earlier, price=price))
    yield name, "none", "", _share(before.within), "", "", ""
    for kind in kinds:
        for length in LENGTHS:
            now = answers(taught(name, [*earlier, *flood(kind, length)], price=price))
            if others := of_others(flood(kind, length)):
                before = answers(taught(name, [*earlier, *others], price=price))
            moves = now.moves(before)
            yield name, kind, f"{length:,}", _share(now.within), *_summary(moves)


def _summary(moves: Sequence[float]) -> tuple[str, str, str]:
    far = sum(each > GOAL for each in moves)
    return f"{moves[-1]:.1%}", f"{far} of {len(moves)}", f"{moves[len(moves) // 2]:.1%}"


def _share(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def main(
    method: Annotated[list[str] | None, typer.Option(help="One of them; else all.")] = None,
    price: Annotated[float, typer.Option(help="Of an underestimate, in mean runtimes.")] = 1.0,
    kind: Annotated[list[str] | None, typer.Option(help="Of floods; else all.")] = None,
) -> None:
    """Print what floods of one user change for others.

    Example: python research/floods.py --method attention
    """
    heads = ("method", "flood", "runs", "within 90%", "moved most", "by more than 10%", "median")
    for each, words in KINDS.items():
        out.print(f"{each}: runs of {words}", markup=False, soft_wrap=True)
    found = [
        row for name in method or (*METHODS, LIMITS) for row in rows(name, price, kind or KINDS)
    ]
    out.print(text_table(heads, found), markup=False, soft_wrap=True)


if __name__ == "__main__":
    run_script(main)
