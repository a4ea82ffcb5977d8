"""``walltimed experiment xu``: does tuning knn pay, on real traces?"""

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.cli.console import AsJson, CommandError, ExitCode, out, print_json, progress_bar

if TYPE_CHECKING:
    from predictors.jobs import Completion


def xu(
    traces: Annotated[list[str], typer.Argument(metavar="TRACE...", help="SWF, also gzip or xz.")],
    *,
    year: Annotated[int | None, typer.Option(help="Only jobs submitted in this year.")] = None,
    history: Annotated[int, typer.Option(help="h, jobs that only serve as neighbours.")] = 5_000,
    training: Annotated[int, typer.Option(help="t1, jobs that parameters are tried on.")] = 20_000,
    test: Annotated[int, typer.Option(help="t2, jobs between rounds.")] = 2_000,
    penalty: Annotated[float, typer.Option(help="Of the tuned knn of Figs. 2 and 3.")] = 1.0,
    search: Annotated[str, typer.Option(help="exhaustive or genetic.")] = "exhaustive",
    pictures: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Draw the curves there, as SVG.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare tuned knn with untuned knn, requests, last-two, max-usage and percentile.

    After every t2 jobs that have ended, parameters are searched on the t1 jobs before the last
    t2, and adopted if they beat those in force on these. Methods are compared where they
    underestimate equally often, as the penalty on underestimates moves the tuned one along its
    trade-off. The other tables are Figures 2 and 3 of Xu et al. 2019 in numbers.

    For example:

        walltimed experiment xu SDSC-SP2-1998-4.2-cln.swf.gz
        walltimed experiment xu --year 2004 --training 2000 --test 1000 HPC2N-2002-2.2-cln.swf.gz
    """
    from predictors.tuning.plan import TuningPlan
    from simulator.studies.xu.study import PENALTIES, report, study

    try:
        plan = TuningPlan(
            history=history,
            training=training,
            test=test,
            penalty=penalty,
            search=search,  # type: ignore[arg-type] # it is checked there
        )
    except ValueError as error:
        raise CommandError(str(error), ExitCode.USAGE) from error
    found: dict[str, Any] = {}
    for trace in traces:
        runs = runs_of(trace, year)
        if len(runs) <= plan.fewest_jobs:
            raise CommandError(f"{trace}: only {len(runs)} jobs.", ExitCode.USAGE)
        rounds = len(range(plan.fewest_jobs, len(runs), plan.test))
        with progress_bar("rounds", quiet=as_json) as bar:
            task = bar.add_task(trace, total=rounds * (len(PENALTIES) + 1))
            found[trace] = study(runs, plan, progress=partial(bar.advance, task))
        if pictures:
            from simulator.studies.xu.pictures import write_pictures

            write_pictures(found[trace], pictures, Path(trace).name.split(".")[0])
        if not as_json:
            out.print(f"{trace}\n{report(found[trace])}", soft_wrap=True, markup=False)
    if as_json:
        print_json({name: each.as_dict() for name, each in found.items()})


def runs_of(trace: str, year: int | None) -> "list[Completion]":
    """The jobs of a trace that can be learned from, of one year or of all."""
    from simulator.traces.cleaning import REPLAY_RULES, clean
    from simulator.traces.completions import completions
    from simulator.traces.swf import read_swf

    jobs, _ = clean(read_swf(trace), REPLAY_RULES)
    first, end = (0.0, float("inf"))
    if year is not None:
        first = datetime(year, 1, 1, tzinfo=UTC).timestamp()
        end = datetime(year + 1, 1, 1, tzinfo=UTC).timestamp()
    return [run for run in completions(jobs) if first <= run.submission.submit_time < end]
