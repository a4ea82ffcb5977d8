"""``walltimed experiment hanzich``: turnarounds on shared nodes, estimated and true."""

from concurrent.futures import ProcessPoolExecutor
from typing import Annotated

import typer

from service.cli.console import AsJson, out, print_json, progress_bar


def hanzich(
    *,
    seeds: Annotated[int, typer.Option(min=2, help="Workloads in each setting.")] = 100,
    scale: Annotated[
        float, typer.Option(min=0.01, max=100, help="Benchmarks run so many times longer.")
    ] = 1.0,
    processes: Annotated[int | None, typer.Option(min=1, help="By default one per core.")] = None,
    as_json: AsJson = False,
) -> None:
    """Score the turnaround estimates of Hanzich et al. 2005 against simulated shared nodes.

    30 NAS-like jobs arrive every 15 s or so at 16 nodes that are shared fairly by up to four of
    them and by local users. At each arrival every combination of the paper's estimators says
    when every job will end. The tables are those of the paper's Fig. 3 and Table 1.

    For example:

        walltimed experiment hanzich
        walltimed experiment hanzich --seeds 30 --scale 2
    """
    from simulator.studies.hanzich.findings import verdicts
    from simulator.studies.hanzich.study import as_records, report, run_study, workloads

    with ProcessPoolExecutor(processes) as executor, progress_bar("workloads") as progress:
        task = progress.add_task("", total=workloads(seeds))
        scores = run_study(
            executor,
            seeds=seeds,
            scale=scale,
            progress=lambda played: progress.advance(task, played),
        )
    if as_json:
        print_json({"seeds": seeds, "cells": as_records(scores), "findings": verdicts(scores)})
        return
    out.print(f"walltimed experiment hanzich --seeds {seeds} --scale {scale:g}\n", soft_wrap=True)
    out.print(report(scores), soft_wrap=True, end="", markup=False)
