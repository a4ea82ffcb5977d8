"""``walltimed experiment calibration``: do intervals hold what they promise, on real traces?"""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from service.cli.console import AsJson, CommandError, ExitCode, out, print_json, progress_bar
from service.cli.experiments.xu import runs_of

if TYPE_CHECKING:
    from predictors.base import UncertainPredictor
    from simulator.studies.calibration import CalibrationStudy


def calibration(
    traces: Annotated[list[str], typer.Argument(metavar="TRACE...", help="SWF, also gzip or xz.")],
    *,
    method: Annotated[str, typer.Option(help="A method that gives intervals.")] = "least-cost",
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw asked against got, as SVG or PNG.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare the coverage and the underestimates that are asked for with those that come.

    Every job is asked about at its submission, when only what had ended is known: 50, 80, 90 and
    95% intervals, and predictions that may be too short for 5, 10 and 20% of the jobs. The table
    has the share over the whole log and how far off each tenth of it was. The goals: intervals
    within 2 points over the log and within 5 in every tenth, underestimates within 1 point.

    For example:

        walltimed experiment calibration SDSC-SP2-1998-4.2-cln.swf.gz --picture asked-got.svg
    """
    from predictors.registry import UNCERTAIN, create
    from simulator.studies.calibration import draw, report, study

    if method not in UNCERTAIN:
        raise CommandError(
            f"{method} gives no intervals; {', '.join(sorted(UNCERTAIN))} do.", ExitCode.USAGE
        )
    found: dict[str, CalibrationStudy] = {}
    for trace in traces:
        runs = runs_of(trace, None)
        asked = cast("UncertainPredictor", create(method))
        name = Path(trace).name.split(".")[0]
        with progress_bar("jobs", quiet=as_json) as bar:
            task = bar.add_task(trace, total=len(runs))
            found[name] = study(runs, asked, progress=partial(bar.advance, task))
        if not as_json:
            out.print(f"{name}, {method}: {report(found[name])}\n", soft_wrap=True, markup=False)
    if picture:
        draw(found, picture)
    if as_json:
        print_json({name: each.as_dict() for name, each in found.items()})
