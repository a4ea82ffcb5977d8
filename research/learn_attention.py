"""Learns the weights of attention from logs with PyTorch, all together and shuffled.

    .venv/bin/python research/learn_attention.py LOG... -o weights.npz

Jobs without a user in the log are not used. The shipped file is ``predictors/data/attention.npz``.

Several large networks (teachers) learn from the jobs, each from other initial weights and in
another order. The small network that is shipped is distilled from the mean of their distributions:
it has less variance than a single network, and answers sooner.

Reference: G. Hinton, O. Vinyals and J. Dean, "Distilling the knowledge in a neural network", 2015.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from attention_examples import Examples, Recipe, examples_of, read_log, together
from numpy.typing import NDArray
from torch import Tensor

from predictors.methods.attention_network import Layers, Weights, shapes_of

ExampleBatch = dict[str, Tensor]
"""Examples by the names of their columns."""


@dataclass(slots=True)
class Network:
    """The network in PyTorch: the arrays of the compiled network, in the same order."""

    layers: Sequence[Tensor] = field(default_factory=tuple)

    def weights_of(self, features: Tensor, context: Tensor, counts: Tensor) -> Tensor:
        """Compute the weight of each support point, by job."""
        of_features, of_context, bias, second, second_bias, units, direct = self.layers
        first = torch.relu(of_features @ features + (context @ of_context.T + bias)[:, :, None])
        again = torch.relu(second @ first + second_bias[None, :, None])
        score = torch.einsum("h,nha->na", units, again)
        score = score + torch.einsum("f,nfa->na", direct, features)
        places = torch.arange(features.shape[2])
        return torch.softmax(score.masked_fill(places[None] >= counts[:, None], -1e9), 1)

    def below(self, batch: ExampleBatch) -> Tensor:
        """Compute the cumulative weight up to each support point but the last, by job."""
        weights = self.weights_of(batch["features"].float(), batch["context"], batch["counts"])
        return torch.cumsum(weights, 1)[:, :-1]


def first_layers(units: tuple[int, int], seed: int) -> list[Tensor]:
    """Draw the initial weights."""
    random = np.random.default_rng(seed)
    spread = (0.2, 0.2, 0.0, 1.4 / units[0] ** 0.5, 0.0, 0.1, 0.0)
    return [
        torch.tensor((random.normal(size=shape) * each).astype(np.float32), requires_grad=True)
        for shape, each in zip(shapes_of(*units), spread, strict=True)
    ]


def loss(network: Network, batch: ExampleBatch) -> Tensor:
    """Compute the mean continuous ranked probability score (CRPS), each in the unit of its log."""
    below = network.below(batch)
    scores = (batch["before"] * below**2 + batch["after"] * (1 - below) ** 2).sum(1)
    return (scores / batch["units"]).mean()


def distance(network: Network, batch: ExampleBatch) -> Tensor:
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
    """
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


def soft_targets(teachers: Sequence[Network], columns: ExampleBatch, batch: int) -> Tensor:
    """Compute the soft targets: cumulative weights by job, averaged over all teachers."""
    with torch.no_grad():
        places = torch.arange(len(columns["counts"])).split(batch)
        parts = ({name: each[some] for name, each in columns.items()} for some in places)
        means = [torch.stack([each.below(part) for each in teachers]).mean(0) for part in parts]
    return torch.cat(means)


def descend(  # noqa: PLR0913, PLR0917 - everything that learning depends on
    network: Network,
    criterion: Callable[[Network, ExampleBatch], Tensor],
    columns: ExampleBatch,
    chosen: NDArray[np.int64],
    recipe: Recipe,
    progress: Callable[[float], object] | None,
) -> None:
    """Minimise a loss by Adam, over shuffled batches of the chosen jobs."""
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


def main() -> None:
    """Learn the weights of all logs, and write the file of weights."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("logs", nargs="+", metavar="LOG", help="SWF, also gzip or xz")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")
    parser.add_argument("--jobs", type=int, default=Recipe().jobs, help="drawn from each log")
    parser.add_argument("--passes", type=int, default=Recipe().passes, help="over all of them")
    parser.add_argument("--seed", type=int, default=Recipe().seed, help="of the draw, of learning")
    given = parser.parse_args()
    recipe = Recipe(jobs=given.jobs, passes=given.passes, seed=given.seed)
    logs = [read_log(path) for path in given.logs]
    examples = together([examples_of(log.runs, jobs=recipe.jobs, seed=recipe.seed) for log in logs])
    distances: list[float] = []
    origin = {"logs": [log.described() for log in logs]}
    weights = learn(examples, recipe, origin=origin, progress=distances.append)
    given.output.write_bytes(weights.to_bytes())
    last = distances[-max(1, len(examples) // recipe.batch) :]
    print(
        f"{given.output}: learned from {len(examples):,} jobs of {len(logs)} logs; mean distance "
        f"from {recipe.teachers} teachers {sum(last) / len(last):.4f}"
    )


if __name__ == "__main__":
    main()
