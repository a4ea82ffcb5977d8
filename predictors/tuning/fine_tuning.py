"""Fine-tunes attention's weights on a cluster's own runs, and judges the result by later ones."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from predictors.jobs import Completion
from predictors.memory.columns import Floats
from predictors.methods.attention import Attention
from predictors.methods.attention_features import Singles
from predictors.methods.attention_network import Layers, add_gradient, job_loss
from predictors.methods.attention_weights import Weights
from predictors.methods.least_cost_search import Sorted
from predictors.tuning.verdict import Demand, Verdict, compare

_FIRST_MOMENT, _SECOND_MOMENT, _SMALL = 0.9, 0.999, 1e-8  # Adam's own (Kingma & Ba, ICLR 2015)


class Case(NamedTuple):
    """A run that has ended, as it looked when it was submitted.

    Attributes:
        features: by feature and atom.
        values: of the atoms, in seconds.
        context: of the job.
        by_hand: what the user's last runs took, and how like the job least-cost finds them.
        runtime: seconds, at most the request.
        request: seconds.
        user: whose it was.
    """

    features: Singles
    values: Floats
    context: Singles
    by_hand: Sorted
    runtime: float
    request: float
    user: str


class FineTuning(Struct, frozen=True, kw_only=True):
    """How weights are fine-tuned.

    Attributes:
        rate: Adam's learning rate at the first step; it falls to 0 as a cosine does.
        passes: over all cases.
        batch: cases in a step.
        pull: weight of the squared distance to where the weights started.
        longest_gradient: a longer one is shortened to that.
        seed: of the order of the cases.
    """

    rate: float = 1e-3
    passes: int = 4
    batch: int = 128
    pull: float = 1e-3
    longest_gradient: float = 1.0
    seed: int = 1


def case_of(attention: Attention, run: Completion) -> Case | None:
    """A run as attention saw it when it was submitted; None where nothing was known of it.

    Attention must not have observed the run itself: ask before it is told of it.
    """
    job = run.submission
    features, values, context = attention.atoms(job)
    if len(values) < 2 or job.user is None:
        return None
    runtime = min(run.runtime, job.requested_walltime)
    request = job.requested_walltime
    by_hand = attention.by_hand(job)
    return Case(features, values, context, by_hand, runtime, request, job.user)


def adapt(
    start: Weights,
    cases: Sequence[Case],
    plan: FineTuning,
    alive: Callable[[], object] = lambda: None,
) -> Weights:
    """The weights after some steps of Adam on the cases, held near where they started.

    ``alive`` is called after every step.
    """
    layers = copy_of(start.layers)
    first, second = zeros_like(layers), zeros_like(layers)
    random = np.random.default_rng(plan.seed)
    batches = max(1, len(cases) // plan.batch)
    unit = float(np.mean([case.request for case in cases]))
    for step in range(plan.passes * batches):
        place = step % batches
        if not place:
            order = random.permutation(len(cases))
        chosen = [cases[case] for case in order[place * plan.batch : (place + 1) * plan.batch]]
        slope = gradient(layers, chosen, unit)
        shorten(slope, plan.longest_gradient)
        for each, now, begun in zip(slope, layers, start.layers, strict=True):
            np.add(each, np.float32(2 * plan.pull) * (now - begun), out=each)
        rate = plan.rate * (1 + np.cos(np.pi * step / (plan.passes * batches))) / 2
        move(layers, slope, (first, second), rate, step + 1)
        alive()
    origin = {**start.origin, "fine_tuned_on": len(cases)}
    return replace(start, layers=layers, origin=origin)


def gradient(layers: Layers, cases: Sequence[Case], unit: float) -> Layers:
    """The gradient of the mean loss of the cases, over a unit in seconds."""
    total = zeros_like(layers)
    for case in cases:
        atoms = (case.features, case.values, case.context)
        add_gradient(atoms, (case.runtime, unit), layers, total)
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
    """How far off the network's distribution of each case is, in seconds."""
    return np.array(
        [
            job_loss((case.features, case.values, case.context), case.runtime, weights.layers)
            for case in cases
        ]
    )


def judge(old: Weights, new: Weights, later: Sequence[Case], demand: Demand) -> Verdict:
    """What the new weights gain on later runs, none of which they were learned from."""
    before, after = losses(old, later), losses(new, later)
    return compare(before, after, [case.user for case in later], demand)


def copy_of(layers: Layers) -> Layers:
    """Arrays that may be changed."""
    return (*(each.copy() for each in layers),)  # type: ignore[return-value]


def zeros_like(layers: Layers) -> Layers:
    """Zeros of the same shapes."""
    return (*(np.zeros_like(each) for each in layers),)  # type: ignore[return-value]
