"""``walltimed warm-up``: compiles what would else be compiled at the first use."""

import time
from collections.abc import Callable
from typing import Annotated, NamedTuple

import typer

from terminal.console import err, out, print_json
from terminal.options import AsJson


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

    It takes one to three minutes. The machine code is kept beside the installed package, or where
    NUMBA_CACHE_DIR says; after that `walltimed serve` is ready within two seconds. When all of it
    is there already, this says so.

    For example:

        walltimed warm-up
        NUMBA_CACHE_DIR=/var/cache/walltimed walltimed warm-up
    """
    from predictors.compiled import compilations

    began = time.perf_counter()
    err.print("Compiling what is not compiled yet …")
    for name, compile_part in (METHODS if predicting else METHODS | OTHERS).items():
        counted = Counted(name, compilations())
        with err.status(counted):
            compile_part()
        err.print(f"  {counted}, after {time.perf_counter() - began:.0f} s")
    seconds = round(time.perf_counter() - began, 1)
    if as_json:
        print_json({"compiled": compilations(), "seconds": seconds})
    elif compilations():
        out.print(
            f"{compilations()} functions were compiled in {seconds} s, once per installation."
        )
    else:
        out.print("Everything was compiled already.")


class Counted(NamedTuple):
    """A part that is being compiled; a terminal counts its functions.

    Attributes:
        name: of the part.
        before: number of functions that had been compiled before it.
    """

    name: str
    before: int

    def __rich__(self) -> str:
        """Return the part and the number of its functions so far."""
        from predictors.compiled import compilations

        return f"{self.name}: {compilations() - self.before} functions"

    def __str__(self) -> str:
        """Return part and number of its functions, for the line that stays."""
        return self.__rich__()


def compile_methods() -> None:
    """Compile the methods, with the code that runs beside them.

    The site's settings change nothing in what is compiled, and this user may not be able to read
    them: the defaults do.
    """
    from service.settings import Settings
    from service.worker.worker import warm_up

    warm_up(Settings.model_construct())


def compile_priorities() -> None:
    """Compile the aging of priorities."""
    from predictors.accuracy_groups import warm_up

    warm_up()


def compile_rounds() -> None:
    """Compile what rounds of tuning run."""
    from predictors.tuning.warming import warm_up

    warm_up()


def compile_simulator() -> None:
    """Compile the loop of each policy and of the twins, as forecasts and commands run them."""
    from simulator.engine.policies import POLICIES
    from simulator.scheduling.semantics import TWINS, Semantics
    from simulator.scheduling.simulate import warm_up

    for policy in (*POLICIES, *TWINS):
        warm_up(Semantics(policy=policy))


METHODS: dict[str, Callable[[], None]] = {
    "methods": compile_methods,
    "priorities": compile_priorities,
}
"""The parts that predictions need."""

OTHERS: dict[str, Callable[[], None]] = {
    "rounds of tuning": compile_rounds,
    "policies and twins": compile_simulator,
}
