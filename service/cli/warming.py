"""``walltimed warm-up``: compiles what would else be compiled at the first use."""

import time

from service.cli.console import AsJson, out, print_json

RUNS = 400
"""Made-up completions that a round of tuning is played on."""


def warm_up(*, as_json: AsJson = False) -> None:
    """Compile everything that is compiled, once for this installation.

    It takes 20 seconds to a minute of one core. The machine code is kept beside
    the installed package, or where NUMBA_CACHE_DIR says; after that `walltimed serve` is ready
    within two seconds. When all of it is there already, this says so.

    For example:

        walltimed warm-up
        NUMBA_CACHE_DIR=/var/cache/walltimed walltimed warm-up
    """
    from predictors.compiled import compilations

    began = time.perf_counter()
    compile_methods()
    compile_tuning()
    compile_simulator()
    compiled, seconds = compilations(), round(time.perf_counter() - began, 1)
    if as_json:
        print_json({"compiled": compiled, "seconds": seconds})
    elif compiled:
        out.print(f"{compiled} functions were compiled in {seconds} s.")
    else:
        out.print("Everything was compiled already.")


def compile_methods() -> None:
    """Ask every method, and all that stands beside them."""
    from predictors.accuracy_groups import warm_up as compile_aging
    from service.metrics import Metrics
    from service.settings import Settings
    from service.worker.live_state import LiveState

    LiveState(Settings(config=None), Metrics()).rehearse()
    compile_aging()


def compile_tuning() -> None:
    """Play a small round on made-up runs."""
    from predictors.jobs import Completion, Submission
    from predictors.methods.knn import KnnParameters
    from predictors.tuning.plan import TuningPlan
    from predictors.tuning.round import tune

    runs = [
        Completion(
            submission=Submission(
                user=f"u{number % 5}", requested_walltime=3600.0, submit_time=100.0 * number
            ),
            start_time=100.0 * number,
            end_time=100.0 * number + 50.0,
            runtime=50.0,
        )
        for number in range(RUNS)
    ]
    for search in ("genetic", "exhaustive"):
        plan = TuningPlan(history=100, training=100, test=100, generations=1, search=search)
        tune(runs, KnnParameters(), plan)


def compile_simulator() -> None:
    """Play an empty queue, as forecasts do."""
    from simulator.scheduling.simulate import warm_up as compile_engine

    compile_engine()
