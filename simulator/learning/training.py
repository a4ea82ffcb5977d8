"""Learns the weights with PyTorch, which is an optional dependency (the extra ``learning``).

Several large networks (teachers) learn from the jobs, each from other initial weights and in
another order. The small network that is shipped is distilled from the mean of their distributions:
it has less variance than a single network, and answers sooner.

Reference: G. Hinton, O. Vinyals and J. Dean, "Distilling the knowledge in a neural network", 2015.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from predictors.methods.attention_network import Layers, Weights, shapes_of
from simulator.learning.examples import Examples

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The parameters of learning.

    Attributes:
        jobs: number of jobs drawn from each log.
        passes: epochs of the shipped network.
        batch: jobs in a step.
        rate: learning rate at the first step; it falls to 0 along a cosine.
        units: units of the first and the second layer.
        teachers: number of larger networks to distil; with 0 it learns from the jobs.
        teacher_units: units of their layers.
        teacher_passes: epochs of each teacher.
        longest_gradient: norm to which longer gradients are clipped.
        by_hand: weight of the handcrafted kernel in a prediction, in [0, 1].
        unseen: pseudo-count of the tail mixture in a prediction, in runs.
        seed: seed of the draw, of the initial weights and of the order.
    """

    jobs: int = 12_000
    passes: int = 10
    batch: int = 512
    rate: float = 3e-3
    units: tuple[int, int] = (12, 8)
    teachers: int = 6
    teacher_units: tuple[int, int] = (24, 16)
    teacher_passes: int = 5
    longest_gradient: float = 1.0
    by_hand: float = 0.25
    unseen: float = 6.0
    seed: int = 1

    def as_dict(self) -> dict[str, Any]:
        """Return the parameters for the header of the file of weights."""
        return asdict(self)


ExampleBatch = dict[str, "Tensor"]
"""Examples by the names of their columns."""


class LearningUnavailableError(RuntimeError):
    """Learning needs PyTorch, which is not installed (extra learning): pip install torch."""

    def __str__(self) -> str:
        """Return the class docstring: an exception without arguments can be pickled."""
        return str(self.__doc__)


@dataclass(slots=True)
class Network:
    """The network in PyTorch: the arrays of the compiled network, in the same order."""

    layers: "Sequence[Tensor]" = field(default_factory=tuple)

    def weights_of(self, features: "Tensor", context: "Tensor", counts: "Tensor") -> "Tensor":
        """Compute the weight of each support point, by job."""
        import torch  # noqa: PLC0415 - optional

        of_features, of_context, bias, second, second_bias, units, direct = self.layers
        first = torch.relu(of_features @ features + (context @ of_context.T + bias)[:, :, None])
        again = torch.relu(second @ first + second_bias[None, :, None])
        score = torch.einsum("h,nha->na", units, again)
        score = score + torch.einsum("f,nfa->na", direct, features)
        places = torch.arange(features.shape[2])
        return torch.softmax(score.masked_fill(places[None] >= counts[:, None], -1e9), 1)

    def below(self, batch: ExampleBatch) -> "Tensor":
        """Compute the cumulative weight up to each support point but the last, by job."""
        import torch  # noqa: PLC0415 - optional

        weights = self.weights_of(batch["features"].float(), batch["context"], batch["counts"])
        return torch.cumsum(weights, 1)[:, :-1]


def first_layers(units: tuple[int, int], seed: int) -> "list[Tensor]":
    """Draw the initial weights."""
    import torch  # noqa: PLC0415 - optional

    random = np.random.default_rng(seed)
    spread = (0.2, 0.2, 0.0, 1.4 / units[0] ** 0.5, 0.0, 0.1, 0.0)
    return [
        torch.tensor((random.normal(size=shape) * each).astype(np.float32), requires_grad=True)
        for shape, each in zip(shapes_of(*units), spread, strict=True)
    ]


def loss(network: Network, batch: ExampleBatch) -> "Tensor":
    """Compute the mean continuous ranked probability score (CRPS), each in the unit of its log."""
    below = network.below(batch)
    scores = (batch["before"] * below**2 + batch["after"] * (1 - below) ** 2).sum(1)
    return (scores / batch["units"]).mean()


def distance(network: Network, batch: ExampleBatch) -> "Tensor":
    """Compute the expected excess CRPS over the teachers, in the same unit.

    It is the excess of the mean score if runtimes follow the distribution of the teachers.
    """
    gaps = batch["before"] + batch["after"]
    scores = (gaps * (network.below(batch) - batch["targets"]) ** 2).sum(1)
    return (scores / batch["units"]).mean()


def steps_of(jobs: int, recipe: Recipe) -> int:
    """Return the number of steps to learn from a number of jobs, with those of the teachers."""
    passes = recipe.teachers * recipe.teacher_passes + recipe.passes
    return passes * max(1, jobs // recipe.batch)


def learn(
    examples: Examples,
    recipe: Recipe,
    *,
    chosen: NDArray[np.int64] | None = None,
    origin: dict[str, Any] | None = None,
    progress: Callable[[float], object] | None = None,
) -> Weights:
    """Learn the weights from examples of several logs, shuffled.

    Args:
        examples: the training examples.
        recipe: the parameters of learning.
        chosen: indices of the examples to use; by default all.
        origin: the origin of the weights, for their header.
        progress: called with the loss of every step: the score of a teacher, or the distance of
            the network that is distilled.

    Raises:
        LearningUnavailableError: PyTorch is not installed.
    """
    try:
        import torch  # noqa: PLC0415 - optional
    except ImportError:
        raise LearningUnavailableError from None
    torch.set_num_threads(1)  # sums in another order would make other weights
    chosen = np.arange(len(examples)) if chosen is None else chosen
    columns = {name: torch.from_numpy(getattr(examples, name)) for name in Examples.__slots__}
    seeds = range(recipe.seed, recipe.seed + recipe.teachers)
    teachers = [Network(first_layers(recipe.teacher_units, seed)) for seed in seeds]
    for seed, teacher in zip(seeds, teachers, strict=True):
        settings = replace(recipe, passes=recipe.teacher_passes, seed=seed)
        descend(teacher, loss, columns, chosen, settings, progress)
    if teachers:
        columns["targets"] = soft_targets(teachers, columns, recipe.batch)
    network = Network(first_layers(recipe.units, recipe.seed))
    descend(network, distance if teachers else loss, columns, chosen, recipe, progress)
    layers = Layers(*(each.detach().numpy().copy() for each in network.layers))
    header = {**(origin or {}), "recipe": recipe.as_dict()}
    return Weights(
        layers=layers, kernel_share=recipe.by_hand, tail_runs=recipe.unseen, origin=header
    )


def soft_targets(teachers: Sequence[Network], columns: ExampleBatch, batch: int) -> "Tensor":
    """Compute the soft targets: cumulative weights by job, averaged over all teachers."""
    import torch  # noqa: PLC0415 - optional

    with torch.no_grad():
        places = torch.arange(len(columns["counts"])).split(batch)
        parts = ({name: each[some] for name, each in columns.items()} for some in places)
        means = [torch.stack([each.below(part) for each in teachers]).mean(0) for part in parts]
    return torch.cat(means)


def descend(  # noqa: PLR0913, PLR0917 - everything that learning depends on
    network: Network,
    criterion: "Callable[[Network, ExampleBatch], Tensor]",
    columns: ExampleBatch,
    chosen: NDArray[np.int64],
    recipe: Recipe,
    progress: Callable[[float], object] | None,
) -> None:
    """Minimise a loss by Adam, over shuffled batches of the chosen jobs."""
    import torch  # noqa: PLC0415 - optional

    optimiser = torch.optim.Adam(network.layers, lr=recipe.rate)
    steps = max(1, len(chosen) // recipe.batch)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, recipe.passes * steps)
    random = np.random.default_rng(recipe.seed)
    for _ in range(recipe.passes):
        shuffled = random.permutation(chosen)
        for step in range(steps):
            places = torch.from_numpy(shuffled[step * recipe.batch : (step + 1) * recipe.batch])
            current = criterion(network, {name: each[places] for name, each in columns.items()})
            optimiser.zero_grad()
            current.backward()
            torch.nn.utils.clip_grad_norm_(network.layers, recipe.longest_gradient)
            optimiser.step()
            falling.step()
            if progress:
                progress(current.item())
