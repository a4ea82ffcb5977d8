"""``walltimed experiment likeness``: attention on logs that it was not learned from."""

from typing import Annotated

import typer

from service.cli.console import AsJson, err, out, print_json


def likeness(
    traces: Annotated[list[str], typer.Argument(metavar="TRACE...", help="SWF, also gzip or xz.")],
    *,
    jobs: Annotated[int, typer.Option(min=1, help="Drawn from each log to learn from.")] = 16_000,
    passes: Annotated[int, typer.Option(min=1, help="Over all of them.")] = 6,
    seed: Annotated[int, typer.Option(help="Of the draw and of learning.")] = 1,
    processes: Annotated[int, typer.Option(min=1, help="Logs that are played at a time.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Leave each log out once: learn attention's weights from the others, and play it with them.

    Compares attention with least-cost and the methods of the papers where they underestimate
    equally often. All jobs count, those of new users too; runtimes count up to the request.
    Needs PyTorch (pip install --group learning), and all logs at once.

    For example:

        walltimed experiment likeness SDSC-SP2-1998-4.2-cln.swf.gz CTC-SP2-1996-3.1-cln.swf.gz
    """
    from simulator.learning.training import Recipe
    from simulator.studies.likeness import report, study

    if len(traces) < 2:
        raise typer.BadParameter("give at least two logs: each is played with the others' weights.")
    recipe = Recipe(jobs=jobs, passes=passes, seed=seed)
    found = []
    for each in study(traces, recipe, processes=processes, progress=err.print):
        found.append(each)
        err.print(f"{each.name}: left out and played ({len(found)} of {len(traces)})")
    if as_json:
        print_json([each.as_dict() for each in found])
    else:
        out.print(report(found), soft_wrap=True, markup=False)
