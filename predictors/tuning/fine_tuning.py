"""Fine-tunes attention's weights on a cluster's own runs, and judges the result by later ones."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from predictors.jobs import Completion
from predictors.memory.columns import Floats
from predictors.methods.attention import Attention
from predictors.methods.attention_features import Singles
from predictors.methods.attention_network import Layers, add_gradient, job_loss
from predictors.methods.attention_weights import Weights

_FIRST_MOMENT, _SECOND_MOMENT, _SMALL = 0.9, 0.999, 1e-8  # Adam's own (Kingma & Ba, ICLR 2015)


class Case(NamedTuple):
    """A run that has ended, as it looked when it was submitted.

    Attributes:
        features: by feature and atom.
        values: of the atoms, in seconds.
        context: of the job.
        runtime: seconds, at most the request.
        request: seconds.
        user: whose it was.
    """

    features: Singles
    values: Floats
    context: Singles
    runtime: float
    request: float
    user: str


class FineTuning(Struct, frozen=True, kw_only=True):
    """How weights are fine-tuned and judged.

    Attributes:
        rate: Adam's learning rate at the first step; it falls to 0 as a cosine does.
        passes: over all cases.
        batch: cases in a step.
        pull: weight of the squared distance to where the weights started.
        longest_gradient: a longer one is shortened to that.
        least_gain: a smaller relative gain is none.
        errors: a gain must be this many standard errors.
        seed: of the order of the cases.
    """

    rate: float = 1e-3
    passes: int = 4
    batch: int = 128
    pull: float = 1e-3
    longest_gradient: float = 1.0
    least_gain: float = 0.002
    errors: float = 2.0
    seed: int = 1


class Verdict(Struct, frozen=True, kw_only=True):
    """What weights gained over others on runs that neither was learned from.

    Attributes:
        cases: how many runs there were.
        gain: relative, of the mean loss; negative where they lose.
        error: the standard error of the gain.
        wins: the gain is above what counts as one, and above its noise.
        loses: it is as far below zero.
    """

    cases: int
    gain: float
    error: float
    wins: bool
    loses: bool


def case_of(attention: Attention, run: Completion) -> Case | None:
    """A run as attention saw it when it was submitted; None where nothing was known of it.

    Attention must not have observed the run itself: ask before it is told of it.
    """
    job = run.submission
    features, values, context = attention.atoms(job)
    if len(values) < 2 or job.user is None:
        return None
    runtime = min(run.runtime, job.requested_walltime)
    return Case(features, values, context, runtime, job.requested_walltime, job.user)


def adapt(start: Weights, cases: Sequence[Case], plan: FineTuning) -> Weights:
    """The weights after some steps of Adam on the cases, held near where they started."""
    layers = copy_of(start.layers)
    first, second = zeros_like(layers), zeros_like(layers)
    random = np.random.default_rng(plan.seed)
    batches = max(1, len(cases) // plan.batch)
    for step in range(plan.passes * batches):
        place = step % batches
        if not place:
            order = random.permutation(len(cases))
        chosen = [cases[case] for case in order[place * plan.batch : (place + 1) * plan.batch]]
        slope = gradient(layers, chosen)
        shorten(slope, plan.longest_gradient)
        for each, now, begun in zip(slope, layers, start.layers, strict=True):
            np.add(each, np.float32(2 * plan.pull) * (now - begun), out=each)
        rate = plan.rate * (1 + np.cos(np.pi * step / (plan.passes * batches))) / 2
        move(layers, slope, (first, second), rate, step + 1)
    return Weights(layers=layers, origin={**start.origin, "fine_tuned_on": len(cases)})


def gradient(layers: Layers, cases: Sequence[Case]) -> Layers:
    """The gradient of the mean loss of the cases."""
    total = zeros_like(layers)
    for case in cases:
        atoms = (case.features, case.values, case.context)
        add_gradient(atoms, (case.runtime, case.request), layers, total)
    scale(total, 1 / len(cases))
    return total


def shorten(slope: Layers, longest: float) -> None:
    """Scale the gradient down to a length of ``longest``, if it is longer."""
    length = float(np.sqrt(sum(float((each.astype(np.float64) ** 2).sum()) for each in slope)))
    if length > longest:
        scale(slope, longest / length)


def scale(layers: Layers, factor: float) -> None:
    """Multiply all numbers by a factor, in place."""
    for each in layers:
        np.multiply(each, np.float32(factor), out=each)


def move(
    layers: Layers, slope: Layers, moments: tuple[Layers, Layers], rate: float, step: int
) -> None:
    """One step of Adam, in place."""
    for now, each, first, second in zip(layers, slope, *moments, strict=True):
        np.add(first, np.float32(1 - _FIRST_MOMENT) * (each - first), out=first)
        np.add(second, np.float32(1 - _SECOND_MOMENT) * (each * each - second), out=second)
        mean = first / np.float32(1 - _FIRST_MOMENT**step)
        spread = np.sqrt(second / np.float32(1 - _SECOND_MOMENT**step)) + np.float32(_SMALL)
        np.subtract(now, np.float32(rate) * mean / spread, out=now)


def losses(weights: Weights, cases: Sequence[Case]) -> Floats:
    """How far off the distribution of each case is, divided by its request."""
    return np.array(
        [
            job_loss((case.features, case.values, case.context), case.runtime, weights.layers)
            / case.request
            for case in cases
        ]
    )


def judge(old: Weights, new: Weights, later: Sequence[Case], plan: FineTuning) -> Verdict:
    """What the new weights gain on later runs, none of which they were learned from.

    Runs of one user are alike and count as one observation: a burst of a thousand identical jobs
    is no proof. So the standard error is that of sums by user.
    """
    if not later:
        return Verdict(cases=0, gain=0.0, error=0.0, wins=False, loses=False)
    before = losses(old, later)
    gains = before - losses(new, later)
    mean = max(float(before.mean()), 1e-12)
    gain = float(gains.mean()) / mean
    error = standard_error(gains, [case.user for case in later]) / mean
    return Verdict(
        cases=len(later),
        gain=gain,
        error=error,
        wins=gain > max(plan.least_gain, plan.errors * error),
        loses=-gain > max(plan.least_gain, plan.errors * error),
    )


def standard_error(gains: Floats, users: Sequence[str]) -> float:
    """Of the mean of gains that depend on each other within a user."""
    _, owners = np.unique(np.array(users), return_inverse=True)
    sums = np.bincount(owners, weights=gains - gains.mean())
    if len(sums) < 2:
        return float("inf")
    return float(np.sqrt((sums**2).sum() * len(sums) / (len(sums) - 1)) / len(gains))


def copy_of(layers: Layers) -> Layers:
    """Arrays that may be changed."""
    return (*(each.copy() for each in layers),)  # type: ignore[return-value]


def zeros_like(layers: Layers) -> Layers:
    """Zeros of the same shapes."""
    return (*(np.zeros_like(each) for each in layers),)  # type: ignore[return-value]
