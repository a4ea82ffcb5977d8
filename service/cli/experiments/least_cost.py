"""``walltimed experiment least-cost``: against the methods of the papers, on real traces."""

from functools import partial
from typing import Annotated, Any

import typer

from service.cli.console import AsJson, out, print_json, progress_bar
from service.cli.experiments.xu import runs_of


def least_cost(
    traces: Annotated[list[str], typer.Argument(metavar="TRACE...", help="SWF, also gzip or xz.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Compare least-cost with the methods of the papers where they underestimate equally often.

    The price of an underestimate moves least-cost along its trade-off. Percentiles are those of
    the user's usages within 30 days, without a lower bound; knn is not tuned
    (walltimed experiment xu tunes it). All jobs count, those of new users too.

    For example:

        walltimed experiment least-cost SDSC-SP2-1998-4.2-cln.swf.gz
    """
    from simulator.studies.least_cost import report, study

    found: dict[str, Any] = {}
    for trace in traces:
        runs = runs_of(trace, None)
        with progress_bar("jobs", quiet=as_json) as bar:
            task = bar.add_task(trace, total=len(runs))
            found[trace] = study(runs, progress=partial(bar.advance, task))
        if not as_json:
            out.print(f"{trace}\n{report(found[trace])}", soft_wrap=True, markup=False)
    if as_json:
        print_json({name: each.as_dict() for name, each in found.items()})
