"""``walltimed experiment wait-prediction``: what users are told when they submit."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Annotated

import typer

from service.cli.console import AsJson, CommandError, ExitCode, out, print_json, progress_bar

METHODS = ("max-usage", "last-two")


def wait_prediction(
    traces: Annotated[list[str], typer.Argument(metavar="TRACE...", help="SWF files.")],
    *,
    method: Annotated[
        list[str] | None, typer.Option("--method", "-m", help="Such as max-usage or knn.")
    ] = None,
    policy: Annotated[
        list[str] | None, typer.Option("--policy", "-p", help="easy or conservative; else both.")
    ] = None,
    samples: Annotated[
        int, typer.Option(min=0, help="Futures that intervals come from, for one job in ten.")
    ] = 0,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only the first jobs after cleaning.")
    ] = None,
    processes: Annotated[int | None, typer.Option(min=1, help="By default one per core.")] = None,
    as_json: AsJson = False,
) -> None:
    """Forecast every job's wait when it arrives, by requests, predictions and exact runtimes.

    Under EASY and conservative backfilling, once with a scheduler that plans by requests, once
    with one that plans by the estimates that the forecasts go by (Klusáček & Soysal, Fig. 9).

    For example:

        walltimed experiment wait-prediction SDSC-SP2-1998-4.2-cln.swf.gz
        walltimed experiment wait-prediction *.swf.gz --limit 20000 --method knn
    """
    from simulator.studies.wait_prediction import POLICIES, cases, run_cases, table

    unknown = set(policy or ()) - set(POLICIES)
    if unknown:
        raise CommandError(f"There is no policy {min(unknown)} here.", ExitCode.USAGE)
    wanted = cases(traces, method or METHODS, limit, policy or POLICIES, samples)
    context = get_context("spawn")
    with (
        ProcessPoolExecutor(processes, mp_context=context) as executor,
        progress_bar("simulations", quiet=as_json) as progress,
    ):
        task = progress.add_task("", total=len(wanted))
        found = run_cases(executor, wanted, lambda done: progress.advance(task, done))
    if as_json:
        lines = zip(wanted, found, strict=True)
        print_json([{**case._asdict(), **errors._asdict()} for case, errors in lines])
        return
    out.print(table(wanted, found), soft_wrap=True, end="", markup=False)
