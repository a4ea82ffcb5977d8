"""``walltimed backtest``: what predictions would change at a site."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from predictors.jobs import DEFAULT_CLUSTER
from service.cli.console import (
    AsJson,
    CommandError,
    ExitCode,
    Limit,
    err,
    out,
    print_json,
    progress_bar,
)
from service.cli.formats import FORMATS
from service.cli.importing import OnError, refuse_malformed, zone_named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simulator.traces.trace import Trace

KNOWN = frozenset({"requested", "exact"})
"""Estimates that every backtest simulates; no method to name."""


def backtest(
    file: Annotated[
        str, typer.Argument(metavar="ACCOUNTING-FILE", help="Plain, gzip or xz; - is stdin.")
    ],
    *,
    format_: Annotated[
        str, typer.Option("--format", "-f", help=f"One of: {', '.join(FORMATS)}.")
    ] = "swf",
    cluster: Annotated[
        str, typer.Option(help="Cluster of records that name none.")
    ] = DEFAULT_CLUSTER,
    time_zone: Annotated[
        str, typer.Option(help="Time zone of times without one, such as Europe/Berlin.")
    ] = "UTC",
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The page to write.")
    ] = Path("backtest.html"),
    policy: Annotated[
        str, typer.Option(help="The site's policy: fcfs, easy, easy-sjbf, conservative.")
    ] = "easy",
    order: Annotated[
        str, typer.Option(help="Queue order: fcfs, sjf, wfp, psp, psp-aging.")
    ] = "fcfs",
    adjust: Annotated[
        str, typer.Option(help="regular, or selective: running jobs keep their requests.")
    ] = "regular",
    method: Annotated[
        list[str] | None,
        typer.Option("--method", "-m", help="Method, such as percentile:percentile=90."),
    ] = None,
    processors: Annotated[
        int | None, typer.Option(min=1, help="Size of the machine; default: from the header.")
    ] = None,
    cores_per_node: Annotated[
        int | None, typer.Option(min=1, help="Jobs take whole nodes with this many cores.")
    ] = None,
    limit: Limit = None,
    on_error: Annotated[
        OnError, typer.Option(help="Malformed lines: refuse the file, or skip them.")
    ] = OnError.REFUSE,
    as_json: AsJson = False,
) -> None:
    """Write a page that shows what a site would gain, from its own accounting log.

    The page shows the errors of today's requests and of each method's predictions. It shows what
    the schedule would gain under the site's policy, how often jobs would outlive their
    prediction, and which users gain or lose. The page needs no other file. Only SWF contains the
    size of the machine; other formats need --processors.

    For example:

        walltimed backtest log.swf.gz --policy easy --processors 1024
        walltimed backtest log.swf.gz --order wfp -m max-usage -m percentile:percentile=90
        walltimed backtest --format sacct --time-zone Europe/Berlin sacct.txt --processors 4096
    """
    from predictors.registry import METHODS
    from simulator.reports.backtest import backtest as test
    from simulator.reports.backtest import verdict, write_page
    from simulator.scheduling.semantics import Semantics
    from simulator.scheduling.workload import first_jobs, prepare
    from simulator.traces.files import name_of

    semantics = Semantics.adjusted(adjust, policy=policy, order=order)
    methods = tuple(name for name in dict.fromkeys(method or METHODS) if name not in KNOWN)
    if not methods:
        raise CommandError("Name a method that predicts.", ExitCode.USAGE)
    log, users, unlearned = read_log(file, format_, cluster, time_zone, on_error)
    log = first_jobs(log, limit, processors=processors)
    workload = prepare(log, processors=processors, cores_per_node=cores_per_node)
    if not len(workload):
        raise CommandError(f"{name_of(file)} has no job that can be simulated.", ExitCode.USAGE)
    with progress_bar("jobs", quiet=as_json) as progress:
        task = progress.add_task("", total=len(workload) * (3 + len(methods)))
        tested = test(
            log,
            workload,
            semantics,
            methods,
            progress=lambda jobs: progress.advance(task, jobs),
        )
    tested = replace(tested, users=users)
    counts = {**unlearned, **workload.counts}
    left_out = ", ".join(f"{jobs:,} {rule}" for rule, jobs in counts.items() if jobs)
    facts = {
        "Log": name_of(file),
        "Jobs": f"{len(workload):,}; {left_out or 'nothing left out'}",
        **tested.today.schedule.card(),
    }
    write_page(tested, output, f"Backtest of {name_of(file)}", facts)
    if as_json:
        print_json(
            {
                "page": str(output),
                "treated": counts,
                "verdict": verdict(tested),
                "methods": [summary.as_dict() for summary in tested.summaries],
                "simulations": [each.as_record() for each in tested.outcomes],
            }
        )
    else:
        for sentence in verdict(tested):
            out.print(escape(sentence), soft_wrap=True)
        err.print(escape(f"The page is {output}."), soft_wrap=True)
    if log.rejects:
        raise typer.Exit(ExitCode.PARTIAL)


def read_log(
    file: str, format_: str, cluster: str, time_zone: str, on_error: OnError
) -> "tuple[Trace, Mapping[int, str], Mapping[str, int]]":
    """An accounting file as a trace, the users' names, and counts of the jobs left out.

    Raises:
        CommandError: the format is unknown, lines are malformed, or the file mixes clusters.
    """
    from simulator.traces.completions import trace_of
    from simulator.traces.swf import read_swf

    if format_ not in FORMATS:
        raise CommandError(
            f"There is no format {format_!r}; there are {', '.join(FORMATS)}.", ExitCode.USAGE
        )
    if format_ == "swf":
        refuse = on_error is OnError.REFUSE
        return read_swf(file, on_error="raise" if refuse else "skip"), {}, {}
    history = FORMATS[format_](file, cluster, zone_named(time_zone))
    if on_error is OnError.REFUSE:
        refuse_malformed({file: history}, "No page was written", "leaves them out")
    runs = list(history.completions)
    clusters = sorted({run.submission.cluster for run in runs})
    if len(clusters) > 1:
        raise CommandError(
            f"{file} has jobs of the clusters {', '.join(clusters)}; each has its own scheduler "
            "and needs its own file.",
            ExitCode.USAGE,
        )
    trace, users = trace_of(runs)
    return replace(trace, rejects=tuple(history.rejected)), users, history.left_out
