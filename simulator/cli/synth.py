"""``walltimed synth``: makes traces from published models."""

from typing import Annotated

import typer

from terminal.console import check_alone, check_file, err, print_json
from terminal.options import AsJson


def synth(
    *,
    jobs: Annotated[int, typer.Option(min=1, max=10_000_000, help="Number of jobs.")] = 5000,
    seed: Annotated[int, typer.Option(min=0, help="Equal seeds make equal traces.")] = 1,
    processors: Annotated[int, typer.Option(min=1, max=2**30, help="Size of the machine.")] = 128,
    users: Annotated[int, typer.Option(min=1, max=1_000_000, help="Number of users.")] = 60,
    interactive: Annotated[
        bool, typer.Option("--interactive", help="Interactive jobs arrive as well.")
    ] = False,
    load: Annotated[
        float | None,
        typer.Option(min=0.01, max=2, help="How full the machine is; default: as the model."),
    ] = None,
    output: Annotated[
        str,
        typer.Option("--output", "-o", help="Compressed if it ends in .gz or .xz; - is stdout."),
    ] = "-",
    as_json: AsJson = False,
) -> None:
    """Make a synthetic SWF trace of users that run the same applications repeatedly.

    Arrivals, sizes and runtimes follow Lublin and Feitelson (2003). Requests follow Tsafrir et al.
    (2005): most take one of twenty values. The header has the command that makes the trace again.

    For example:

        walltimed synth --jobs 10000 --seed 7 -o synthetic.swf.gz
        walltimed synth --jobs 1000 | walltimed replay - --in-process
        walltimed synth --jobs 20000 --load 0.8 -o busy.swf.gz
    """
    from simulator.traces.swf import write_swf
    from simulator.traces.synth import SyntheticLog, synthesise
    from terminal.files import STANDARD_STREAM

    check_alone(output, "the trace", as_json=as_json)
    check_file(output)
    workload = SyntheticLog(
        jobs=jobs, seed=seed, processors=processors, users=users, interactive=interactive,
        load=load,
    )  # fmt: skip
    trace = synthesise(workload)
    write_swf(trace, output)
    days = float(trace.submit[-1]) / 86400
    if as_json:
        print_json({"file": output, "jobs": len(trace), "days": days, "command": workload.command})
    elif output != STANDARD_STREAM:
        err.print(f"{output}: {len(trace):,} jobs over {days:,.1f} days", soft_wrap=True)
