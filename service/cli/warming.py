"""``walltimed warm-up``: compiles what would else be compiled at the first use."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from terminal.console import CommandError, err, out, print_json
from terminal.options import AsJson

if TYPE_CHECKING:
    from predictors.jobs import Completion

RUNS = 400
"""Made-up completions that a round of tuning is played on."""


def compile_methods(*names: str) -> None:
    """Compile methods, with the code that runs beside them.

    The site's settings change nothing in what is compiled, and this user may not be able to read
    them: the defaults do.
    """
    from service.metrics import Metrics
    from service.settings import Settings
    from service.worker.live_state import LiveState

    LiveState(Settings.model_construct(), Metrics()).warm_up_methods(names)


def compile_ranking() -> None:
    """Compile the methods that rank or average a user's runs, and the aging of priorities."""
    from predictors.accuracy_groups import warm_up as compile_aging
    from predictors.registry import PREDICTORS

    compile_methods(*set(PREDICTORS) - {"attention", "forest", "knn", "least-cost"})
    compile_aging()


def compile_attention_and_rounds() -> None:
    """Compile attention, also as rounds of tuning call it, at several prices."""
    from predictors.methods.attention import Attention
    from predictors.tuning.tunables import fill_buffer

    compile_methods("attention")
    fill_buffer(made_up_runs(), Attention(), capacity=RUNS, prices=[1.0])


def compile_forest() -> None:
    """Compile forest as predictions and as rounds of tuning call it, with trees of one leaf."""
    import numpy as np

    from predictors.base import Question
    from predictors.methods.forest import Forest
    from predictors.methods.forest_trees import one_leaf

    forest = Forest(learned=one_leaf(attention=0.5))
    runs = made_up_runs()
    for run in runs:
        forest.observe(run)
    forest.features()
    forest.estimates_of_last(1, np.array([1.0]))
    for question in (Question(), Question(elapsed=1.0, explain=True)):
        forest.ask(runs[-1].submission, question)
    forest.predict(runs[-1].submission)
    forest.quantiles(runs[-1].submission, (0.5,))


def compile_tuning() -> None:
    """Compile a round of tuning by its exhaustive search; the genetic one is not compiled."""
    from predictors.methods.knn import KnnParameters
    from predictors.tuning.adoption import Adopted
    from predictors.tuning.knn_tunable import tune
    from predictors.tuning.plan import TuningPlan

    plan = TuningPlan(history=100, training=100, test=100, search="exhaustive")
    tune(made_up_runs(), Adopted(now=KnnParameters()), plan)


def made_up_runs() -> "list[Completion]":
    """Return runs of five users, one after the other."""
    from predictors.jobs import Completion, Submission

    return [
        Completion(
            submission=Submission(
                user=f"u{number % 5}",
                requested_walltime=3600.0,
                submit_time=100.0 * number,
                requested_processors=1,
            ),
            start_time=100.0 * number,
            end_time=100.0 * number + 50.0,
            runtime=50.0,
        )
        for number in range(RUNS)
    ]


def compile_simulator() -> None:
    """Compile the loop of each policy, as forecasts run it."""
    from simulator.engine.policies import POLICIES
    from simulator.scheduling.semantics import Semantics
    from simulator.scheduling.simulate import warm_up as compile_loop

    for policy in POLICIES:
        compile_loop(Semantics(policy=policy))


def compile_twin() -> None:
    """Compile the loop of the twin of Slurm, as ``simulate`` and ``backtest`` run it."""
    from simulator.scheduling.semantics import SLURM, Semantics
    from simulator.scheduling.simulate import warm_up as compile_loop

    compile_loop(Semantics(policy=SLURM))


OTHER_METHODS: Mapping[str, Callable[[], None]] = {
    "knn and least-cost": partial(compile_methods, "knn", "least-cost"),
    "the other methods": compile_ranking,
}

PREDICTING: Mapping[str, Callable[[], None]] = {
    "attention": partial(compile_methods, "attention"),
    **OTHER_METHODS,
}
"""The parts that predictions need."""

EVERYTHING: Mapping[str, Callable[[], None]] = {
    "the simulator": compile_simulator,
    "the twin of Slurm": compile_twin,
    "attention and its rounds": compile_attention_and_rounds,
    "forest": compile_forest,
    "tuning": compile_tuning,
    **OTHER_METHODS,
}
"""All parts, each compiled in a process of its own, the longest first."""


def warm_up(
    *,
    predicting: Annotated[
        bool,
        typer.Option(
            "--predicting",
            help="Only methods: a service compiles what forecasts need in the background.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compile everything that is compiled, once for this installation.

    It takes half a minute to a minute of two cores. The machine code is kept beside
    the installed package, or where NUMBA_CACHE_DIR says; after that `walltimed serve` is ready
    within two seconds. When all of it is there already, this says so.

    For example:

        walltimed warm-up
        NUMBA_CACHE_DIR=/var/cache/walltimed walltimed warm-up
    """
    began = time.perf_counter()
    parts = PREDICTING if predicting else EVERYTHING
    compiled = sum(functions for _, functions in compile_parts(parts))
    seconds = round(time.perf_counter() - began, 1)
    if as_json:
        print_json({"compiled": compiled, "seconds": seconds})
    elif compiled:
        out.print(f"{compiled} functions were compiled in {seconds} s, once per installation.")
    else:
        out.print("Everything was compiled already.")


def compile_parts(parts: Collection[str]) -> list[tuple[str, int]]:
    """Compile parts in parallel, and return the number of compiled functions of each."""
    cores = len(os.sched_getaffinity(0))
    err.print(f"Compiling what is not compiled yet, on {cores} cores …")
    began, compiled = time.perf_counter(), []
    with ThreadPoolExecutor(cores) as pool:
        for future in as_completed([pool.submit(compile_apart, part) for part in parts]):
            part, functions = future.result()
            compiled.append((part, functions))
            took = f"{functions} functions, after {time.perf_counter() - began:.0f} s"
            err.print(f"  {len(compiled)} of {len(parts)}: {part}, {took}")
    return compiled


def compile_apart(part: str) -> tuple[str, int]:
    """Compile a part in a process of its own.

    Raises:
        CommandError: it failed; the message is what the process said last.
    """
    command = [sys.executable, "-P", "-m", "service.cli.warming", part]
    process = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if process.returncode:
        last = (process.stderr.strip().splitlines() or [f"exit code {process.returncode}"])[-1]
        raise CommandError(f"Compiling {part} failed: {last}")
    return part, int(process.stdout.splitlines()[-1])


def main(*parts: str) -> None:
    """Compile parts in this process, and print how many functions were in no cache."""
    from predictors.compiled import compilations

    for part in parts:
        {**PREDICTING, **EVERYTHING}[part]()
    sys.stdout.write(f"{compilations()}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
