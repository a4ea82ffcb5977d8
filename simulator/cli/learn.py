"""``walltimed learn``: learns the weights of attention from workload logs."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simulator.cli.console import check_file, need, out, progress_bar

if TYPE_CHECKING:
    from predictors.methods.attention_network import Weights
    from simulator.learning.examples import Examples
    from simulator.learning.training import Recipe


def learn(
    traces: Annotated[list[str], typer.Argument(metavar="TRACE...", help="SWF, also gzip or xz.")],
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the weights are written.")],
    jobs: Annotated[int, typer.Option(min=1, help="Drawn from each log.")] = 12_000,
    passes: Annotated[int, typer.Option(min=1, help="Over all of them.")] = 10,
    seed: Annotated[int, typer.Option(help="Of the draw and of learning.")] = 1,
) -> None:
    """Learn the weights of attention from logs, all together and shuffled.

    Writes the file of weights. Jobs without a user in the log are not used.
    Needs PyTorch (pip install torch); serving does not.

    For example:

        walltimed learn sdsc.swf.gz ctc.swf.gz hpc2n.swf.gz -o weights.npz
    """
    check_file(output)
    need("torch")
    from simulator.learning.training import Recipe
    from simulator.traces.files import whole_file

    recipe = Recipe(jobs=jobs, passes=passes, seed=seed)
    examples, origins = draw(traces, recipe)
    weights, distance = teach(examples, recipe, origins)
    content = weights.to_bytes()
    with whole_file(output) as file:
        file.write_bytes(content)
    out.print(
        f"{output}: {len(content):,} bytes, learned from {len(examples):,} jobs of "
        f"{len(traces)} logs; mean distance from {recipe.teachers} teachers {distance:.4f}",
        soft_wrap=True,
    )


def draw(traces: list[str], recipe: "Recipe") -> "tuple[Examples, list[dict[str, Any]]]":
    """Return examples of all logs, and the facts about each log."""
    from simulator.learning.examples import examples_of, read_log, together

    found, origins = [], []
    with progress_bar("jobs") as bar:
        for trace in traces:
            log = read_log(trace)
            task = bar.add_task(log.name, total=len(log.runs))
            found.append(
                examples_of(
                    log.runs,
                    jobs=recipe.jobs,
                    seed=recipe.seed,
                    progress=partial(bar.advance, task),
                )
            )
            origins.append(log.described())
    return together(found), origins


def teach(
    examples: "Examples", recipe: "Recipe", origins: "list[dict[str, Any]]"
) -> "tuple[Weights, float]":
    """Return the weights, and their mean distance from the teachers in the last pass."""
    from simulator.learning.training import learn as learn_weights
    from simulator.learning.training import steps_of

    distances: list[float] = []
    with progress_bar("steps") as bar:
        task = bar.add_task("learning", total=steps_of(len(examples), recipe))

        def note(loss: float) -> None:
            distances.append(loss)
            bar.advance(task)

        weights = learn_weights(examples, recipe, origin={"logs": origins}, progress=note)
    last = distances[-max(1, len(examples) // recipe.batch) :]
    return weights, sum(last) / len(last)
