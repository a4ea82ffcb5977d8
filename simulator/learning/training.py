"""Learns the weights with PyTorch, which is an optional dependency (the extra ``learning``).

Several large networks learn from the jobs, each from other first weights and in another order. The
small one that is shipped learns what they say together: it errs less than one of them by chance,
and answers sooner. (G. Hinton, O. Vinyals and J. Dean, "Distilling the knowledge in a neural
network", 2015.)
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from predictors.methods.attention_weights import Weights, shapes_of
from simulator.learning.examples import Examples

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How the weights are learned.

    Attributes:
        jobs: drawn from each log.
        passes: over all of them, of the network that is shipped.
        batch: jobs in a step.
        rate: of learning at the first step; it falls to 0 as a cosine does.
        units: in the first and the second layer.
        teachers: how many larger networks it learns from; with none it learns from the jobs.
        teacher_units: in their layers.
        teacher_passes: over all jobs, of each of them.
        longest_gradient: a longer one is shortened to that.
        by_hand: the share of all weight that goes by hand-chosen likeness, when jobs are predicted.
        unseen: how many past runs the runtimes that no run had count for, then.
        seed: of the draw, of the first weights and of the order.
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
        """For the header of the file."""
        return asdict(self)


ExampleBatch = dict[str, "Tensor"]
"""Examples by the names of their columns."""


class LearningUnavailableError(RuntimeError):
    """Learning needs PyTorch, which is not installed (extra learning): pip install torch."""

    def __str__(self) -> str:
        """What it says; made of nothing, it is made again in another process as it was."""
        return str(self.__doc__)


@dataclass(slots=True)
class Network:
    """The network in PyTorch: the same arrays, in the same order, as the compiled one's."""

    layers: "Sequence[Tensor]" = field(default_factory=tuple)

    def weights_of(self, features: "Tensor", context: "Tensor", counts: "Tensor") -> "Tensor":
        """The weight of each atom, by job."""
        import torch  # noqa: PLC0415 - optional

        of_features, of_context, bias, second, second_bias, units, direct = self.layers
        first = torch.relu(of_features @ features + (context @ of_context.T + bias)[:, :, None])
        again = torch.relu(second @ first + second_bias[None, :, None])
        score = torch.einsum("h,nha->na", units, again)
        score = score + torch.einsum("f,nfa->na", direct, features)
        places = torch.arange(features.shape[2])
        return torch.softmax(score.masked_fill(places[None] >= counts[:, None], -1e9), 1)

    def below(self, batch: ExampleBatch) -> "Tensor":
        """The share of all weight up to each atom but the last, by job."""
        import torch  # noqa: PLC0415 - optional

        weights = self.weights_of(batch["features"].float(), batch["context"], batch["counts"])
        return torch.cumsum(weights, 1)[:, :-1]


def first_layers(units: tuple[int, int], seed: int) -> "list[Tensor]":
    """Where learning starts."""
    import torch  # noqa: PLC0415 - optional

    random = np.random.default_rng(seed)
    spread = (0.2, 0.2, 0.0, 1.4 / units[0] ** 0.5, 0.0, 0.1, 0.0)
    return [
        torch.tensor((random.normal(size=shape) * each).astype(np.float32), requires_grad=True)
        for shape, each in zip(shapes_of(*units), spread, strict=True)
    ]


def loss(network: Network, batch: ExampleBatch) -> "Tensor":
    """Mean continuous ranked probability score of jobs, each in the unit of its log."""
    below = network.below(batch)
    scores = (batch["before"] * below**2 + batch["after"] * (1 - below) ** 2).sum(1)
    return (scores / batch["units"]).mean()


def distance(network: Network, batch: ExampleBatch) -> "Tensor":
    """How far a network is from its teachers, in the same unit.

    By so much its mean score would be worse than theirs if runtimes were distributed as they say.
    """
    gaps = batch["before"] + batch["after"]
    scores = (gaps * (network.below(batch) - batch["taught"]) ** 2).sum(1)
    return (scores / batch["units"]).mean()


def steps_of(jobs: int, recipe: Recipe) -> int:
    """The number of steps that learning from a number of jobs takes, those of teachers included."""
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
        examples: what to learn from.
        recipe: how.
        chosen: places of the examples that count; all without it.
        origin: what to say of where the weights come from.
        progress: called with the loss of every step: of a teacher its score, of the network that
            learns from teachers its distance.

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
        its = replace(recipe, passes=recipe.teacher_passes, seed=seed)
        descend(teacher, loss, columns, chosen, its, progress)
    if teachers:
        columns["taught"] = taught(teachers, columns, recipe.batch)
    network = Network(first_layers(recipe.units, recipe.seed))
    descend(network, distance if teachers else loss, columns, chosen, recipe, progress)
    layers = tuple(each.detach().numpy().copy() for each in network.layers)
    said = {**(origin or {}), "recipe": recipe.as_dict()}
    return Weights(layers=layers, by_hand=recipe.by_hand, unseen=recipe.unseen, origin=said)


def taught(teachers: Sequence[Network], columns: ExampleBatch, batch: int) -> "Tensor":
    """The share of all weight up to each atom but the last, by job: the mean of all teachers."""
    import torch  # noqa: PLC0415 - optional

    with torch.no_grad():
        places = torch.arange(len(columns["counts"])).split(batch)
        parts = ({name: each[some] for name, each in columns.items()} for some in places)
        means = [torch.stack([each.below(part) for each in teachers]).mean(0) for part in parts]
    return torch.cat(means)


def descend(  # noqa: PLR0913, PLR0917 - all that learning depends on
    network: Network,
    lost: "Callable[[Network, ExampleBatch], Tensor]",
    columns: ExampleBatch,
    chosen: NDArray[np.int64],
    recipe: Recipe,
    progress: Callable[[float], object] | None,
) -> None:
    """Lower what is lost, batch by batch of the chosen jobs, shuffled."""
    import torch  # noqa: PLC0415 - optional

    optimiser = torch.optim.Adam(network.layers, lr=recipe.rate)
    steps = max(1, len(chosen) // recipe.batch)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, recipe.passes * steps)
    random = np.random.default_rng(recipe.seed)
    for _ in range(recipe.passes):
        shuffled = random.permutation(chosen)
        for step in range(steps):
            places = torch.from_numpy(shuffled[step * recipe.batch : (step + 1) * recipe.batch])
            current = lost(network, {name: each[places] for name, each in columns.items()})
            optimiser.zero_grad()
            current.backward()
            torch.nn.utils.clip_grad_norm_(network.layers, recipe.longest_gradient)
            optimiser.step()
            falling.step()
            if progress:
                progress(current.item())
